"""What fails inside of Spark while a statement changes rows: the error is Spark's own, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from acidsql.session import AcidSession
from tests.spark.refusals import assert_nothing_left


@pytest.mark.parametrize("driver_rows", [0, 1_000_000])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET a = (SELECT a FROM t)",
        "DELETE FROM t WHERE a = (SELECT a FROM t)",
        "INSERT INTO t SELECT 9, (SELECT a FROM t)",
        "MERGE INTO t USING (SELECT 1 k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET a = (SELECT a FROM t)",
        "CREATE TABLE c TBLPROPERTIES('transactional'='true') AS SELECT (SELECT a FROM t) x",
    ],
)
def test_an_error_that_pyspark_has_no_class_for(
    acid: AcidSession, warehouse: Path, statement: str, driver_rows: int
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, a int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    error = assert_nothing_left(acid, warehouse, lambda: acid.sql(statement))
    assert isinstance(error, PySparkException)
    assert error.getCondition() == "SCALAR_SUBQUERY_TOO_MANY_ROWS"
    assert "More than one row" in str(error)
