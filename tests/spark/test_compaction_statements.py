"""ALTER TABLE … COMPACT, SHOW COMPACTIONS and ABORT: what they ask of the metastore, and how they answer.

A queue in memory stands in for a store that has one; that requests reach a live Hive is the interoperability suite's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.compactor.compaction import Limits
from acidsql.errors import (
    AcidError,
    AnalysisError,
    CompactionError,
    InvalidValue,
    NoSuchTransaction,
    TableNotFound,
    TransactionAborted,
    UnsupportedError,
)
from acidsql.metastore.model import (
    Capabilities,
    CompactionFilter,
    CompactionInfo,
    CompactionMetrics,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
)
from acidsql.metastore.model import CompactionState as State
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open


class Queue:
    """A store's queue of compactions: the states that an entry goes through are given beforehand."""

    def __init__(self) -> None:
        self.requests: list[CompactionRequest] = []
        self.filters: list[CompactionFilter] = []
        self.states: Iterator[State] = iter(())
        self.error: str | None = None
        self.entries: list[CompactionInfo] = []
        self.answer = CompactionResponse(7, State.INITIATED, True)

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        self.requests.append(request)
        return self.answer

    def show_compactions(self, wanted: CompactionFilter) -> list[CompactionInfo]:
        self.filters.append(wanted)
        if wanted.id == self.answer.id:
            state = next(self.states, None)
            if state is None:
                return []
            return [CompactionInfo(7, "default", "emp", None, CompactionType.MINOR, state, error=self.error)]
        return list(self.entries)[: wanted.limit]

    def abort_compactions(self, ids: Any) -> dict[int, str]:
        return {id: "Successfully aborted compaction" for id in ids if id == 7}


@pytest.fixture
def queue(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> Queue:
    made = Queue()
    for name in ("compact", "show_compactions", "abort_compactions"):
        monkeypatch.setattr(acid.metastore, name, getattr(made, name))
    acid.compactor.context.limits = Limits(first_pause=0.001)
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string)")
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int) PARTITIONED BY (p int, q string)")
    acid.sql("INSERT INTO part VALUES (1, 1, 'x')")
    return made


def answer(acid: AcidSession, text: str) -> str:
    frame = acid.sql(text)
    assert frame.columns == ["message"]
    [row] = frame.collect()
    return str(row[0])


# --- COMPACT ---------------------------------------------------------------------------------------------------------


def test_a_request_is_enqueued_and_answered_as_in_hive(acid: AcidSession, queue: Queue) -> None:
    assert answer(acid, "ALTER TABLE emp COMPACT 'Minor'") == "Compaction enqueued with id 7"
    [request] = queue.requests
    expected = CompactionRequest("default", "emp", None, CompactionType.MINOR, request.user, request.host)
    assert request == replace(expected, initiator_version=f"acidsql {acidsql.__version__}")
    assert request.user
    assert request.host
    nothing_is_open(acid)


def test_a_request_carries_every_clause(acid: AcidSession, queue: Queue) -> None:
    queue.states = iter([State.INITIATED, State.WORKING, State.WORKING, State.READY_FOR_CLEANING])
    said = answer(
        acid,
        "ALTER TABLE part PARTITION (q = 'x', p = 01) COMPACT 'rebalance' CLUSTERED INTO 3 BUCKETS AND WAIT POOL 'n'"
        " WITH OVERWRITE TBLPROPERTIES ('compactor.x'='1') ORDER BY id DESC",
    )
    assert said == "Compaction with id 7 finished with status: ready for cleaning"
    [request] = queue.requests
    assert (request.partition, request.type, request.pool) == ("p=1/q=x", CompactionType.REBALANCE, "n")
    assert (request.properties, request.buckets, request.order_by) == ({"compactor.x": "1"}, 3, "ORDER BY id DESC")
    assert [f.id for f in queue.filters] == [7, 7, 7, 7]


