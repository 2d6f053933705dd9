"""SHOW and DESCRIBE."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.ddl import DATABASE_WORDS, database_name
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import (
    Describe,
    DescribeDatabase,
    DescribeDetail,
    DescribeHistory,
    Name,
    ShowColumns,
    ShowCompactions,
    ShowCreateTable,
    ShowDatabases,
    ShowLocks,
    ShowPartitions,
    ShowProperties,
    ShowTables,
    ShowTransactions,
    ShowViews,
    SortKey,
    Statement,
    TableName,
    Text,
)
from acidsql.sql.tokens import Kind


def show(cursor: Cursor) -> Statement:
    """The SHOW statements about the metastore; any other is passed to Spark."""
    cursor.expect("SHOW")
    parse = _SHOW.get(cursor.word)
    statement = parse(cursor) if parse else None
    return passthrough(cursor) if statement is None else statement


def _like(cursor: Cursor) -> str | None:
    """``[LIKE] 'pattern'``."""
    if cursor.accept("LIKE") or cursor.sees_kind(Kind.STRING):
        return cursor.expect_string("a pattern")
    return None


def _databases(cursor: Cursor) -> Statement | None:
    cursor.advance()
    if cursor.word in ("FROM", "IN"):
        return None
    like = _like(cursor)
    cursor.expect_end()
    return ShowDatabases(cursor.statement_span(), like)


def _tables(cursor: Cursor) -> Statement:
    """``SHOW (TABLES | VIEWS) [(FROM | IN) db] [[LIKE] 'pattern']``."""
    kind = ShowViews if cursor.advance().word == "VIEWS" else ShowTables
    database = _in_database(cursor)
    like = _like(cursor)
    cursor.expect_end()
    return kind(cursor.statement_span(), database, like)


def _in_database(cursor: Cursor) -> Name | None:
    return database_name(cursor) if cursor.accept_one_of("FROM", "IN") else None


def _columns(cursor: Cursor) -> Statement:
    """``SHOW COLUMNS (FROM | IN) t [(FROM | IN) db] [[LIKE] 'pattern']``."""
    cursor.advance()
    cursor.expect_one_of("FROM", "IN")
    table = cursor.expect_table()
    place = cursor.peek()
    database = _in_database(cursor)
    if database is not None:
        if table.database is not None and table.database.lower() != database.text.lower():
            raise cursor.error(f"The table is in {table.database}, not in {database.text}", place)
        table = TableName(table.table, database.text, table.span, table.catalog)
    like = _like(cursor)
    cursor.expect_end()
    return ShowColumns(cursor.statement_span(), table, like)


def _table_properties(cursor: Cursor) -> Statement:
    """``SHOW TBLPROPERTIES t [('key')]``."""
    cursor.advance()
    table = cursor.expect_table()
    key = None
    if cursor.word == "(":
        [name] = cursor.list_in_parentheses(cursor.property_key)[:1]
        key = Text(name.text, name.span)
    cursor.expect_end()
    return ShowProperties(cursor.statement_span(), table, key)


def _partitions(cursor: Cursor) -> Statement:
    cursor.advance()
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    cursor.expect_end()
    return ShowPartitions(cursor.statement_span(), table, partition)


def _create_table(cursor: Cursor) -> Statement | None:
    cursor.advance()
    if not cursor.accept("TABLE"):
        return None
    table = cursor.expect_table()
    if cursor.word == "AS":
        return None
    cursor.expect_end()
    return ShowCreateTable(cursor.statement_span(), table)


def _transactions(cursor: Cursor) -> Statement:
    cursor.advance()
    cursor.expect_end()
    return ShowTransactions(cursor.statement_span())


def _locks(cursor: Cursor) -> Statement:
    """``SHOW LOCKS [t [PARTITION (…)] | DATABASE db] [EXTENDED]``."""
    cursor.advance()
    database = table = partition = None
    if cursor.word in DATABASE_WORDS and cursor.peek().is_name:
        cursor.advance()
        database = database_name(cursor)
    elif not cursor.at_end() and not (cursor.word == "EXTENDED" and cursor.peek().kind is Kind.END):
        table = cursor.expect_table()
        partition = cursor.partition_spec()
    extended = cursor.accept("EXTENDED")
    cursor.expect_end()
    return ShowLocks(cursor.statement_span(), database, table, partition, extended)


def _compactions(cursor: Cursor) -> Statement:
    """``SHOW COMPACTIONS [COMPACTIONID = n | DATABASE db | t [PARTITION (…)]] [POOL …] … [LIMIT n]``."""
    cursor.advance()
    id = database = table = partition = None
    if cursor.word == "COMPACTIONID" and cursor.peek().word in ("=", "=="):
        cursor.advance()
        cursor.accept_equals()
        id = cursor.expect_integer("the id of a compaction")
    elif cursor.word in DATABASE_WORDS and cursor.peek().is_name:
        cursor.advance()
        database = database_name(cursor)
    elif not cursor.at_end() and not _at_compactions_clause(cursor):
        table = cursor.expect_table()
        partition = cursor.partition_spec()
    pool = cursor.expect_text("a pool") if cursor.accept("POOL") else None
    type = cursor.expect_text("a type of compaction") if cursor.accept("TYPE") else None
    status = cursor.expect_text("a state") if cursor.accept("STATUS") else None
    order_by = _sort_keys(cursor) if cursor.accept("ORDER", "BY") else ()
    limit = cursor.expect_integer("a number of rows") if cursor.accept("LIMIT") else None
    if not cursor.at_end():
        raise cursor.error(
            "Expected the end of the statement",
            hint="The clauses are POOL, TYPE, STATUS, ORDER BY, LIMIT, in this order.",
        )
    return ShowCompactions(cursor.statement_span(), id, database, table, partition, pool, type, status, order_by, limit)


def _at_compactions_clause(cursor: Cursor) -> bool:
    """Whether a clause starts here, not a table named like one."""
    following = cursor.peek().kind
    if cursor.word in ("POOL", "TYPE", "STATUS"):
        return following is Kind.STRING
    return cursor.sees("ORDER", "BY") or (cursor.word == "LIMIT" and following is Kind.NUMBER)


def _sort_keys(cursor: Cursor) -> tuple[SortKey, ...]:
    keys: list[SortKey] = []
    while not keys or cursor.accept(","):
        column = cursor.expect_name("a column of SHOW COMPACTIONS")
        keys.append(SortKey(column, cursor.accept_one_of("ASC", "DESC") == "DESC"))
    return tuple(keys)


_SHOW: dict[str, Callable[[Cursor], Statement | None]] = {
    "DATABASES": _databases,
    "SCHEMAS": _databases,
    "NAMESPACES": _databases,
    "TABLES": _tables,
    "VIEWS": _tables,
    "COLUMNS": _columns,
    "TBLPROPERTIES": _table_properties,
    "PARTITIONS": _partitions,
    "CREATE": _create_table,
    "TRANSACTIONS": _transactions,
    "LOCKS": _locks,
    "COMPACTIONS": _compactions,
}


# --- DESCRIBE --------------------------------------------------------------------------------------------------------

_NOT_TABLES = ("FUNCTION", "CATALOG", "QUERY")


def describe(cursor: Cursor) -> Statement:
    """``DESC[RIBE] [TABLE] [FORMATTED | EXTENDED] t [PARTITION (…)] [column]``; fields, JSON, queries go to Spark."""
    cursor.expect_one_of("DESC", "DESCRIBE")
    if cursor.at_end():
        raise cursor.error("Expected a table name")
    if cursor.word in DATABASE_WORDS and _has_more(cursor):
        return _describe_database(cursor)
    if cursor.word == "HISTORY" and cursor.peek().is_name and cursor.peek().word != "PARTITION":
        return _describe_history(cursor)
    if cursor.word == "DETAIL" and _names_table(cursor):
        return _describe_detail(cursor)
    if _has_more(cursor) and (cursor.word in _NOT_TABLES or (cursor.at_query() and cursor.word != "TABLE")):
        return passthrough(cursor)
    if cursor.word == "TABLE" and _has_more(cursor):
        cursor.advance()
    formatted = cursor.word in ("FORMATTED", "EXTENDED") and _has_more(cursor)
    if formatted:
        cursor.advance()
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    column = None
    if cursor.token.is_name and not cursor.sees("AS", "JSON"):
        column = cursor.expect_name("a column name")
    if cursor.word == "." or cursor.sees("AS", "JSON"):
        return passthrough(cursor)
    cursor.expect_end()
    return Describe(cursor.statement_span(), table, formatted, partition, column)


def _describe_database(cursor: Cursor) -> Statement:
    """``DESCRIBE (DATABASE | SCHEMA) [EXTENDED] db``."""
    cursor.advance()
    extended = cursor.word == "EXTENDED" and _has_more(cursor)
    if extended:
        cursor.advance()
    name = database_name(cursor)
    cursor.expect_end()
    return DescribeDatabase(cursor.statement_span(), name, extended)


def _describe_history(cursor: Cursor) -> DescribeHistory:
    """``DESCRIBE HISTORY t [LIMIT n]``."""
    cursor.expect("HISTORY")
    table = cursor.expect_table()
    limit = cursor.expect_integer("a number of rows") if cursor.accept("LIMIT") else None
    cursor.expect_end()
    return DescribeHistory(cursor.statement_span(), table, limit)


def _names_table(cursor: Cursor) -> bool:
    """Whether a name follows the current word, not a path as in Delta."""
    following = cursor.peek()
    return (following.is_name and following.word != "PARTITION") or following.kind is Kind.STRING


def _describe_detail(cursor: Cursor) -> Statement:
    """``DESCRIBE DETAIL t``; a quoted path is passed to Delta."""
    cursor.expect("DETAIL")
    if cursor.sees_kind(Kind.STRING):
        return passthrough(cursor)
    table = cursor.expect_table()
    cursor.expect_end()
    return DescribeDetail(cursor.statement_span(), table)


def _has_more(cursor: Cursor) -> bool:
    """Whether the current word is a keyword: something other than a dot follows it."""
    following = cursor.peek()
    return following.kind is not Kind.END and following.word != "."
