"""WITH before UPDATE and DELETE, as Spark's grammar has it, and in their subqueries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import SparkSession

from acidsql.errors import AnalysisError
from acidsql.session import AcidSession
from tests.oracle.choice import first_quick
from tests.spark.answers import nothing_is_open, rows


@pytest.fixture(autouse=True)
def shop(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, salary int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO emp VALUES (1, 10, 1), (2, 20, 1), (3, 30, 2), (4, 40, 2)")
    acid.sql("CREATE TRANSACTIONAL TABLE gone (id int)")
    acid.sql("INSERT INTO gone VALUES (1), (3)")


def test_an_update_names_its_queries_in_where_and_set(acid: AcidSession) -> None:
    done = acid.sql(
        "WITH g AS (SELECT id FROM gone), most (n) AS (SELECT max(salary) FROM emp WHERE id NOT IN (SELECT id FROM g))"
        " UPDATE emp e SET salary = (SELECT n FROM most) + :more WHERE e.id IN (SELECT id FROM g) AND p = 2",
        more=5,
    )
    assert done.collect()[0].num_updated_rows == 1
    assert rows(acid, "SELECT * FROM emp") == [(1, 10, 1), (2, 20, 1), (3, 45, 2), (4, 40, 2)]


def test_a_delete_reads_a_query_called_as_a_table(acid: AcidSession) -> None:
    """The name of a WITH query hides the table of that name, in its own subqueries only."""
    acid.sql("WITH gone AS (SELECT id + 1 AS id FROM gone) DELETE FROM emp WHERE id IN (SELECT id FROM gone)")
    assert rows(acid, "SELECT id FROM emp") == [(1,), (3,)]
    acid.sql("WITH emp AS (SELECT 1 AS id) DELETE FROM emp WHERE id NOT IN (SELECT id FROM emp)")
    assert rows(acid, "SELECT id FROM emp") == [(1,)]


def test_what_the_queries_read_is_locked_and_told(acid: AcidSession) -> None:
    text = "WITH g AS (SELECT id FROM gone) DELETE FROM emp WHERE id IN (SELECT id FROM g)"
    [[plan]] = acid.sql(f"EXPLAIN {text}").collect()
    assert "  SHARED_READ default.gone (SELECT)" in plan.split("\n")
    assert "Reads: default.gone" in plan.split("\n")


def test_a_query_that_does_not_work_leaves_nothing(acid: AcidSession) -> None:
    with pytest.raises(SparkAnalysisException):
        acid.sql("WITH g AS (SELECT nope FROM gone) UPDATE emp SET salary = 0 WHERE id IN (SELECT nope FROM g)")
    nothing_is_open(acid)


def test_set_makes_one_row_of_each_row_below_a_with_clause_too(acid: AcidSession) -> None:
    for limit in (0, 20_000):
        acid.sql(f"SET acidsql.write.driver.rows = {limit}")
        for generator in ("explode(array(1, 2))", "explode(array(9))", "stack(2, 1, 2)"):
            with pytest.raises(AnalysisError, match="Generators"):
                acid.sql(f"WITH g AS (SELECT 1 AS id) UPDATE emp SET salary = {generator} WHERE id IN (TABLE g)")
    nothing_is_open(acid)
    assert rows(acid, "SELECT id, salary FROM emp") == [(1, 10), (2, 20), (3, 30), (4, 40)]


def test_a_query_of_a_with_clause_may_make_several_rows(acid: AcidSession) -> None:
    acid.sql("WITH g AS (SELECT explode(array(1, 2)) AS id) UPDATE emp SET salary = 0 WHERE id IN (SELECT id FROM g)")
    acid.sql("WITH g AS (SELECT explode(array(1, 3)) AS id) DELETE FROM emp WHERE id IN (SELECT id FROM g)")
    assert rows(acid, "SELECT id, salary FROM emp") == [(2, 0), (4, 40)]


@pytest.fixture
def namesake(spark: SparkSession) -> Iterator[None]:
    """A table of Spark's that is called as an ACID table, with other rows."""
    spark.sql("CREATE TABLE default.gone (id int) USING parquet")
    spark.sql("INSERT INTO default.gone VALUES (2), (99)")
    yield
    spark.sql("DROP TABLE default.gone")


SUBQUERIES = [
    "(WITH q AS (SELECT id FROM gone) SELECT id FROM q)",
    "(WITH a AS (SELECT id FROM gone), b AS (SELECT * FROM a) SELECT id FROM b)",
    "(SELECT id FROM (WITH q AS (SELECT id FROM gone) SELECT * FROM q) x)",
    "(SELECT id FROM gone WHERE id IN (WITH q AS (SELECT id FROM gone) SELECT id FROM q))",
    "(SELECT id FROM emp WHERE EXISTS (WITH q AS (SELECT id FROM gone) SELECT 1 FROM q WHERE q.id = emp.id))",
    "(WITH gone AS (SELECT id FROM gone) SELECT id FROM gone)",
]


@pytest.mark.parametrize("subquery", first_quick(SUBQUERIES, 2))
def test_a_subquery_has_a_with_clause_of_its_own(acid: AcidSession, namesake: None, subquery: str) -> None:
    """The tables in it are those of the metastore, wherever the subquery stands."""
    assert rows(acid, f"SELECT id FROM emp WHERE id IN {subquery}") == [(1,), (3,)]
    acid.sql(f"UPDATE emp SET salary = 0 WHERE id IN {subquery}")
    assert rows(acid, "SELECT id FROM emp WHERE salary = 0") == [(1,), (3,)]
    acid.sql(f"UPDATE emp SET salary = (SELECT sum(id) FROM {subquery} s) WHERE id = 2")
    assert rows(acid, "SELECT salary FROM emp WHERE id = 2") == [(4,)]
    acid.update("emp", {"salary": f"id + (SELECT max(id) FROM {subquery} s)"}, f"id NOT IN {subquery}")
    assert rows(acid, "SELECT id, salary FROM emp WHERE salary > 0") == [(2, 5), (4, 7)]
    acid.sql(
        f"MERGE INTO emp e USING (SELECT id AS i, id IN {subquery} AS known FROM range(1, 7)) s"
        f" ON e.id = s.i"
        f" WHEN MATCHED AND e.id IN {subquery} AND s.known THEN UPDATE SET salary = (SELECT min(id) FROM {subquery} z)"
        f" WHEN NOT MATCHED AND s.i NOT IN {subquery} THEN INSERT VALUES (s.i, (SELECT count(*) FROM {subquery} v), 9)"
    )
    assert rows(acid, "SELECT * FROM emp") == [(1, 1, 1), (2, 5, 1), (3, 1, 2), (4, 7, 2), (5, 2, 9), (6, 2, 9)]
    acid.sql(f"DELETE FROM emp WHERE id NOT IN {subquery}")
    assert rows(acid, "SELECT id FROM emp") == [(1,), (3,)]
    nothing_is_open(acid)


def test_a_with_clause_in_a_lateral_subquery(acid: AcidSession, namesake: None) -> None:
    lateral = (
        "(SELECT x.id FROM gone g, LATERAL (WITH q AS (SELECT id FROM gone) SELECT id FROM q WHERE q.id = g.id) x)"
    )
    assert rows(acid, f"SELECT id FROM emp WHERE id IN {lateral}") == [(1,), (3,)]
    acid.sql(f"DELETE FROM emp WHERE id NOT IN {lateral}")
    assert rows(acid, "SELECT id FROM emp") == [(1,), (3,)]
    nothing_is_open(acid)
