"""The queue of compactions of a Hive Metastore, for workers of ours: what is asked for, and what is not offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hive_metastore import ttypes

from acidsql.errors import CompactionError, MetastoreError, UnsupportedError
from acidsql.metastore.hive import HiveMetastore, translate, wire
from acidsql.metastore.model import (
    CompactionInfo,
    CompactionMetrics,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from tests.unit.metastore.conftest import Connect, Serve
from tests.unit.metastore.scripted import Fault
from tests.unit.metastore.test_hive_wire import Wire, i32, i64

REQUEST = CompactionRequest("d", "t", None, CompactionType.MAJOR, "ann", "desk")


def shown(state: str = "working", **more: Any) -> Any:
    """An entry as SHOW COMPACTIONS of Hive 4.0 has it: the highest write id stands under a wrong name."""
    entry = ttypes.ShowCompactResponseElement(
        id=7, dbname="d", tablename="t", partitionname="p=1", type=2, state=state, **{"hightestTxnId": 9, **more}
    )
    return ttypes.ShowCompactResponse(compacts=[entry])


@pytest.fixture
def calls() -> list[tuple[str, Any]]:
    return []


@pytest.fixture
def answers(calls: list[tuple[str, Any]]) -> dict[str, Any]:
    """A metastore with one entry, that a worker has taken."""

    def noted(name: str) -> Callable[..., None]:
        return lambda *arguments: calls.append((name, *arguments))  # type: ignore[arg-type]

    names = ("update_compactor_state", "set_hadoop_jobid", "mark_compacted", "mark_failed", "mark_refused")
    table = ttypes.Table(dbName="d", tableName="t", owner="bob", sd=ttypes.StorageDescriptor())
    return {
        "show_compact": lambda request: shown(),
        "get_table_req": lambda request: ttypes.GetTableResult(table=table),
        **{name: noted(name) for name in (*names, "mark_cleaned")},
    }


def test_an_entry_is_taken_with_all_that_was_asked_for() -> None:
    entry = {
        1: i64(7),
        2: "d",
        3: "t",
        4: "p=1",
        5: i32(3),
        7: "1:1:a2:bc",
        15: i64(10),
        17: "night",
        18: i32(4),
        19: "ORDER BY a",
    }
    sent = Wire("find_next_compact2", {0: {1: entry}})
    found = wire.find_next_compact(sent.client, wire.FindNextCompactRequest(workerId="desk-1", poolName="night"))
    assert sent.request == ("find_next_compact2", {1: "desk-1", 3: "night"})
    assert translate.taken_from_thrift(found, "desk-1") == CompactionInfo(
        7,
        "d",
        "t",
        "p=1",
        CompactionType.REBALANCE,
        CompactionState.WORKING,
        worker="desk-1",
        enqueued_ms=10,
        pool="night",
        properties={"a": "bc"},
        buckets=4,
        order_by="ORDER BY a",
    )


def test_an_empty_queue_has_nothing_to_take() -> None:
    assert wire.find_next_compact(Wire("find_next_compact2", {0: {}}).client, wire.FindNextCompactRequest()) is None


def test_what_the_metastore_says_against_it_is_raised() -> None:
    with pytest.raises(ttypes.MetaException, match="no database"):
        wire.find_next_compact(
            Wire("find_next_compact2", {1: {1: "no database"}}).client, wire.FindNextCompactRequest()
        )


@pytest.mark.parametrize(("pool", "wanted"), [(None, None), ("default", None), ("", None), ("night", "night")])
def test_the_default_pool_is_asked_for_by_no_name(
    serve: Serve, connect: Connect, pool: str | None, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(wire, "find_next_compact", lambda client, request: asked.append(request))
    assert connect(serve()).find_next_compact("desk-1", pool=pool, worker_version="1") is None
    [request] = asked
    assert (request.workerId, request.workerVersion, request.poolName) == ("desk-1", "1", wanted)


class TestAWorker:
    def test_tells_its_transaction_and_write_id(
        self, serve: Serve, connect: Connect, answers: dict[str, Any], calls: list[Any]
    ) -> None:
        connect(serve(**answers)).update_compactor_state(7, 43, 8)
        [(name, struct, txn_id)] = calls
        assert (name, txn_id) == ("update_compactor_state", 43)
        assert (struct.id, struct.dbname, struct.tablename, struct.partitionname) == (7, "d", "t", "p=1")
        assert (struct.highestWriteId, struct.runas, struct.type) == (8, "bob", 2)

    def test_tells_how_it_ended(
        self, serve: Serve, connect: Connect, answers: dict[str, Any], calls: list[Any]
    ) -> None:
        session = connect(serve(**answers))
        session.mark_compacted(7, metrics=CompactionMetrics(5, 900, 1, 400, 3))  # which Thrift cannot carry
        session.mark_failed(7, "no more disk")
        session.mark_refused(7, "nothing to do")
        assert [(name, struct.id, struct.errorMessage) for name, struct in calls] == [
            ("mark_compacted", 7, None),
            ("mark_failed", 7, "no more disk"),
            ("mark_refused", 7, "nothing to do"),
        ]

    def test_names_its_job_as_long_as_hive_can_keep_it(
        self, serve: Serve, connect: Connect, answers: dict[str, Any], calls: list[Any]
    ) -> None:
        connect(serve(**answers)).set_job_id(7, "desk-compactor-database.table.p=1/q=2")
        assert calls == [("set_hadoop_jobid", "desk-compactor-database.table.p=", 7)]

    def test_forgets_no_more_than_its_highest_write_id(
        self, serve: Serve, connect: Connect, answers: dict[str, Any], calls: list[Any]
    ) -> None:
        connect(serve(**answers)).mark_cleaned(7)
        [(name, struct)] = calls
        assert (name, struct.highestWriteId) == ("mark_cleaned", 9)

    def test_is_not_let_forget_everything(
        self, serve: Serve, connect: Connect, answers: dict[str, Any], calls: list[Any]
    ) -> None:
        session = connect(serve(**{**answers, "show_compact": lambda request: shown(hightestTxnId=None)}))
        with pytest.raises(UnsupportedError, match="forget"):
            session.mark_cleaned(7)
        with pytest.raises(UnsupportedError, match="forget"):
            connect(serve(**answers)).mark_cleaned(7, keep_aborted=True)
        assert calls == []

    def test_has_no_entry_that_is_not_there(self, serve: Serve, connect: Connect, answers: dict[str, Any]) -> None:
        empty = {**answers, "show_compact": lambda request: ttypes.ShowCompactResponse(compacts=[])}
        with pytest.raises(CompactionError, match="No record with CQ_ID=7"):
            connect(serve(**empty)).mark_compacted(7)

    @pytest.mark.parametrize("fault", [Fault.DIES_AFTER, Fault.CUTS])
    def test_has_ended_where_a_second_try_finds_it_ended(
        self, serve: Serve, connect: Connect, answers: dict[str, Any], fault: Fault
    ) -> None:
        failed: list[Any] = []

        def mark_failed(struct: Any) -> None:
            if failed:
                raise ttypes.MetaException("No record with CQ_ID=7 found in COMPACTION_QUEUE")
            failed.append(struct)

        show = lambda request: shown("failed" if failed else "working")  # noqa: E731
        server = serve(**{**answers, "mark_failed": mark_failed, "show_compact": show})
        server.fail("mark_failed", fault)
        connect(server).mark_failed(7, "why")
        assert (server.counts["mark_failed"], len(failed)) == (2, 1)

    def test_has_not_ended_where_the_metastore_refuses(
        self, serve: Serve, connect: Connect, answers: dict[str, Any]
    ) -> None:
        server = serve(**{**answers, "mark_failed": ttypes.MetaException("no database")})
        with pytest.raises(MetastoreError, match="no database"):
            connect(server).mark_failed(7, "why")


def test_the_oldest_open_transaction_is_found_among_all(serve: Serve, connect: Connect) -> None:
    state = ttypes.TxnState
    txns = [ttypes.TxnInfo(id, kind, "u", "h") for id, kind in ((3, state.ABORTED), (5, state.OPEN), (8, state.OPEN))]
    info = ttypes.GetOpenTxnsInfoResponse(9, txns)
    assert connect(serve(get_open_txns_info=lambda: info)).min_open_txn() == 5
    none = ttypes.GetOpenTxnsInfoResponse(9, txns[:1])
    assert connect(serve(get_open_txns_info=lambda: none)).min_open_txn() == 10


def test_requests_of_an_initiator_carry_its_name() -> None:
    assert REQUEST.initiator_id == "desk-manual"
    assert replace(REQUEST, initiator="desk-12").initiator_id == "desk-12"


OWN: dict[str, Callable[[HiveMetastore], object]] = {
    "min_unseen_txn": lambda s: s.min_unseen_txn(),
    "revoke_timed_out_workers": lambda s: s.revoke_timed_out_workers(1),
    "revoke_from_local_workers": lambda s: s.revoke_from_local_workers("desk"),
    "find_potential_compactions": lambda s: s.find_potential_compactions(aborted_threshold=1, aborted_age_ms=None),
    "check_failed_compactions": lambda s: s.check_failed_compactions("d", "t", None, 2, 0),
    "mark_did_not_initiate": lambda s: s.mark_did_not_initiate(REQUEST, "why"),
    "find_ready_to_clean": lambda s: s.find_ready_to_clean(1, 0),
    "set_cleaner_retry": lambda s: s.set_cleaner_retry(7, retry_at_ms=1, message="why"),
    "aborted_components": lambda s: s.aborted_components(),
    "aborted_compactions": lambda s: s.aborted_compactions(),
    "forget_aborted": lambda s: s.forget_aborted("d", "t", None, {1}),
}


@pytest.mark.parametrize("name", OWN)
def test_what_the_metastore_does_by_itself_is_not_done_for_it(serve: Serve, connect: Connect, name: str) -> None:
    server = serve()
    with pytest.raises(UnsupportedError, match="On a Hive Metastore its own"):
        OWN[name](connect(server))
    assert not server.counts


def test_its_housekeeping_is_its_own(serve: Serve, connect: Connect) -> None:
    server = serve()
    session = connect(server)
    session.purge_compaction_history()
    assert session.prune_txn_to_write_id() == 0
    assert not server.counts


WORKERS: dict[str, Callable[[HiveMetastore], object]] = {
    "find_next_compact": lambda s: s.find_next_compact("desk-1"),
    "update_compactor_state": lambda s: s.update_compactor_state(7, 43, 8),
    "set_job_id": lambda s: s.set_job_id(7, "job"),
    "mark_compacted": lambda s: s.mark_compacted(7),
    "mark_failed": lambda s: s.mark_failed(7, "why"),
    "mark_refused": lambda s: s.mark_refused(7, "why"),
    "mark_cleaned": lambda s: s.mark_cleaned(7),
}


@pytest.mark.parametrize("name", WORKERS)
def test_hive_3_hands_its_queue_to_nobody(serve: Serve, connect: Connect, name: str) -> None:
    server = serve(getVersion="3.1.3")
    with pytest.raises(UnsupportedError, match=r"does not hand out compactions: it is of version 3\.1\.3"):
        WORKERS[name](connect(server))
    assert not server.counts
