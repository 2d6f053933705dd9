"""Partition pruning by the catalog: which partitions a predicate leaves, before any directory is listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.metastore.model import Partition, Table
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.text import quote
from acidsql.plan.values import from_key_text, with_char_types
from acidsql.plan.views import Views
from acidsql.types import parse_type


def prune(
    spark: SparkSession,
    table: Table,
    partitions: Sequence[Partition],
    conjuncts: Sequence[str],
    *,
    alias: str,
    parameters: Mapping[str, Any],
) -> list[Partition]:
    """The partitions for which no conjunct is false or NULL.

    The user's own text is evaluated by Spark over the partition values (a local relation: no job), so a value compares
    here exactly as it would in the statement. Where that fails nothing is pruned, and the statement itself reports it.

    Args:
        spark: The session.
        table: The table.
        partitions: Its partitions.
        conjuncts: Conditions over partition keys alone, all of which a row must meet.
        alias: The name by which they may qualify the keys.
        parameters: Values of named parameters.
    """
    try:
        return partitions_where(spark, table, partitions, conjuncts, alias=alias, parameters=parameters)
    except PySparkException:
        return list(partitions)


def partitions_where(
    spark: SparkSession,
    table: Table,
    partitions: Sequence[Partition],
    conjuncts: Sequence[str],
    *,
    alias: str,
    parameters: Mapping[str, Any],
) -> list[Partition]:
    """As :func:`prune`.

    Raises:
        PySparkException: When a condition names something else than partition keys, or cannot be evaluated.
    """
    if not conjuncts or not partitions:
        return list(partitions)
    columns: dict[str, pa.Array] = {"__position": pa.array(range(len(partitions)), type=pa.int32())}
    for i, key in enumerate(table.partition_keys):
        values = [None if p.values[i] == DEFAULT_PARTITION else p.values[i] for p in partitions]
        columns[key.name] = pa.array(values, type=pa.string())
    keys = ", ".join(
        f"{from_key_text(quote(k.name), parse_type(k.type))} AS {quote(k.name)}" for k in table.partition_keys
    )
    where = " AND ".join(f"({text}\n)" for text in conjuncts)
    with Views(spark) as views:
        texts = views.add(spark.createDataFrame(pa.table(columns)))
        typed = with_char_types(spark.sql(f"SELECT __position, {keys} FROM {texts}"), table.partition_keys)
        query = f"SELECT __position FROM {views.add(typed)} AS {quote(alias)} WHERE {where}"
        kept = spark.sql(query, args=dict(parameters)).collect()
    return [partitions[row[0]] for row in sorted(kept)]
