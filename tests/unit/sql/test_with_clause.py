"""A WITH clause before a statement, put before the query that it is meant for."""

from __future__ import annotations

import pytest

from acidsql.sql.parser import parse_statement
from acidsql.sql.references import analyse_query
from acidsql.sql.statements import Insert, MultiInsert, Span
from acidsql.sql.with_clause import cte_names, named_queries, spliced_clause, whole_query


def of_insert(text: str) -> Span:
    statement = parse_statement(text)
    assert isinstance(statement, Insert)
    return whole_query(statement.with_clause, statement.query)


def test_a_query_alone_stays_the_users_own_span() -> None:
    text = "INSERT INTO t SELECT a FROM u"
    assert of_insert(text) == Span(text, text.index("SELECT"), len(text))


@pytest.mark.parametrize(
    ("text", "expected", "tables"),
    [
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "WITH a AS (SELECT 1)\nSELECT * FROM a", []),
        (
            "WITH a AS (SELECT 1) -- c\nINSERT INTO t WITH b AS (SELECT * FROM a, x) SELECT * FROM a, b -- d",
            "WITH a AS (SELECT 1)\n(WITH b AS (SELECT * FROM a, x) SELECT * FROM a, b\n)",
            ["x"],
        ),
        (
            "WITH a AS (SELECT * FROM x) INSERT INTO t WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) TABLE a",
            "WITH a AS (SELECT * FROM x)\n(WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) TABLE a\n)",
            ["x"],
        ),
        (
            "WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) INSERT INTO t WITH b AS (TABLE b) TABLE b",
            "WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a)\n(WITH b AS (TABLE b) TABLE b\n)",
            ["b"],
        ),
        (
            "WITH a AS (SELECT 1) INSERT INTO t (WITH b AS (TABLE a) TABLE b)",
            "WITH a AS (SELECT 1)\n(WITH b AS (TABLE a) TABLE b)",
            [],
        ),
    ],
)
def test_two_with_clauses_keep_what_each_of_them_sees(text: str, expected: str, tables: list[str]) -> None:
    found = of_insert(text)
    references = analyse_query(found)
    assert found.text == expected
    assert [t.name.table for t in references.tables] == tables
    assert references.exact


def test_an_insert_of_several_has_the_common_from_before_its_select() -> None:
    statement = parse_statement(
        "WITH c AS (SELECT 1 AS a) FROM c, x -- the source\nINSERT INTO t SELECT a WHERE a > 0 -- z"
    )
    assert isinstance(statement, MultiInsert)
    [leg] = statement.inserts
    found = whole_query(statement.with_clause, statement.source, leg.query)
    assert found.text == "WITH c AS (SELECT 1 AS a)\nFROM c, x\nSELECT a WHERE a > 0"
    assert [t.name.table for t in analyse_query(found).tables] == ["x"]
    assert whole_query(None, statement.source, leg.query).text == "FROM c, x\nSELECT a WHERE a > 0"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("WITH a AS (SELECT 1, 2)", ("a",)),
        ("WITH A (x, y) AS (SELECT (1), 2), `b c` (SELECT 3), d AS (SELECT 4)", ("a", "b c", "d")),
        ("WITH RECURSIVE r (n) MAX RECURSION LEVEL 5 AS (SELECT 1), recursive AS (SELECT 2)", ("r", "recursive")),
    ],
)
def test_the_names_of_a_with_clause(text: str, names: tuple[str, ...]) -> None:
    source = f"/* x */ {text} INSERT INTO t SELECT 1"
    assert cte_names(Span(source, 8, 8 + len(text))) == names


def test_the_tables_in_a_with_clause_are_spliced_and_nothing_else_of_it_changes() -> None:
    text = "WITH a AS (SELECT x.id FROM x), b AS (TABLE a)"
    found = named_queries(Span(text, 0, len(text)))
    assert found is not None
    [table] = found.tables
    assert spliced_clause(found.splice({table: "v"})) == "WITH a AS (SELECT x.id FROM `v` AS `x`), b AS (TABLE a)"
    assert named_queries(None) is None
    assert cte_names(None) == ()