@pytest.mark.parametrize("state", [State.FAILED, State.REFUSED, State.DID_NOT_INITIATE, State.ABORTED])
def test_waiting_for_a_compaction_that_is_not_done_raises_with_the_stores_word(
    acid: AcidSession, queue: Queue, state: State
) -> None:
    queue.states, queue.error = iter([State.WORKING, state]), "None of the compaction thresholds met"
    with pytest.raises(CompactionError) as caught:
        acid.sql("ALTER TABLE emp COMPACT 'minor' AND WAIT")
    assert f"id 7 finished with status: {state}: None of the compaction thresholds met" in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, 13)


def test_waiting_ends_where_the_entry_is_gone(acid: AcidSession, queue: Queue) -> None:
    queue.states = iter([State.INITIATED])
    with pytest.raises(CompactionError, match="no longer listed"):
        acid.sql("ALTER TABLE emp COMPACT 'minor' AND WAIT")


def test_waiting_is_bounded_by_a_setting(acid: AcidSession, queue: Queue) -> None:
    queue.states = iter([State.WORKING] * 1_000_000)
    acid.sql("SET hive.compactor.wait.timeout = 20ms")
    with pytest.raises(CompactionError, match=r"still working after 0\.02 seconds; it continues") as caught:
        acid.sql("ALTER TABLE emp COMPACT 'minor' AND WAIT")
    assert "COMPACTIONID = 7" in str(caught.value)


def test_waiting_can_be_interrupted(acid: AcidSession, queue: Queue) -> None:
    queue.states = iter([State.WORKING] * 3)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    acid.compactor.context.sleep = interrupted
    with pytest.raises(KeyboardInterrupt):
        acid.sql("ALTER TABLE emp COMPACT 'minor' AND WAIT")
    nothing_is_open(acid)


def test_a_request_for_what_is_queued_already_is_refused_as_in_hive(acid: AcidSession, queue: Queue) -> None:
    said = "Compaction is already scheduled with state='initiated' and id=9."
    queue.answer = CompactionResponse(-1, State.REFUSED, False, said)
    with pytest.raises(CompactionError) as caught:
        acid.sql("ALTER TABLE part PARTITION (p = 1, q = 'x') COMPACT 'major' AND WAIT")
    assert caught.value.message == (
        f"Compaction request for default.part partition(p=1/q=x) is refused, details: {said}"
    )
    assert (caught.value.code, caught.value.sqlstate) == (10432, "42000")
    queue.answer = CompactionResponse(9, State.WORKING, False)
    assert answer(acid, "ALTER TABLE emp COMPACT 'major'") == (
        "Compaction already enqueued with id 9; State is working"
    )


def test_a_whole_table_is_compacted_partition_by_partition(acid: AcidSession, queue: Queue) -> None:
    acid.sql("INSERT INTO part VALUES (2, 2, NULL)")
    said = [tuple(r) for r in acid.sql("ALTER TABLE part COMPACT 'major'").collect()]
    assert said == [("Compaction enqueued with id 7",)] * 2
    assert sorted(r.partition or "" for r in queue.requests) == ["p=1/q=x", "p=2/q=__HIVE_DEFAULT_PARTITION__"]
    queue.answer = CompactionResponse(-1, State.REFUSED, False, "it is already scheduled")
    said = [tuple(r) for r in acid.sql("ALTER TABLE part COMPACT 'major'").collect()]
    assert len(said) == 2
    assert all("is refused, details: it is already scheduled" in text for (text,) in said)


def test_a_condition_chooses_partitions(acid: AcidSession, queue: Queue) -> None:
    acid.sql("INSERT INTO part VALUES (2, 2, NULL), (3, 3, 'x')")
    acid.sql("ALTER TABLE part COMPACT 'major' WHERE p > 1 AND q IS NOT NULL")
    acid.sql("ALTER TABLE part COMPACT 'minor' WHERE p = :p", p=1)
    acid.sql("ALTER TABLE part COMPACT 'minor' WHERE p = 7")
    assert [(r.partition, r.type.name) for r in queue.requests] == [("p=3/q=x", "MAJOR"), ("p=1/q=x", "MINOR")]


