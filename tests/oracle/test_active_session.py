"""What a text means is up to the session that acidsql is connected to, whichever session is active in the thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.session import AcidSession
from tests.spark.answers import rows

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def other(spark: SparkSession, tmp_path: Path) -> Iterator[AcidSession]:
    """Connected to a session with settings of its own, while another one is active."""
    session = spark.newSession()
    session.conf.set(ZONE, "America/Los_Angeles")
    session.conf.set("spark.sql.ansi.enabled", "false")
    with acidsql.connect(session, warehouse=tmp_path / "warehouse") as acid:
        yield acid


def in_thread(run: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(run()))
    thread.start()
    thread.join()
    return answers[0]


def here(spark: SparkSession, run: Callable[[], Any]) -> Any:
    spark.createDataFrame([(1,)], "a int")  # makes its session the active one
    return run()


@pytest.mark.parametrize("place", ["in a thread", "here"])
def test_literals_and_casts_are_those_of_the_connected_session(
    other: AcidSession, spark: SparkSession, place: str
) -> None:
    def run(text: str) -> list[tuple[Any, ...]]:
        return (
            in_thread(lambda: rows(other, text)) if place == "in a thread" else here(spark, lambda: rows(other, text))
        )

    run("CREATE TRANSACTIONAL TABLE t (id int, ts timestamp)")
    run("INSERT INTO t VALUES (1, timestamp'2023-12-31 23:00:00'), (2, timestamp'2024-01-01 01:00:00')")
    assert run("SELECT id, CAST(ts AS string) FROM t") == [(1, "2023-12-31 23:00:00"), (2, "2024-01-01 01:00:00")]
    assert run("SELECT id FROM t WHERE ts < timestamp'2024-01-01 00:00:00'") == [(1,)]
    run("UPDATE t SET ts = timestamp'2024-05-01 12:00:00' WHERE ts >= timestamp'2024-01-01 00:00:00'")
    run("INSERT INTO t VALUES (3, :ts)".replace(":ts", "CAST('no time' AS timestamp)"))
    assert run("SELECT id, CAST(ts AS string) FROM t") == [
        (1, "2023-12-31 23:00:00"),
        (2, "2024-05-01 12:00:00"),
        (3, None),
    ]
    run("DELETE FROM t WHERE ts >= timestamp'2024-01-01 00:00:00'")
    assert run("SELECT id FROM t") == [(1,), (3,)]


def test_another_sessions_quotes_are_not_ours(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s string)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 's')")
    quoting = spark.newSession()
    quoting.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    try:
        here(quoting, lambda: acid.sql('DELETE FROM t WHERE s = "s"'))
        assert rows(acid, "SELECT id FROM t") == [(1,)]
        active = SparkSession._get_j_spark_session_class(spark._jvm).getActiveSession()
        assert active.get().equals(quoting._jsparkSession)
    finally:
        spark.createDataFrame([(1,)], "a int")
