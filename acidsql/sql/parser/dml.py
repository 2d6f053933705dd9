"""INSERT, UPDATE and DELETE, and the WITH clause that may stand before them."""

from __future__ import annotations

from acidsql.sql.parser.cursor import QUERY_WORDS, Cursor
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import (
    Assignment,
    Default,
    Delete,
    Insert,
    Name,
    Query,
    Span,
    Statement,
    TableName,
    Update,
)
from acidsql.sql.tokens import Kind

Row = tuple["Span | Default", ...]


def insert(cursor: Cursor, with_clause: Span | None = None) -> Statement:
    """``INSERT INTO|OVERWRITE [TABLE] t [PARTITION (…)] [IF NOT EXISTS] [BY NAME | (columns)] VALUES … | query``."""
    cursor.expect("INSERT")
    overwrite = cursor.expect_one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if overwrite and _at_directory(cursor):
        return passthrough(cursor)
    if _at_table_word(cursor):
        cursor.advance()
    table = cursor.expect_table()
    if cursor.sees("REPLACE", "WHERE"):
        return passthrough(cursor)
    partition = cursor.partition_spec()
    if_not_exists = cursor.if_not_exists()
    by_name = cursor.accept("BY", "NAME")
    columns = None
    if not by_name and cursor.word == "(" and not _at_query_in_parentheses(cursor):
        columns = cursor.names_in_parentheses("a column name")
    first = cursor.at
    rows = _rows(cursor) if cursor.word == "VALUES" else None
    if rows is None:
        cursor.at = first
        query = cursor.query("VALUES, SELECT or another query")
    else:
        query = cursor.span(first)
    return Insert(
        cursor.statement_span(),
        table,
        query,
        overwrite=overwrite,
        partition=partition,
        if_not_exists=if_not_exists,
        columns=columns,
        by_name=by_name,
        rows=rows,
        with_clause=with_clause,
    )


def _at_directory(cursor: Cursor) -> bool:
    """``INSERT OVERWRITE [LOCAL] DIRECTORY`` writes files, not a table."""
    return cursor.sees("LOCAL", "DIRECTORY") or (
        cursor.word == "DIRECTORY"
        and (cursor.peek().word == "USING" or not (cursor.peek().word or cursor.peek().quoted))
    )


def _at_table_word(cursor: Cursor) -> bool:
    """Whether TABLE stands here, and not a table of that name."""
    following = cursor.peek()
    if cursor.word != "TABLE" or not following.is_name:
        return False
    starts_body = following.word in ("PARTITION", "BY", "IF", *QUERY_WORDS)
    return not starts_body or cursor.peek(2).word in (".", "PARTITION", "BY", *QUERY_WORDS)


def _at_scalar_subquery(cursor: Cursor) -> bool:
    """``(SELECT …)`` as a row: one value. ``(map(…), …)`` is a row of several."""
    first, second = cursor.peek().word, cursor.peek(2).word
    return first in QUERY_WORDS and second not in (",", ")", ".") and (second != "(" or first == "SELECT")


def _at_query_in_parentheses(cursor: Cursor) -> bool:
    """``(SELECT …)``, and not a column list whose first column is called so."""
    ahead = 0
    while cursor.peek(ahead).word == "(":
        ahead += 1
    return cursor.peek(ahead).word in QUERY_WORDS and cursor.peek(ahead + 1).word not in (",", ")")


def _rows(cursor: Cursor) -> tuple[Row, ...] | None:
    """The rows of a plain VALUES list, which must be all there is; None where it is not."""
    cursor.expect("VALUES")
    rows: list[Row] = []
    while True:
        row = _row(cursor)
        if row is None:
            return None
        rows.append(row)
        if not cursor.accept(","):
            break
    return tuple(rows) if cursor.at_end() else None


def _row(cursor: Cursor) -> Row | None:
    if cursor.word == "(" and not _at_scalar_subquery(cursor):
        row = cursor.list_in_parentheses(lambda: _value(cursor, ()))
        return row if cursor.word == "," or cursor.at_end() else None
    if cursor.word in ("STRUCT", "NAMED_STRUCT"):
        # Spark makes a column of each field.
        return None
    return (_value(cursor, ("AS",)),)


def _value(cursor: Cursor, stops: tuple[str, ...]) -> Span | Default:
    """An expression, or the word DEFAULT alone."""
    if cursor.word == "DEFAULT" and (cursor.peek().word in (",", ")", *stops) or cursor.peek(1).text == ""):
        token = cursor.advance()
        return Default(Span(cursor.source, token.start, token.end))
    return cursor.expect_expression(stops, "a value")


# --- UPDATE and DELETE -----------------------------------------------------------------------------------------------


