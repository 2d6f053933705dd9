"""Overrides of settings and table properties by a table or a request.

``compactor.<setting>`` overrides a setting for one compaction, in a table's properties or in those of the request,
which take precedence; ``tblprops.<property>``, only in a request, overrides a property of the table, such as
``orc.compress``. Hive also accepts MapReduce properties with the first prefix (``CompactorMR.overrideMRProps``): here
they have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from acidsql.metastore.model import Database, Table
from acidsql.settings import REGISTRY, Setting, Settings

T = TypeVar("T")

SETTING_PREFIX = "compactor."
PROPERTY_PREFIX = "tblprops."
POOL = "hive.compactor.worker.pool"
THRESHOLD_PREFIX = "compactorthreshold."


def settings_of(settings: Settings, table: Table, request: Mapping[str, str]) -> Settings:
    """The settings of one compaction.

    Raises:
        InvalidValue: When a value is invalid for its setting.
    """
    own = {**_below(SETTING_PREFIX, table.parameters), **_below(SETTING_PREFIX, request)}
    return settings.but({name: text for name, text in own.items() if name in REGISTRY})


def table_of(table: Table, request: Mapping[str, str]) -> Table:
    """The table with overridden properties for one compaction: only those about its files."""
    of_files = {k: v for k, v in _below(PROPERTY_PREFIX, request).items() if k.startswith("orc.")}
    return replace(table, parameters={**table.parameters, **of_files})


def threshold_of(setting: Setting[T], table: Table, settings: Settings) -> T:
    """One of the initiator's thresholds, which a table overrides by ``compactorthreshold.<setting>``.

    Raises:
        InvalidValue: When the table's value is invalid for the setting.
    """
    own = {name: text for name, text in _below(THRESHOLD_PREFIX, table.parameters).items() if name == setting.name}
    return settings.but(own).value(setting)


def pool_of(table: Table, database: Database) -> str | None:
    """The default pool of requests: the table's property overrides the database's; None for no pool."""
    own = (one.parameters.get(POOL) for one in (table, database))
    return next((pool for pool in own if pool), None)


def _below(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {k[len(prefix) :].lower(): v for k, v in properties.items() if k.lower().startswith(prefix)}
