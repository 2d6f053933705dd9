"""INSERT, UPDATE and DELETE, and their clauses that MERGE shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.sql.parser.cursor import QUERY_WORDS, Cursor, LeftToSpark
from acidsql.sql.statements import (
    Assignment,
    Default,
    Delete,
    Insert,
    Name,
    PartitionSpec,
    Span,
    Statement,
    TableName,
    Update,
)
from acidsql.sql.tokens import Kind

Row = tuple["Span | Default", ...]


@dataclass(frozen=True)
class InsertHead:
    """An INSERT up to its rows."""

    table: TableName
    overwrite: bool
    partition: PartitionSpec | None
    if_not_exists: bool
    columns: tuple[Name, ...] | None
    by_name: bool

    def with_body(
        self, span: Span, query: Span, rows: tuple[Row, ...] | None = None, with_clause: Span | None = None
    ) -> Insert:
        """The statement with these rows."""
        return Insert(
            span,
            self.table,
            query,
            overwrite=self.overwrite,
            partition=self.partition,
            if_not_exists=self.if_not_exists,
            columns=self.columns,
            by_name=self.by_name,
            rows=rows,
            with_clause=with_clause,
        )


def insert(cursor: Cursor, with_clause: Span | None = None) -> Statement:
    """``INSERT INTO|OVERWRITE [TABLE] t [PARTITION (…) [IF NOT EXISTS]] [BY NAME | (columns)] VALUES … | query``."""
    head = insert_head(cursor)
    first = cursor.at
    rows = _rows(cursor) if cursor.word == "VALUES" else None
    if rows is None:
        cursor.at = first
        query = cursor.query("VALUES, SELECT or another query")
    else:
        query = cursor.span(first)
    return head.with_body(cursor.statement_span(), query, rows, with_clause)


def insert_head(cursor: Cursor) -> InsertHead:
    """An INSERT up to VALUES or its query; INSERT into a directory, and REPLACE WHERE, are left to Spark."""
    cursor.expect("INSERT")
    overwrite = cursor.expect_one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if overwrite and _at_directory(cursor):
        raise LeftToSpark
    if _at_table_word(cursor):
        cursor.advance()
    table = cursor.expect_table()
    if cursor.sees("REPLACE", "WHERE"):
        raise LeftToSpark
    partition = cursor.partition_spec()
    if_not_exists = partition is not None and _if_not_exists(cursor, overwrite)
    by_name = cursor.accept("BY", "NAME")
    columns = None
    if not by_name and cursor.word == "(" and not _at_query_in_parentheses(cursor):
        columns = cursor.names_in_parentheses("a column name")
    return InsertHead(table, overwrite, partition, if_not_exists, columns, by_name)


def _if_not_exists(cursor: Cursor, overwrite: bool) -> bool:
    first = cursor.token
    accepted = cursor.if_not_exists()
    if accepted and not overwrite:
        raise cursor.error("IF NOT EXISTS belongs to INSERT OVERWRITE", first)
    return accepted


def _at_directory(cursor: Cursor) -> bool:
    """``INSERT OVERWRITE [LOCAL] DIRECTORY`` writes files, not a table."""
    return cursor.sees("LOCAL", "DIRECTORY") or (
        cursor.word == "DIRECTORY"
        and (cursor.peek().word == "USING" or not (cursor.peek().word or cursor.peek().quoted))
    )


def _at_table_word(cursor: Cursor) -> bool:
    """Whether the keyword TABLE follows, not a table of that name."""
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
    """``(SELECT …)``, not a column list with a first column of that name."""
    ahead = 0
    while cursor.peek(ahead).word == "(":
        ahead += 1
    return cursor.peek(ahead).word in QUERY_WORDS and cursor.peek(ahead + 1).word not in (",", ")")


def _rows(cursor: Cursor) -> tuple[Row, ...] | None:
    """The rows of a plain VALUES list up to the end; None if something follows."""
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
        row = cursor.list_in_parentheses(lambda: value(cursor, ()))
        return row if cursor.word == "," or cursor.at_end() else None
    if cursor.word in ("STRUCT", "NAMED_STRUCT"):
        # Spark turns each field into a column.
        return None
    return (value(cursor, ("AS",)),)


def value(cursor: Cursor, stops: Sequence[str]) -> Span | Default:
    """An expression, up to one of the phrases that may follow it, or the word DEFAULT alone."""
    following = cursor.peek()
    ends = {",", ")", *(phrase.split()[0] for phrase in stops)}
    if cursor.word == "DEFAULT" and (following.word in ends or following.text == ""):
        token = cursor.advance()
        return Default(Span(cursor.source, token.start, token.end))
    return cursor.expect_expression(stops, "a value")


# --- UPDATE and DELETE -----------------------------------------------------------------------------------------------


def update(cursor: Cursor, with_clause: Span | None = None) -> Update:
    """``UPDATE t [[AS] alias] SET column = expression | DEFAULT, … [WHERE condition]``."""
    cursor.expect("UPDATE")
    table = cursor.expect_table()
    alias = table_alias(cursor, "SET")
    cursor.expect("SET")
    assigned = assignments(cursor, table, alias, ("WHERE",))
    where = _where(cursor)
    return Update(cursor.statement_span(), table, assigned, alias, where, with_clause)


def delete(cursor: Cursor, with_clause: Span | None = None) -> Delete:
    """``DELETE FROM t [[AS] alias] [WHERE condition]``."""
    cursor.expect("DELETE", "FROM")
    table = cursor.expect_table()
    alias = table_alias(cursor, "WHERE")
    where = _where(cursor)
    return Delete(cursor.statement_span(), table, alias, where, with_clause)


def table_alias(cursor: Cursor, stop: str) -> Name | None:
    if cursor.accept("AS"):
        return cursor.expect_name("an alias")
    if cursor.token.is_name and (cursor.word != stop or _at_alias(cursor, stop)):
        return cursor.expect_name("an alias")
    return None


def _at_alias(cursor: Cursor, stop: str) -> bool:
    """Whether SET (or WHERE) is an alias here: ``UPDATE t set SET a = 1``, not ``UPDATE t SET set = 1``."""
    following = cursor.peek(2)
    return cursor.peek().word == stop and (following.kind is not Kind.SYMBOL or following.word == "(")


def assignments(cursor: Cursor, table: TableName, alias: Name | None, stops: Sequence[str]) -> tuple[Assignment, ...]:
    """``column = expression | DEFAULT, …`` after SET, up to one of the phrases that may follow."""
    parsed: list[Assignment] = []
    while not parsed or cursor.accept(","):
        column = target_column(cursor, table, alias)
        if not cursor.accept_equals():
            raise cursor.error("Expected =")
        parsed.append(Assignment(column, value(cursor, stops)))
    return tuple(parsed)


def target_column(cursor: Cursor, table: TableName, alias: Name | None) -> Name:
    """A column of SET (or of MERGE's INSERT), optionally qualified by the alias or the table's name."""
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
            f"{name} is not a column of the updated table",
            cursor.tokens[first],
            hint="Struct fields cannot be set individually; set the whole column (named_struct).",
        )
    return parts[-1]


def _where(cursor: Cursor) -> Span | None:
    where = None
    if cursor.accept("WHERE"):
        where = cursor.expect_expression((), "a condition")
    cursor.expect_end()
    return where
