"""MERGE."""

from __future__ import annotations

from acidsql.errors import ParseError
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.dml import assignments, table_alias, target_column, value
from acidsql.sql.statements import (
    Match,
    Merge,
    MergeDelete,
    MergeInsert,
    MergeSource,
    MergeUpdate,
    Name,
    Span,
    TableName,
    WhenClause,
)
from acidsql.sql.tokens import Kind

_WHEN = ("WHEN MATCHED", "WHEN NOT MATCHED")
_VERSIONS = ("VERSION", "SYSTEM_VERSION")
_PREDICATE_REQUIRED = 10404
_TOO_MANY: dict[type, int] = {MergeDelete: 10405, MergeUpdate: 10406}
"""Hive's ``ErrorMsg.MERGE_PREDIACTE_REQUIRED``, ``MERGE_TOO_MANY_DELETE`` and ``MERGE_TOO_MANY_UPDATE``."""

Action = MergeUpdate | MergeDelete | MergeInsert


def merge(cursor: Cursor, with_clause: Span | None = None) -> Merge:
    """``MERGE [WITH SCHEMA EVOLUTION] INTO t [[AS] a] USING source ON condition WHEN … THEN … …``."""
    cursor.expect("MERGE")
    schema_evolution = cursor.word == "WITH"
    if schema_evolution:
        cursor.expect("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    table = cursor.expect_table()
    alias = table_alias(cursor, "USING")
    cursor.expect("USING")
    source = _source(cursor)
    cursor.expect("ON")
    on = cursor.expect_expression(_WHEN, "a condition")
    clauses = [_when(cursor, table, alias)]
    while not cursor.at_end():
        clauses.append(_when(cursor, table, alias))
    _refuse_unreachable(cursor, clauses)
    return Merge(cursor.statement_span(), table, source, on, tuple(clauses), alias, schema_evolution, with_clause)


# --- the source ------------------------------------------------------------------------------------------------------


def _source(cursor: Cursor) -> MergeSource:
    """``table [VERSION AS OF n] | (query) | VALUES …``, and ``[[AS] s [(columns)]]``."""
    first = cursor.at
    table = query = version = None
    if cursor.word == "(":
        query = _query_in_parentheses(cursor)
    elif _at_values(cursor):
        query = _values(cursor)
    else:
        table = cursor.expect_table("a table or a query in parentheses")
        version = _version(cursor)
    alias = table_alias(cursor, "ON")
    columns = None
    if alias is not None and cursor.word == "(":
        columns = cursor.names_in_parentheses("a column name")
    return MergeSource(cursor.span(first), table, query, alias, columns, version)


def _version(cursor: Cursor) -> Span | None:
    """``[FOR] (VERSION | SYSTEM_VERSION) AS OF (n | :parameter)``."""
    first = cursor.at
    if cursor.word == "FOR" and cursor.peek().word in _VERSIONS:
        cursor.advance()
    if cursor.word not in _VERSIONS or (cursor.peek().word, cursor.peek(2).word) != ("AS", "OF"):
        cursor.at = first
        return None
    cursor.advance()
    cursor.expect("AS", "OF")
    if cursor.accept(":"):
        cursor.expect_name("the name of a parameter")
    else:
        cursor.expect_integer("a write id")
    return cursor.span(first)


def _query_in_parentheses(cursor: Cursor) -> Span:
    """``(query)``: the text inside the parentheses."""
    opened = cursor.at
    if not cursor.at_query():
        cursor.advance()
        raise cursor.error("Expected a query")
    cursor.skip_brackets()
    return cursor.span(opened + 1, cursor.at - 1)


def _at_values(cursor: Cursor) -> bool:
    """Whether a VALUES list starts here, not a table of that name with an alias."""
    following, second = cursor.peek(), cursor.peek(2)
    if cursor.word != "VALUES":
        return False
    if following.kind in (Kind.NUMBER, Kind.STRING) or following.word in ("(", "-", "+", ":"):
        return True
    return following.word not in ("AS", "ON") and (second.kind is Kind.STRING or second.word in ("(", ","))


def _values(cursor: Cursor) -> Span:
    """``VALUES row, …``: rows in parentheses, or single values."""
    first = cursor.at
    cursor.expect("VALUES")
    while True:
        if cursor.word == "(":
            cursor.skip_brackets()
        else:
            cursor.expect_expression(("AS", "ON"), "a row")
        if not cursor.accept(","):
            return cursor.span(first)


# --- WHEN … THEN -----------------------------------------------------------------------------------------------------


def _when(cursor: Cursor, table: TableName, alias: Name | None) -> WhenClause:
    """``WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action``."""
    first = cursor.at
    if not cursor.at_phrase(_WHEN):
        raise cursor.error("Expected WHEN MATCHED or WHEN NOT MATCHED")
    cursor.advance()
    match = Match.NOT_MATCHED if cursor.accept("NOT") else Match.MATCHED
    cursor.expect("MATCHED")
    if match is Match.NOT_MATCHED and cursor.accept("BY") and cursor.expect_one_of("TARGET", "SOURCE") == "SOURCE":
        match = Match.NOT_MATCHED_BY_SOURCE
    condition = None
    if cursor.accept("AND"):
        condition = cursor.expect_expression(("THEN",), "a condition")
    if not cursor.accept("THEN"):
        raise cursor.error("Expected THEN" if condition is not None else "Expected AND or THEN")
    action = _insert(cursor, table, alias) if match is Match.NOT_MATCHED else _change(cursor, table, alias, match)
    if not cursor.at_end() and not cursor.at_phrase(_WHEN):
        hint = None
        if cursor.word == "WHERE":
            hint = "A condition goes before THEN: WHEN MATCHED AND condition THEN …"
        raise cursor.error("Expected WHEN or the end of the statement", hint=hint)
    return WhenClause(match, condition, action, cursor.span(first))


def _change(cursor: Cursor, table: TableName, alias: Name | None, match: Match) -> Action:
    """``UPDATE SET * | UPDATE SET column = value, … | DELETE``."""
    if cursor.accept("DELETE"):
        return MergeDelete()
    if not cursor.accept("UPDATE"):
        raise cursor.error("Expected UPDATE or DELETE", hint=f"WHEN {match.value} applies to target rows.")
    cursor.expect("SET")
    if cursor.word == "*":
        if match is Match.NOT_MATCHED_BY_SOURCE:
            raise cursor.error("Expected a column name", hint="These rows have no matching source row.")
        cursor.advance()
        return MergeUpdate(None)
    return MergeUpdate(assignments(cursor, table, alias, (*_WHEN, "WHERE")))


def _insert(cursor: Cursor, table: TableName, alias: Name | None) -> MergeInsert:
    """``INSERT * | INSERT [(columns)] VALUES (value, …)``."""
    if not cursor.accept("INSERT"):
        raise cursor.error("Expected INSERT", hint="WHEN NOT MATCHED applies to source rows.")
    if cursor.accept("*"):
        return MergeInsert(None, None)
    columns = None
    if cursor.word == "(":
        columns = cursor.list_in_parentheses(lambda: target_column(cursor, table, alias))
    cursor.expect("VALUES")
    return MergeInsert(columns, cursor.list_in_parentheses(lambda: value(cursor, ())))


def _refuse_unreachable(cursor: Cursor, clauses: list[WhenClause]) -> None:
    """A clause without a condition applies to all remaining rows: later clauses would be unreachable."""
    for i, clause in enumerate(clauses):
        hidden = [c for c in clauses[i + 1 :] if c.match is clause.match]
        if clause.condition is None and hidden:
            code = _PREDICATE_REQUIRED if clause.match is Match.MATCHED else None
            if code is not None and type(clause.action) is type(hidden[0].action):
                code = _TOO_MANY[type(clause.action)]
            error = ParseError(
                f"Only the last WHEN {clause.match.value} clause may omit the AND condition",
                code=code,
                hint="The first matching clause applies; later clauses would be unreachable.",
            )
            raise error.locate(cursor.source, clause.span.start, clause.span.end)
