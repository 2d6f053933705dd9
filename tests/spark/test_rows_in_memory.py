"""Rows of the driver in a plan: few stand in it, many in an RDD, since each rule of the planner looks at each row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from acidsql.catalyst import Catalyst, InternalSessions, rows_in_memory
from acidsql.plan.leaves import read_bytes
from acidsql.session import AcidSession
from tests.spark.answers import rows


def numbers(count: int) -> pa.Table:
    return pa.table({"n": pa.array(range(count), type=pa.int64())})


@pytest.mark.parametrize(("count", "leaf"), [(1, "LocalRelation"), (1000, "LocalRelation"), (25_001, "LogicalRDD")])
def test_where_the_rows_stand(spark: SparkSession, count: int, leaf: str) -> None:
    own = InternalSessions.of(spark).own.spark
    frame = rows_in_memory(own, numbers(count))
    assert [node.nodeName() for node in Catalyst.leaves(Catalyst.analyzed(frame))] == [leaf]
    assert read_bytes(frame) <= 32 * count
    assert [row.n for row in frame.collect()] == list(range(count))
    assert frame.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism


def test_no_task_is_sent_with_more_than_a_task_can_take(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """However unevenly the bytes lie."""
    monkeypatch.setattr("acidsql.catalyst.sessions._TASK_BYTES", 100_000)
    texts = [f"{n}:" + "x" * (5_000 if 7_000 <= n < 7_400 else n % 7) for n in range(12_000)]
    frame = rows_in_memory(InternalSessions.of(spark).own.spark, pa.table({"t": texts}))
    assert [row.t for row in frame.collect()] == texts
    sizes = frame.groupBy(F.spark_partition_id()).agg(F.sum(F.length("t")).alias("size")).collect()
    assert max(row.size for row in sizes) <= 100_000
    assert 20 < len(sizes) < 80


def test_a_row_of_many_values_stands_in_the_plan(spark: SparkSession) -> None:
    """As a bitmap of deleted rows does: a subquery that Spark answers without a job."""
    own = InternalSessions.of(spark).own.spark
    frame = rows_in_memory(own, pa.table({"words": pa.array([range(1_000_000)], type=pa.list_(pa.int64()))}))
    assert Catalyst.optimized(frame).nodeName() == "LocalRelation"


def test_threads_do_not_take_the_way_of_others(spark: SparkSession) -> None:
    own = InternalSessions.of(spark).own.spark

    def leaf(count: int) -> str:
        [node] = Catalyst.leaves(Catalyst.analyzed(rows_in_memory(own, numbers(count))))
        return str(node.nodeName())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(leaf, [2, 2000] * 20)) == ["LocalRelation", "LogicalRDD"] * 20


def test_the_size_of_other_rdds_is_not_known(spark: SparkSession) -> None:
    frame = spark.createDataFrame(spark.sparkContext.parallelize([(1,)]), "a int")
    assert read_bytes(frame) > 1 << 60


@pytest.mark.parametrize(
    "query",
    [
        "VALUES (now()), (now())",
        "SELECT * FROM VALUES (now()), (timestamp '2020-01-01 00:00:00') v(t) WHERE t > '2021-01-01'",
        "SELECT now()",
    ],
)
def test_the_size_of_rows_that_the_optimiser_makes(spark: SparkSession, query: str) -> None:
    """Spark knows none of them before."""
    assert read_bytes(spark.sql(query)) < 1000


@pytest.mark.parametrize("most", [0, 20000])
@pytest.mark.parametrize("placed", ["PARTITIONED BY (k int)", "CLUSTERED BY (id) INTO 3 BUCKETS"])
def test_such_rows_are_written(acid: AcidSession, placed: str, most: int) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {most}")
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, at timestamp) {placed}")
    key = ", 7" if "PARTITIONED" in placed else ""
    acid.sql(f"INSERT INTO t VALUES (1, now(){key}), (2, now(){key})")
    assert rows(acid, "SELECT id, at > '2026-01-01' FROM t ORDER BY id") == [(1, True), (2, True)]


def test_merge_of_many_fetched_rows(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t SELECT id, 'old', id % 3 FROM range(4000)")
    spark.range(2000, 6000).createOrReplaceTempView("s")
    counts = acid.sql(
        "MERGE INTO t USING (SELECT id, id % 3 p FROM s) s ON t.id = s.id AND t.p = s.p"
        " WHEN MATCHED AND s.id % 2 = 0 THEN UPDATE SET v = 'new' WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'added', s.p)"
    ).first()
    assert counts is not None
    assert counts.asDict() == {
        "num_affected_rows": 4000,
        "num_updated_rows": 1000,
        "num_deleted_rows": 1000,
        "num_inserted_rows": 2000,
    }
    wanted = [(i, "old", i % 3) for i in range(2000)]
    wanted += [(i, "new", i % 3) for i in range(2000, 4000, 2)]
    wanted += [(i, "added", i % 3) for i in range(4000, 6000)]
    assert rows(acid, "SELECT * FROM t") == sorted(wanted, key=str)


@pytest.mark.parametrize("count", [10, 5000])
def test_errors_are_alike(acid: AcidSession, spark: SparkSession, count: int) -> None:
    """Whether Spark's optimiser or a task finds that a value does not fit; nothing is left behind."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id tinyint, v string)")
    spark.range(count).createOrReplaceTempView("s")
    with pytest.raises(PySparkException) as caught:
        acid.sql("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id * 100, 'v')")
    assert caught.value.getCondition() == "CAST_OVERFLOW"
    assert rows(acid, "SELECT * FROM t") == []
    assert rows(acid, "SHOW LOCKS") == []


