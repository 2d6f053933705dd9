"""Partition pruning by the catalog, before any directory is listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import Catalyst, Expression, InternalSessions, Plan
from acidsql.metastore.model import Partition, Table
from acidsql.partition_names import key_texts
from acidsql.plan.relation import Occurrence, Relation
from acidsql.plan.text import quote
from acidsql.plan.values import from_key_text, with_char_types
from acidsql.types import parse_type

_POSITION = "__acid_position"


def remaining(sessions: InternalSessions, relation: Relation, partitions: Sequence[Partition]) -> list[Partition]:
    """The partitions of which a statement may use rows, by the conditions that reach its relation.

    The conditions are Spark's own expressions, evaluated by Spark over the partitions' values (a local relation: no
    job), so a value compares here exactly as it does in the statement. Where that fails nothing is pruned, and the
    statement itself meets the error.
    """
    if relation.conditions is None or not partitions:
        return list(partitions)
    keys = [k.name for k in relation.table.partition_keys]
    kept: set[int] = set()
    rows: Plan | None = None
    for occurrence in relation.conditions:
        conditions = occurrence.over(keys)
        if not conditions:
            return list(partitions)
        if rows is None:
            rows = _rows(sessions.own, relation.table, partitions)
        try:
            as_leaf = _as_leaf(sessions.user, rows, relation.table, occurrence)
            kept |= set(_positions(sessions.user, as_leaf, conditions))
        except PySparkException:
            return list(partitions)
    return [partition for i, partition in enumerate(partitions) if i in kept]


def partitions_where(
    sessions: InternalSessions,
    table: Table,
    partitions: Sequence[Partition],
    condition: Expression,
    parameters: Mapping[str, Any],
) -> list[Partition]:
    """The partitions that a condition of the user's chooses, which may call the table by its name.

    Raises:
        PySparkException: When it names something else than partition keys, or cannot be evaluated.
    """
    if not partitions:
        return []
    user = sessions.user
    rows = user.named(table.name, [table.database], _rows(sessions.own, table, partitions))
    filtered = user.with_parameters(user.filter(condition, rows), parameters)
    positions = user.frame(filtered).collect()
    return [partitions[row[0]] for row in sorted(positions)]


def partition_rows(spark: SparkSession, table: Table, partitions: Sequence[Partition]) -> DataFrame:
    """The partitions' positions, and their keys as the table declares them."""
    columns: dict[str, pa.Array] = {_POSITION: pa.array(range(len(partitions)), type=pa.int32())}
    texts = [key_texts(p.values) for p in partitions]
    for i, key in enumerate(table.partition_keys):
        columns[key.name] = pa.array([values[i] for values in texts], type=pa.string())
    keys = [f"{from_key_text(quote(k.name), parse_type(k.type))} AS {quote(k.name)}" for k in table.partition_keys]
    typed = spark.createDataFrame(pa.table(columns)).selectExpr(_POSITION, *keys)
    return with_char_types(typed, table.partition_keys)


def _rows(own: Catalyst, table: Table, partitions: Sequence[Partition]) -> Plan:
    return own.analyzed(partition_rows(own.spark, table, partitions))


def _as_leaf(catalyst: Catalyst, rows: Plan, table: Table, occurrence: Occurrence) -> Plan:
    """The partitions' rows with the identities of a leaf's columns, so that its conditions fit them."""
    position, *given = Catalyst.output(rows)
    leaf, first = occurrence.leaf.output(), len(table.columns)  # where the keys stand behind the table's columns
    wanted = [leaf.apply(first + i) for i in range(len(given))]
    return catalyst.project([position, *catalyst.renamed(given, wanted)], rows)


def _positions(catalyst: Catalyst, rows: Plan, conditions: Sequence[Expression]) -> list[int]:
    first = Catalyst.output(rows)[0]
    chosen = catalyst.project([first], catalyst.filter(catalyst.both(conditions), rows))
    chosen.setAnalyzed()  # as the conditions are: another look would pad what they compare with a char
    return [row[0] for row in catalyst.frame(chosen).collect()]
