"""Batches of streaming queries: each is written exactly once, whatever is run again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark import inheritable_thread_target
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from acidsql.errors import AcidError, InvalidValue, NotTransactional, TransactionError
from acidsql.session import AcidSession
from acidsql.streaming.sink import BATCHES
from tests.spark.answers import nothing_is_open, rows

pytestmark = pytest.mark.spark

NOW = {"availableNow": True}


class Source:
    """A directory of JSON files, one a batch."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self._spark, self._place, self._number = spark, place / "source", 0
        self._place.mkdir()

    def add(self, *values: tuple[int, str | None]) -> None:
        self._number += 1
        lines = "".join(json.dumps({"V": v, "id": i}) + "\n" for i, v in values)
        file = self._place / f"{self._number:03d}.json"
        file.write_text(lines)
        os.utime(file, (self._number, self._number))  # by which Spark orders them

    @property
    def frame(self) -> DataFrame:
        stream = self._spark.readStream.schema("V string, id int").option("maxFilesPerTrigger", 1)
        return stream.json(str(self._place))


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Iterator[Source]:
    yield Source(spark, tmp_path)
    for query in spark.streams.active:
        query.stop()


def run(acid: AcidSession, source: Source, checkpoint: Path, **options: Any) -> None:
    acid.write_stream(source.frame, "t", checkpoint=str(checkpoint), trigger=NOW, **options).awaitTermination()


def test_batches_are_appended(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string, w int DEFAULT 7)")
    source.add((1, "a"), (2, "b"))
    source.add((3, "c"))
    run(acid, source, tmp_path / "c")
    assert rows(acid, "SELECT * FROM t") == [(1, "a", 7), (2, "b", 7), (3, "c", 7)]
    source.add((4, "d"))
    run(acid, source, tmp_path / "c")
    run(acid, source, tmp_path / "c")
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,), (3,), (4,)]
    assert rows(acid, f"SELECT sink, max(batch) FROM {BATCHES} GROUP BY sink") == [("default.t", 2)]
    nothing_is_open(acid)


@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after the commit"])
def test_a_batch_that_failed_is_run_again(
    acid: AcidSession, source: Source, spark: SparkSession, tmp_path: Path, after: bool
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    sink = acid.sink("t")
    failures = iter([RuntimeError("killed")])

    def failing(frame: DataFrame, batch_id: int) -> None:
        if batch_id == 1 and not after and (error := next(failures, None)):
            raise error
        sink(frame, batch_id)
        if batch_id == 1 and after and (error := next(failures, None)):
            raise error

    for i in range(3):
        source.add((i, "x"))
    checkpoint = str(tmp_path / "c")
    writer = source.frame.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="killed"):
        writer.foreachBatch(failing).start().awaitTermination()
    assert len(rows(acid, "SELECT id FROM t")) == (2 if after else 1)
    writer.foreachBatch(failing).start().awaitTermination()
    assert rows(acid, "SELECT id FROM t") == [(0,), (1,), (2,)]


