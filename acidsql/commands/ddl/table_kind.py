"""The kind of table that CREATE TABLE declares: Hive's rules for transactional tables, buckets, and LIKE."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from acidsql.commands.dml.columns import columns_of
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AcidError, AnalysisError, ColumnNotFound, InvalidValue, TableNotFound, UnsupportedError
from acidsql.metastore.model import (
    APPLIED,
    BUCKETING_VERSION,
    INSERT_ONLY,
    LAST_DDL,
    STATISTICS,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    Column,
    Constraint,
    ConstraintKind,
    Table,
)
from acidsql.plan.bucketing import has_bucket_hash
from acidsql.plan.text import quote
from acidsql.sql.statements import CreateTable
from acidsql.types import parse_type

VALID_WRITE_IDS = "acidsql.valid.write.ids"
"""Table property of CREATE TABLE … LOCATION: Hive's ``ValidReaderWriteIdList`` text for a directory with aborted or
open write ids; without it all its directories count as committed."""

MAX_BUCKETS = 4096
"""``BucketCodec`` has twelve bits for the number of a bucket."""

_VALUES = {TRANSACTIONAL_PROPERTIES: ("default", INSERT_ONLY), BUCKETING_VERSION: ("2", "1")}
"""Properties with a fixed set of values; the first is the default."""
_OWN = (TRANSACTIONAL, "external", VALID_WRITE_IDS, APPLIED, *_VALUES)
"""Properties that are set here or not stored."""
_OF_ONE_TABLE = frozenset({*STATISTICS, LAST_DDL, APPLIED})
"""Properties that LIKE does not copy."""


def is_ours(env: Environment, statement: CreateTable) -> bool:
    """Whether CREATE TABLE creates an ACID table; Spark runs any other.

    Raises:
        AnalysisError: When ``transactional`` is neither true nor false.
    """
    word = (property_of(statement.properties, TRANSACTIONAL) or "").lower()
    if word not in ("", "true", "false"):
        message = f"'transactional' property of TBLPROPERTIES may only have value 'true': {statement.table.table}"
        raise with_location(statement.table.span, AnalysisError(message, sqlstate="08S01"))
    if statement.transactional or word == "true":
        return True
    return not word and statement.like is not None and env.find_table(statement.like) is not None


def property_of(properties: Mapping[str, str], name: str) -> str | None:
    """A table property by its lower-case name, in any letter case."""
    return next((v for k, v in properties.items() if k.lower() == name), None)


def check_kind(statement: CreateTable, full_name: str) -> None:
    """Check the clauses and properties of a transactional table (Hive's ``TransactionalValidationListener``).

    Raises:
        AnalysisError: When Hive does not support such a table.
        UnsupportedError: When only Hive supports it.
    """
    problem = _format_problem(statement, full_name) or _properties_problem(statement, full_name)
    if problem is None and statement.like is not None and (statement.columns or statement.partition_keys):
        message = "CREATE TABLE LIKE command cannot specify the list of columns for the target table"
        problem = AnalysisError(message, code=10066)
    if problem is not None:
        raise with_location(statement.table.span, problem)


def _format_problem(s: CreateTable, full_name: str) -> AcidError | None:
    if s.external or (property_of(s.properties, "external") or "").lower() == "true":
        message = f"{full_name} cannot be declared transactional because it's an external table"
        return AnalysisError(message, sqlstate="08S01")
    format = (s.stored_as or s.using or "orc").lower()
    if format != "orc" and (property_of(s.properties, TRANSACTIONAL_PROPERTIES) or "").lower() == INSERT_ONLY:
        return UnsupportedError(f"Insert-only tables are written as ORC, not as {format.upper()}: {full_name}")
    if format != "orc":
        message = f"The table must be stored using an ACID compliant format (such as ORC): {full_name}"
        return AnalysisError(message, sqlstate="08S01")
    if s.sorted_by:
        message = f"Table {full_name} cannot support full ACID functionality since it is sorted."
        return AnalysisError(message, sqlstate="08S01")
    return None


def _properties_problem(s: CreateTable, full_name: str) -> AcidError | None:
    if (property_of(s.properties, TRANSACTIONAL) or "").lower() == "false":
        return AnalysisError(f"Table {full_name} is declared both TRANSACTIONAL and transactional=false")
    for name, values in _VALUES.items():
        given = property_of(s.properties, name)
        if given is not None and given.lower() not in values:
            hint = f"Use one of {', '.join(sorted(values))}."
            return InvalidValue(f"Unknown value for {name}: {given}", sqlstate="08S01", hint=hint)
    return None


def table_parameters(given: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table: those of the statement override inherited ones."""
    properties = {k: v for k, v in {**inherited, **given}.items() if k.lower() not in _OWN}
    for name, values in _VALUES.items():
        properties[name] = (property_of(given, name) or property_of(inherited, name) or values[0]).lower()
    return {**properties, TRANSACTIONAL: "true", LAST_DDL: str(int(time.time()))}


def bucket_columns(statement: CreateTable, columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns of CLUSTERED BY.

    Raises:
        ColumnNotFound: When one is not a data column (Hive 10002).
        AnalysisError: When one is named twice, or there are not between 1 and 4096 buckets (Hive 10037).
        UnsupportedError: When a column's type has no bucket hash.
    """
    types = {c.name: parse_type(c.type) for c in columns}
    names: list[str] = []
    for column in statement.clustered_by:
        name = column.text.lower()
        problem: AcidError | None = None
        if name not in types:
            problem = ColumnNotFound(
                f"Invalid column reference {column.text}: a table is bucketed by its data columns",
                code=10002,
                hint=f"The columns are {', '.join(types)}.",
            )
        elif name in names:
            problem = AnalysisError(f"Column {name} is named twice in CLUSTERED BY")
        elif not has_bucket_hash(types[name]):
            problem = UnsupportedError(f"A table cannot be bucketed by {name}: Hive cannot read values of its type")
        if problem is not None:
            raise with_location(column.span, problem)
        names.append(name)
    if names and not 1 <= (statement.num_buckets or 0) <= MAX_BUCKETS:
        message = f"Bucket number should be bigger than zero, and at most {MAX_BUCKETS}"
        raise with_location(statement.table.span, AnalysisError(message, code=10037))
    return tuple(names)


def made_like(env: Environment, statement: CreateTable) -> Table:
    """The table or view of LIKE, with only what LIKE copies.

    Columns, keys, buckets, constraints, comment and properties, but not statistics. Of a table that only Spark has,
    columns and keys.

    Raises:
        TableNotFound: When it does not exist.
    """
    name = statement.like
    assert name is not None
    source = env.registered(name)
    if source is None and not env.known_to_spark(name):
        message = f"Table not found {env.database_of(name)}.{name.table.lower()}"
        raise with_location(name.span, TableNotFound(message))
    if source is None:
        try:
            return _like_table_of_spark(env, ".".join(quote(p) for p in (name.database, name.table) if p))
        except AcidError as e:
            raise with_location(name.span, e) from e
    kept = {k: v for k, v in source.parameters.items() if k not in _OF_ONE_TABLE}
    is_acid = source.is_transactional
    return Table(
        "",
        "",
        "",
        tuple(replace(c, default_name=None, not_null_name=None) for c in source.columns),
        source.partition_keys,
        kept if is_acid else {},
        source.comment,
        source.bucket_columns if is_acid else (),
        source.num_buckets if is_acid else -1,
        table_constraints=tuple(Constraint.enabled(ConstraintKind.CHECK, check) for check in source.checks),
    )


def _like_table_of_spark(env: Environment, name: str) -> Table:
    """Columns and keys only: Spark's buckets use another hash, and its properties are options of its readers."""
    frame = env.spark.table(name)
    keys = {c.name.lower() for c in env.spark.catalog.listColumns(name) if c.isPartition}
    columns = columns_of(frame.schema)
    return Table(
        "", "", "", tuple(c for c in columns if c.name not in keys), tuple(c for c in columns if c.name in keys)
    )
