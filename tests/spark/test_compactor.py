"""The compactor on the embedded store: what statements wrote becomes a few files, and no reader sees a difference."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from acidsql.compactor import WorkerContext, compaction
from acidsql.compactor.run import Task, _attempt, run_tasks
from acidsql.errors import CompactionError, StorageError
from acidsql.format.inputs import InputFile
from acidsql.format.rewrite import Rewrite, Rewritten
from acidsql.fs import LocalFileSystem
from acidsql.metastore.model import CompactionState as State
from acidsql.session import AcidSession
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidWriteIdList
from tests.spark.answers import Rows, nothing_is_open, rows
from tests.spark.hive_rules import check_table
from tests.spark.hive_tables import GOLDEN, register_golden
from tests.spark.tree import shown

IDENTITY = "ROW__ID.writeId w, ROW__ID.bucketId b, ROW__ID.rowId r"


@pytest.fixture(params=["hive3", "hive4"])
def layout(request: pytest.FixtureRequest, acid: AcidSession) -> Iterator[str]:
    """Both layouts; what a test leaves in that of Hive 3 is looked at by Hive 3's rules."""
    acid.sql(f"SET acidsql.compactor.layout = {request.param}")
    yield str(request.param)
    if request.param == "hive3":
        tables = [acid.metastore.get_table("default", name) for name in acid.metastore.list_tables("default")]
        assert tables
        rebalanced = "REBALANCE" in {type for type, _ in states(acid)}
        for table in tables:
            check_table(Path(table.location), insert_only=table.is_insert_only, rebalanced=rebalanced)


