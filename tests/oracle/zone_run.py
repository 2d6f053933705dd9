"""Statements in a Spark whose driver, executor and session have time zones of their own: run by test_zones.py.

``python -m tests.oracle.zone_run WAREHOUSE DRIVER EXECUTOR SESSION`` prints a line of JSON: what was refused, and what
this session reads.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.errors import PySparkException

import acidsql
from acidsql.errors import AcidError
from acidsql.plan import search
from tests.oracle.small_spark import small_spark

STATEMENTS = {
    "update by the driver": (20000, "UPDATE t SET id = id + 100"),
    "update by a job": (0, "UPDATE t SET id = id + 100"),
    "merge by a job": (
        0,
        "MERGE INTO t USING (SELECT 1 AS one) s ON t.id > s.one WHEN MATCHED THEN UPDATE SET id = t.id + 100",
    ),
    "insert by the driver": (20000, "INSERT INTO own VALUES (1, TIMESTAMP'2024-07-01 12:00:00')"),
    "insert by a job": (0, "INSERT INTO own SELECT 2, TIMESTAMP'2024-07-01 12:00:00'"),
}


def main(warehouse: str, driver: str, executor: str, session: str) -> None:
    spark = small_spark(
        "local-cluster[1,1,800]",
        spark__executor__memory="700m",
        spark__driver__extraJavaOptions=f"-Duser.timezone={driver}",
        spark__executor__extraJavaOptions=f"-Duser.timezone={executor}",
        spark__sql__session__timeZone=session,
    )
    search.MIN_BYTES = 0  # all files are searched
    refused: dict[str, str] = {}
    answer: dict[str, Any] = {"refused": refused}
    try:
        with acidsql.connect(spark, warehouse=warehouse) as acid:
            for name, (rows, text) in STATEMENTS.items():
                acid.sql(f"SET acidsql.write.driver.rows = {rows}")
                try:
                    acid.sql(text)
                except (AcidError, PySparkException) as e:
                    refused[name] = f"{type(e).__name__}: {e}"
            [(answer["day"],)] = acid.sql("SELECT count(*) FROM days WHERE d = DATE'2024-03-02'").collect()
            acid.sql("DELETE FROM days WHERE d >= DATE'2024-03-03'")
            for table in ("t", "own"):
                try:
                    shown = acid.sql(f"SELECT id % 100, CAST(ts AS string) FROM {table}").collect()
                    answer[table] = sorted([list(r) for r in shown])
                except (AcidError, PySparkException) as e:
                    refused[f"read {table}"] = f"{type(e).__name__}: {e}"
    except (AcidError, PySparkException) as e:
        refused["connect"] = f"{type(e).__name__}: {e}"
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
