"""Which tables a text names, and the text with views in their place."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from acidsql.errors import ParseError, UnsupportedError
from acidsql.sql.references import References, analyse_expression, analyse_query
from acidsql.sql.statements import Span, TableName

HEAD = "EXPLAIN /* é😀 */ "
"""Stands before each text: spans begin somewhere in a larger source."""


def query(text: str) -> References:
    source = HEAD + text
    return analyse_query(Span(source, len(HEAD), len(source)))


def expression(text: str, target: str = "emp", alias: str | None = None) -> References:
    source = HEAD + text
    *database, table = target.split(".")
    name = TableName(table, database[0] if database else None, Span(target, 0, len(target)))
    return analyse_expression(Span(source, len(HEAD), len(source)), target=name, alias=alias)


def named(references: References) -> list[str]:
    """``database.table alias`` of each reference."""
    return [
        " ".join(
            [".".join(p for p in (t.name.catalog, t.name.database, t.name.table) if p), *([t.alias] if t.alias else [])]
        )
        for t in references.tables
    ]


def spliced(references: References, **options: str) -> str:
    """The text with the views v0, v1 … for all tables, in their order."""
    return references.splice({t: f"v{i}" for i, t in enumerate(references.tables)}, **options)


# --- which tables ----------------------------------------------------------------------------------------------------

TABLES = [
    ("SELECT * FROM emp", ["emp"]),
    ("SELECT * FROM hr.emp e, spark_catalog.hr.dept AS d", ["hr.emp e", "spark_catalog.hr.dept d"]),
    ("SELECT * FROM `my db`.`a``b` `c d`", ["my db.a`b c d"]),
    ("SELECT 1", []),
    (
        "SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (x) CROSS JOIN d NATURAL JOIN e",
        ["a", "b", "c", "d", "e"],
    ),
    ("SELECT * FROM a LEFT SEMI JOIN b ON x FULL OUTER JOIN c d ON y ANTI JOIN e", ["a", "b", "c d", "e"]),
    ("SELECT * FROM (SELECT * FROM a) x, (b), (c JOIN d ON e) y", ["a", "b", "c", "d"]),
    ("SELECT * FROM ((SELECT * FROM a) UNION (SELECT * FROM b)) x JOIN ((SELECT 1) y JOIN c)", ["a", "b", "c"]),
    ("(SELECT * FROM a) UNION ALL SELECT * FROM b EXCEPT (TABLE c) INTERSECT VALUES (1) MINUS FROM d", list("abcd")),
    ("TABLE hr.emp", ["hr.emp"]),
    ("FROM a, b SELECT 1 WHERE x SELECT 2 WHERE y", ["a", "b"]),
    (
        "SELECT (SELECT max(x) FROM a), EXISTS (FROM b SELECT 1) FROM c"
        " WHERE d IN (TABLE e) OR f > ANY (SELECT 1 FROM g)",
        list("abceg"),
    ),
    ("SELECT ((SELECT 1 FROM a) + 1), x IN ((SELECT 1 FROM b), 2) FROM c", list("abc")),
    ("SELECT * FROM a, LATERAL (SELECT * FROM b WHERE a.x = b.x) JOIN LATERAL (SELECT 1 FROM c)", list("abc")),
    ("SELECT * FROM a LATERAL VIEW OUTER explode(x) t AS y, z LATERAL VIEW f(1) u WHERE y", ["a"]),
    ("SELECT * FROM a LATERAL VIEW explode(x) t y WHERE y", ["a"]),
    (
        "SELECT * FROM range(10) r, explode(array(1, 2)) AS (x), hr.f(TABLE a),"
        " f(x => TABLE (b), TABLE (SELECT 1 FROM c))",
        list("abc"),
    ),
    ("SELECT * FROM VALUES (1, 2), (3, 4) AS t (a, b), emp", ["emp"]),
    ("SELECT * FROM VALUES 1, 2 JOIN emp", ["emp"]),
    ("VALUES (1, (SELECT max(x) FROM emp))", ["emp"]),
    (
        "SELECT * FROM a TABLESAMPLE (10 PERCENT) REPEATABLE (1) b, c TABLESAMPLE (BUCKET 1 OUT OF 2) JOIN d",
        ["a b", "c", "d"],
    ),
    ("SELECT * FROM a PIVOT (sum(x) FOR y IN (1, 2)) p, b UNPIVOT INCLUDE NULLS (x FOR y IN (z)) AS u", ["a", "b"]),
    (
        "SELECT * FROM a VERSION AS OF 1, b TIMESTAMP AS OF '2020-01-01' c, d FOR SYSTEM_VERSION AS OF 'x'",
        ["a", "b c", "d"],
    ),
    ("SELECT * FROM a FOR JOIN b", ["a FOR", "b"]),
    ("SELECT * FROM a.b.c.d JOIN parquet.`/x/y` JOIN emp", ["parquet./x/y", "emp"]),
    ("SELECT * FROM IDENTIFIER('hr.`e m`') x, IDENTIFIER(:t), IDENTIFIER('ra' || 'nge')(1), emp", ["hr.e m x", "emp"]),
    (
        "SELECT EXTRACT(day FROM a), trim(BOTH b FROM c), substr(d FROM 2), overlay(e PLACING f FROM 3) FROM emp",
        ["emp"],
    ),
    ("SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b, a IS NOT NULL FROM emp", ["emp"]),
    ("SELECT a:b::int, x::array<int>, y[0].z, t.`a b`.c FROM emp", ["emp"]),
    ("SELECT filter(xs, x -> x > 1), aggregate(xs, 0, (a, x) -> a + x) FROM emp", ["emp"]),
    (
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), count(*) FILTER (WHERE y) OVER w"
        " FROM emp WINDOW w AS (ORDER BY z)",
        ["emp"],
    ),
    ("SELECT date, value, table, set, from, left, user FROM from WHERE where = 1", ["from"]),
    ("SELECT DISTINCT from FROM select", ["select"]),
    ("SELECT distinct, all FROM emp", ["emp"]),
    ("SELECT interval '1' day, timestamp '2020-01-01', map(1, 2), struct(a AS b) FROM emp", ["emp"]),
    ("SELECT a limit, b where, c union, case, d order FROM emp limit, x where", ["emp limit", "x where"]),
    ("SELECT count(*) FROM from emp", ["emp"]),
    ("SELECT a FROM emp set WHERE from = 1", ["emp set"]),
    ("SELECT CASE WHEN a THEN b ELSE c END FROM emp ORDER BY (SELECT 1 FROM x) LIMIT 1 OFFSET 2", ["emp", "x"]),
    ("SELECT TRANSFORM (a, b) USING 'cat' AS (c, d) FROM emp", ["emp"]),
    ("SELECT 'FROM x', \"FROM y\", `FROM z` /* FROM c */ -- FROM d\nFROM emp", ["emp"]),
    (
        "SELECT * FROM emp |> WHERE a = 1 |> JOIN dept ON b |> UNION ALL (SELECT * FROM x) |> AGGREGATE count(*)",
        ["emp", "dept", "x"],
    ),
    ("SELECT * FROM emp GROUP BY a WITH ROLLUP HAVING (SELECT 1 FROM x) SORT BY b", ["emp", "x"]),
    ("SELECT * FROM emp GROUP BY GROUPING SETS ((a), (b)), CUBE (c)", ["emp"]),
]


@pytest.mark.parametrize(("text", "tables"), TABLES, ids=[t[0][:60] for t in TABLES])
def test_the_tables_of_a_query(text: str, tables: list[str]) -> None:
    references = query(text)
    assert named(references) == tables
    for table in references.tables:
        span = table.name.span
        assert span.source[span.start : span.end] == span.text
        assert span.start >= len(HEAD)


CTES = [
    ("WITH c AS (SELECT * FROM emp) SELECT * FROM c", ["emp"]),
    ("WITH emp AS (SELECT * FROM emp) SELECT * FROM emp", ["emp"]),
    ("WITH c AS (SELECT 1), d AS (SELECT * FROM c JOIN e) SELECT * FROM C, d, hr.c", ["e", "hr.c"]),
    ("WITH d AS (SELECT * FROM c), c AS (SELECT 1) SELECT * FROM c, d", ["c"]),
    ("WITH c AS (SELECT 1) SELECT * FROM (SELECT * FROM c) x WHERE y IN (SELECT * FROM c)", []),
    ("SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x, c", ["c"]),
    ("WITH c AS (SELECT 1) SELECT * FROM (WITH c AS (SELECT * FROM c) SELECT * FROM c) x", []),
    ("WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT * FROM c, emp", ["emp"]),
    ("WITH c AS (SELECT 1) TABLE c UNION TABLE emp", ["emp"]),
    ("WITH c (a, b) AS (VALUES (1, 2)), `d e` (SELECT 1 FROM x) FROM c, `d e`, f(TABLE (c)) SELECT *", ["x"]),
]


@pytest.mark.parametrize(("text", "tables"), CTES, ids=[t[0][:60] for t in CTES])
def test_a_with_query_hides_a_table_of_its_name_in_its_scope_alone(text: str, tables: list[str]) -> None:
    assert named(query(text)) == tables


@pytest.mark.parametrize("text", [t[0] for t in TABLES + CTES], ids=lambda t: t[:60])
def test_with_no_views_the_text_stays_as_it_is(text: str) -> None:
    assert query(text).splice({}) == text


# --- splicing --------------------------------------------------------------------------------------------------------

SPLICED = [
    ("SELECT a FROM emp", "SELECT a FROM `v0` AS `emp`"),
    ("SELECT a FROM hr . emp /* x */ AS e", "SELECT a FROM `v0` /* x */ AS e"),
    ("SELECT a FROM `e``m` WHERE 'emp' = \"emp\"", "SELECT a FROM `v0` AS `e``m` WHERE 'emp' = \"emp\""),
    ("SELECT a FROM EMP x JOIN emp", "SELECT a FROM `v0` x JOIN `v1` AS `emp`"),
    ("SELECT a FROM emp TABLESAMPLE (1 ROWS) WHERE b", "SELECT a FROM `v0` TABLESAMPLE (1 ROWS) AS `emp` WHERE b"),
    (
        "SELECT a FROM emp TABLESAMPLE (1 ROWS) REPEATABLE (2), x TABLESAMPLE (5 PERCENT) y",
        "SELECT a FROM `v0` TABLESAMPLE (1 ROWS) REPEATABLE (2) AS `emp`, `v1` TABLESAMPLE (5 PERCENT) y",
    ),
    ("SELECT a FROM emp PIVOT (sum(x) FOR y IN (1))", "SELECT a FROM `v0` AS `emp` PIVOT (sum(x) FOR y IN (1))"),
    ("SELECT a FROM emp LATERAL VIEW f(b) t", "SELECT a FROM `v0` AS `emp` LATERAL VIEW f(b) t"),
    ("SELECT a FROM emp e (x, y)", "SELECT a FROM `v0` e (x, y)"),
    ("TABLE hr.emp ORDER BY emp.a", "SELECT * FROM `v0` AS `emp` ORDER BY emp.a"),
    (
        "SELECT a FROM f(TABLE emp), g(TABLE (emp))",
        "SELECT a FROM f(TABLE (SELECT * FROM `v0` AS `emp`)), g(TABLE (SELECT * FROM `v1` AS `emp`))",
    ),
    ("FROM emp SELECT a", "FROM `v0` AS `emp` SELECT a"),
    ("SELECT a FROM IDENTIFIER('hr.emp')", "SELECT a FROM `v0` AS `emp`"),
    (
        "SELECT 1L,\tnvl(a,b) -- c\n  , r'\\d' FROM\r\n emp /* d */",
        "SELECT 1L,\tnvl(a,b) -- c\n  , r'\\d' FROM\r\n `v0` AS `emp` /* d */",
    ),
]


@pytest.mark.parametrize(("text", "expected"), SPLICED, ids=[t[0][:60] for t in SPLICED])
def test_a_table_becomes_a_view_under_its_own_name_and_nothing_else_changes(text: str, expected: str) -> None:
    assert spliced(query(text)) == expected


def test_only_the_tables_that_have_a_view_change() -> None:
    references = query("SELECT hr.a.x, hr.b.x FROM hr.a JOIN hr.b")
    assert references.splice({references.tables[1]: "v"}) == "SELECT hr.a.x, b.x FROM hr.a JOIN `v` AS `b`"


def test_the_name_of_a_view_is_quoted() -> None:
    references = query("SELECT 1 FROM a b")
    assert references.splice({references.tables[0]: "x`y"}) == "SELECT 1 FROM `x``y` b"


QUALIFIED = [
    ("SELECT hr.emp.id, hr.emp.* FROM hr.emp", "SELECT emp.id, emp.* FROM `v0` AS `emp`"),
    ("SELECT spark_catalog.hr.emp.id, Spark_Catalog.HR.Emp.* FROM hr.emp", "SELECT emp.id, Emp.* FROM `v0` AS `emp`"),
    (
        "SELECT hr . emp /* c */ . id, `hr`.`emp`.`id` FROM hr.emp",
        "SELECT emp /* c */ . id, `emp`.`id` FROM `v0` AS `emp`",
    ),
    ("SELECT f(hr.emp.a.b) FROM hr.emp ORDER BY hr.emp.c", "SELECT f(emp.a.b) FROM `v0` AS `emp` ORDER BY emp.c"),
    (
        "SELECT 1 FROM hr.emp WHERE EXISTS (SELECT 1 FROM x WHERE hr.emp.id = x.id)",
        "SELECT 1 FROM `v0` AS `emp` WHERE EXISTS (SELECT 1 FROM `v1` AS `x` WHERE emp.id = x.id)",
    ),
    # aliased, of another database, of another scope, or something else altogether
    ("SELECT hr.emp.id FROM hr.emp e", "SELECT hr.emp.id FROM `v0` e"),
    ("SELECT sales.emp.id FROM hr.emp", "SELECT sales.emp.id FROM `v0` AS `emp`"),
    (
        "SELECT hr.emp.id FROM x WHERE a IN (SELECT 1 FROM hr.emp)",
        "SELECT hr.emp.id FROM `v0` AS `x` WHERE a IN (SELECT 1 FROM `v1` AS `emp`)",
    ),
    (
        "SELECT emp.hr.id, hr.emp, hr.emp(1), 'hr.emp.id' FROM hr.emp",
        "SELECT emp.hr.id, hr.emp, hr.emp(1), 'hr.emp.id' FROM `v0` AS `emp`",
    ),
    ("SELECT hr.emp.id FROM emp", "SELECT hr.emp.id FROM `v0` AS `emp`"),
    (
        "SELECT (SELECT hr.emp.id FROM (SELECT 1) hr) FROM hr.emp",
        "SELECT (SELECT hr.emp.id FROM (SELECT 1) hr) FROM `v0` AS `emp`",
    ),
]


@pytest.mark.parametrize(("text", "expected"), QUALIFIED, ids=[t[0][:60] for t in QUALIFIED])
def test_a_column_loses_its_database_where_its_table_became_a_view(text: str, expected: str) -> None:
    assert spliced(query(text)) == expected


def test_the_current_database_qualifies_tables_without_one() -> None:
    assert spliced(query("SELECT hr.emp.id FROM emp"), database="hr") == "SELECT emp.id FROM `v0` AS `emp`"
    assert spliced(query("SELECT hr.emp.id FROM emp"), database="x") == "SELECT hr.emp.id FROM `v0` AS `emp`"


# --- ROW__ID ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("SELECT ROW__ID FROM emp", True),
        ("SELECT e.row__id.writeId FROM emp e", True),
        ("SELECT `Row__Id` FROM emp", True),
        ("SELECT 1 FROM emp WHERE a IN (SELECT ROW__ID.rowId FROM b)", True),
        ("SELECT 'ROW__ID' /* ROW__ID */ FROM emp -- ROW__ID", False),
        ("SELECT ROW__IDS, ROW_ID FROM emp", False),
    ],
)
def test_a_text_uses_row_id_where_a_name_says_so(text: str, uses: bool) -> None:
    assert query(text).uses_row_id is uses


STARS = [
    ("SELECT *, ROW__ID FROM emp", "SELECT * EXCEPT (`emp`.ROW__ID), ROW__ID FROM `v0` AS `emp`"),
    ("SELECT ROW__ID, e.* FROM emp e", "SELECT ROW__ID, e.* EXCEPT (ROW__ID) FROM `v0` e"),
    ("SELECT ROW__ID, hr.emp.* FROM hr.emp", "SELECT ROW__ID, emp.* EXCEPT (ROW__ID) FROM `v0` AS `emp`"),
    ("SELECT * EXCEPT (a), ROW__ID FROM emp", "SELECT * EXCEPT (a, `emp`.ROW__ID), ROW__ID FROM `v0` AS `emp`"),
    ("SELECT e.* EXCEPT (a, b), ROW__ID FROM emp e", "SELECT e.* EXCEPT (a, b, ROW__ID), ROW__ID FROM `v0` e"),
    ("SELECT * EXCEPT (row__id) FROM emp", "SELECT * EXCEPT (row__id) FROM `v0` AS `emp`"),
    ("SELECT e.* EXCEPT (ROW__ID) FROM emp e", "SELECT e.* EXCEPT (ROW__ID) FROM `v0` e"),
    (
        "SELECT *, a.ROW__ID FROM a JOIN b c USING (x)",
        "SELECT * EXCEPT (`a`.ROW__ID, `c`.ROW__ID), a.ROW__ID FROM `v0` AS `a` JOIN `v1` c USING (x)",
    ),
    (
        "SELECT *, ROW__ID FROM a LEFT SEMI JOIN b ON x",
        "SELECT * EXCEPT (`a`.ROW__ID), ROW__ID FROM `v0` AS `a` LEFT SEMI JOIN `v1` AS `b` ON x",
    ),
    (
        "SELECT *, x.*, ROW__ID FROM a, (SELECT 1) x",
        "SELECT * EXCEPT (`a`.ROW__ID), x.*, ROW__ID FROM `v0` AS `a`, (SELECT 1) x",
    ),
    (
        "SELECT * FROM (SELECT *, ROW__ID AS r FROM emp) x",
        "SELECT * FROM (SELECT * EXCEPT (`emp`.ROW__ID), ROW__ID AS r FROM `v0` AS `emp`) x",
    ),
    (
        "SELECT count(*), a * b, sum(a)*ROW__ID.rowId, struct(*) FROM emp",
        "SELECT count(*), a * b, sum(a)*ROW__ID.rowId, struct(*) FROM `v0` AS `emp`",
    ),
    ("SELECT DISTINCT *, ROW__ID FROM emp", "SELECT DISTINCT * EXCEPT (`emp`.ROW__ID), ROW__ID FROM `v0` AS `emp`"),
    (
        "SELECT /*+ H */ * /* all */, ROW__ID FROM emp",
        "SELECT /*+ H */ * EXCEPT (`emp`.ROW__ID) /* all */, ROW__ID FROM `v0` AS `emp`",
    ),
    ("FROM emp SELECT *, ROW__ID", "FROM `v0` AS `emp` SELECT * EXCEPT (`emp`.ROW__ID), ROW__ID"),
    (
        "SELECT ROW__ID FROM a UNION TABLE b",
        "SELECT ROW__ID FROM `v0` AS `a` UNION SELECT * EXCEPT (ROW__ID) FROM `v1` AS `b`",
    ),
    (
        "SELECT * FROM a EXCEPT (SELECT ROW__ID FROM b)",
        "SELECT * EXCEPT (`a`.ROW__ID) FROM `v0` AS `a` EXCEPT (SELECT ROW__ID FROM `v1` AS `b`)",
    ),
]


@pytest.mark.parametrize(("text", "expected"), STARS, ids=[t[0][:60] for t in STARS])
def test_a_star_leaves_the_row_id_of_views_out(text: str, expected: str) -> None:
    references = query(text)
    assert spliced(references) == expected
    assert references.exact


def test_a_star_over_tables_of_sparks_own_stays() -> None:
    references = query("SELECT a.*, b.*, * FROM a JOIN b WHERE a.ROW__ID IS NULL")
    assert references.splice({references.tables[0]: "v"}) == (
        "SELECT a.* EXCEPT (ROW__ID), b.*, * EXCEPT (`a`.ROW__ID) FROM `v` AS `a` JOIN b WHERE a.ROW__ID IS NULL"
    )


@pytest.mark.parametrize(
    "source",
    [
        "a NATURAL JOIN b",
        "b NATURAL LEFT JOIN a",
        "a PIVOT (sum(x) FOR y IN (1))",
        "a UNPIVOT (x FOR y IN (z))",
        "a t (x, y)",
        "(a JOIN b ON c) AS d",
    ],
)
def test_row_id_is_refused_where_a_view_with_that_column_would_change_the_answer(source: str) -> None:
    with pytest.raises(UnsupportedError, match="ROW__ID") as caught:
        spliced(query(f"SELECT ROW__ID FROM {source}"))
    assert caught.value.excerpt is not None
    spliced(query(f"SELECT 1 FROM {source}"))


# --- versions --------------------------------------------------------------------------------------------------------

VERSIONS = [
    ("SELECT 1 FROM emp VERSION AS OF 3", ["3"], "SELECT 1 FROM `v0` AS `emp`"),
    ("SELECT 1 FROM emp /* x */ FOR VERSION AS OF :n e", [":n"], "SELECT 1 FROM `v0` e"),
    (
        "SELECT 1 FROM hr.emp FOR SYSTEM_VERSION AS OF 07 AS e JOIN emp WHERE a",
        ["07", None],
        "SELECT 1 FROM `v0` AS e JOIN `v1` AS `emp` WHERE a",
    ),
    (
        "SELECT 1 FROM a VERSION AS OF 1 TABLESAMPLE (1 ROWS), a VERSION AS OF 2 b",
        ["1", "2"],
        "SELECT 1 FROM `v0` TABLESAMPLE (1 ROWS) AS `a`, `v1` b",
    ),
    (
        "SELECT *, ROW__ID FROM emp VERSION AS OF 1",
        ["1"],
        "SELECT * EXCEPT (`emp`.ROW__ID), ROW__ID FROM `v0` AS `emp`",
    ),
    ("SELECT 1 FROM emp version, version AS OF", [None, None], "SELECT 1 FROM `v0` version, `v1` AS OF"),
]


@pytest.mark.parametrize(("text", "versions", "expected"), VERSIONS, ids=[v[0][:60] for v in VERSIONS])
def test_a_version_is_told_and_goes_with_the_name(text: str, versions: list[str | None], expected: str) -> None:
    references = query(text)
    assert [t.version.text if t.version else None for t in references.tables] == versions
    assert references.splice({}) == text
    assert spliced(references) == expected
    assert references.exact


@pytest.mark.parametrize(
    ("clause", "problem"),
    [
        ("TIMESTAMP AS OF '2020-01-01'", "emp cannot be read as of a time"),
        ("FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL '1' DAY", "emp cannot be read as of a time"),
        ("TIMESTAMP AS OF date '2020-01-01'", "emp cannot be read as of a time"),
        ("VERSION AS OF 'tag'", "as of a version that is not a whole number"),
        ("VERSION AS OF -1", "as of a version that is not a whole number"),
        ("VERSION AS OF 1 + 1", "as of a version that is not a whole number"),
        ("VERSION AS OF 3L", "as of a version that is not a whole number"),
        ("FOR VERSION AS OF (3)", "as of a version that is not a whole number"),
        ("VERSION AS OF f(3)", "as of a version that is not a whole number"),
    ],
)
@pytest.mark.parametrize("alias", ["", " e", " AS e"])
def test_other_time_travel_is_refused_for_views_alone(clause: str, problem: str, alias: str) -> None:
    text = f"SELECT 1 FROM emp {clause}{alias} WHERE a"
    references = query(text)
    assert references.tables[0].version is None
    assert references.tables[0].alias == (alias.split()[-1] if alias else None)
    assert references.splice({}) == text
    with pytest.raises(UnsupportedError, match=problem) as caught:
        spliced(references)
    assert (caught.value.line, caught.value.column) == (1, len(HEAD) + text.index(clause) + 1)


# --- exact -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT *, 'é😀' FROM größe WHERE 名 = '𝄞' AND x IN (SELECT y FROM `é`.`t``u`)",
        "SELECT /*+ BROADCAST(d) */ * FROM emp JOIN dept d -- c\n  ON TRUE",
        "WITH c AS (SELECT 1) SELECT * FROM c, emp, VALUES (1) v, range(3), (SELECT 1) z",
        "TABLE emp",
        "SELECT 1 FROM a WHERE x IN (TABLE b) UNION TABLE hr.c",
        "SELECT * FROM a, LATERAL (SELECT * FROM b) JOIN c TABLESAMPLE (1 PERCENT) LEFT JOIN d USING (x)",
    ],
)
def test_scopes_that_sqlglot_finds_too_are_exact(text: str) -> None:
    assert query(text).exact


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a:b::int FROM emp",
        "FROM emp |> SELECT *",
        "FROM a SELECT 1 SELECT 2",
        "SELECT * FROM emp WHERE )",
        "SELECT * FROM a b c d",
        "NOT A QUERY",
    ],
)
def test_what_cannot_be_taken_apart_is_not_exact(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert not query(text).exact
    assert not caplog.records


def test_a_text_that_sqlglot_cannot_read_is_spliced_all_the_same() -> None:
    assert spliced(query("SELECT a:b::int FROM emp |> WHERE b")) == "SELECT a:b::int FROM `v0` AS `emp` |> WHERE b"


# --- expressions -----------------------------------------------------------------------------------------------------


def test_an_expression_names_the_tables_of_its_subqueries() -> None:
    references = expression("id IN (SELECT id FROM hr.gone g) AND emp.x = (SELECT max(x) FROM emp)")
    assert named(references) == ["hr.gone g", "emp"]
    assert spliced(references) == "id IN (SELECT id FROM `v0` g) AND emp.x = (SELECT max(x) FROM `v1` AS `emp`)"
    assert references.exact


def test_an_expression_without_subqueries_stays() -> None:
    text = "CASE WHEN nvl(a, 1L) <=> 2 THEN r'\\d' END -- c\n || trim(BOTH 'x' FROM y)"
    references = expression(text)
    assert references.tables == ()
    assert references.splice({}) == text


@pytest.mark.parametrize(
    ("text", "target", "alias", "expected"),
    [
        ("hr.emp.a = spark_catalog.hr.emp.b", "hr.emp", None, "emp.a = emp.b"),
        ("x.emp.a = emp.b", "hr.emp", None, "x.emp.a = emp.b"),
        ("hr.emp.a = e.b", "hr.emp", "e", "hr.emp.a = e.b"),
        ("EXISTS (SELECT 1 FROM x WHERE hr.emp.a = x.a)", "hr.emp", None, "EXISTS (SELECT 1 FROM x WHERE emp.a = x.a)"),
        ("hr.emp.a", "emp", None, "hr.emp.a"),
    ],
)
def test_a_column_of_the_target_loses_its_database(text: str, target: str, alias: str | None, expected: str) -> None:
    assert expression(text, target, alias).splice({}) == expected


def test_the_target_may_be_in_the_current_database() -> None:
    assert expression("hr.emp.a", "emp").splice({}, database="hr") == "emp.a"


def test_row_id_in_an_expression() -> None:
    references = expression("ROW__ID.rowId = 1 AND a IN (SELECT * FROM b)")
    assert references.uses_row_id
    assert spliced(references) == "ROW__ID.rowId = 1 AND a IN (SELECT * EXCEPT (`b`.ROW__ID) FROM `v0` AS `b`)"


# --- expressions of MERGE --------------------------------------------------------------------------------------------


def merge_expression(text: str, target: str = "hr.emp", alias: str | None = None, **options: Any) -> References:
    *database, table = target.split(".")
    name = TableName(table, database[0] if database else None, Span(target, 0, len(target)))
    return analyse_expression(Span(text, 0, len(text)), target=name, alias=alias, **options)


def source(text: str) -> TableName:
    *database, table = text.split(".")
    return TableName(table, database[0] if database else None, Span(text, 0, len(text)))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ((source("hr.src"), None), "emp.a = src.a AND x.src.b = 1"),
        ((source("hr.src"), "s"), "emp.a = hr.src.a AND x.src.b = 1"),
        ((source("x.src"), None), "emp.a = hr.src.a AND src.b = 1"),
        ((None, "src"), "emp.a = hr.src.a AND x.src.b = 1"),
        ((None, None), "emp.a = hr.src.a AND x.src.b = 1"),
        (None, "emp.a = hr.src.a AND x.src.b = 1"),
    ],
)
def test_a_column_of_an_unaliased_source_loses_its_database_too(
    other: tuple[TableName | None, str | None] | None, expected: str
) -> None:
    references = merge_expression("hr.emp.a = hr.src.a AND x.src.b = 1", other=other)
    assert references.splice({}) == expected


def test_in_a_subquery_the_target_and_the_source_are_in_scope_below_its_own_tables() -> None:
    text = "EXISTS (SELECT 1 FROM hr.src WHERE hr.src.a = hr.emp.a AND hr.other.b = 1)"
    references = merge_expression(text, other=(source("hr.other"), None))
    assert spliced(references) == "EXISTS (SELECT 1 FROM `v0` AS `src` WHERE src.a = emp.a AND other.b = 1)"


def test_names_of_a_with_clause_before_the_statement_are_no_tables() -> None:
    references = merge_expression("a IN (SELECT a FROM C JOIN hr.c JOIN d)", ctes=["c"])
    assert named(references) == ["hr.c", "d"]


# --- limits ----------------------------------------------------------------------------------------------------------


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    text = "SELECT " + "(" * 5000 + "1" + ")" * 5000
    with pytest.raises(ParseError, match="too deeply"):
        query(text)


def test_a_hundred_levels_are_no_problem() -> None:
    text = "SELECT " + "(SELECT (" * 50 + "SELECT a FROM emp" + "))" * 50
    assert named(query(text)) == ["emp"]