@pytest.fixture
def busy(acid: AcidSession) -> AcidSession:
    """A table with a history: three inserts, an update, a delete."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    for i in range(3):
        acid.sql(f"INSERT INTO t VALUES ({i}, 'a'), ({i + 10}, 'b')")
    acid.sql("UPDATE t SET v = 'new' WHERE id = 1")
    acid.sql("DELETE FROM t WHERE id IN (2, 10)")
    return acid


def all_of(acid: AcidSession, table: str = "t") -> Rows:
    """Rows with their row ids."""
    return rows(acid, f"SELECT *, {IDENTITY} FROM {table}")


def names(directory: Path) -> list[str]:
    return sorted(name.partition("_v")[0] for name in shown(directory))


def states(acid: AcidSession) -> list[tuple[str, str]]:
    """Type and state of each compaction, the first one first."""
    found = acid.sql("SHOW COMPACTIONS").collect()
    return [(r.type, r.state) for r in reversed(found)]


def compact(acid: AcidSession, type: str, table: str = "t") -> None:
    acid.sql(f"ALTER TABLE {table} COMPACT '{type}' AND WAIT")


def clean(acid: AcidSession) -> None:
    """Let the cleaner run, and nobody ask for further compactions."""
    gc.collect()
    acid.sql("SET hive.compactor.initiator.on = false")
    acid.compactor.run_once()


# --- what is written -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("layout")
def test_a_major_compaction_leaves_one_base_with_the_same_rows_and_row_ids(busy: AcidSession, warehouse: Path) -> None:
    before = all_of(busy)
    compact(busy, "major")
    assert all_of(busy) == before
    clean(busy)
    assert names(warehouse / "t") == ["base_0000005"]
    assert all_of(busy) == before
    assert states(busy) == [("MAJOR", "succeeded")]
    nothing_is_open(busy)


def test_in_the_layout_of_hive_4_a_minor_compaction_leaves_one_delta_of_each_kind(
    busy: AcidSession, warehouse: Path
) -> None:
    busy.sql("SET acidsql.compactor.layout = hive4")
    before = all_of(busy)
    compact(busy, "minor")
    assert all_of(busy) == before
    clean(busy)
    assert names(warehouse / "t") == ["delete_delta_0000001_0000005", "delta_0000001_0000005"]
    assert all_of(busy) == before


def test_in_the_layout_of_hive_3_two_deltas_cannot_appear_at_once_so_a_base_does(
    busy: AcidSession, warehouse: Path
) -> None:
    before = all_of(busy)
    compact(busy, "minor")
    clean(busy)
    assert names(warehouse / "t") == ["base_0000005"]
    assert all_of(busy) == before
    assert check_table(warehouse / "t") == 4


@pytest.mark.usefixtures("layout")
def test_a_minor_compaction_of_inserts_alone_leaves_one_delta(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    for i in range(3):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    before = all_of(acid)
    compact(acid, "minor")
    clean(acid)
    assert names(warehouse / "t") == ["delta_0000001_0000003"]
    assert all_of(acid) == before


@pytest.mark.usefixtures("layout")
def test_what_is_compacted_can_be_changed_and_compacted_again(busy: AcidSession, warehouse: Path) -> None:
    compact(busy, "major")
    busy.sql("UPDATE t SET v = 'newer' WHERE id = 1")
    busy.sql("MERGE INTO t USING (VALUES (0, 'm'), (77, 'm')) AS s (id, v) ON t.id = s.id"
             " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)")  # fmt: skip
    before = all_of(busy)
    clean(busy)
    compact(busy, "major")
    clean(busy)
    assert names(warehouse / "t") == ["base_0000007"]
    assert all_of(busy) == before
    assert rows(busy, "SELECT * FROM t") == [(0, "m"), (1, "newer"), (11, "b"), (12, "b"), (77, "m")]


@pytest.mark.usefixtures("layout")
def test_when_no_row_is_left_the_base_still_hides_what_was_there(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("DELETE FROM t")
    compact(acid, "major")
    clean(acid)
    [base] = [p for p in (warehouse / "t").iterdir() if p.name.startswith("base_")]
    assert (base / "bucket_00000").exists()
    assert rows(acid, "SELECT * FROM t") == []


@pytest.mark.usefixtures("layout")
def test_partitions_are_compacted_one_by_one(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    for i in range(2):
        acid.sql(f"INSERT INTO t VALUES ({i}, 'a/b'), ({i}, NULL)")
    before = all_of(acid)
    acid.sql("ALTER TABLE t PARTITION (p = 'a/b') COMPACT 'major' AND WAIT")
    clean(acid)
    assert names(warehouse / "t" / "p=a%2Fb") == ["base_0000002"]
    assert len(names(warehouse / "t" / "p=__HIVE_DEFAULT_PARTITION__")) == 2
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    clean(acid)
    assert names(warehouse / "t" / "p=__HIVE_DEFAULT_PARTITION__") == ["base_0000002"]
    assert all_of(acid) == before


@pytest.mark.usefixtures("layout")
def test_buckets_stay_apart(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) CLUSTERED BY (id) INTO 3 BUCKETS")
    for i in range(3):
        acid.sql(f"INSERT INTO t SELECT id, 'v{i}' FROM range({i * 10}, {i * 10 + 10})")
    acid.sql("DELETE FROM t WHERE id % 7 = 0")
    before = all_of(acid)
    compact(acid, "major")
    clean(acid)
    assert all_of(acid) == before
    [base] = (warehouse / "t").glob("base_*")
    assert sorted(p.name for p in base.glob("bucket_*")) == ["bucket_00000", "bucket_00001", "bucket_00002"]


@pytest.mark.usefixtures("layout")
def test_an_insert_only_table_is_put_together(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TABLE t (id int) STORED AS ORC TBLPROPERTIES ('transactional' = 'true',"
             " 'transactional_properties' = 'insert_only')")  # fmt: skip
    for i in range(3):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    compact(acid, "minor")
    clean(acid)
    assert names(warehouse / "t") == ["delta_0000001_0000003"]
    acid.sql("INSERT INTO t VALUES (3)")
    compact(acid, "major")
    clean(acid)
    assert names(warehouse / "t") == ["base_0000004"]
    assert rows(acid, "SELECT * FROM t") == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize("table", ["evo", "orig", "wide"])
def test_what_hive_wrote_under_other_schemas_is_compacted_to_the_same_rows(
    acid: AcidSession, tmp_path: Path, table: str
) -> None:
    step = max(p.name for p in (GOLDEN / table).iterdir() if p.name < "10_minor")
    register_golden(acid, f"{table}/{step}", tmp_path / table)
    text = f"SELECT {IDENTITY}, to_json(struct(t.*)) FROM {table} AS t"
    before = rows(acid, text)
    compact(acid, "major", table)
    clean(acid)
    assert [n for n in names(tmp_path / table) if n.startswith(("delta", "delete", "0"))] == []
    assert rows(acid, text) == before


def test_stripes_of_another_version_of_the_format_are_encoded_anew(
    acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    """Decimals of up to 18 digits are other bytes there; they went into a file that did not say so."""
    values = spark.range(12_000).selectExpr("CAST(id / 7 AS decimal(10, 2)) AS d").coalesce(1)
    acid.sql("CREATE TABLE t (d decimal(10, 2)) STORED AS ORC TBLPROPERTIES ('transactional' = 'true',"
             " 'transactional_properties' = 'insert_only', 'orc.compress' = 'zstd')")  # fmt: skip
    for i in range(2):
        place = str(tmp_path / f"files{i}")
        values.write.option("orc.write.format", "UNSTABLE-PRE-2.0").option("compression", "zstd").orc(place)
        acid.sql(f"LOAD DATA LOCAL INPATH '{place}' INTO TABLE t")
    before = rows(acid, "SELECT count(*), sum(d), max(d) FROM t")
    compact(acid, "major")
    clean(acid)
    assert rows(acid, "SELECT count(*), sum(d), max(d) FROM t") == before
    assert before[0][0] == 24_000


# --- readers and writers beside it -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("layout")
def test_a_reader_from_before_keeps_its_files_until_it_is_gone(busy: AcidSession, warehouse: Path) -> None:
    reader = busy.sql("SELECT id FROM t")
    expected = sorted(r.id for r in reader.collect())
    compact(busy, "major")
    clean(busy)
    busy.sql("DELETE FROM t")
    assert sorted(r.id for r in reader.collect()) == expected
    assert len(names(warehouse / "t")) > 3
    assert states(busy) == [("MAJOR", "ready for cleaning")]
    del reader
    clean(busy)
    assert states(busy)[0] == ("MAJOR", "succeeded")


@pytest.mark.usefixtures("layout")
def test_what_an_open_transaction_may_still_write_is_left_alone(busy: AcidSession, warehouse: Path) -> None:
    store = busy.metastore
    [txn] = store.open_txns(user="u", host="h")
    write_id = store.allocate_table_write_id(txn, "default", "t")
    busy.sql("INSERT INTO t VALUES (99, 'later')")
    compact(busy, "major")
    assert f"base_{write_id - 1:07d}" in names(warehouse / "t")
    assert (99, "later") in rows(busy, "SELECT * FROM t")
    store.abort_txns([txn])
    assert (99, "later") in rows(busy, "SELECT * FROM t")


@pytest.mark.usefixtures("layout")
def test_what_an_aborted_transaction_left_is_removed_before_it_is_forgotten(
    busy: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = all_of(busy)
    with monkeypatch.context() as dying:
        dying.setattr(busy.metastore, "commit_txn", _die)
        dying.setattr(busy.metastore, "abort_txns", _die)
        with pytest.raises(StorageError, match="the power is gone"):
            busy.sql("INSERT INTO t VALUES (66, 'never')")
    assert "delta_0000006_0000006_0000" in names(warehouse / "t")
    busy.metastore.abort_txns([max(t.id for t in busy.metastore.show_txns())])
    assert all_of(busy) == before
    clean(busy)
    assert "delta_0000006_0000006_0000" not in names(warehouse / "t")
    assert all_of(busy) == before
    nothing_is_open(busy)


def _die(*_: object, **__: object) -> None:
    raise StorageError("the power is gone")


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("call", ["rename", "write_bytes", "open_write"])
def test_a_compaction_that_fails_leaves_all_as_it_was_and_says_why(
    busy: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    before, directories = all_of(busy), names(warehouse / "t")
    with monkeypatch.context() as broken:
        broken.setattr(LocalFileSystem, call, _die)
        with pytest.raises(CompactionError, match="finished with status: failed: the power is gone"):
            compact(busy, "major")
    assert names(warehouse / "t") == directories
    assert all_of(busy) == before
    assert states(busy) == [("MAJOR", "failed")]
    clean(busy)
    nothing_is_open(busy)
    compact(busy, "major")
    assert all_of(busy) == before


def test_a_worker_that_was_taken_for_dead_does_not_publish(
    busy: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any) -> Any:
        [txn] = [t.id for t in busy.metastore.show_txns()]
        busy.metastore.abort_txns([txn], reason="timed out")
        return run_tasks(*arguments)

    monkeypatch.setattr("acidsql.compactor.compaction.run_tasks", slow)
    directories = names(warehouse / "t")
    with pytest.raises(CompactionError, match="finished with status: failed"):
        compact(busy, "major")
    assert names(warehouse / "t") == directories


def test_with_nothing_to_do_a_request_is_refused_in_hives_words(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    with pytest.raises(CompactionError, match="None of the compaction thresholds met, compaction request is refused!"):
        compact(acid, "minor")
    assert states(acid) == [("MINOR", "refused")]
    nothing_is_open(acid)


def test_a_table_that_was_dropped_meanwhile_is_no_failure(busy: AcidSession) -> None:
    busy.sql("ALTER TABLE t COMPACT 'major'")
    busy.sql("DROP TABLE t")
    result = busy.compactor.run_once()
    assert [o.state for o in result.outcomes] in ([], [State.REFUSED])
    nothing_is_open(busy)


# --- the services ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("layout")
def test_many_small_inserts_are_compacted_without_anybody_asking(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    for i in range(12):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    assert acid.compactor.run_once().initiated == 1
    clean(acid)
    assert len(names(warehouse / "t")) == 1
    assert rows(acid, "SELECT count(*), sum(id) FROM t") == [(12, 66)]
    assert acid.compactor.run_once().initiated == 0


@pytest.mark.parametrize("property", ["no_auto_compaction", "NO_AUTO_COMPACTION"])
def test_a_table_may_opt_out(acid: AcidSession, property: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int) TBLPROPERTIES ('{property}' = 'TRUE')")
    for i in range(12):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    assert acid.compactor.run_once().initiated == 0


def test_a_table_may_have_a_threshold_of_its_own(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)"
             " TBLPROPERTIES ('compactorthreshold.hive.compactor.delta.num.threshold' = '2')")  # fmt: skip
    for i in range(3):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    assert acid.compactor.run_once().initiated == 1


def test_the_services_run_by_themselves_once_started(busy: AcidSession, warehouse: Path) -> None:
    for name, value in (("worker.sleep.time", "20ms"), ("cleaner.run.interval", "20ms")):
        busy.sql(f"SET hive.compactor.{name} = {value}")
    busy.compactor.start()
    busy.compactor.start()  # nothing happens
    assert busy.compactor.status().running
    busy.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    gc.collect()
    for _ in _until(lambda: states(busy) == [("MAJOR", "succeeded")]):
        gc.collect()
    busy.compactor.stop()
    assert not busy.compactor.status().running
    assert names(warehouse / "t") == ["base_0000005"]


def _until(done: Any, seconds: float = 30) -> Iterator[None]:
    import time

    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
        yield


def compactor_jobs(acid: AcidSession) -> dict[int, tuple[str, int, int]]:
    """Those of Spark's last twenty jobs that a compactor has described: how, how many tasks they had, and completed."""
    context = acid.spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)  # the latest first
    found = {}
    for job in (jobs.apply(i) for i in range(min(20, jobs.size()))):
        if "-compactor-" in job.description().toString():
            found[job.jobId()] = (job.description().get(), job.numTasks(), job.numCompletedTasks())
    return found


