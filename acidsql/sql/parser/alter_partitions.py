"""ALTER TABLE … ADD and DROP PARTITION."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import (
    AddPartitions,
    DropPartitions,
    Name,
    NewPartition,
    PartitionSpec,
    Span,
    Statement,
    TableName,
)


def _add_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _new_partitions(cursor, table, False)


def _add_missing_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _new_partitions(cursor, table, True)


def _new_partitions(cursor: Cursor, table: TableName, if_not_exists: bool) -> AddPartitions:
    partitions = [_new_partition(cursor)]
    while cursor.accept("PARTITION"):
        partitions.append(_new_partition(cursor))
    cursor.expect_end()
    return AddPartitions(cursor.statement_span(), table, tuple(partitions), if_not_exists)


def _new_partition(cursor: Cursor) -> NewPartition:
    spec = partition_values(cursor)
    return NewPartition(spec, cursor.expect_text("a location") if cursor.accept("LOCATION") else None)


def _drop_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _dropped_partitions(cursor, table, False)


def _drop_known_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _dropped_partitions(cursor, table, True)


def _dropped_partitions(cursor: Cursor, table: TableName, if_exists: bool) -> DropPartitions:
    specs = [partition_values(cursor)]
    while cursor.accept(","):
        cursor.expect("PARTITION")
        specs.append(partition_values(cursor))
    purge = cursor.accept("PURGE")
    cursor.expect_end()
    return DropPartitions(cursor.statement_span(), table, tuple(specs), if_exists, purge)


_COMPARISONS = ("<", "<=", ">", ">=", "<>", "!=", "<=>", "LIKE", "BETWEEN", "IN")


def partition_values(cursor: Cursor) -> PartitionSpec:
    """``(p = 1, q = 'a')`` after PARTITION: every key with a value."""
    first = cursor.at - 1

    def one() -> tuple[Name, Span | None]:
        key = cursor.expect_name("a partition key")
        if cursor.word in _COMPARISONS:
            raise cursor.unsupported(f"Partitions can only be selected with =, not with {cursor.word}")
        if not cursor.accept_equals():
            raise cursor.error("Expected = and a value")
        return key, cursor.expect_expression((), "a value")

    keys = cursor.list_in_parentheses(one)
    return PartitionSpec(keys, cursor.span(first))


PARTITION_FORMS: dict[str, Callable[[Cursor, TableName], Statement | None]] = {
    "ADD PARTITION": _add_partitions,
    "ADD IF NOT EXISTS PARTITION": _add_missing_partitions,
    "DROP PARTITION": _drop_partitions,
    "DROP IF EXISTS PARTITION": _drop_known_partitions,
}
