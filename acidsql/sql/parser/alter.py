"""ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acidsql.sql.parser.alter_columns import COLUMN_FORMS
from acidsql.sql.parser.alter_constraints import CONSTRAINT_FORMS
from acidsql.sql.parser.alter_partitions import PARTITION_FORMS, partition_values
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import (
    AddColumns,
    ChangeColumn,
    Compact,
    Concatenate,
    ExchangePartition,
    Name,
    PartitionSpec,
    RenamePartition,
    RenameTable,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    Span,
    Statement,
    TableName,
    UnsetProperties,
)
from acidsql.sql.tokens import Kind

COMPACT_CLAUSES = "CLUSTERED INTO, AND WAIT, POOL, WITH OVERWRITE TBLPROPERTIES, ORDER BY, WHERE"


def alter(cursor: Cursor) -> Statement:
    """ALTER TABLE in the forms for ACID tables; all others are passed to Spark."""
    cursor.expect("ALTER")
    if not cursor.accept("TABLE"):
        return passthrough(cursor)
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    first = cursor.at
    statement = _of_table(cursor, table) if partition is None else _of_partition(cursor, table, partition)
    return statement or _left_to_spark(cursor, first)


def _of_table(cursor: Cursor, table: TableName) -> Statement | None:
    for words, parse in _FORMS.items():
        if cursor.accept(*words.split()):
            return parse(cursor, table)
    return None


def _of_partition(cursor: Cursor, table: TableName, partition: PartitionSpec) -> Statement | None:
    """The rest after ``ALTER TABLE t PARTITION (…)``."""
    if cursor.accept("COMPACT"):
        return _compact(cursor, table, partition)
    if cursor.accept("CONCATENATE"):
        return _concatenate(cursor, table, partition)
    if cursor.accept("SET", "LOCATION"):
        return _location(cursor, table, partition)
    if cursor.accept("RENAME", "TO", "PARTITION"):
        for key, value in partition.keys:
            if value is None:
                place = next(t for t in cursor.tokens if t.start == key.span.start)
                raise cursor.error("Expected a value for each partition key", place)
        new = partition_values(cursor)
        cursor.expect_end()
        return RenamePartition(cursor.statement_span(), table, partition, new)
    for words in ("ADD COLUMNS", "REPLACE COLUMNS", "CHANGE"):
        if cursor.accept(*words.split()):
            statement = COLUMN_FORMS[words](cursor, table)
            if isinstance(statement, AddColumns | ReplaceColumns | ChangeColumn):
                return replace(statement, partition=partition)
    return None


def _left_to_spark(cursor: Cursor, first: int) -> Statement:
    """A form that Spark may support for its own tables; it is not supported for ACID tables."""
    words = [cursor.tokens[first].word]
    if words[0] in ("SET", "RENAME", "REPLACE", "ADD", "DROP") and cursor.tokens[first + 1].kind is Kind.WORD:
        words.append(cursor.tokens[first + 1].word)
    later = Name(f"This form of ALTER TABLE … {' '.join(words)}", cursor.span(first, first + len(words)))
    return passthrough(cursor, later if words[0] else None)


# --- names and places ------------------------------------------------------------------------------------------------


def _rename(cursor: Cursor, table: TableName) -> Statement:
    new_name = cursor.expect_table()
    cursor.expect_end()
    return RenameTable(cursor.statement_span(), table, new_name)


def _set_location(cursor: Cursor, table: TableName) -> Statement:
    return _location(cursor, table, None)


def _location(cursor: Cursor, table: TableName, partition: PartitionSpec | None) -> Statement:
    location = cursor.expect_text("a location")
    cursor.expect_end()
    return SetLocation(cursor.statement_span(), table, location, partition)


def _exchange(cursor: Cursor, table: TableName) -> Statement:
    """The rest after EXCHANGE."""
    partition = cursor.partition_spec()
    if partition is None:
        raise cursor.error("Expected PARTITION and its keys")
    cursor.expect("WITH", "TABLE")
    source = cursor.expect_table()
    cursor.expect_end()
    return ExchangePartition(cursor.statement_span(), table, partition, source)


# --- COMPACT ---------------------------------------------------------------------------------------------------------


def _compact_table(cursor: Cursor, table: TableName) -> Statement:
    return _compact(cursor, table, None)


def _compact(cursor: Cursor, table: TableName, partition: PartitionSpec | None) -> Compact:
    """The rest after COMPACT; Hive fixes the order of the clauses."""
    type = cursor.expect_text("a type of compaction")
    buckets = pool = order_by = where = None
    properties: dict[str, str] = {}
    if cursor.accept("CLUSTERED"):
        cursor.expect("INTO")
        buckets = cursor.expect_number("a number of buckets")
        cursor.expect("BUCKETS")
    wait = cursor.accept("AND", "WAIT")
    if cursor.accept("POOL"):
        pool = cursor.expect_text("a pool")
    if cursor.accept("WITH"):
        cursor.expect("OVERWRITE", "TBLPROPERTIES")
        properties = cursor.properties()
    if cursor.word == "ORDER":
        order_by = _order_by(cursor)
    if cursor.accept("WHERE"):
        where = cursor.expect_expression((), "a condition")
    if not cursor.at_end():
        raise cursor.error(
            "Expected the end of the statement", hint=f"The clauses are {COMPACT_CLAUSES}, in this order."
        )
    return Compact(cursor.statement_span(), table, type, partition, buckets, wait, pool, properties, order_by, where)


def _concatenate_table(cursor: Cursor, table: TableName) -> Statement:
    return _concatenate(cursor, table, None)


def _concatenate(cursor: Cursor, table: TableName, partition: PartitionSpec | None) -> Concatenate:
    word = cursor.span(cursor.at - 1)
    cursor.expect_end()
    return Concatenate(cursor.statement_span(), table, partition, word)


def _order_by(cursor: Cursor) -> Span:
    first = cursor.at
    cursor.expect("ORDER", "BY")
    cursor.expect_expression(("WHERE",))
    while cursor.accept(","):
        cursor.expect_expression(("WHERE",))
    return cursor.span(first)


# --- properties ------------------------------------------------------------------------------------------------------


def _set_properties(cursor: Cursor, table: TableName) -> Statement:
    properties = cursor.named_properties()
    cursor.expect_end()
    return SetProperties(cursor.statement_span(), table, properties)


def _unset_properties(cursor: Cursor, table: TableName) -> Statement:
    if_exists = cursor.if_exists()
    keys = cursor.list_in_parentheses(cursor.property_key)
    cursor.expect_end()
    return UnsetProperties(cursor.statement_span(), table, keys, if_exists)


_FORMS: dict[str, Callable[[Cursor, TableName], Statement | None]] = {
    "COMPACT": _compact_table,
    "CONCATENATE": _concatenate_table,
    "EXCHANGE": _exchange,
    "SET TBLPROPERTIES": _set_properties,
    "UNSET TBLPROPERTIES": _unset_properties,
    "SET LOCATION": _set_location,
    "RENAME TO": _rename,
    **CONSTRAINT_FORMS,
    **PARTITION_FORMS,
    **COLUMN_FORMS,
}