def test_large_compactions_run_as_spark_tasks_of_this_python(
    acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(acid.spark.sparkContext, "pythonExec", "/bin/false")
    acid.sql("CREATE TRANSACTIONAL TABLE big (id int, v string) CLUSTERED BY (id) INTO 2 BUCKETS")
    acid.sql("INSERT INTO big SELECT id, 'x' FROM range(100)")
    acid.sql("DELETE FROM big WHERE id < 10")
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int) PARTITIONED BY (p string) CLUSTERED BY (id) INTO 2 BUCKETS")
    for _ in range(2):
        acid.sql("INSERT INTO part SELECT id, 'a b' FROM range(20)")
    before = all_of(acid, "big")
    earlier = compactor_jobs(acid).keys()
    acid.sql("SET acidsql.compactor.spark.size = 1gb")
    compact(acid, "major", "big")
    assert compactor_jobs(acid).keys() <= earlier
    clean(acid)
    acid.sql("DELETE FROM big WHERE id < 20")
    acid.sql("SET acidsql.compactor.spark.size = 0")
    compact(acid, "major", "big")
    compact(acid, "major", "part PARTITION (p = 'a b')")
    name = f"{socket.gethostname()}-compactor-default"
    made = [job for id, job in sorted(compactor_jobs(acid).items()) if id not in earlier]
    assert made == [(f"{name}.big", 2, 2), (f"{name}.part.p=a b", 2, 2)]
    described = {row.tabname: row.hadoopjobid for row in acid.sql("SHOW COMPACTIONS").collect()}
    assert described == {"big": f"{name}.big", "part": f"{name}.part.p=a b"}
    assert acid.spark.sparkContext.getLocalProperty("spark.job.description") is None
    clean(acid)
    assert all_of(acid, "big") == [row for row in before if row[0] not in range(20)]
    assert names(warehouse / "big") == ["base_0000003"]
    assert check_table(warehouse / "big") == 80