def test_a_request_is_of_the_pool_of_its_table(acid: AcidSession, queue: Queue) -> None:
    acid.sql("ALTER TABLE emp SET TBLPROPERTIES ('hive.compactor.worker.pool'='slow')")
    acid.sql("ALTER TABLE emp COMPACT 'major'")
    acid.sql("ALTER TABLE emp COMPACT 'major' POOL 'fast'")
    acid.sql("ALTER TABLE part COMPACT 'major'")
    assert [r.pool for r in queue.requests] == ["slow", "fast", None]


def test_a_metastore_3_wants_a_partition_named(
    acid: AcidSession, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(acid.metastore), "capabilities", Capabilities(has_open_queue=False))
    with pytest.raises(AnalysisError, match="You must specify a partition to compact") as caught:
        acid.sql("ALTER TABLE part COMPACT 'major'")
    assert (caught.value.code, caught.value.line, caught.value.column) == (10283, 1, 13)


class TestConcatenate:
    """TestTxnConcatenate: of an ACID table it is a major compaction, for which it waits."""

    @pytest.mark.parametrize(("table", "partition"), [("emp", None), ("part PARTITION (p = 1, q = 'x')", "p=1/q=x")])
    def test_is_a_major_compaction(self, acid: AcidSession, queue: Queue, table: str, partition: str | None) -> None:
        queue.states = iter([State.INITIATED, State.WORKING, State.READY_FOR_CLEANING])
        said = answer(acid, f"ALTER TABLE {table} CONCATENATE")
        assert said == "Compaction with id 7 finished with status: ready for cleaning"
        [request] = queue.requests
        assert (request.partition, request.type) == (partition, CompactionType.MAJOR)

    def test_does_not_wait_where_a_setting_says_so(self, acid: AcidSession, queue: Queue) -> None:
        acid.sql("SET hive.transactional.concatenate.noblock = true")
        assert answer(acid, "ALTER TABLE emp CONCATENATE") == "Compaction enqueued with id 7"

    def test_of_a_missing_table_or_partition_is_an_error(self, acid: AcidSession, queue: Queue) -> None:
        for table, code in (("nope", 10001), ("part PARTITION (p = 7, q = 'x')", 10006)):
            with pytest.raises(AcidError) as caught:
                acid.sql(f"ALTER TABLE {table} CONCATENATE")
            assert caught.value.code == code
        assert queue.requests == []


REFUSED = [
    ("nope COMPACT 'minor'", TableNotFound, 10001, "1:13", "default.nope"),
    ("plain COMPACT 'minor'", AnalysisError, 10286, "1:13", "not allowed on non-ACID table default.plain"),
    ("emp COMPACT 'huge'", AnalysisError, 10282, "1:25", "Invalid compaction type"),
    ("part PARTITION (p = 1) COMPACT 'major'", AnalysisError, 10299, "1:18", "does not allow partial partition spec"),
    ("part PARTITION (p = 1, q = 'y') COMPACT 'major'", AnalysisError, 10006, "1:18", "Partition not found {p=1, q=y}"),
    ("part PARTITION (p = 1, z = 'y') COMPACT 'major'", AnalysisError, 40000, "1:18", "contains non-partition columns"),
    ("part PARTITION (p, q = 'x') COMPACT 'major'", AnalysisError, 40000, "1:29", "has no value"),
    (
        "emp PARTITION (p = 1) COMPACT 'major'",
        AnalysisError,
        40000,
        "1:17",
        "not partitioned but partition spec exists: {p=1}",
    ),
    ("emp COMPACT 'major' WHERE id > 1", UnsupportedError, 10440, "1:39", "filter is not allowed on non-Iceberg table"),
    ("part COMPACT 'major' WHERE id > 1", AnalysisError, 40000, "1:40", "condition is not over partition keys"),
    (
        "part PARTITION (p = 1, q = 'x') COMPACT 'major' WHERE p = 1",
        AnalysisError,
        40000,
        "1:67",
        "cannot be combined",
    ),
    (
        "emp COMPACT 'major' WITH OVERWRITE TBLPROPERTIES ('compactor.hive.compactor.max.num.delta'='x')",
        InvalidValue,
        40000,
        "1:13",
        "hive.compactor.max.num.delta takes a whole number",
    ),
    (
        "emp COMPACT 'major' WITH OVERWRITE TBLPROPERTIES ('tblprops.orc.compress'='LZO')",
        UnsupportedError,
        None,
        "1:13",
        "orc.compress=LZO",
    ),
    ("emp COMPACT 'major' ORDER BY id", AnalysisError, 40000, "1:33", "ORDER BY is only allowed for a 'rebalance'"),
    ("emp COMPACT 'minor' CLUSTERED INTO 2 BUCKETS", AnalysisError, 40000, "1:48", "CLUSTERED INTO is only allowed"),
]


