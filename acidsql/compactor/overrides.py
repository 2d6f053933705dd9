"""What a table or a request says otherwise than the session's settings and the table's properties.

``compactor.<setting>`` stands for a setting of this compaction, in a table's properties or in those of the request,
which go first; ``tblprops.<property>``, in a request alone, for a property of the table, such as ``orc.compress``. Hive
takes those of MapReduce by the first prefix, too (``CompactorMR.overrideMRProps``): here they mean nothing.
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
        InvalidValue: When a value is none of its setting.
    """
    own = {**_below(SETTING_PREFIX, table.parameters), **_below(SETTING_PREFIX, request)}
    return settings.but({name: text for name, text in own.items() if name in REGISTRY})


def table_of(table: Table, request: Mapping[str, str]) -> Table:
    """The table with the properties that it has for one compaction: only those of its files may be others."""
    of_files = {k: v for k, v in _below(PROPERTY_PREFIX, request).items() if k.startswith("orc.")}
    return replace(table, parameters={**table.parameters, **of_files})


def threshold_of(setting: Setting[T], table: Table, settings: Settings) -> T:
    """One of the initiator's thresholds, which a table sets by ``compactorthreshold.<setting>``.

    Raises:
        InvalidValue: When the table's value is none of the setting.
    """
    own = {name: text for name, text in _below(THRESHOLD_PREFIX, table.parameters).items() if name == setting.name}
    return settings.but(own).value(setting)


def pool_of(table: Table, database: Database) -> str | None:
    """The pool of requests that name none: the table's property goes before the database's; None for no pool."""
    own = (one.parameters.get(POOL) for one in (table, database))
    return next((pool for pool in own if pool), None)


def _below(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {k[len(prefix) :].lower(): v for k, v in properties.items() if k.lower().startswith(prefix)}
