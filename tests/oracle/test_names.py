"""Names mean in acidsql what they mean in Spark: qualifiers, scopes, aliases, stars, structs, CTEs."""

from __future__ import annotations

import pytest

from tests.oracle import shop
from tests.oracle.choice import first_quick
from tests.oracle.twins import Twins

pytestmark = pytest.mark.spark

NAMESAKES = [
    "SELECT a.t.id, b.t.id FROM a.t JOIN b.t ON a.t.id = b.t.id",
    "SELECT a.t.id, b.t.id, a.t.v FROM a.t, b.t WHERE a.t.id = b.t.id",
    "SELECT a.t.id, b.t.id FROM a.t JOIN b.t ON spark_catalog.a.t.id = spark_catalog.b.t.id",
    "SELECT a.t.*, b.t.id FROM a.t CROSS JOIN b.t",
    "SELECT spark_catalog.a.t.* FROM a.t CROSS JOIN b.t",
    "SELECT a.t.* EXCEPT (v) FROM a.t JOIN b.t USING (id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)",
    "SELECT id FROM a.t WHERE NOT EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE t.id = a.t.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE id = a.t.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.a AS t WHERE t.id = a.t.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.u WHERE b.u.id = a.t.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.a WHERE a.id = a.t.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM a.u WHERE t.id = a.t.id)",
    "SELECT id FROM a.t WHERE id NOT IN (SELECT b.t.id FROM b.t WHERE b.t.p = a.t.p)",
    "SELECT id, (SELECT max(b.t.v) FROM b.t WHERE b.t.id = a.t.id) AS m FROM a.t",
    "SELECT id, (SELECT max(b.t.v) FROM b.t WHERE b.t.id = a.t.id) FROM a.t",
    "SELECT a.t.id, l.m FROM a.t, LATERAL (SELECT max(b.t.id) AS m FROM b.t WHERE b.t.id <= a.t.id) l",
    "SELECT * FROM a.t JOIN b.t ON a.t.id = (SELECT max(id) FROM b.a WHERE b.a.id < b.t.id)",
    "WITH a AS (SELECT 3 AS id) SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM a WHERE a.id = a.t.id)",
    "SELECT transform(array(1, 2), t -> t + a.t.id) FROM a.t",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.u WHERE a.t.id = b.u.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM a.u WHERE a.u.t.id = a.t.id)",
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM a.u WHERE k = v AND t.id = a.t.id)",
    "SELECT a.t.id, b.t.id, id FROM a.t FULL JOIN b.t USING (id)",
    "SELECT a.t.v, b.t.v FROM a.t LEFT JOIN b.t USING (id, p)",
    "SELECT a.t.id FROM a.t LEFT SEMI JOIN b.t ON a.t.id = b.t.id",
    "SELECT a.t.p, sum(a.t.id) FROM a.t JOIN b.t ON a.t.id = b.t.id GROUP BY a.t.p",
    "SELECT IDENTIFIER('a.t.id') FROM a.t",
    "SELECT /*+ BROADCAST(t) */ a.t.id FROM a.t JOIN b.t ON a.t.id = b.t.id",
    "SELECT id, (SELECT count(*) FROM b.t WHERE b.t.p = a.t.p AND b.t.id < (SELECT max(a.u.n) FROM a.u)) c FROM a.t",
    "SELECT a.t.id, l.* FROM a.t LEFT JOIN LATERAL (SELECT b.t.v FROM b.t WHERE b.t.id = a.t.id) AS l ON true",
]
"""What was once answered wrongly."""