def update(cursor: Cursor) -> Update:
    """``UPDATE t [[AS] alias] SET column = expression | DEFAULT, … [WHERE condition]``."""
    cursor.expect("UPDATE")
    table = cursor.expect_table()
    alias = _alias(cursor, "SET")
    cursor.expect("SET")
    assignments = [_assignment(cursor, table, alias)]
    while cursor.accept(","):
        assignments.append(_assignment(cursor, table, alias))
    where = _where(cursor)
    return Update(cursor.statement_span(), table, tuple(assignments), alias, where)


def delete(cursor: Cursor) -> Delete:
    """``DELETE FROM t [[AS] alias] [WHERE condition]``."""
    cursor.expect("DELETE", "FROM")
    table = cursor.expect_table()
    alias = _alias(cursor, "WHERE")
    where = _where(cursor)
    return Delete(cursor.statement_span(), table, alias, where)


def _alias(cursor: Cursor, stop: str) -> Name | None:
    if cursor.accept("AS"):
        return cursor.expect_name("an alias")
    if cursor.token.is_name and (cursor.word != stop or _is_alias(cursor, stop)):
        return cursor.expect_name("an alias")
    return None


def _is_alias(cursor: Cursor, stop: str) -> bool:
    """Whether SET (or WHERE) is an alias here: ``UPDATE t set SET a = 1``, and not ``UPDATE t SET set = 1``."""
    following = cursor.peek(2)
    return cursor.peek().word == stop and (following.kind is not Kind.SYMBOL or following.word == "(")


def _assignment(cursor: Cursor, table: TableName, alias: Name | None) -> Assignment:
    column = _target_column(cursor, table, alias)
    if not cursor.accept_equals():
        raise cursor.error("Expected =")
    return Assignment(column, _value(cursor, ("WHERE",)))


def _target_column(cursor: Cursor, table: TableName, alias: Name | None) -> Name:
    """A column of SET; the alias, or the table's name, may stand before it."""
    first = cursor.at
    parts = [cursor.expect_name("a column name")]
    while cursor.accept("."):
        parts.append(cursor.expect_name("a column name"))
    if len(parts) == 1:
        return parts[0]
    given = [p.text.lower() for p in parts[:-1]]
    full = [p.lower() for p in (table.catalog, table.database, table.table) if p is not None]
    if alias is not None:
        fits = given == [alias.text.lower()]
    else:
        fits = given == full[-len(given) :] or given[1:] == full or given == ["spark_catalog", *full]
    if not fits:
        name = ".".join(p.text for p in parts)
        raise cursor.error(
            f"{name} is not a column of the table that is updated",
            cursor.tokens[first],
            hint="Fields of a struct cannot be set alone; set the whole column (named_struct).",
        )
    return parts[-1]


def _where(cursor: Cursor) -> Span | None:
    where = None
    if cursor.accept("WHERE"):
        where = cursor.expect_expression((), "a condition")
    cursor.expect_end()
    return where


# --- WITH ------------------------------------------------------------------------------------------------------------


def with_statement(cursor: Cursor) -> Statement:
    """``WITH name AS (…), … `` before a query or an INSERT."""
    first = cursor.at
    cursor.expect("WITH")
    cursor.accept("RECURSIVE")
    _cte(cursor)
    while cursor.accept(","):
        _cte(cursor)
    if cursor.word == "INSERT":
        return insert(cursor, cursor.span(first))
    if cursor.word in ("UPDATE", "DELETE", "MERGE"):
        raise cursor.unsupported(f"{cursor.word} with a WITH clause is not carried out", hint="Use subqueries.")
    if not cursor.at_query():
        raise cursor.error("Expected a query or INSERT after the WITH clause")
    cursor.at = first
    return query(cursor)


def _cte(cursor: Cursor) -> None:
    """``name [(columns)] [MAX RECURSION LEVEL n] [AS] (query)``."""
    cursor.expect_name("a name for the query")
    if cursor.word == "(" and not cursor.at_query():
        cursor.names_in_parentheses("a column name")
    if cursor.accept("MAX", "RECURSION", "LEVEL"):
        cursor.expect_integer("a number")
    cursor.accept("AS")
    if cursor.word != "(":
        raise cursor.error("Expected AS and a query in parentheses")
    cursor.skip_brackets()


def query(cursor: Cursor) -> Statement:
    """A query: Spark's, over snapshots. Several INSERTs behind one FROM are Spark's alone."""
    if not cursor.at_query():
        return passthrough(cursor)
    first = cursor.at
    inserts = False
    while not cursor.at_end():
        inserts = inserts or (cursor.word == "INSERT" and cursor.peek().word in ("INTO", "OVERWRITE"))
        if cursor.word in ("(", "[", "{"):
            cursor.skip_brackets()
        elif cursor.word in (")", "]", "}"):
            raise cursor.error("Expected the end of the statement")
        else:
            cursor.advance()
    if inserts:
        return passthrough(cursor)
    return Query(cursor.span(first))
