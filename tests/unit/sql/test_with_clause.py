"""A WITH clause before a statement, put before the query that it is meant for."""

from __future__ import annotations

import pytest

from acidsql.sql.parser import parse_statement
from acidsql.sql.statements import Insert, MultiInsert, Span
from acidsql.sql.with_clause import whole_query


def of_insert(text: str) -> Span:
    statement = parse_statement(text)
    assert isinstance(statement, Insert)
    return whole_query(statement.with_clause, statement.query)


def test_a_query_alone_stays_the_users_own_span() -> None:
    text = "INSERT INTO t SELECT a FROM u"
    assert of_insert(text) == Span(text, text.index("SELECT"), len(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "WITH a AS (SELECT 1)\nSELECT * FROM a"),
        (
            "WITH a AS (SELECT 1) -- c\nINSERT INTO t WITH b AS (SELECT * FROM a, x) SELECT * FROM a, b -- d",
            "WITH a AS (SELECT 1)\n(WITH b AS (SELECT * FROM a, x) SELECT * FROM a, b\n)",
        ),
        (
            "WITH a AS (SELECT * FROM x) INSERT INTO t WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) TABLE a",
            "WITH a AS (SELECT * FROM x)\n(WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) TABLE a\n)",
        ),
        (
            "WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) INSERT INTO t WITH b AS (TABLE b) TABLE b",
            "WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a)\n(WITH b AS (TABLE b) TABLE b\n)",
        ),
        (
            "WITH a AS (SELECT 1) INSERT INTO t (WITH b AS (TABLE a) TABLE b)",
            "WITH a AS (SELECT 1)\n(WITH b AS (TABLE a) TABLE b)",
        ),
    ],
)
def test_two_with_clauses_keep_what_each_of_them_sees(text: str, expected: str) -> None:
    found = of_insert(text)
    assert " ".join(found.text.split()) == " ".join(expected.split())
    statement = parse_statement(text)
    assert isinstance(statement, Insert)
    for piece in (statement.with_clause, statement.query):
        assert piece is not None
        assert found.source[piece.start : piece.end] == piece.text == text[piece.start : piece.end]


def test_an_insert_of_several_has_the_common_from_before_its_select() -> None:
    statement = parse_statement(
        "WITH c AS (SELECT 1 AS a) FROM c, x -- the source\nINSERT INTO t SELECT a WHERE a > 0 -- z"
    )
    assert isinstance(statement, MultiInsert)
    [leg] = statement.inserts
    found = whole_query(statement.with_clause, statement.source, leg.query)
    assert " ".join(found.text.split()) == "WITH c AS (SELECT 1 AS a) FROM c, x SELECT a WHERE a > 0"
    without = whole_query(None, statement.source, leg.query)
    assert " ".join(without.text.split()) == "FROM c, x SELECT a WHERE a > 0"
    for one in (found, without):
        assert [one.source[p.start : p.end] for p in (statement.source, leg.query)] == [
            "FROM c, x",
            "SELECT a WHERE a > 0",
        ]
        assert one.source.index("SELECT a WHERE") == leg.query.source.index("SELECT a WHERE")


def test_a_piece_of_ours_follows_on_its_own_line() -> None:
    text = "WITH c AS (SELECT 1 AS a) MERGE INTO t USING c"
    clause, ours = Span(text, 0, 25), Span("SELECT * FROM c", 0, 15)
    assert whole_query(clause, ours).text == "WITH c AS (SELECT 1 AS a) \nSELECT * FROM c"