QUALIFIERS = [
    "SELECT a.t.id, t.v, n FROM a.t",
    "SELECT spark_catalog.a.t.id FROM a.t WHERE spark_catalog.a.t.p = 1",
    "SELECT spark_catalog.a.t.id FROM spark_catalog.a.t",
    "SELECT a.t.id, t.id, id FROM spark_catalog.a.t",
    "SELECT A.T.ID, `a`.`t`.`v` FROM `A`.`T`",
    "SELECT t.id FROM a.t JOIN b.t ON a.t.id = b.t.id",
    "SELECT a.x.id FROM a.t AS x",
    "SELECT a.t.id FROM a.t AS x",
    "SELECT a.t.id FROM a.t AS t",
    "SELECT other.t.id FROM a.t",
    "SELECT b.t.id FROM a.t",
    "SELECT a.t.* FROM a.t",
    "SELECT t.* FROM a.t CROSS JOIN b.t",
    "SELECT b.t.* FROM a.t",
    "SELECT * EXCEPT (v) FROM a.t",
    "SELECT count(a.t.*) FROM a.t",
    "SELECT struct(a.t.*) FROM a.t",
    "SELECT a.t FROM a.t",
    "SELECT t FROM a.t",
    "SELECT nothing FROM a.t",
    "SELECT * FROM a.nothing",
    "SELECT * FROM nowhere.t",
    "SELECT * FROM other.a.t",
]

SCOPES = [
    "SELECT id FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.id = t.id)",
    "SELECT id FROM a.t x WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = x.id + 1)",
    "SELECT id FROM a.t WHERE id IN (SELECT t.id FROM a.u)",
    "SELECT id FROM a.t WHERE (id, p) IN (SELECT b.t.id, b.t.p FROM b.t)",
    "SELECT id FROM a.t WHERE id NOT IN (SELECT id FROM b.a)",
    "SELECT id FROM a.t WHERE n = (SELECT min(n) FROM b.t WHERE b.t.p = a.t.p)",
    "SELECT id FROM a.t WHERE p IN (SELECT p FROM b.t WHERE b.t.id = 3) AND EXISTS (SELECT 1 FROM b.t WHERE p = 2)",
    "SELECT x.id FROM a.t x, LATERAL (SELECT count(*) c FROM b.t WHERE b.t.id = x.id) t WHERE t.c = 0",
    "SELECT b.t.id FROM (SELECT a.t.id FROM a.t) b, b.t WHERE b.id = b.t.id",
    "SELECT a.id FROM (SELECT * FROM a.t WHERE p = 1) a",
    "SELECT a.t.id FROM (SELECT * FROM a.t) a",
]

SHADOWS = [
    "WITH t AS (SELECT 9 AS id) SELECT t.id, a.t.id FROM t, a.t WHERE a.t.id < 3",
    "WITH t AS (SELECT 9 AS id) SELECT * FROM t",
    "WITH t AS (SELECT id FROM a.t WHERE p = 1) SELECT * FROM t JOIN b.t ON t.id = b.t.id",
    "WITH t AS (SELECT id FROM a.t WHERE p = 1) SELECT t.id, b.t.v FROM b.t JOIN t USING (id)",
    "WITH a AS (SELECT 1 AS t, 2 AS id) SELECT a.t, a.id FROM a",
    "WITH a AS (SELECT named_struct('id', 5) AS t) SELECT a.t.id FROM a",
    "WITH a AS (SELECT named_struct('id', 5) AS t) SELECT a.t.id FROM a, a.t",
    "WITH t AS (WITH t AS (SELECT 1 AS id) SELECT id + 1 AS id FROM t) SELECT * FROM t",
    "SELECT * FROM (WITH t AS (SELECT 1 AS id) SELECT t.id FROM t) x JOIN a.t ON x.id = a.t.id",
    "SELECT t.id FROM a.t AS t JOIN b.t AS b ON t.id = b.id",
    "SELECT a.id, b.id FROM b.t a JOIN a.t b ON a.id = b.id",
    "SELECT a.t.id FROM b.t a JOIN a.t ON a.id = a.t.id",
    "SELECT b.id FROM a.t AS b (id, v, n, p) WHERE b.p = 2",
    "SELECT x.c FROM a.t AS x (c, d, e, f)",
    "SELECT t.id FROM VALUES (1, 'x'), (2, 'y') AS t(id, v) JOIN a.t ON t.id = a.t.id",
    "SELECT t.id FROM VALUES (1), (2) AS t(id)",
    "SELECT t.n FROM a.u LATERAL VIEW explode(array(1, 2)) t AS n",
    "SELECT a.u.id, e.n FROM a.u LATERAL VIEW explode(array(a.u.n, t.id)) e AS n",
    "SELECT transform(array(1, 2), id -> id + t.id) FROM a.t",
]

