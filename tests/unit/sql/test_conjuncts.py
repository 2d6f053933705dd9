"""Which conditions may be put upon a table alone. A wrong one would lose rows: so what is refused matters most."""

from __future__ import annotations

from typing import Any

import pytest

from acidsql.sql.references import References, analyse_expression, analyse_query
from acidsql.sql.statements import Span, TableName

KEYS = frozenset({"p", "q"})


def analysed(text: str) -> References:
    return analyse_query(Span(text, 0, len(text)))


def conjuncts(text: str, place: int = 0) -> list[str]:
    """The texts found for the table at that place in the query."""
    references = analysed(text)
    return [c.text for c in references.conjuncts(references.tables[place], KEYS)]


def of_where(condition: str) -> list[str]:
    return conjuncts(f"SELECT id FROM emp WHERE {condition}")


# --- the pieces of a condition ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "p = 1",
        "p == 1",
        "1 < p",
        "p <=> 1L",
        "p != -1.5BD",
        "p = 'é😀'",
        "`p` = 1",
        "P = 1",
        "emp.p = 1",
        "EMP.`P` = 1",
        "p = q",
        "p + 1 = q * 2",
        "p % 2 = 0",
        "p IN (1, 2, NULL)",
        "p NOT IN (1)",
        "(p, q) IN ((1, 2), (3, 4))",
        "p BETWEEN 1 AND 2",
        "p NOT BETWEEN q AND 2 + 1",
        "p IS NULL",
        "p IS NOT NULL",
        "p IS TRUE",
        "p IS DISTINCT FROM 1",
        "p LIKE 'a%'",
        "p LIKE 'a/%' ESCAPE '/'",
        "p RLIKE 'x'",
        "NOT p = 1",
        "!(p = 1)",
        "(p = 1 OR q = 2 AND p = 3)",
        "p = 1 OR q = 2",
        "p = :value",
        "p = date '2020-01-01'",
        "p > timestamp '2020-01-01 00:00:00'",
        "p = CAST('1' AS int)",
        "p::int = 1",
        "year(p) = 2020",
        "to_date(p) = date '2020-01-01'",
        "coalesce(p, 0) = 1",
        "upper(p) = 'A'",
        "substr(p, 1, 2) = 'ab'",
        "p /* c */ = -- d\n 1",
    ],
)
def test_a_comparison_of_the_given_columns_with_constants_counts(condition: str) -> None:
    assert of_where(condition) == [condition]


@pytest.mark.parametrize(
    "condition",
    [
        "a = 1",
        "p = a",
        "p = rand()",
        "p = uuid()",
        "p = now()",
        "p = current_date",
        "p = current_date()",
        "p = current_timestamp",
        "p = current_user",
        "p = session_user()",
        "p = my_function(1)",
        "p = monotonically_increasing_id()",
        "p IN (SELECT p FROM t)",
        "p = (SELECT 1)",
        "EXISTS (SELECT p)",
        "NOT EXISTS (SELECT p)",
        "p = ?",
        "p.field = 1",
        "hr.emp.p = 1",
        "other.p = 1",
        "p[0] = 1",
        "exists(array(p), x -> x = 1)",
        "p = 1 OR a = 2",
        "p = 1 OR rand() > 0.5",
        "count(p) > 1",
        "sum(p) OVER () > 1",
        "p:field = 1",
        "TRUE",
        "1 = 1",
        "p = interval 1 day",
        "p =",
    ],
)
def test_everything_else_does_not(condition: str) -> None:
    assert of_where(condition) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("p = 1 AND q = 2", ["p = 1", "q = 2"]),
        ("a = 1 AND p = 1 AND b = 2 AND q IN (1, 2)", ["p = 1", "q IN (1, 2)"]),
        ("p BETWEEN 1 AND 2 AND q = 3", ["p BETWEEN 1 AND 2", "q = 3"]),
        ("p NOT BETWEEN 1 AND 2 AND a BETWEEN 3 AND 4 AND q = 5", ["p NOT BETWEEN 1 AND 2", "q = 5"]),
        ("CASE WHEN p = 1 AND q = 2 THEN a ELSE b END AND p = 3", ["p = 3"]),
        ("(p = 1 AND q = 2) AND a = 3", ["(p = 1 AND q = 2)"]),
        ("p = 1 AND q = 2 OR a = 3", []),
        ("a = 3 OR p = 1 AND q = 2", []),
        ("NOT p = 1 AND q = 2", ["NOT p = 1", "q = 2"]),
        ("p = 1 AND exists(xs, x -> x AND q = 2)", ["p = 1"]),
        ("p = 1 AND a IN (SELECT b FROM c WHERE q = 2)", ["p = 1"]),
        ("p = 1 and(q = 2)", ["p = 1", "(q = 2)"]),
        ("p = ' AND ' AND q = 2", ["p = ' AND '", "q = 2"]),
        ("p = 1 AND t.and AND q = 2", ["p = 1", "q = 2"]),
    ],
)
def test_a_condition_is_cut_at_its_ands(condition: str, expected: list[str]) -> None:
    assert of_where(condition) == expected