@pytest.mark.parametrize(("text", "kind", "code", "place", "piece"), REFUSED, ids=[r[0][:50] for r in REFUSED])
def test_a_wrong_request_does_not_reach_the_queue(
    acid: AcidSession,
    queue: Queue,
    spark: SparkSession,
    text: str,
    kind: type[AcidError],
    code: int | None,
    place: str,
    piece: str,
) -> None:
    spark.createDataFrame([(1,)], "a int").createOrReplaceTempView("plain")
    with pytest.raises(kind) as caught:
        acid.sql(f"ALTER TABLE {text}")
    assert piece in caught.value.message
    assert caught.value.code == code
    assert f"{caught.value.line}:{caught.value.column}" == place
    assert queue.requests == []


def test_a_hive_metastore_3_is_not_asked_for_what_it_does_not_know(
    acid: AcidSession, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(acid.metastore), "version", "3.1.3")
    monkeypatch.setattr(type(acid.metastore), "capabilities", Capabilities(has_open_queue=False))
    for text, what in (("'rebalance'", "A 'rebalance' compaction"), ("'minor' POOL 'x'", "A pool")):
        with pytest.raises(UnsupportedError, match=rf"{what} is not supported by .* version 3\.1\.3"):
            acid.sql(f"ALTER TABLE emp COMPACT {text}")
    assert queue.requests == []
    acid.sql("ALTER TABLE emp COMPACT 'minor'")


# --- SHOW COMPACTIONS ------------------------------------------------------------------------------------------------

SUCCEEDED = CompactionInfo(
    4,
    "gold",
    "emp_mr",
    None,
    CompactionType.MINOR,
    State.SUCCEEDED,
    enqueued_ms=1795235821125,
    started_ms=1795235821672,
    ended_ms=1795235865090,
    job_id="job_local698203688_0001",
    initiator="vm-manual",
    pool="default",
    txn_id=3120,
    next_txn_id=3121,
    committed_ms=1795235828429,
    metrics=CompactionMetrics(files_before=12, bytes_before=34567, files_after=2, bytes_after=8901, rows=3),
)
REFUSED_ONE = CompactionInfo(
    10,
    "gold",
    "mm_mr",
    None,
    CompactionType.MAJOR,
    State.REFUSED,
    worker="far-host-35",
    enqueued_ms=1795235886124,
    started_ms=1795235886173,
    ended_ms=1795235886231,
    error="None of the compaction thresholds met, compaction request is refused!",
    initiator="vm-manual",
    pool="default",
    txn_id=3224,
)
WAITING = CompactionInfo(
    9,
    "rt",
    "part",
    "p=2/q=z",
    CompactionType.REBALANCE,
    State.INITIATED,
    enqueued_ms=1795257896321,
    initiator="vm-manual",
)
ABORTED = replace(WAITING, id=3, state=State.ABORTED, ended_ms=1795258284908, pool="x", error="Compaction Aborted")
NONE = " --- "