def test_an_attempt_of_a_task_that_died_is_not_in_the_way(acid: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t SELECT id, 'x' FROM range(100)")
    [file] = (warehouse / "t").glob("delta_*/bucket_*")
    target = tmp_path / "base_0000001" / "bucket_00000"
    target.parent.mkdir()
    row_type = parse_type("struct<id:int,v:string>")
    assert isinstance(row_type, Struct)
    seen = ValidWriteIdList("default.t", 1, (), ())
    task = Task(Rewrite(str(target), row_type, "zlib", seen, (InputFile(str(file), 0),)), holds_deletes=False)
    own = tmp_path / "attempts"
    own.mkdir()
    (own / "of one that was killed").write_bytes(b"ORC")
    for _ in range(2):  # a second one at the same time
        done = _attempt(task, {})
        assert isinstance(done, Rewritten)
        assert done.rows == 100
        assert orc.ORCFile(target).nrows == 100
    assert [f.name for f in target.parent.iterdir()] == ["bucket_00000"]
    assert [f.name for f in own.iterdir()] == ["of one that was killed"]


@pytest.mark.parametrize("kind", ["minor", "major", "rebalance"])
def test_tasks_of_spark_merge_many_deltas_in_passes(acid: AcidSession, kind: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) CLUSTERED BY (id) INTO 2 BUCKETS" if kind != "rebalance" else
             "CREATE TRANSACTIONAL TABLE t (id int)")  # fmt: skip
    for i in range(5):
        acid.sql(f"INSERT INTO t SELECT CAST(id AS int) FROM range({i * 10}, {i * 10 + 10})")
        acid.sql(f"DELETE FROM t WHERE id IN ({i * 10}, {i * 10 + 1})")
    before = rows(acid, "SELECT * FROM t")
    acid.sql("SET acidsql.compactor.spark.size = 0")
    acid.sql("SET hive.compactor.max.num.delta = 2")
    acid.sql(f"ALTER TABLE t COMPACT '{kind}' AND WAIT")
    assert rows(acid, "SELECT * FROM t") == before