# --- where the condition stands --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM emp WHERE p = 1",
        "SELECT count(*) FROM emp WHERE p = 1 GROUP BY a HAVING b ORDER BY c LIMIT 1",
        "FROM emp SELECT id WHERE p = 1",
        "SELECT * FROM (SELECT * FROM emp WHERE p = 1) x WHERE q = 2",
        "WITH c AS (SELECT * FROM emp WHERE p = 1) SELECT * FROM c WHERE q = 2",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM emp WHERE p = 1)",
        "SELECT q = 2 FROM emp WHERE p = 1 UNION ALL SELECT 1 WHERE q = 2",
        "SELECT a:b::int FROM emp WHERE p = 1",
        "SELECT p = 2 AS p FROM emp WHERE p = 1",
    ],
)
def test_the_where_of_its_own_select_counts(text: str) -> None:
    assert conjuncts(text) == ["p = 1"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM emp",
        "SELECT p = 1 FROM emp",
        "SELECT id FROM emp HAVING p = 1",
        "SELECT * FROM (SELECT * FROM emp) x WHERE p = 1",
        "SELECT * FROM (SELECT * FROM emp LIMIT 1) WHERE p = 1",
        "SELECT * FROM emp TABLESAMPLE (10 ROWS) WHERE p = 1",
        "SELECT * FROM (emp) TABLESAMPLE (10 ROWS) WHERE p = 1",
        "SELECT * FROM emp e (p, q) WHERE p = 1",
        "SELECT * FROM emp AS (p, q) WHERE p = 1",
        "SELECT * FROM emp PIVOT (sum(a) FOR b IN (1)) WHERE p = 1",
        "SELECT * FROM emp UNPIVOT (a FOR b IN (c)) WHERE emp.p = 1",
        "SELECT * FROM (emp JOIN x) AS y WHERE emp.p = 1",
        "FROM emp SELECT a WHERE p = 1 SELECT b WHERE p = 2",
        "FROM emp |> WHERE p = 1",
        "SELECT * FROM emp WHERE p = 1 |> SELECT p",
        "TABLE emp",
        "SELECT * FROM emp TIMESTAMP AS OF '2020-01-01' WHERE p = 1",
        "SELECT * FROM emp JOIN x WHERE p = 1",
        "SELECT * FROM emp, (SELECT 1 AS p) x WHERE p = 1",
        "SELECT * FROM emp LATERAL VIEW explode(a) t AS p WHERE p = 1",
        "SELECT * FROM emp JOIN VALUES (1) AS v (p) WHERE p = 1",
        "SELECT * FROM emp JOIN emp WHERE emp.p = 1",
        "SELECT * FROM emp, hr.emp WHERE emp.p = 1",
        "SELECT * FROM emp, (SELECT 1 AS p) emp WHERE emp.p = 1",
        "WITH c AS (SELECT 1 AS p) SELECT * FROM emp, c emp WHERE emp.p = 1",
    ],
)
def test_where_it_might_mean_something_else_nothing_counts(text: str) -> None:
    assert conjuncts(text) == []


