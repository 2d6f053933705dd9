"""A process killed between write and commit leaves nothing visible, and its locks go when its time is out."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from tests.spark.processes import ROOT, run
from tests.spark.tree import tree

STATEMENTS = [
    "UPDATE t SET v = 'never'",
    pytest.param("INSERT OVERWRITE t VALUES (9, 'never')", marks=pytest.mark.long),
]


@pytest.mark.file_store
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_process_killed_before_its_commit_leaves_nothing_visible(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    warehouse = tmp_path / "warehouse"
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
        acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    before = tree(warehouse / "t")

    child = [sys.executable, "-m", "tests.faults.killed", str(warehouse), statement]
    done = run(child, ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]

    with acidsql.connect(spark, warehouse=warehouse) as acid:
        assert len(tree(warehouse / "t")) > len(before)  # it had published its files
        assert sorted(map(tuple, acid.table("t").collect())) == [(1, "a"), (2, "b")]
        assert len(acid.sql("SHOW LOCKS").collect()) == 1
        # the next writer waits until the dead one's time is out
        assert acid.sql("UPDATE t SET v = 'changed' WHERE id = 1").collect()[0].num_updated_rows == 1
        assert sorted(map(tuple, acid.table("t").collect())) == [(1, "changed"), (2, "b")]
        assert [r.state for r in acid.sql("SHOW TRANSACTIONS").collect() if r.state == "ABORTED"] == ["ABORTED"]
        assert acid.sql("SHOW LOCKS").collect() == []
