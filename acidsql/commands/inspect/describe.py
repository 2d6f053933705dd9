"""DESCRIBE of tables, views, partitions, columns and databases, in the layout of Hive (``TextDescTableFormatter``)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.partitions import one_partition
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.show import known_table
from acidsql.commands.inspect.show_constraints import constraint_lines
from acidsql.errors import ColumnNotFound, DatabaseNotFound
from acidsql.metastore.model import (
    NUM_FILES,
    NUM_PARTITIONS,
    NUM_ROWS,
    STATS_ACCURATE,
    TOTAL_SIZE,
    Column,
    ColumnStatistics,
    Partition,
    Table,
)
from acidsql.sql.statements import Describe, DescribeDatabase

Line = tuple[str, str | None, str | None]

COLUMNS = ("col_name", "data_type", "comment")
DATABASE_COLUMNS = (
    "db_name",
    "comment",
    "location",
    "managedLocation",
    "owner_name",
    "owner_type",
    "connector_name",
    "remote_dbname",
)
SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
VIEW_INPUT_FORMAT = "org.apache.hadoop.mapred.TextInputFormat"
VIEW_OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SUMMED = (NUM_FILES, NUM_ROWS, TOTAL_SIZE)
_BLANK: Line = ("", None, None)


def describe(env: Environment, statement: Describe, parameters: Mapping[str, Any]) -> DataFrame:
    """Columns and partition keys; with FORMATTED or EXTENDED also all metadata of the table or partition."""
    table = known_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    partition = None
    if statement.partition is not None:
        partition = one_partition(env, table, statement.partition, parameters)
    if statement.column is not None:
        return _describe_column(env, table, partition, statement)
    lines = list(_columns(table.columns if statement.formatted else table.all_columns))
    if table.partition_keys:
        lines += [_BLANK, ("# Partition Information", None, None), ("# col_name", "data_type", "comment")]
        lines += _columns(table.partition_keys)
    if statement.formatted:
        lines += _table_details(env, table) if partition is None else _partition_details(env, table, *partition)
        lines += [_BLANK, ("# Storage Information", None, None), *_storage(table)]
        lines += _view(table) if table.is_view else constraint_lines(table)
    return env.strings(COLUMNS, lines)


def _columns(columns: Iterable[Column]) -> Iterator[Line]:
    for column in columns:
        yield column.name, column.type, column.comment


def java_date(seconds: int) -> str:
    """A time as printed by Java's ``Date.toString``, in UTC: ``Sat Nov 21 04:25:53 UTC 2026``; UNKNOWN for 0."""
    if not seconds:
        return "UNKNOWN"
    t = time.gmtime(seconds)
    clock = time.strftime("%H:%M:%S", t)
    return f"{_DAYS[t.tm_wday]} {_MONTHS[t.tm_mon - 1]} {t.tm_mday:02d} {clock} UTC {t.tm_year}"


def _table_details(env: Environment, table: Table) -> Iterator[Line]:
    yield _BLANK
    yield "# Detailed Table Information", None, None
    yield "Database:", table.database, None
    yield "OwnerType:", "USER", None
    yield "Owner:", table.owner, None
    yield "CreateTime:", java_date(table.created_at), None
    yield "LastAccessTime:", "UNKNOWN", None
    yield "Retention:", "0", None
    if not table.is_view:
        yield "Location:", table.location, None
    yield "Table Type:", table.table_type, None
    properties = table.shown_parameters
    if table.partition_keys and not table.is_view:
        properties |= _sums(env.metastore.partition_parameters(table.database, table.name))
    yield from _parameters("Table Parameters:", properties)


