"""ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.errors import AcidError
from acidsql.sql.parser.columns import column
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import (
    AddColumns,
    AddPartitions,
    ColumnDef,
    Compact,
    DropPartitions,
    Name,
    NewPartition,
    PartitionSpec,
    SetProperties,
    Span,
    Statement,
    TableName,
    UnsetProperties,
)
from acidsql.sql.tokens import Kind

COMPACT_CLAUSES = "CLUSTERED INTO, AND WAIT, POOL, WITH OVERWRITE TBLPROPERTIES, ORDER BY, WHERE"


def alter(cursor: Cursor) -> Statement:
    """ALTER TABLE in the forms that change ACID tables; every other ALTER is Spark's."""
    cursor.expect("ALTER")
    if not cursor.accept("TABLE"):
        return passthrough(cursor)
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    if cursor.accept("COMPACT"):
        return _compact(cursor, table, partition)
    first = cursor.at
    for words, parse in _FORMS.items():
        if partition is None and cursor.accept(*words.split()):
            found = parse(cursor, table)
            if found is not None:
                return found
            break
    return _left_to_spark(cursor, first)


def _left_to_spark(cursor: Cursor, first: int) -> Statement:
    """A form that Spark may carry out on tables of its own; on ACID tables a later version will."""
    words = [cursor.tokens[first].word]
    if words[0] in ("SET", "RENAME", "REPLACE", "ADD", "DROP") and cursor.tokens[first + 1].kind is Kind.WORD:
        words.append(cursor.tokens[first + 1].word)
    later = Name(f"This form of ALTER TABLE … {' '.join(words)}", cursor.span(first, first + len(words)))
    return passthrough(cursor, later if words[0] else None)


# --- COMPACT ---------------------------------------------------------------------------------------------------------


def _compact(cursor: Cursor, table: TableName, partition: PartitionSpec | None) -> Compact:
    """The rest behind COMPACT; Hive fixes the order of the clauses."""
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


# --- columns ---------------------------------------------------------------------------------------------------------

_COLUMN_ENDS = (",", ")", "FIRST", "AFTER", "CASCADE", "RESTRICT")


def _add_columns(cursor: Cursor, table: TableName) -> Statement | None:
    """Columns at the end, in brackets (Hive) or without (Spark); None for a place, a field, or a constraint."""
    refused: list[AcidError] = []
    found: list[ColumnDef] = []
    in_brackets = cursor.accept("(")
    while not found or cursor.accept(","):
        if cursor.peek().word == ".":
            return None
        found.append(column(cursor, refused, "a column name", _COLUMN_ENDS))
        if cursor.word in ("FIRST", "AFTER") or refused:
            return None
    if in_brackets:
        if cursor.word != ")":
            raise cursor.error("Expected , or )")
        cursor.advance()
    cursor.accept_one_of("CASCADE", "RESTRICT")
    cursor.expect_end()
    return AddColumns(cursor.statement_span(), table, tuple(found))


# --- partitions ------------------------------------------------------------------------------------------------------


def _add_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _new_partitions(cursor, table, False)


def _add_missing_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _new_partitions(cursor, table, True)


def _new_partitions(cursor: Cursor, table: TableName, if_not_exists: bool) -> AddPartitions:
    found = [_new_partition(cursor)]
    while cursor.accept("PARTITION"):
        found.append(_new_partition(cursor))
    cursor.expect_end()
    return AddPartitions(cursor.statement_span(), table, tuple(found), if_not_exists)


def _new_partition(cursor: Cursor) -> NewPartition:
    spec = _whole_spec(cursor)
    return NewPartition(spec, cursor.expect_text("a location") if cursor.accept("LOCATION") else None)


def _drop_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _gone_partitions(cursor, table, False)


def _drop_known_partitions(cursor: Cursor, table: TableName) -> Statement:
    return _gone_partitions(cursor, table, True)


def _gone_partitions(cursor: Cursor, table: TableName, if_exists: bool) -> DropPartitions:
    specs = [_whole_spec(cursor)]
    while cursor.accept(","):
        cursor.expect("PARTITION")
        specs.append(_whole_spec(cursor))
    purge = cursor.accept("PURGE")
    cursor.expect_end()
    return DropPartitions(cursor.statement_span(), table, tuple(specs), if_exists, purge)


_COMPARISONS = ("<", "<=", ">", ">=", "<>", "!=", "<=>", "LIKE", "BETWEEN", "IN")


def _whole_spec(cursor: Cursor) -> PartitionSpec:
    """``(p = 1, q = 'a')`` behind PARTITION: every key with a value."""
    first = cursor.at - 1

    def one() -> tuple[Name, Span | None]:
        key = cursor.expect_name("a partition key")
        if cursor.word in _COMPARISONS:
            raise cursor.unsupported(f"Partitions are chosen by = in this version, not by {cursor.word}")
        if not cursor.accept_equals():
            raise cursor.error("Expected = and a value")
        return key, cursor.expect_expression((), "a value")

    keys = cursor.list_in_parentheses(one)
    return PartitionSpec(keys, cursor.span(first))


_FORMS: dict[str, Callable[[Cursor, TableName], Statement | None]] = {
    "SET TBLPROPERTIES": _set_properties,
    "UNSET TBLPROPERTIES": _unset_properties,
    "ADD COLUMNS": _add_columns,
    "ADD COLUMN": _add_columns,
    "ADD PARTITION": _add_partitions,
    "ADD IF NOT EXISTS PARTITION": _add_missing_partitions,
    "DROP PARTITION": _drop_partitions,
    "DROP IF EXISTS PARTITION": _drop_known_partitions,
}