STRUCTS = [
    "SELECT t.id FROM a.u",
    "SELECT u.t.id, a.u.t.v FROM a.u",
    "SELECT spark_catalog.a.u.t.id FROM a.u",
    "SELECT t.* FROM a.u",
    "SELECT u.t.* FROM a.u",
    "SELECT a.u.t.* FROM a.u",
    "SELECT t.id FROM a.u, a.t WHERE a.u.id = a.t.id",
    "SELECT a.t.id FROM a.u, a.t WHERE a.u.id = a.t.id",
    "SELECT a.t.id FROM b.u",
    "SELECT a.t.id, a.id FROM b.u",
    "SELECT a.t.id FROM b.u, a.t WHERE b.u.id = t.id",
    "SELECT b.t FROM b.u",
    "SELECT b.t, b.u.b.t FROM b.u",
    "SELECT b.t.id FROM b.u, b.t WHERE b.u.id = b.t.id",
    "SELECT a.t.* FROM b.u",
    "SELECT a.* FROM b.u",
    "SELECT id FROM a.u WHERE t IN (SELECT named_struct('id', id, 'v', v) FROM a.t)",
]

CLAUSES = [
    "SELECT * FROM a.t JOIN b.t USING (id)",
    "SELECT * FROM a.t NATURAL JOIN b.t",
    "SELECT * FROM a.t NATURAL LEFT JOIN b.a",
    "SELECT a.t.id FROM a.t LEFT ANTI JOIN b.t USING (id)",
    "SELECT a.t.p, count(*) AS n FROM a.t GROUP BY a.t.p HAVING count(*) > (SELECT count(*) FROM b.a) - 1",
    "SELECT a.t.v, grouping(a.t.v), count(*) FROM a.t GROUP BY ROLLUP (a.t.v)",
    "SELECT p, v, sum(id) FROM a.t GROUP BY GROUPING SETS ((p), (v), ()) HAVING sum(a.t.id) > 3",
    "SELECT a.t.v, count(*) FROM a.t GROUP BY ALL",
    "SELECT id FROM a.t UNION SELECT b.t.id FROM b.t",
    "SELECT id, v FROM a.t EXCEPT SELECT id, v FROM b.t WHERE b.t.p = 1",
    "SELECT id FROM a.t INTERSECT SELECT id FROM (SELECT b.t.id FROM b.t)",
    "SELECT id FROM a.t WHERE p = 1 AND a.t.p < 3 OR t.p IS NULL",
    "SELECT id FROM a.u WHERE k = 'x' AND a.u.k <> 'y'",
    "SELECT id FROM a.u WHERE a.u.k IN ('x', 'y') AND t.id > 1",
    "SELECT id, sum(n) OVER (PARTITION BY a.t.p ORDER BY a.t.id) FROM a.t",
    "SELECT id, rank() OVER w FROM a.t WINDOW w AS (PARTITION BY t.p ORDER BY a.t.id)",
    "SELECT * FROM (SELECT p, id FROM a.t) PIVOT (count(id) FOR p IN (1, 2))",
    "SELECT * FROM (SELECT id, n, p FROM a.t) UNPIVOT (val FOR col IN (n, p))",
    "FROM a.t |> WHERE p = 1 |> SELECT id, v |> JOIN b.t USING (id)",
    "FROM a.t |> AS x |> EXTEND x.id + 1 AS y |> AGGREGATE sum(y) GROUP BY x.p",
    "TABLE a.t",
    "SELECT id FROM a.t ORDER BY (SELECT max(b.t.id) FROM b.t WHERE b.t.id <= a.t.id), id LIMIT 5",
    "FROM a.t SELECT t.id WHERE a.t.p = 1",
    "SELECT id FROM IDENTIFIER('a.t') WHERE p = 1",
    "WITH t AS (SELECT 5 AS id) SELECT id FROM IDENTIFIER('t')",
    "WITH c AS (SELECT id FROM a.t) SELECT c.id, u.id FROM IDENTIFIER('c') c JOIN b.t u ON u.id = c.id",
    "SELECT id AS p, p AS q FROM a.t WHERE p = 1",
    "SELECT a.t.id AS x, x + 1 AS y FROM a.t",
    "SELECT * FROM a.t TABLESAMPLE (100 PERCENT)",
    "SELECT * FROM a.t AS x TABLESAMPLE (100 PERCENT) WHERE x.p = 1",
]