def test_the_columns_and_values_are_those_of_hive(acid: AcidSession, queue: Queue) -> None:
    queue.entries = [REFUSED_ONE, WAITING, SUCCEEDED, ABORTED]
    frame = acid.sql("SHOW COMPACTIONS")
    assert " ".join(frame.columns) == (
        "compactionid dbname tabname partname type state workerhost workerid enqueuetime starttime duration"
        " hadoopjobid errormessage initiatorhost initiatorid poolname txnid nexttxnid committime hightestwriteid"
        " filesbefore filesafter bytesbefore bytesafter"
    )
    assert {t for _, t in frame.dtypes} == {"string"}
    refused, waiting, succeeded, aborted = [tuple(r) for r in frame.collect()]
    assert aborted == (
        *("3", "rt", "part", "p=2/q=z", "REBALANCE", "aborted", NONE, NONE, "1795257896321", "0", "1795258284908"),
        *("None", "Compaction Aborted", "vm", "manual", "x", "0", "0", "0", NONE, *[NONE] * 4),
    )
    assert succeeded == (
        *("4", "gold", "emp_mr", NONE, "MINOR", "succeeded", NONE, NONE, "1795235821125", "1795235821672", "43418"),
        *("job_local698203688_0001", NONE, "vm", "manual", "default", "3120", "3121", "1795235828429", NONE),
        *("12", "2", "34567", "8901"),
    )
    assert refused == (
        *("10", "gold", "mm_mr", NONE, "MAJOR", "refused", "far-host", "35", "1795235886124", "1795235886173", "58"),
        *("None", REFUSED_ONE.error, "vm", "manual", "default", "3224", "0", "0", NONE, *[NONE] * 4),
    )
    assert waiting == (
        *("9", "rt", "part", "p=2/q=z", "REBALANCE", "initiated", NONE, NONE, "1795257896321", NONE, NONE),
        *("None", NONE, "vm", "manual", "default", "0", "0", "0", NONE, *[NONE] * 4),
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", CompactionFilter()),
        ("COMPACTIONID = 5", CompactionFilter(id=5)),
        ("SCHEMA HR", CompactionFilter(database="hr")),
        ("emp TYPE 'major'", CompactionFilter(database="default", table="emp", type=CompactionType.MAJOR)),
        (
            "hr.Emp STATUS 'Ready For Cleaning'",
            CompactionFilter(database="hr", table="emp", state=State.READY_FOR_CLEANING),
        ),
        ("POOL 'Night' LIMIT 3", CompactionFilter(pool="Night", limit=3)),
        ("LIMIT 3", CompactionFilter(limit=3)),
        ("ORDER BY type LIMIT 3", CompactionFilter()),
        (
            "part PARTITION (q = 'x', p = 07)",
            CompactionFilter(database="default", table="part", partition="p=7/q=x"),
        ),
        (
            "gone PARTITION (p = 1, q = 'a/b')",
            CompactionFilter(database="default", table="gone", partition="p=1/q=a%2Fb"),
        ),
    ],
)
def test_what_is_asked_of_the_store(acid: AcidSession, queue: Queue, text: str, wanted: CompactionFilter) -> None:
    acid.sql(f"SHOW COMPACTIONS {text}")
    assert queue.filters == [wanted]


@pytest.mark.parametrize(
    ("order", "ids"),
    [
        ("compactionid", ["4", "9", "10"]),
        ("COMPACTIONID DESC", ["10", "9", "4"]),
        ("dbname DESC, compactionid", ["9", "4", "10"]),
        ("dbname, compactionid DESC", ["10", "4", "9"]),
        ("starttime", ["9", "4", "10"]),
        ("starttime DESC", ["10", "4", "9"]),
        ("duration DESC LIMIT 2", ["4", "10"]),
        ("`type` ASC LIMIT 1", ["10"]),
        ("bytesBefore DESC LIMIT 1", ["4"]),
    ],
)
def test_order_and_limit(acid: AcidSession, queue: Queue, order: str, ids: list[str]) -> None:
    queue.entries = [REFUSED_ONE, WAITING, SUCCEEDED]
    assert [r.compactionid for r in acid.sql(f"SHOW COMPACTIONS ORDER BY {order}").collect()] == ids