@pytest.mark.parametrize(
    ("join", "left", "right"),
    [
        ("a JOIN b ON TRUE", ["a.p = 1"], ["b.p = 2"]),
        ("a INNER JOIN b USING (x)", ["a.p = 1"], ["b.p = 2"]),
        ("a CROSS JOIN b", ["a.p = 1"], ["b.p = 2"]),
        ("a, b", ["a.p = 1"], ["b.p = 2"]),
        ("a LEFT JOIN b ON TRUE", ["a.p = 1"], []),
        ("a LEFT OUTER JOIN b ON TRUE", ["a.p = 1"], []),
        ("a RIGHT JOIN b ON TRUE", [], ["b.p = 2"]),
        ("a FULL OUTER JOIN b ON TRUE", [], []),
        ("a LEFT SEMI JOIN b ON TRUE", ["a.p = 1"], []),
        ("a ANTI JOIN b ON TRUE", ["a.p = 1"], []),
        ("a NATURAL LEFT JOIN b", ["a.p = 1"], []),
        ("(a JOIN c) LEFT JOIN b ON TRUE", ["a.p = 1"], []),
        ("(a LEFT JOIN b ON TRUE) JOIN c", ["a.p = 1"], []),
        ("c LEFT JOIN (a JOIN b ON TRUE) ON TRUE", [], []),
        ("a JOIN c RIGHT JOIN b ON TRUE", [], ["b.p = 2"]),
        ("a JOIN b LATERAL VIEW explode(x) t AS y", ["a.p = 1"], ["b.p = 2"]),
    ],
)
def test_on_the_null_supplying_side_of_a_join_nothing_counts(join: str, left: list[str], right: list[str]) -> None:
    text = f"SELECT * FROM {join} WHERE a.p = 1 AND b.p = 2 AND p = 3"
    references = analysed(text)
    by_name = {t.name.table: t for t in references.tables}
    assert [c.text for c in references.conjuncts(by_name["a"], KEYS)] == left
    assert [c.text for c in references.conjuncts(by_name["b"], KEYS)] == right


def test_the_on_of_inner_joins_counts_and_that_of_others_does_not() -> None:
    on = "a.p = 1 AND b.p = 2 AND a.x = b.x"
    for place, expected in ((0, ["a.p = 1"]), (1, ["b.p = 2"])):
        assert conjuncts(f"SELECT * FROM a JOIN b ON {on}", place) == expected
        assert conjuncts(f"SELECT * FROM a LEFT JOIN b ON {on}", place) == []
        assert conjuncts(f"SELECT * FROM a JOIN b ON {on} LEFT JOIN c ON TRUE", place) == []
        assert conjuncts(f"SELECT * FROM a LEFT SEMI JOIN b ON {on}", place) == []


def test_an_aliased_table_answers_to_its_alias_alone() -> None:
    assert conjuncts("SELECT * FROM emp e WHERE e.p = 1 AND emp.q = 2 AND q = 3") == ["e.p = 1", "q = 3"]


def test_each_place_of_a_table_has_its_own_conditions() -> None:
    text = "SELECT * FROM emp WHERE p = 1 AND a IN (SELECT a FROM emp WHERE p = 2)"
    assert (conjuncts(text, 0), conjuncts(text, 1)) == (["p = 1"], ["p = 2"])


def test_a_correlated_condition_of_a_subquery_does_not_count() -> None:
    text = "SELECT * FROM a WHERE a.p = 1 AND EXISTS (SELECT 1 FROM b WHERE b.p = a.p AND b.q = 2 AND a.q = 3)"
    assert (conjuncts(text, 0), conjuncts(text, 1)) == (["a.p = 1"], ["b.q = 2"])


# --- UPDATE and DELETE -----------------------------------------------------------------------------------------------


