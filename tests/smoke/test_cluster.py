"""Statements of a driver whose executors are other processes: plans and expressions have to travel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from tests.oracle.zone_run import STATEMENTS
from tests.spark.processes import ROOT, environment


@pytest.mark.long  # with more zones in tests/oracle/test_zones.py
def test_a_cluster_reads_and_writes(spark: SparkSession, warehouse: Path) -> None:
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, ts timestamp)")
        acid.sql("INSERT INTO t VALUES (2, TIMESTAMP'2024-02-29 12:00:00')")
        acid.sql("CREATE TRANSACTIONAL TABLE own (id int, ts timestamp)")
        acid.sql("CREATE TRANSACTIONAL TABLE days (d date)")
        acid.sql("INSERT INTO days VALUES (DATE'2024-03-02')")
    command = [sys.executable, "-m", "tests.oracle.zone_run", str(warehouse), "UTC", "UTC", "UTC"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    noon = "2024-07-01 12:00:00"
    assert answer == {"refused": {}, "t": [[2, "2024-02-29 12:00:00"]], "own": [[1, noon], [2, noon]], "day": 1}
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        changes = sum(text.startswith(("UPDATE", "MERGE")) for _, text in STATEMENTS.values())
        assert acid.sql("SELECT id FROM t").collect()[0][0] == 2 + 100 * changes