def test_rows_are_merged(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    source.add((1, "a"), (2, "b"))
    source.add((2, "c"), (3, "d"))
    run(acid, source, tmp_path / "c", mode="merge", keys=["ID"])
    assert rows(acid, "SELECT * FROM t") == [(1, "a"), (2, "c"), (3, "d")]


def test_rows_are_merged_by_keys_as_the_table_has_them(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k char(5), __s int)")
    sink = acid.sink("t", mode="merge", keys=["K"])
    for number in range(3):
        sink(acid.spark.sql(f"SELECT 'a' AS k, {number} AS __s"), number)
    assert rows(acid, "SELECT k, __s FROM t") == [("a    ", 2)]


def test_the_table_is_replaced(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (v string, n bigint)")
    source.add((1, "a"), (2, "b"))
    source.add((3, "a"))
    counted = source.frame.groupBy("v").count().withColumnRenamed("count", "n")
    query = acid.write_stream(counted, "t", checkpoint=str(tmp_path / "c"), mode="overwrite", trigger=NOW)
    query.awaitTermination()
    assert rows(acid, "SELECT * FROM t") == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("kind", ["TBLPROPERTIES ('transactional_properties'='insert_only')", ""])
def test_all_partitions_are_replaced(acid: AcidSession, kind: str) -> None:
    """Also those that a batch has no rows for, and as long as they are there."""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string) {kind}")
    acid.sql("INSERT INTO t VALUES (7, 'before')")
    sink = acid.sink("t", mode="overwrite")
    batches = [[(1, "a"), (2, "b")], [(3, "c")], [], [(4, "a"), (5, None)]]
    for number, batch in enumerate(batches):
        sink(acid.spark.createDataFrame(batch, "id int, p string"), number)
        assert rows(acid, "SELECT id, p FROM t") == batch
    assert rows(acid, "SELECT id, p FROM t VERSION AS OF 2") == batches[0]
    for partition in ("a", "b"):
        acid.sql(f"ALTER TABLE t PARTITION (p = '{partition}') COMPACT 'major' AND WAIT")
    acid.compactor.run_once()
    assert rows(acid, "SELECT id, p FROM t") == batches[-1]
    nothing_is_open(acid)


def test_columns_that_the_table_got_meanwhile_keep_their_values(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    for mode, keys in (("merge", ["ID"]), ("append", [])):
        sink = acid.sink("t", mode=mode, keys=keys, name=mode)
        sink(acid.spark.sql("SELECT 'a' AS V, 1 AS Id"), 0)
        if mode == "merge":
            acid.sql("ALTER TABLE t ADD COLUMNS (w int)")
            acid.sql("UPDATE t SET w = 7")
        sink(acid.spark.sql("SELECT 'b' AS V, 1 AS Id UNION ALL SELECT 'c', 2"), 1)
        assert rows(acid, "SELECT id, v, w FROM t WHERE w = 7") == [(1, "b", 7)]
    with pytest.raises(AcidError, match="nope"):
        acid.sink("t", mode="merge", keys=["id"], name="x")(acid.spark.sql("SELECT 1 AS id, 2 AS nope"), 0)
    sink = acid.sink("t", mode="merge", keys=["id", "v", "w"], name="keys")
    for number in range(2):
        sink(acid.spark.sql("SELECT 9 AS id, 'z' AS v, 9 AS w"), number)
    assert rows(acid, "SELECT * FROM t WHERE id = 9") == [(9, "z", 9)]
    nothing_is_open(acid)


def test_a_key_may_be_null(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    """As the group of a streaming aggregate is."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (v string, n bigint)")
    counted = source.frame.groupBy("v").count().withColumnRenamed("count", "n")
    for number in range(3):
        source.add((number, "a"), (number, None))
        query = acid.write_stream(
            counted, "t", checkpoint=str(tmp_path / "c"), mode="merge", keys=["v"], name="n", trigger=NOW
        )
        query.awaitTermination()
    assert rows(acid, "SELECT coalesce(v, 'NULL'), n FROM t") == [("NULL", 3), ("a", 3)]


def test_a_batch_in_another_thread_than_its_own_is_refused(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    """There Spark does not tell the query, and a replay is not told from another query's batch."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    sink = acid.sink("t")
    source.add((1, "a"))

    def start(wrapped: Callable[[Any], Any]) -> StreamingQuery:
        def write(frame: DataFrame, number: int) -> None:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(wrapped(sink), frame, number).result()

        writer = source.frame.writeStream.trigger(availableNow=True).foreachBatch(write)
        return writer.option("checkpointLocation", str(tmp_path / "c")).start()

    with pytest.raises(StreamingQueryException, match="another thread"):
        start(lambda function: function).awaitTermination()
    assert rows(acid, "SELECT * FROM t") == []
    start(lambda function: inheritable_thread_target(acid.spark)(function)).awaitTermination()
    assert rows(acid, "SELECT * FROM t") == [(1, "a")]
    nothing_is_open(acid)


def test_two_tables_need_two_names(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    for table in ("t", "u"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {table} (id int, v string)")
    source.add((1, "a"))

    def write(frame: DataFrame, number: int) -> None:
        for table in ("t", "u"):
            acid.sink(table, name="job")(frame, number)

    writer = source.frame.writeStream.trigger(availableNow=True).foreachBatch(write)
    with pytest.raises(StreamingQueryException, match="a sink of another table"):
        writer.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    assert (rows(acid, "SELECT * FROM t"), rows(acid, "SELECT * FROM u")) == ([(1, "a")], [])


def test_records_of_former_versions_are_those_of_the_sinks_table(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    frame = acid.spark.range(1).selectExpr("CAST(id AS int) AS id")
    acid.sink("t")(frame, 3)
    acid.sql(f"UPDATE {BATCHES} SET query = trim(split(query, ' ')[0])")
    acid.sink("t")(frame, 3)
    acid.sink("t")(frame, 4)
    assert rows(acid, "SELECT count(*) FROM t") == [(2,)]
    acid.sql("ALTER TABLE t RENAME TO moved")
    acid.sink("moved", name="default.t")(frame, 4)
    assert rows(acid, "SELECT count(*) FROM moved") == [(2,)]


@pytest.mark.parametrize("is_new_session", [False, True])
def test_two_parts_of_a_batch_need_two_names(
    acid: AcidSession, source: Source, tmp_path: Path, is_new_session: bool
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    source.add((1, "a"), (2, "b"))
    session = acid.spark.newSession() if is_new_session else acid.spark
    stream = session.readStream.schema("V string, id int").json(str(tmp_path / "source"))

    def run(*names: str | None, again: bool = False) -> None:
        def write(frame: DataFrame, number: int) -> None:
            frame.sparkSession.sparkContext.setJobGroup("nightly", "as users call it")
            for part, name in enumerate(names, 1):
                for _ in range(2):  # once more, as after an error in between
                    acid.sink("t", name=name)(frame.where(f"id = {part}"), number)
            assert not again, "once more"

        writer = stream.writeStream.trigger(availableNow=True).foreachBatch(write)
        writer.option("checkpointLocation", str(tmp_path / f"c{names[0]}")).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="a name of its own"):
        run(None, None)
    assert rows(acid, "SELECT * FROM t") == [(1, "a")]
    for again in (True, False):
        with pytest.raises(StreamingQueryException, match="once more") if again else nullcontext():
            run("one", "two", again=again)
    assert rows(acid, "SELECT * FROM t") == [(1, "a"), (1, "a"), (2, "b")]


def test_tables_of_spark_are_refused(acid: AcidSession, spark: SparkSession) -> None:
    """What is written there is in no transaction."""
    spark.sql("CREATE TABLE plain (id int) USING parquet")
    with pytest.raises(NotTransactional):
        acid.sink("plain")(spark.sql("SELECT 1 AS id"), 0)
    assert spark.table("plain").count() == 0
    spark.sql("DROP TABLE plain")


def test_two_sinks_of_one_table(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    source.add((1, "a"))
    run(acid, source, tmp_path / "one", name="one")
    run(acid, source, tmp_path / "two", name="it's 2/é")
    assert rows(acid, "SELECT id FROM t") == [(1,), (1,)]
    with pytest.raises(StreamingQueryException, match="another query"):
        run(acid, source, tmp_path / "three", name="one")
    assert rows(acid, "SELECT id FROM t") == [(1,), (1,)]
    assert sorted(rows(acid, f"SELECT sink, max(batch) FROM {BATCHES} GROUP BY sink")) == [("it's 2/é", 0), ("one", 0)]
    nothing_is_open(acid)


def test_batches_by_hand(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    sink = acid.sink("t", name="hand")
    frame = spark.range(1).selectExpr("CAST(id AS int) AS id")
    sink(frame, 5)
    sink(frame, 5)
    acid.sink("default.t", name="hand")(frame, 5)
    sink(frame, 7)
    with pytest.raises(TransactionError, match="batch 7 of the query is written already"):
        sink(frame, 6)
    assert rows(acid, "SELECT count(*) FROM t") == [(2,)]
    nothing_is_open(acid)


def test_a_batch_that_cannot_be_stored(acid: AcidSession, spark: SparkSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int NOT NULL)")
    sink = acid.sink("t")
    for frame in (spark.sql("SELECT CAST(NULL AS int) AS id"), spark.sql("SELECT 1 AS nope")):
        with pytest.raises(AcidError):
            sink(frame, 0)
    assert rows(acid, f"SELECT * FROM {BATCHES}") == []
    sink(spark.sql("SELECT 1 AS id"), 0)
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    nothing_is_open(acid)
    assert list(warehouse.rglob("_tmp_*")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "x"},
        {"mode": "merge"},
        {"keys": ["id"]},
        {"mode": "merge", "keys": "id"},
        {"name": " "},
        {"name": "__HIVE_DEFAULT_PARTITION__"},
        {"name": "é" * 126},
    ],
)
def test_arguments_that_are_none(acid: AcidSession, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        acid.sink("t", **arguments)


@pytest.mark.parametrize(
    "forget", ["ALTER TABLE acidsql_batches DROP PARTITION (sink = 'x')", "DROP TABLE acidsql_batches"]
)
def test_a_sink_whose_partition_was_dropped_says_so(acid: AcidSession, spark: SparkSession, forget: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    sink = acid.sink("t", name="x")
    sink(spark.sql("SELECT 1 AS id"), 1)
    acid.sql(forget)
    with pytest.raises(TransactionError, match="its partition is gone"):
        sink(spark.sql("SELECT 2 AS id"), 2)
    sink(spark.sql("SELECT 2 AS id"), 2)
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,)]


def test_a_name_that_is_no_unicode_is_none(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with pytest.raises(InvalidValue, match="Unicode"):
        acid.sink("t", name="\ud800")


def test_a_query_in_another_zone_than_the_session_is_refused(acid: AcidSession, source: Source, tmp_path: Path) -> None:
    """Spark keeps the zone of a query's start; the rows would be stored as the wall clocks of today's."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    source.add((1, "a"))
    always = {"processingTime": "0 seconds"}
    query = acid.write_stream(source.frame, "t", checkpoint=str(tmp_path / "c"), trigger=always)
    try:
        query.processAllAvailable()
        acid.sql("SET TIME ZONE 'America/New_York'")
        source.add((2, "b"))
        with pytest.raises(StreamingQueryException, match="time zone UTC"):
            query.processAllAvailable()
    finally:
        query.stop()
        acid.sql("SET TIME ZONE 'UTC'")
    assert rows(acid, "SELECT id FROM t") == [(1,)]