def test_a_condition_that_fails_for_an_empty_partition(acid: AcidSession) -> None:
    """Partitions are chosen without a job, however many they are: where that fails all are read."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t SELECT id, id FROM range(1100)")
    acid.sql("ALTER TABLE t ADD PARTITION (p = 'x')")
    assert rows(acid, "SELECT id FROM t WHERE CAST(p AS int) = 7") == [(7,)]


@pytest.mark.parametrize(
    "value",
    [
        "if(id % 5 = 0, NULL, array(array('a'), NULL))",
        "if(id % 5 = 0, NULL, array(named_struct('a', id), NULL))",
        "if(id % 5 = 0, NULL, array(timestamp '2020-01-01 00:00:00', NULL))",
        "if(id % 5 = 0, NULL, map('k', array(id, NULL)))",
        "if(id % 5 = 0, NULL, named_struct('a', array(array(id), NULL)))",
    ],
)
def test_merge_of_many_fetched_lists(acid: AcidSession, value: str) -> None:
    query = f"SELECT id, {value} AS v FROM range(0, 2500, 1, 1)"
    [(_, type)] = [f for f in acid.sql(f"SELECT * FROM ({query})").dtypes if f[0] == "v"]
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id bigint, v {type})")
    acid.sql(f"MERGE INTO t USING ({query}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)")
    assert rows(acid, "SELECT * FROM t ORDER BY id") == rows(acid, query + " ORDER BY id")


def test_a_checkpoint_of_no_rows_is_a_source(acid: AcidSession) -> None:
    """It has no partition of Spark's at all."""
    acid.sql("CREATE TRANSACTIONAL TABLE none (id int, v string)")
    empty = acid.spark.sql("SELECT 1 AS id, 'a' AS v WHERE false").localCheckpoint()
    assert acid.insert(empty, "none").collect()[0].num_inserted_rows == 0
    counts = acid.merge("none", empty).on("none.id = source.id").when_not_matched_insert_all().execute()
    assert counts.collect()[0].num_affected_rows == 0
    acid.insert(empty, "none", overwrite=True)
    acid.sink("none")(empty, 0)
    acid.sql("CREATE TRANSACTIONAL TABLE h (id int, v string, valid_from int, valid_to int)")
    acid.apply_changes(
        "h", empty.selectExpr("*", "1 AS at"), keys=["id"], sequence_by="at", except_columns=["at"], scd_type=2
    )
    assert acid.table("none").count() == acid.table("h").count() == 0
