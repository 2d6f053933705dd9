"""WITH before UPDATE and DELETE, as Spark's grammar has it: its queries serve all subqueries of the statement."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException

from acidsql.session import AcidSession
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
