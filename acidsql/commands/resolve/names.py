"""Resolution of table names; no other module decides this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pyspark.sql import SparkSession

from acidsql.catalyst import Catalyst
from acidsql.compactor.rename_journal import find_table
from acidsql.errors import UnsupportedError
from acidsql.metastore.model import Table
from acidsql.metastore.protocol import Metastore
from acidsql.plan.text import quote

SPARK_CATALOG = "spark_catalog"


class Places(Protocol):
    """Where names are looked up: the session's environment."""

    @property
    def spark(self) -> SparkSession: ...
    @property
    def catalyst(self) -> Catalyst: ...
    @property
    def metastore(self) -> Metastore: ...
    @property
    def database(self) -> str: ...
    @property
    def database_in_spark(self) -> bool: ...


@dataclass(frozen=True)
class AcidTable:
    """A transactional table of the metastore."""

    table: Table


@dataclass(frozen=True)
class View:
    """A view of the metastore, possibly also registered in Spark."""

    table: Table


@dataclass(frozen=True)
class SparkTable:
    """A table or view that Spark reads itself; ``registered`` if the metastore also has it."""

    registered: Table | None


@dataclass(frozen=True)
class TemporaryView:
    """A temporary view of Spark's session."""


@dataclass(frozen=True)
class Missing:
    """Neither the metastore nor Spark has it."""


Resolved: TypeAlias = "AcidTable | View | SparkTable | TemporaryView | Missing"


def resolve(
    env: Places,
    table: str,
    database: str | None = None,
    catalog: str | None = None,
    *,
    ask_spark: bool = True,
) -> Resolved:
    """Resolve ``[[catalog.]database.]table``; a temporary view shadows a table of the same name, as in Spark.

    Args:
        env: The session.
        table, database, catalog: The parts of the name.
        ask_spark: Whether to look up names that the metastore lacks in Spark's catalog; else they are missing.

    Raises:
        UnsupportedError: For a name without a database that Spark may look for in several ones.
    """
    if database is None and env.catalyst.is_temporary_view(table):
        return TemporaryView()
    if catalog is None or catalog.lower() == SPARK_CATALOG:
        known = find_table(env.metastore, (database or env.database).lower(), table.lower())
        if known is not None and database is None and env.catalyst.looks_along_a_path():
            raise UnsupportedError(
                f"With spark.sql.path.enabled the name {table} may be that of a table in any database of the path",
                hint=f"Write {known.full_name}, or switch the setting off.",
            )
        if known is not None and known.is_transactional:
            return AcidTable(known)
        if known is not None:
            return View(known) if known.is_view else SparkTable(known)
    known_to_spark = ask_spark and is_known_to_spark(env, table, database, catalog)
    return SparkTable(None) if known_to_spark else Missing()


def is_known_to_spark(env: Places, table: str, database: str | None = None, catalog: str | None = None) -> bool:
    """Whether Spark itself has a table or view of that name.

    Of a name alone, in the current database: where Spark does not have that, its own current one is another.
    """
    if database is None and not env.database_in_spark:
        return False
    parts = [p for p in (catalog, database, table) if p]
    return bool(env.spark.catalog.tableExists(".".join(quote(p) for p in parts)))
