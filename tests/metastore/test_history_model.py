"""Random histories of transactions, write ids, snapshots and locks against a model of a few lines.

The model keeps plain lists of what was asked and answered, and computes each answer anew from the rules of Hive's
snapshots and locks. It knows nothing of tables of a database, of pruning or of caches.

This is for the stores that are not ours: where time, settings and what is aborted can be had from the test, the
histories of :mod:`tests.metastore.test_random_histories` say all of this and more.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from acidsql.errors import NoSuchLock, NoSuchTransaction, TransactionAborted, WriteConflict
from acidsql.metastore.model import LockState, LockType, Operation, TxnState
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from acidsql.valid_ids import ValidTxnList
from tests.metastore.situations import (
    EXCL_WRITE,
    EXCLUSIVE,
    READ,
    SHARED_WRITE,
    Clock,
    ask,
    begin,
    locks_of,
    table,
    tidy,
    use_warehouse,
)
from tests.metastore.stores import StoreKind

TABLES = ("a", "b")
PLACES = ("default", "default.a", "default.a/p=1", "default.a/p=2", "default.b")
BLOCKERS = {
    READ: {EXCLUSIVE},
    SHARED_WRITE: {EXCL_WRITE, EXCLUSIVE},
    EXCL_WRITE: {SHARED_WRITE, EXCL_WRITE, EXCLUSIVE},
    EXCLUSIVE: {READ, SHARED_WRITE, EXCL_WRITE, EXCLUSIVE},
}
CHANGES = (Operation.UPDATE, Operation.DELETE)


@dataclass
class Txn:
    id: int
    state: str = "open"
    writes: list[tuple[str, Operation]] = field(default_factory=list)
    commit_id: int = 0


@dataclass
class Lock:
    id: int
    txn: Txn
    type: LockType
    place: str
    granted: bool = False


def overlap(one: str, other: str) -> bool:
    """Objects are paths here, ``default.a/p=1``: they overlap where one is the other or a part of it."""
    one_path, other_path = one.replace(".", "/").split("/"), other.replace(".", "/").split("/")
    shorter = min(len(one_path), len(other_path))
    return one_path[:shorter] == other_path[:shorter]


def in_the_way(held: Lock, asked: Lock) -> bool:
    if held.txn is asked.txn or held.id >= asked.id:
        return False
    if asked.type is READ and asked.place == "default" and held.place != "default":
        return False
    if held.type is READ and held.place == "default" and asked.place != "default":
        return False
    return held.type in BLOCKERS[asked.type] and overlap(held.place, asked.place)


class Histories(RuleBasedStateMachine):
    """Rules are the calls of the protocol; a call on something that cannot do it must fail, and change nothing."""

    kind: StoreKind

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = Clock()
        optimistic = Settings({"hive.txn.xlock.write": "false", "hive.txn.timeout": "1d"})
        self.kind.empty()
        opening = self.kind.opening(Path(self.directory.name), optimistic, self.clock)
        use_warehouse(opening.warehouse)
        self.store: Metastore = self.kind.open(opening)
        self.latest = self.store.get_valid_txns().high_watermark
        for name in TABLES:
            self.store.create_table(table(name, partitioned=name == "a"))
        self.txns: list[Txn] = []
        self.locks: list[Lock] = []
        self.write_ids: dict[str, list[Txn]] = {name: [] for name in TABLES}
        self.forgotten: set[int] = set()

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()

    # --- the calls ---------------------------------------------------------------------------------------------------

    @rule()
    def open(self) -> None:
        self.txns.append(Txn(begin(self.store)))
        self.latest += 1
        assert self.txns[-1].id == self.latest

    @precondition(lambda self: self.txns)
    @rule(data=st.data(), type=st.sampled_from(list(LockType)), place=st.sampled_from(PLACES))
    def ask_for_a_lock(self, data: st.DataObject, type: LockType, place: str) -> None:
        operations = [Operation.NO_TXN] if place == "default" else list(Operation)
        operation = data.draw(st.sampled_from(operations))
        txn = self._any_txn(data)
        if txn.state == "committed" and not self._can("refuses locks after the end"):
            return
        if txn.state != "open":
            with pytest.raises((TransactionAborted, NoSuchTransaction)):
                ask(self.store, txn.id, type, place, operation)
            return
        response = ask(self.store, txn.id, type, place, operation)
        self.locks.append(Lock(response.lock_id, txn, type, place))
        if operation in (Operation.INSERT, *CHANGES):
            txn.writes.append((place, operation))
        self._compare(self.locks[-1], response.state)

    @precondition(lambda self: self.locks)
    @rule(data=st.data())
    def check_a_lock(self, data: st.DataObject) -> None:
        lock = data.draw(st.sampled_from(self.locks))
        self._compare(lock, self.store.check_lock(lock.id).state)

    @precondition(lambda self: any(not lock.granted for lock in self.locks))
    @rule(data=st.data())
    def give_up_waiting(self, data: st.DataObject) -> None:
        lock = data.draw(st.sampled_from([lock for lock in self.locks if not lock.granted]))
        self.store.unlock(lock.id)
        self.locks.remove(lock)
        with pytest.raises(NoSuchLock):
            self.store.check_lock(lock.id)

    @precondition(lambda self: self.txns)
    @rule(data=st.data(), name=st.sampled_from(TABLES))
    def take_a_write_id(self, data: st.DataObject, name: str) -> None:
        txn, owners = self._any_txn(data), self.write_ids[name]
        if txn.state != "open":
            with pytest.raises((TransactionAborted, NoSuchTransaction)):
                self.store.allocate_table_write_id(txn.id, "default", name)
            return
        if txn not in owners:
            owners.append(txn)
        assert self.store.allocate_table_write_id(txn.id, "default", name) == owners.index(txn) + 1

    @precondition(lambda self: self.txns)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        txn = self._any_txn(data)
        if txn.state == "aborted":
            with pytest.raises((TransactionAborted, NoSuchTransaction)):
                self.store.commit_txn(txn.id)
        elif txn.state == "open" and any(self._conflict(txn, other) for other in self.txns):
            with pytest.raises(WriteConflict):
                self.store.commit_txn(txn.id)
            self._end(txn, "aborted")
        elif txn.state == "open":
            self.store.commit_txn(txn.id)
            txn.commit_id = self.latest
            self._end(txn, "committed")

    @precondition(lambda self: self.txns)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        txn = self._any_txn(data)
        aborted = self.store.abort_txns([txn.id])
        if txn.state != "aborted" or self._can("tells what it aborted"):
            assert aborted == ([txn.id] if txn.state == "open" else [])
        if txn.state == "open":
            self._end(txn, "aborted")

    @rule()
    def keep_house(self) -> None:
        tidy(self.store, self.clock)

    @precondition(lambda self: self._can("forgets components") and any(txn.state == "aborted" for txn in self.txns))
    @rule(data=st.data())
    def remove_the_files_of_an_aborted_one(self, data: st.DataObject) -> None:
        txn = data.draw(st.sampled_from([txn for txn in self.txns if txn.state == "aborted"]))
        self.store.forget_txn_components(txn.id)
        self.forgotten.add(txn.id)

    # --- what must hold at any time ----------------------------------------------------------------------------------

    @invariant()
    def snapshots_see_what_is_committed(self) -> None:
        for current in (0, *[txn.id for txn in self.txns if txn.state == "open"][-2:]):
            snapshot = self.store.get_valid_txns(current)
            assert snapshot.high_watermark == (current or self.latest)
            for txn in self.txns:
                if self._known(txn):
                    wanted = txn.id == current or (txn.state == "committed" and txn.id <= snapshot.high_watermark)
                    assert snapshot.is_valid(txn.id) == wanted, (txn, snapshot)
            self._compare_write_ids(snapshot)

    @invariant()
    def locks_are_shown_as_they_were_answered(self) -> None:
        shown = [(one.lock_id, one.txn_id, one.type, one.state is LockState.ACQUIRED) for one in locks_of(self.store)]
        assert shown == [(lock.id, lock.txn.id, lock.type, lock.granted) for lock in self.locks]

    @invariant()
    def granted_locks_go_together(self) -> None:
        granted = [lock for lock in self.locks if lock.granted]
        assert not [(one, two) for one in granted for two in granted if in_the_way(one, two)]

    @invariant()
    def open_transactions_are_shown(self) -> None:
        shown = [one.id for one in self.store.show_txns() if one.state is TxnState.OPEN]
        assert shown == [txn.id for txn in self.txns if txn.state == "open"]

    # --- the model ---------------------------------------------------------------------------------------------------

    def _can(self, capability: str) -> bool:
        return capability in self.kind.capabilities

    def _any_txn(self, data: st.DataObject) -> Txn:
        """One of the latest: histories in which much happens to few transactions are the telling ones."""
        return data.draw(st.sampled_from(self.txns[-5:]))

    def _known(self, txn: Txn) -> bool:
        """Whether the store must know how a transaction ended: one aborted without files may count as committed."""
        wrote = bool(txn.writes)
        if self._can("remembers write ids without locks"):
            wrote = wrote or any(txn in owners for owners in self.write_ids.values())
        return txn.state != "aborted" or (wrote and txn.id not in self.forgotten)

    def _compare_write_ids(self, snapshot: ValidTxnList) -> None:
        lists = self.store.get_valid_write_ids([f"default.{name}" for name in TABLES], snapshot)
        for name, valid in zip(TABLES, lists, strict=True):
            for write_id, txn in enumerate(self.write_ids[name], start=1):
                if self._known(txn):
                    assert valid.is_valid(write_id) == snapshot.is_valid(txn.id), (name, write_id, txn, valid)
            assert not valid.is_valid(len(self.write_ids[name]) + 1)

    def _compare(self, lock: Lock, state: LockState) -> None:
        lock.granted = lock.granted or not any(in_the_way(held, lock) for held in self.locks)
        assert state is (LockState.ACQUIRED if lock.granted else LockState.WAITING)

    def _conflict(self, mine: Txn, other: Txn) -> bool:
        if other.state != "committed" or other.commit_id < mine.id:
            return False
        return any(
            op in CHANGES and their_op in CHANGES and self._is_same(place, their_place)
            for place, op in mine.writes
            for their_place, their_op in other.writes
        )

    def _is_same(self, one: str, other: str) -> bool:
        return overlap(one, other) if self._can("table meets partition") else one == other

    def _end(self, txn: Txn, state: str) -> None:
        txn.state = state
        self.locks = [lock for lock in self.locks if lock.txn is not txn]


@pytest.mark.needs("shared writes go together", "exclusive writes")
@pytest.mark.lacks("own clock")
def test_random_histories_agree_with_the_model(kind: StoreKind) -> None:
    run_state_machine_as_test(
        type("HistoriesOfOneStore", (Histories,), {"kind": kind}),
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