def test_entries_that_are_equal_stay_in_the_stores_order(acid: AcidSession, queue: Queue) -> None:
    queue.entries = [replace(WAITING, id=i) for i in (3, 1, 2)]
    for order in ("dbname", "dbname DESC"):
        assert [r.compactionid for r in acid.sql(f"SHOW COMPACTIONS ORDER BY {order}").collect()] == ["3", "1", "2"]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("emp TYPE 'huge'", "1:27", "Unexpected compaction type huge"),
        ("emp STATUS 'asleep'", "1:29", "Unexpected compaction state asleep"),
        ("ORDER BY tabname, nope", "1:36", "SHOW COMPACTIONS has no column nope"),
        ("part PARTITION (p = 1)", "1:23", "doesn't contain all (2) partition columns"),
    ],
)
def test_what_show_compactions_refuses(acid: AcidSession, queue: Queue, text: str, place: str, message: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        acid.sql(f"SHOW COMPACTIONS {text}")
    assert message in caught.value.message
    assert f"{caught.value.line}:{caught.value.column}" == place


# --- ABORT -----------------------------------------------------------------------------------------------------------


def test_aborted_compactions_are_answered_with_the_stores_word(acid: AcidSession, queue: Queue) -> None:
    frame = acid.sql("ABORT COMPACTIONS 7 8 7")
    assert frame.columns == ["compactionid", "message"]
    assert [tuple(r) for r in frame.collect()] == [("7", "Successfully aborted compaction"), ("8", None)]


def test_open_transactions_are_aborted(acid: AcidSession) -> None:
    first, second, third = acid.metastore.open_txns(3, user="u", host="h")
    assert acid.sql(f"ABORT TRANSACTIONS {first} {third} {first}").columns == []
    states = {r.txnid: r.state for r in acid.sql("SHOW TRANSACTIONS").collect()}
    assert states.get(str(second)) == "OPEN"
    assert states.get(str(first), "ABORTED") == states.get(str(third), "ABORTED") == "ABORTED"
    for id in (first, third):
        with pytest.raises(TransactionAborted):
            acid.metastore.commit_txn(id)
    acid.metastore.commit_txn(second)


def test_an_id_that_is_not_open_is_named_and_nothing_is_aborted(acid: AcidSession) -> None:
    mine, other = acid.metastore.open_txns(2, user="u", host="h")
    acid.metastore.abort_txns([other])
    for id, known in ((other, "is aborted"), (999_999, "is not open")):
        with pytest.raises(NoSuchTransaction) as caught:
            acid.sql(f"ABORT TRANSACTIONS {mine} {id}")
        assert str(id) in caught.value.message
        assert caught.value.column == 21 + len(str(mine))
        assert known in caught.value.message or "is not open" in caught.value.message
    acid.metastore.commit_txn(mine)


def test_a_statement_whose_transaction_is_aborted_leaves_nothing(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    real = acid.metastore.commit_txn
    aborted = threading.Event()

    def commit_txn(txn_id: int, *args: Any) -> None:
        if not aborted.is_set():
            aborted.set()
            acid.sql(f"ABORT TRANSACTIONS {txn_id}")
        real(txn_id, *args)

    acid.metastore.commit_txn = commit_txn  # type: ignore[method-assign]
    with pytest.raises(TransactionAborted):
        acid.sql("INSERT INTO t VALUES (1)")
    acid.metastore.commit_txn = real  # type: ignore[method-assign]
    assert acid.table("t").count() == 0
    assert not list((warehouse / "t").iterdir())