def _sums(partitions: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The sums of the partitions' statistics, as Hive shows them for the table (``DescTableOperation``)."""
    sums = {NUM_PARTITIONS: str(len(partitions))}
    for name in _SUMMED:
        values = [parameters.get(name, "") for parameters in partitions.values()]
        if values and all(v.isdecimal() for v in values):
            sums[name] = str(sum(map(int, values)))
    return sums


def _partition_details(env: Environment, table: Table, name: str, partition: Partition) -> Iterator[Line]:
    yield _BLANK
    yield "# Detailed Partition Information", None, None
    yield "Partition Value:", f"[{', '.join(partition.values)}]", None
    yield "Database:", table.database, None
    yield "Table:", table.name, None
    yield "CreateTime:", "UNKNOWN", None
    yield "LastAccessTime:", "UNKNOWN", None
    yield "Location:", partition.location, None
    properties = env.metastore.partition_parameters(table.database, table.name, [name])
    yield from _parameters("Partition Parameters:", properties.get(name, {}))


def _parameters(title: str, parameters: Mapping[str, str]) -> Iterator[Line]:
    if parameters:
        yield title, None, None
    for name, value in sorted(parameters.items()):
        yield "", name, value


def _storage(table: Table) -> Iterator[Line]:
    formats = (VIEW_INPUT_FORMAT, VIEW_OUTPUT_FORMAT) if table.is_view else (INPUT_FORMAT, OUTPUT_FORMAT)
    yield "SerDe Library:", None if table.is_view else SERDE, None
    yield "InputFormat:", formats[0], None
    yield "OutputFormat:", formats[1], None
    yield "Compressed:", "No", None
    yield "Num Buckets:", str(table.num_buckets), None
    yield "Bucket Columns:", f"[{', '.join(table.bucket_columns)}]", None
    yield "Sort Columns:", "[]", None


def _view(table: Table) -> Iterator[Line]:
    yield _BLANK
    yield "# View Information", None, None
    yield "Original Query:", table.view_original or table.view_text, None
    yield "Expanded Query:", table.view_text, None


# --- columns ---------------------------------------------------------------------------------------------------------


def _describe_column(
    env: Environment, table: Table, partition: tuple[str, Partition] | None, statement: Describe
) -> DataFrame:
    assert statement.column is not None
    name = statement.column.text.lower()
    column = next((c for c in table.all_columns if c.name == name), None)
    if column is None:
        hint = f"The columns are {', '.join(c.name for c in table.all_columns)}."
        error = ColumnNotFound(f"Invalid column reference {statement.column.text}", code=10002, hint=hint)
        raise with_location(statement.column.span, error)
    if not statement.formatted:
        return env.strings(COLUMNS, _columns([column]))
    place = partition[0] if partition is not None else None
    known = [] if table.is_view else env.metastore.column_statistics(table, place)
    parameters = table.parameters
    if place is not None:
        parameters = env.metastore.partition_parameters(table.database, table.name, [place]).get(place, {})
    statistics = next((s for s in known if s.column == name), None)
    return env.strings(["column_property", "value"], _column_lines(column, statistics, parameters))


def _column_lines(
    column: Column, statistics: ColumnStatistics | None, parameters: Mapping[str, str]
) -> Iterator[tuple[str, str | None]]:
    def shown(value: object | None) -> str:
        return "" if value is None else str(value)

    yield "col_name", column.name
    yield "data_type", column.type
    yield "min", shown(statistics and statistics.low)
    yield "max", shown(statistics and statistics.high)
    yield "num_nulls", shown(statistics and statistics.nulls)
    yield "distinct_count", shown(statistics and statistics.distinct)
    yield "avg_col_len", shown(statistics and statistics.average_length)
    yield "max_col_len", shown(statistics and statistics.max_length)
    yield "num_trues", shown(statistics and statistics.trues)
    yield "num_falses", shown(statistics and statistics.falses)
    yield "bit_vector", ""
    yield "comment", shown(column.comment)
    if STATS_ACCURATE in parameters:
        yield STATS_ACCURATE, parameters[STATS_ACCURATE]


# --- databases -------------------------------------------------------------------------------------------------------


def describe_database(env: Environment, statement: DescribeDatabase, parameters: Mapping[str, Any]) -> DataFrame:
    """DESCRIBE DATABASE [EXTENDED]: one row with Hive's columns. Spark describes databases that only it has."""
    name = statement.name.text.lower()
    if name not in env.metastore.list_databases():
        if env.spark.catalog.databaseExists(name):
            return env.sql(statement.span.text, parameters)
        raise with_location(statement.name.span, DatabaseNotFound(f"Database does not exist: {name}"))
    database = env.metastore.get_database(name)
    row: list[str | None] = [name, database.comment or "", database.location, "", "", "", "", ""]
    columns = list(DATABASE_COLUMNS)
    if statement.extended:
        columns.append("parameters")
        pairs = ", ".join(f"{k}={v}" for k, v in sorted(database.parameters.items()))
        row.append(f"{{{pairs}}}" if pairs else "")
    return env.strings(columns, [row])