def of_expression(text: str, alias: str | None = None) -> list[str]:
    target = TableName("emp", "hr", Span("hr.emp", 0, 6))
    references = analyse_expression(Span(text, 0, len(text)), target=target, alias=alias)
    return [c.text for c in references.conjuncts(None, KEYS)]


@pytest.mark.parametrize(
    ("text", "alias", "expected"),
    [
        ("p = 1 AND a = 2 AND emp.q = 3", None, ["p = 1", "emp.q = 3"]),
        ("e.p = 1 AND emp.q = 3", "e", ["e.p = 1"]),
        ("p = 1 OR a = 2", None, []),
        ("p IN (SELECT p FROM x) AND q = 2", None, ["q = 2"]),
        ("EXISTS (SELECT 1 FROM x WHERE p = 1)", None, []),
        ("hr.emp.p = 1", None, []),
    ],
)
def test_the_conjuncts_of_the_condition_of_update_and_delete(text: str, alias: str | None, expected: list[str]) -> None:
    assert of_expression(text, alias) == expected


def test_the_tables_in_the_subqueries_of_an_expression_have_theirs() -> None:
    text = "p = 1 AND id IN (SELECT id FROM gone WHERE q = 2)"
    target = TableName("emp", None, Span("emp", 0, 3))
    references = analyse_expression(Span(text, 0, len(text)), target=target, alias=None)
    assert [c.text for c in references.conjuncts(references.tables[0], KEYS)] == ["q = 2"]


def test_a_query_has_no_target() -> None:
    assert analysed("SELECT 1 FROM emp WHERE p = 1").conjuncts(None, KEYS) == ()


# --- conditions of MERGE ---------------------------------------------------------------------------------------------

ON = "t.p = 1 AND q = 2 AND s.p = 3 AND t.q > t.p AND t.p = s.q AND (t.p < 9 OR t.q < 9) AND x.t.p = 1"


def of_merge(condition: str, alias: str | None = "t", **options: Any) -> list[str]:
    target = TableName("emp", "hr", Span("hr.emp", 0, 6))
    references = analyse_expression(Span(condition, 0, len(condition)), target=target, alias=alias, **options)
    return [c.text for c in references.conjuncts(None, KEYS)]


SRC = TableName("src", None, Span("src", 0, 3))
OTHER_EMP = TableName("Emp", "x", Span("x.Emp", 0, 5))


@pytest.mark.parametrize("options", [{"others": ["s"]}, {"other": (None, "s")}, {"other": (SRC, "s")}, {"others": ()}])
def test_beside_a_source_only_columns_qualified_by_the_target_count(options: dict[str, Any]) -> None:
    assert of_merge(ON, **options) == ["t.p = 1", "t.q > t.p", "(t.p < 9 OR t.q < 9)"]


def test_without_a_source_columns_without_a_qualifier_count_too() -> None:
    assert of_merge(ON) == ["t.p = 1", "q = 2", "t.q > t.p", "(t.p < 9 OR t.q < 9)"]


def test_a_source_without_a_name_hides_what_has_no_qualifier() -> None:
    assert of_merge("p = 1 AND emp.p = 2", None, other=(None, None)) == ["emp.p = 2"]


@pytest.mark.parametrize("options", [{"others": ["EMP"]}, {"other": (None, "emp")}, {"other": (OTHER_EMP, None)}])
def test_a_name_that_the_source_has_too_proves_nothing(options: dict[str, Any]) -> None:
    assert of_merge("p = 1 AND emp.p = 2", None, **options) == []


def test_an_unaliased_target_is_known_by_its_table() -> None:
    assert of_merge("emp.p = 1 AND t.p = 1 AND src.p = 1", None, other=(SRC, None)) == ["emp.p = 1"]


def test_conditions_on_a_version_of_a_table_count() -> None:
    assert conjuncts("SELECT * FROM emp VERSION AS OF 1 e WHERE p = 1 AND e.q = 2") == ["p = 1", "e.q = 2"]
