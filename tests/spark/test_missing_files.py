"""A file that goes between the listing and the scan is an error, and a reason to start over: never fewer rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import InternalSessions, file_scan
from acidsql.errors import AcidError
from acidsql.format.data_files import DirectoryGone
from acidsql.session import AcidSession
from tests.oracle.spark_conf import settings
from tests.spark.answers import rows


def test_the_missing_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).coalesce(1).write.orc(f"file:{tmp_path}/a b%20")
    [there] = (tmp_path / "a b%20").glob("part-*")
    own = InternalSessions.of(spark).own
    assert file_scan(own, "orc", "id bigint", [f"file:{there}"], {}).count() == 3
    for paths in ([f"file:{there}", f"file:{there}x"], [f"file:{there}x"]):
        with pytest.raises(DirectoryGone, match=f"{there.name}x does not exist"):
            file_scan(own, "orc", "id bigint", paths, {})


def test_a_query_starts_over(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    acid.sql("UPDATE t SET id = id + 10")
    moves = iter([lambda: acid.sql("ALTER TABLE t PARTITION (p=2) RENAME TO PARTITION (p=7)")])

    def later(*arguments: Any, **options: Any) -> DataFrame:
        next(moves, lambda: None)()
        return file_scan(*arguments, **options)

    monkeypatch.setattr("acidsql.plan.files.file_scan", later)
    assert rows(acid, "SELECT id, p FROM t") == [(11, 1), (12, 7), (13, 3)]
    assert next(moves, None) is None


@pytest.mark.parametrize("damage", ["data", "tail", "short", "missing"])
@pytest.mark.parametrize("kind", ["transactional_properties=default", "transactional_properties=insert_only"])
def test_a_damaged_file_is_an_error_whatever_the_session_ignores(
    acid: AcidSession, spark: SparkSession, warehouse: Path, damage: str, kind: str
) -> None:
    name, _, value = kind.partition("=")
    acid.sql(
        "CREATE TABLE t (id bigint, v string) STORED AS ORC"
        f" TBLPROPERTIES ('transactional'='true', '{name}'='{value}', 'orc.compress'='NONE')"
    )
    acid.sql("SET acidsql.write.driver.rows = 0")
    for start in (0, 1000):
        acid.sql(f"INSERT INTO t SELECT id, sha2(CAST(id AS string), 256) FROM range({start}, {start + 1000}, 1, 1)")
    held = acid.sql("SELECT id, v FROM t")
    held.createOrReplaceTempView("held")
    [file, _] = sorted(f for f in (warehouse / "t").glob("delta_*/[b0]*"))
    content = file.read_bytes()
    match damage:
        case "missing":
            file.unlink()
        case "data":
            file.write_bytes(content[:3] + b"\xff" * 3000 + content[3003:])
        case "tail":
            file.write_bytes(content[:-400] + b"\xff" * 300 + content[-100:])
        case _:
            file.write_bytes(content[: len(content) // 2])
    ignoring = {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"}
    with settings(spark, ignoring):
        reads = [held.collect, spark.table("held").collect]
        if damage != "missing":  # else it is not listed any more
            reads.append(lambda: acid.sql("SELECT id, v FROM t").collect())
        for read in reads:
            with pytest.raises((PySparkException, Py4JJavaError, AcidError)):
                read()
    spark.catalog.dropTempView("held")