TOTALLY_ORDERED = [
    "SELECT a.t.id, v FROM a.t ORDER BY a.t.id DESC LIMIT 3",
    "SELECT id + 1 AS v FROM a.t ORDER BY v, a.t.v LIMIT 4",
    "SELECT v FROM a.t ORDER BY t.id OFFSET 2",
    "SELECT p, max(id) FROM a.t GROUP BY p ORDER BY max(a.t.id)",
    "SELECT id, (SELECT max(b.t.id) FROM b.t WHERE b.t.id <= a.t.id) m FROM a.t ORDER BY m DESC, a.t.id LIMIT 5",
    "(SELECT id FROM a.t ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM b.t ORDER BY id LIMIT 1) ORDER BY id",
    "SELECT DISTINCT p, v FROM a.t ORDER BY ALL",
]

QUALIFY = [
    "SELECT id, v, p FROM a.t WHERE p > 0 QUALIFY row_number() OVER (PARTITION BY v ORDER BY id DESC) = 1 AND p = 2",
    "SELECT a.t.id FROM a.t QUALIFY rank() OVER (PARTITION BY a.t.p ORDER BY a.t.id) = 1",
    "SELECT id, p FROM a.t WHERE v IS NOT NULL QUALIFY row_number() OVER (PARTITION BY v ORDER BY id) = 1 AND true",
]


@pytest.fixture(scope="module")
def twins(empty_twins: Twins) -> Twins:
    return shop.fill(empty_twins)


@pytest.mark.parametrize("text", first_quick(NAMESAKES, 16), ids=str)
def test_tables_of_one_name_are_told_apart(twins: Twins, text: str) -> None:
    twins.use("default")
    twins.same(text)


@pytest.mark.long
@pytest.mark.parametrize("text", [*QUALIFIERS, *SCOPES, *SHADOWS, *STRUCTS, *CLAUSES], ids=str)
def test_a_name_means_what_it_means_in_spark(twins: Twins, text: str) -> None:
    twins.use("default")
    twins.same(text)


@pytest.mark.long
@pytest.mark.parametrize("text", TOTALLY_ORDERED, ids=str)
def test_an_ordered_answer_comes_in_sparks_order(twins: Twins, text: str) -> None:
    twins.use("default")
    twins.answered(text, ordered=True)


@pytest.mark.parametrize("text", QUALIFY, ids=str)
def test_qualify_looks_at_rows_that_where_has_left(twins: Twins, text: str) -> None:
    """Older versions of Spark have no QUALIFY: they read an alias there, and refuse what is behind it."""
    twins.use("default")
    twins.same(text)


@pytest.mark.long
@pytest.mark.parametrize("database", ["a", "b"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT t.id FROM t",
        "SELECT a.t.id FROM t",
        "SELECT b.t.id FROM t",
        "SELECT spark_catalog.a.t.id FROM t",
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM a.t WHERE a.t.id = t.id)",
        "SELECT t.id, x.id FROM t JOIN a.t AS x ON t.id = x.id",
        "SELECT a.id FROM a",
        "SELECT a.t.id FROM u, t WHERE u.id = t.id",
        "WITH a AS (SELECT 1 AS id) SELECT t.id FROM t JOIN a ON a.id = t.id",
    ],
)
def test_a_short_name_is_of_the_current_database(twins: Twins, database: str, text: str) -> None:
    twins.use(database)
    try:
        twins.same(text)
    finally:
        twins.use("default")
