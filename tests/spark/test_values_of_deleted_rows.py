"""A condition never sees rows that were deleted: it may fail for their values, which are not in the table any more."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from acidsql.plan import bitmap, deletes
from acidsql.session import AcidSession
from tests.oracle.spark_conf import settings
from tests.spark.answers import rows


@pytest.fixture(params=["bitmap", "broadcast join", "scan of the delete files"])
def t(acid: AcidSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AcidSession:
    """A table with two rows, and one that was deleted; a version that was replaced."""
    if request.param != "bitmap":
        monkeypatch.setattr(bitmap, "MAX_ORIGINS", 0)
    if request.param == "scan of the delete files":
        monkeypatch.setattr(deletes, "DRIVER_BYTES", -1)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s string, d int)")
    acid.sql("INSERT INTO t VALUES (1, '10', 1), (2, 'abc', 0), (3, 'x', 3)")
    acid.sql("DELETE FROM t WHERE s = 'abc'")
    acid.sql("UPDATE t SET s = '30' WHERE s = 'x'")
    return acid


@pytest.mark.parametrize("codegen", ["true", "false"])
def test_a_condition_meets_the_values_of_the_table_alone(t: AcidSession, spark: SparkSession, codegen: str) -> None:
    with settings(spark, {"spark.sql.codegen.wholeStage": codegen, "spark.sql.codegen.factoryMode": "FALLBACK"}):
        for text, expected in (
            ("SELECT id FROM t WHERE CAST(s AS int) = 30", [(3,)]),
            ("SELECT id FROM t WHERE 6 / d = 2", [(3,)]),
            ("SELECT count(*) FROM t WHERE CAST(s AS int) > -1", [(2,)]),
            ("SELECT a.id FROM t a JOIN t b ON CAST(a.s AS int) = CAST(b.s AS int) + 20", [(3,)]),
            ("SELECT id FROM t WHERE CAST(s AS int) IN (SELECT CAST(s AS int) + 20 FROM t)", [(3,)]),
            ("SELECT sum(CAST(s AS int)) FROM t WHERE CAST(s AS int) > 0 GROUP BY CAST(s AS int) % 2", [(40,)]),
        ):
            assert rows(t, text) == expected, text
        for text, changed in (
            ("UPDATE t SET d = CAST(s AS int) WHERE CAST(s AS int) = 30", 1),
            ("MERGE INTO t USING (SELECT 30 AS k) s ON CAST(t.s AS int) = s.k WHEN MATCHED THEN UPDATE SET d = 9", 1),
            ("DELETE FROM t WHERE CAST(s AS int) = 10", 1),
        ):
            assert t.sql(text).collect()[0].num_affected_rows == changed, text
        assert rows(t, "SELECT * FROM t") == [(3, "30", 9)]
