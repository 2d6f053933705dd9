"""Skipping what a condition rules out inside the files: a search argument for orc-core, made from the user's own text.

For an ACID file orc-core looks the columns of a search argument up inside ``row``, by their bare names, while Spark
pushes ``row.<name>``, which finds nothing there. So Spark is asked what it would push for the same condition over a
flat relation of the table's columns, and that is handed to the reader as the options that orc-core itself reads. Spark
must push nothing of its own for such a scan, or it would overwrite them: :mod:`acidsql.plan.files` sees to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.metastore.model import Table
from acidsql.plan.text import literal, quote
from acidsql.plan.views import Views
from acidsql.types import parse_type, to_hive, to_spark

MIN_BYTES = 4 << 20
"""Planning a search costs tens of milliseconds: smaller snapshots are read whole."""

_KEYS = ("tinyint", "smallint", "int", "bigint", "string", "date")
"""Types of join keys by whose values a search can be made."""
_SEARCHABLE = ("boolean", "tinyint", "smallint", "int", "bigint", "string", "date")
"""Types whose ORC statistics and Spark's literals surely mean the same: no zones, no padding, no NaN, no scale."""


@dataclass(frozen=True)
class Search:
    """Conditions that each row of a table must meet to be of any use.

    Attributes:
        conjuncts: The user's texts.
        alias: The name by which they may qualify columns.
        parameters: Values of named parameters.
    """

    conjuncts: tuple[str, ...]
    alias: str
    parameters: Mapping[str, Any]


def searchable_columns(table: Table) -> frozenset[str]:
    """The columns that a search may use."""
    return frozenset(c.name for c in table.columns if to_hive(parse_type(c.type)) in _SEARCHABLE)


MOST_KEYS = 1000
"""So many key values are listed for a search; of more, the range is taken."""


def key_conditions(
    table: Table, name: str, keys: Mapping[str, tuple[pa.ChunkedArray, str]]
) -> tuple[tuple[str, str], ...]:
    """Conditions that each row of a table meets which is equal to some row in some columns.

    Args:
        table: The table.
        name: Its name in the conditions, back-quoted.
        keys: By column: the values that it must be equal to, and their type as Spark names it.

    Returns:
        Pairs of a column and a condition over it alone. Only columns whose values surely compare as the other side's.
    """
    made = []
    for column in table.all_columns:
        if column.name not in keys:
            continue
        values, type = keys[column.name]
        hive = parse_type(column.type)
        if to_hive(hive) in _KEYS and to_spark(hive, plain_strings=True) == type:
            made.append((column.name, _key_condition(f"{name}.{quote(column.name)}", values, type)))
    return tuple(made)


def _key_condition(column: str, values: pa.ChunkedArray, type: str) -> str:
    distinct = pc.drop_null(pc.unique(values))
    if not len(distinct):
        return "false"
    as_sql = f"CAST('{{}}' AS {type})"
    if pa.types.is_date32(distinct.type):  # as days: Python's calendar is shorter
        distinct, as_sql = distinct.cast(pa.int32()), "date_from_unix_date({})"

    def text(value: int | str) -> str:
        return literal(value) if isinstance(value, str) else as_sql.format(value)

    if len(distinct) <= MOST_KEYS:
        return f"{column} IN ({', '.join(text(v) for v in distinct.to_pylist())})"
    bounds = pc.min_max(distinct).as_py()
    return f"{column} BETWEEN {text(bounds['min'])} AND {text(bounds['max'])}"


def reader_options(spark: SparkSession, table: Table, search: Search, path: str) -> dict[str, str]:
    """Options of Spark's ORC reader for a search; empty where nothing of it can be pushed.

    Args:
        spark: The session.
        table: The table.
        search: The conditions.
        path: Any ORC file: it is planned over, not read.
    """
    columns = [c for c in table.columns if c.name in searchable_columns(table)]
    ddl = ", ".join(f"{quote(c.name)} {to_spark(parse_type(c.type))}" for c in columns)
    where = " AND ".join(f"({text}\n)" for text in search.conjuncts)
    try:
        with Views(spark) as views:
            probe = spark.read.schema(ddl).option("__globPaths__", "false").orc(fs.spark_path(path))
            query = f"SELECT 1 FROM {views.add(probe)} AS {quote(search.alias)} WHERE {where}"
            frame = spark.sql(query, args=dict(search.parameters))
        leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
        if leaves.size() != 1 or leaves.apply(0).getClass().getSimpleName() != "FileSourceScanExec":
            return {}  # a condition that is never true leaves nothing to plan
        filters = leaves.apply(0).pushedDownFilters()
    except PySparkException:  # the statement itself meets and reports the error
        return {}
    return _options(spark, probe._jdf.schema(), filters, [c.name for c in columns])


def _options(spark: SparkSession, schema: Any, filters: Any, names: Sequence[str]) -> dict[str, str]:
    jvm = spark._jvm
    gateway = spark.sparkContext._gateway
    assert jvm is not None
    assert gateway is not None
    made = jvm.org.apache.spark.sql.execution.datasources.orc.OrcFilters.createFilter(schema, filters)
    if not made.isDefined():
        return {}
    array = gateway.new_array(jvm.java.lang.String, len(names))
    for i, name in enumerate(names):
        array[i] = name
    conf = jvm.org.apache.hadoop.conf.Configuration(False)
    jvm.org.apache.orc.mapred.OrcInputFormat.setSearchArgument(conf, made.get(), array)
    keys = ("orc.kryo.sarg", "orc.sarg.column.names")
    return {key: conf.get(key) for key in keys}
