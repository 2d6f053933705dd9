"""USE, SET and RESET: session state."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import DatabaseNotFound, InvalidValue
from acidsql.settings import REGISTRY, canonical, is_known
from acidsql.sql.statements import Reset, Set, Use

_OWN = (
    *("acidsql.", "acid.", "hive.txn.", "hive.lock", "hive.compactor.", "hive.max.open.", "hive.timedout.txn."),
    *("hive.transactional.", "metastore.txn.", "metastore.lock", "metastore.compactor.", "metastore.max.open."),
)
"""Prefixes of acidsql's settings: unknown names with them are errors. All other names are stored by Spark."""


def use(env: Environment, statement: Use, parameters: Mapping[str, Any]) -> DataFrame:
    """USE: set the current database."""
    name = statement.database.text.lower()
    if name not in env.metastore.list_databases() and not env.spark.catalog.databaseExists(name):
        span = statement.database.span
        raise with_location(span, DatabaseNotFound(f"Database does not exist: {name}"))
    env.use(name)
    return env.nothing()


def set_value(env: Environment, statement: Set, parameters: Mapping[str, Any]) -> DataFrame:
    """SET: acidsql's settings by name, everything else in Spark's configuration; returns (key, value)."""
    name = canonical(statement.name) if statement.name else None
    if name is None:
        own = [[n, env.settings[n]] for n in sorted(env.settings)]
        theirs = [[r[0], r[1]] for r in env.spark.sql("SET").collect()]
        return env.strings(["key", "value"], own + theirs)
    if not _is_own(name):
        return env.sql(statement.span.text, parameters)
    if statement.value is not None:
        env.settings.set(name, statement.value)
    return env.strings(["key", "value"], [[name, env.settings[name]]])


def reset(env: Environment, statement: Reset, parameters: Mapping[str, Any]) -> DataFrame:
    """RESET: acidsql's settings as they were at the beginning, and Spark's; one of them by its name."""
    name = canonical(statement.name) if statement.name else None
    if name is not None and _is_own(name):
        env.settings.reset(name)
        return env.nothing()
    if name is None:
        env.settings.reset()
    return env.sql(statement.span.text, parameters)


def _is_own(name: str) -> bool:
    """Whether a canonical name is that of a setting of acidsql's. Raises: InvalidValue when it can only be one."""
    if is_known(name):
        return True
    if name.startswith(_OWN):
        near = difflib.get_close_matches(name, REGISTRY, n=1, cutoff=0.5)
        raise InvalidValue(f"Unknown setting {name!r}", hint=f"Did you mean {near[0]}?" if near else None)
    return False