@pytest.mark.parametrize("is_cluster", [False, True], ids=["this machine", "a cluster"])
def test_large_compactions_run_as_spark_tasks_on_a_cluster_and_in_threads_where_spark_is_local(
    busy: AcidSession, monkeypatch: pytest.MonkeyPatch, is_cluster: bool
) -> None:
    monkeypatch.setattr(compaction, "_LARGE", 0)
    if is_cluster:
        monkeypatch.setattr(compaction, "runs_here_alone", lambda _: False)
    busy.sql("CREATE TRANSACTIONAL TABLE big (id int) CLUSTERED BY (id) INTO 2 BUCKETS")
    for _ in range(2):
        busy.sql("INSERT INTO big SELECT id FROM range(100)")
    earlier = compactor_jobs(busy).keys()
    compact(busy, "major", "big")
    assert len(compactor_jobs(busy).keys() - earlier) == is_cluster
    assert busy.table("big").count() == 200


def test_the_status_tells_what_was_done(busy: AcidSession) -> None:
    busy.sql("ALTER TABLE t COMPACT 'major'")
    waiting = busy.compactor.status()
    assert (waiting.queued, waiting.running) == (1, False)
    assert waiting.oldest_queued is not None
    assert waiting.oldest_queued.timestamp() * 1000 == waiting.oldest_queued_ms
    busy.compactor.run_once()
    status = busy.compactor.status()
    assert (status.queued, status.failed, status.compacted, status.done.rows) == (0, 0, 1, 4)
    assert status.done.bytes_before > status.done.bytes_after > 0
    assert status.done.files_before > status.done.files_after == 1


def test_a_context_without_spark_compacts_small_tables(busy: AcidSession) -> None:
    context = busy.compactor.context
    assert isinstance(context, WorkerContext)
    busy.sql("ALTER TABLE t COMPACT 'major'")
    context.spark = None
    assert [o.state for o in busy.compactor.run_once().outcomes] == [State.READY_FOR_CLEANING]
