"""Other Spark sessions: DataFrames of ``newSession()`` and ``foreachBatch`` as sources, and acidsql's own."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import acidsql
from acidsql.catalyst import InternalSessions, collect_garbage
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.processes import run


def rows(acid: AcidSession) -> list[tuple[int, ...]]:
    return sorted(tuple(r) for r in acid.sql("SELECT id, v FROM t").collect())


def test_a_frame_of_another_session_is_inserted_and_merged(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v int)")
    frame = spark.newSession().range(2).selectExpr("id", "1 AS v")
    acid.insert(frame, "t")
    merge = acid.merge("t", frame.selectExpr("id + 1 AS id", "v")).on("t.id = source.id")
    merge.when_matched_update({"v": "t.v + source.v"}).when_not_matched_insert_all().execute()
    assert rows(acid) == [(0, 1), (1, 2), (2, 1)]


@pytest.mark.parametrize(
    ("name", "value", "followed"),
    [
        ("spark.sql.codegen.wholeStage", "{not}", True),
        ("spark.sql.adaptive.enabled", "{not}", True),
        ("spark.sql.shuffle.partitions", "3", True),
        ("spark.sql.caseSensitive", "true", False),
        ("spark.sql.ansi.enabled", "false", False),
    ],
)
def test_sessions_of_our_own_follow_settings_of_speed_and_no_others(
    acid: AcidSession, spark: SparkSession, name: str, value: str, followed: bool
) -> None:
    before = str(spark.conf.get(name))
    wanted = value.replace("{not}", "false" if before == "true" else "true")
    with setting(spark, name, wanted):
        assert (acid._env.sessions.own.spark.conf.get(name) == wanted) is followed
    assert acid._env.sessions.own.spark.conf.get(name) == before


def test_foreach_batch_merges(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v int)")
    spark.range(3).selectExpr("id", "1 AS v").write.parquet(str(tmp_path / "source"))

    def batch(frame: DataFrame, number: int) -> None:
        acid.merge("t", frame).on("t.id = source.id").when_not_matched_insert_all().execute()
        acid.insert(frame, "t")

    stream = spark.readStream.schema("id bigint, v int").parquet(str(tmp_path / "source"))
    unique = stream.dropDuplicates(["id"])
    writer = unique.writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination(120)
    assert rows(acid) == [(n, 1) for n in range(3) for _ in range(2)]


def test_sessions_of_our_own_go_with_the_users(acid: AcidSession, spark: SparkSession) -> None:
    """Two of Spark's for each of the user's that was ever connected stayed until the end of the application."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v int)")
    gone = []
    for number in range(7):
        session = spark.newSession()
        with acidsql.connect(session, warehouse=acid.warehouse) as other:
            other.sql(f"INSERT INTO t VALUES ({number}, 1), (100, 1)")
            other.sql("DELETE FROM t WHERE id = 100")
            other.sql("SELECT * FROM t").collect()
            sessions = other._env.sessions
            assert InternalSessions.of(session) is sessions
            gone += [(number, weakref.ref(one)) for one in (session, sessions.own.spark, other._env.writing.spark)]
        del session, other, sessions
    # the last ones are held; in the JVM Spark's threads hold on to some for a minute
    until(lambda: not any(here() for number, here in gone if number < 2))


def test_another_object_of_the_same_session_has_the_same_ones(spark: SparkSession) -> None:
    """As each batch of ``foreachBatch`` has, and whoever asks for the active session."""
    sessions = InternalSessions.of(spark)
    for _ in range(3):
        other = SparkSession(spark.sparkContext, spark._jsparkSession)
        assert InternalSessions.of(other) is sessions
    with ThreadPoolExecutor(4) as pool:
        session = spark.newSession()
        assert len(set(map(id, pool.map(InternalSessions.of, [session] * 8)))) == 1


def until(done: Callable[[], bool]) -> None:
    """Collect garbage, in Python and in the JVM, until it is done."""
    for _ in range(30):
        gc.collect()
        collect_garbage(SparkSession.active())
        if done():
            return
        time.sleep(0.2)
    raise AssertionError("something still refers to them")


_STOPPED = """
from pyspark.sql import SparkSession
import acidsql

def spark():
    return SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

first = spark()
old = acidsql.connect(first, warehouse="warehouse")
old.sql("CREATE TRANSACTIONAL TABLE t (id int)")
old.sql("INSERT INTO t VALUES (1)")
first.stop()
for statement in (lambda: old.sql("SELECT * FROM t"), lambda: old.table("t"), lambda: old.sql("DELETE FROM t")):
    try:
        statement()
    except acidsql.AcidError as e:
        print(e.message)
with acidsql.connect(spark(), warehouse="warehouse") as new:
    new.sql("INSERT INTO t VALUES (2)")
    old.close()
    print(sorted(row.id for row in new.sql("SELECT * FROM t").collect()))
"""


def test_spark_is_stopped_under_a_session(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", _STOPPED], tmp_path)
    assert done.stdout.splitlines() == ["The session's Spark was stopped"] * 3 + ["[1, 2]"], done.stderr[-3000:]
