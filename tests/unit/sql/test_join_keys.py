"""Which columns a join condition holds equal: too few cost time, one too many would lose rows."""

from __future__ import annotations

import pytest

from acidsql.sql.join_keys import Side, equal_columns
from acidsql.sql.statements import Span

T = Side("t", frozenset({"id", "k", "only_t"}))
S = Side("s", frozenset({"id", "k", "only_s"}))

CASES = [
    ("t.id = s.id", {("id", "id")}),
    ("s.id = t.id", {("id", "id")}),
    ("(t.id = s.id)", {("id", "id")}),
    ("((t.id = s.id) AND (t.k = s.only_s))", {("id", "id"), ("k", "only_s")}),
    ("T.ID = S.`Id` AND t.k = s.k", {("id", "id"), ("k", "k")}),
    ("only_t = only_s", {("only_t", "only_s")}),
    ("t.id = s.id AND t.k > 3 AND t.k BETWEEN 1 AND 2 AND s.k = t.only_t", {("id", "id"), ("only_t", "k")}),
    ("t.id = s.id AND (t.k = s.k OR t.k IS NULL)", {("id", "id")}),
    # no equality that always holds
    ("t.id = s.id OR t.k = s.k", set()),
    ("NOT (t.id = s.id)", set()),
    ("(t.id = s.id) = true", set()),
    ("(t.id = s.id) IS NOT NULL AND (t.k = s.k)", {("k", "k")}),
    ("t.id <=> s.id", set()),
    ("t.id <> s.id AND t.k >= s.k", set()),
    ("coalesce(t.id = s.id, true)", set()),
    ("CASE WHEN t.id = s.id THEN t.k = s.k END", set()),
    ("NOT t.id = s.id AND t.k = s.k", {("k", "k")}),
    # not two columns
    ("t.id = s.id + 1", set()),
    ("abs(t.id) = s.id", set()),
    ("t.id = 5", set()),
    ("CAST(t.id AS string) = s.id", set()),
    ("t.id.x = s.id", set()),
    # not of one table each
    ("t.id = t.k", set()),
    ("s.id = s.k", set()),
    ("id = s.id", set()),
    ("x.id = s.id", set()),
    ("db.t.id = s.id", set()),
    ("t.nope = s.id", set()),
    ("t.id = (SELECT max(id) FROM s)", set()),
    ("EXISTS (SELECT 1 FROM x WHERE t.id = s.id)", set()),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_pairs_of_columns_that_are_equal(text: str, expected: set[tuple[str, str]]) -> None:
    assert set(equal_columns(Span(text, 0, len(text)), T, S)) == expected


def test_two_tables_of_one_name_have_no_pairs() -> None:
    text = "t.id = t.id"
    assert equal_columns(Span(text, 0, len(text)), T, Side("t", S.columns)) == ()


def test_a_condition_inside_a_statement() -> None:
    text = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    start = text.index("t.id")
    assert equal_columns(Span(text, start, start + len("t.id = s.id")), T, S) == (("id", "id"),)
