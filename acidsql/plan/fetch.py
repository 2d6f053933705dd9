"""Fetching what is probably small: few rows, of few bytes.

How many bytes texts and lists have is known only once they are there. So each task numbers its rows, and leaves out the
texts and lists of a row if its share would not hold so many rows as wide as this one. Where that happened to any, there
is more than the driver should have, and nothing of what was fetched is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import Catalyst, Draft, Plan, bytes_in_memory, max_scan_tasks
from acidsql.plan.arrow import fetched, row_bytes
from acidsql.plan.text import quote, row_number_of

_USUAL = 1 << 30
"""Spark's usual limit of what a job hands over (``spark.driver.maxResultSize``), for which these bounds are:"""
_HANDED_OVER = 256 << 20
"""The bytes that the tasks of a job may hand over to the driver, all together, by the types of their columns."""
_TEXTS = 64 << 20
"""The bytes of texts and lists that they may hand over. They stay within them where rows are about equally wide: where
each is just narrow enough for its number, there can be some ten times as many."""
_LEAST = 4 << 20
"""The least part of that for one task."""
_TINY = 1 << 10
"""None of them is less, whatever the limit."""
_MANY = 1 << 20
"""Tasks, where nobody knows how many there are."""
_MIN_SCAN_TASKS = "spark.sql.files.minPartitionNum"
"""The setting that Spark takes for the least number of tasks of a scan."""
_SHUFFLE_TASKS = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.coalescePartitions.initialPartitionNum")
"""The settings for the number of tasks behind a shuffle."""
_HEAVY = "__acid_heavy"
_NUMBER = f"(({row_number_of()}) + 1L)"
"""The number of a row in its task, from 1."""


def fetch_few(
    own: Catalyst, frame: DataFrame, names: Sequence[str], types: Sequence[pa.DataType], rows: int
) -> pa.Table | None:
    """All rows of a frame; None where there are more than some, or their texts and lists have too many bytes.

    Where tasks are few each has a limit of its own: a shuffle to a single one would cost more. (A plain LIMIT is no
    shuffle where Spark knows that there are fewer rows.)

    Args:
        own: A session of acidsql's own, which fixes what is meant by texts of acidsql's.
        frame: The frame. It is run in its own session.
        names: Its columns.
        types: What their types are in Arrow.
        rows: So many rows may be fetched.
    """
    handed_over, most_texts, least = _bounds(own)
    rows = min(rows, handed_over // row_bytes(types))
    weights = {name: weight for name, type in zip(names, types, strict=True) if (weight := _weight(name, type))}
    tasks = _tasks(own, frame)
    few = Draft.of(own, frame)
    if tasks >= _MANY and own.skips_rows(few.plan):  # Spark adds the limit above an OFFSET to it, as ints
        few, tasks = few.in_one_task(), 1
    if tasks * (rows + 1) * row_bytes(types) > handed_over or (weights and tasks * least > handed_over):
        few, tasks = few.limited_in_tasks(rows + 1).in_one_task(), 1
    if not weights:
        found = _run(few.limited_in_tasks(rows + 1), frame)
    else:
        share = max(least, most_texts // tasks)
        found = _run(_without_heavy(few, names, weights, share).limited_in_tasks(rows + 1), frame)
        if pc.any(found[_HEAVY]).as_py():
            return None
        found = found.drop_columns([_HEAVY])
    return found if found.num_rows <= rows else None


def _bounds(own: Catalyst) -> tuple[int, ...]:
    """:data:`_HANDED_OVER`, :data:`_TEXTS` and :data:`_LEAST`, for the limit that this Spark has."""
    limit = min(own.max_result_bytes or _USUAL, _USUAL)
    return tuple(max(bound * limit // _USUAL, _TINY) for bound in (_HANDED_OVER, _TEXTS, _LEAST))


def _run(few: Draft, frame: DataFrame) -> pa.Table:
    made = few.frame()
    return fetched(made if few.catalyst.spark is frame.sparkSession else Catalyst(frame.sparkSession).own(made))


def _tasks(catalyst: Catalyst, frame: DataFrame) -> int:
    """The most tasks that hand over the rows of a frame, about; :data:`_MANY` or more where that is not known, or it
    skips rows."""
    plan, spark = catalyst.analyzed(frame), frame.sparkSession
    if catalyst.rearranges(plan):
        return _MANY
    parallelism = max(catalyst.default_parallelism(spark), _number(spark, _MIN_SCAN_TASKS))
    leaves = list(catalyst.leaves(plan))
    tasks = max(1, sum(_tasks_of(leaf, parallelism) for leaf in leaves))  # a checkpoint of no rows has none
    if not (catalyst.may_shuffle(plan) or (_has_large_sides(leaves) and catalyst.joins(plan))):
        return tasks
    # each branch of a UNION may have a shuffle of its own
    return tasks + len(leaves) * max(_number(spark, n) for n in _SHUFFLE_TASKS)


def _has_large_sides(leaves: Sequence[Plan]) -> bool:
    """Whether several leaves are others than few rows on the driver, which go to all tasks of a join."""
    if len(leaves) < 2:
        return False
    small = ("LocalRelation", "OneRowRelation")
    return sum(leaf.nodeName() not in small and bytes_in_memory(leaf) is None for leaf in leaves) > 1


def _number(spark: SparkSession, setting: str) -> int:
    return int(spark.conf.get(setting, None) or 0)


def _tasks_of(leaf: Plan, parallelism: int) -> int:
    """How many tasks read a leaf."""
    match leaf.nodeName():
        case "LocalRelation" | "OneRowRelation":
            return parallelism
        case "LogicalRDD":
            return int(leaf.rdd().getNumPartitions())
        case "Range":
            slices = leaf.numSlices()
            return int(slices.get()) if slices.isDefined() else parallelism
        case name if name.startswith("LogicalRelation"):
            tasks = max_scan_tasks(leaf)
            return _MANY if tasks is None else tasks + parallelism
    return _MANY


def _without_heavy(rows: Draft, names: Sequence[str], weights: dict[str, str], share: int) -> Draft:
    """The rows, those that are too wide without what makes them so, and which these are."""
    stable = 1 << (share.bit_length() - 1)  # for a number of another size Spark would generate and compile new code
    marked = rows.select("*", f"{_NUMBER} * ({' + '.join(weights.values())}) > {stable}L AS {_HEAVY}")
    kept = [f"if({_HEAVY}, NULL, {quote(n)}) AS {quote(n)}" if n in weights else quote(n) for n in names]
    return marked.select(*kept, _HEAVY)


def _weight(name: str, type: pa.DataType) -> str | None:
    """The bytes of a value, as SQL; None for a type whose values all have about the same."""
    if not _varies(type):
        return None
    text = f"CAST({quote(name)} AS string)" if pa.types.is_nested(type) else quote(name)
    return f"coalesce(CAST(octet_length({text}) AS bigint), 0L)"


def _varies(type: pa.DataType) -> bool:
    if pa.types.is_struct(type):
        return any(_varies(field.type) for field in type)
    return not (pa.types.is_primitive(type) or pa.types.is_decimal(type) or pa.types.is_null(type))
