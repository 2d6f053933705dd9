"""Random histories of transactions, locks and write ids, against a model in plain Python that forgets nothing.

The model knows the rules as they are told (a lock matrix written out as text, a conflict as an overlap of two
lifetimes, a write id as its transaction's), not as the store carries them out: it keeps every commit for ever, lists
every write id, and compares every lock with every other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from acidsql.errors import NoSuchLock, NoSuchTransaction, TransactionAborted, TransactionError, WriteConflict
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType, Operation, TxnState, TxnType
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from acidsql.valid_ids import ValidTxnList
from tests.examples import examples
from tests.metastore.situations import EXCL_WRITE, EXCLUSIVE, READ, SHARED_WRITE, Clock
from tests.metastore.stores import StoreKind

TIMEOUT_MS = 300_000
YOUNG_MS = 1000
"""Transactions younger than this are not forgotten."""

OPEN, ABORTED, COMMITTED = TxnState.OPEN, TxnState.ABORTED, TxnState.COMMITTED
CHANGES = (Operation.UPDATE, Operation.DELETE)

WAITS = {
    READ: {EXCLUSIVE},
    SHARED_WRITE: {EXCL_WRITE, EXCLUSIVE},
    EXCL_WRITE: set(LockType) - {READ},
    EXCLUSIVE: set(LockType),
}

Place = tuple[str, str | None, str | None]
PLACES: list[Place] = [("d", None, None), ("d", "a", None), ("d", "b", None), *(("d", "b", f"p={i}") for i in (1, 2))]


@dataclass
class Txn:
    type: TxnType
    started: int
    beat: int
    state: TxnState = OPEN
    components: set[tuple[str, str | None, Operation]] = field(default_factory=set)
    """(table, partition, operation)"""


@dataclass
class Request:
    txn: int
    parts: list[tuple[LockType, Place]]
    granted: bool
    beat: int


@dataclass(frozen=True)
class Change:
    """What a committed transaction changed, and the newest transaction at its commit."""

    txn: int
    commit: int
    table: str
    partition: str | None


def overlap(one: Place, other: Place) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def waits_for(asked: tuple[LockType, Place], held: tuple[LockType, Place]) -> bool:
    (kind, place), (held_kind, held_place) = asked, held
    if held_kind not in WAITS[kind] or not overlap(place, held_place):
        return False
    if kind is READ and place[1] is None and held_place[1] is not None:
        return False  # reading a database goes together with dropping a table of it
    return not (held_kind is READ and held_place[1] is None and place[1] is not None)


def in_the_way(asked: Request, other: Request) -> bool:
    return any(waits_for(p, q) for p in asked.parts for q in other.parts)


@st.composite
def components(draw: st.DrawFn) -> LockComponent:
    database, name, partition = draw(st.sampled_from(PLACES))
    operation = draw(st.sampled_from([Operation.SELECT, Operation.INSERT, *CHANGES])) if name else Operation.NO_TXN
    dynamic = name == "b" and partition is None and operation is not Operation.SELECT
    return LockComponent(draw(st.sampled_from(LockType)), database, name, partition, operation, dynamic)


class Histories(RuleBasedStateMachine):
    """One store, one clock, any number of clients."""

    kind: StoreKind
    store: Metastore

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.txns: dict[int, Txn] = {}
        self.newest = 0
        self.requests: dict[int, Request] = {}
        self.write_ids: dict[tuple[str, int], int] = {}
        """(table, transaction) -> write id; those given back are not in it."""
        self.next_write_id = {"a": 1, "b": 1}
        self.changes: list[Change] = []
        self.snapshots: list[ValidTxnList] = []

    @initialize(exclusive=st.booleans())
    def start(self, exclusive: bool) -> None:
        self.exclusive = exclusive
        values = {"hive.txn.xlock.write": str(exclusive).lower(), "hive.txn.timeout": f"{TIMEOUT_MS}ms"}
        self.store = self.kind.open(self.kind.opening(Path(self.directory.name), Settings(values), self.clock))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            problems = self.store.check().problems if isinstance(self.store, EmbeddedMetastore) else ()
            self.store.close()
            assert problems == ()
        self.directory.cleanup()

    # --- what the model knows ----------------------------------------------------------------------------------------

    def of_state(self, *states: TxnState) -> list[int]:
        return [i for i, t in self.txns.items() if t.state in states]

    def end(self, txn_id: int, state: TxnState) -> None:
        txn = self.txns[txn_id]
        txn.state = state
        self.requests = {i: r for i, r in self.requests.items() if r.txn != txn_id}
        if state is ABORTED:  # a write id that nobody may see needs a place to be remembered at
            covered = {name for name, _, _ in txn.components}
            lost = {name for name, owner in self.write_ids if owner == txn_id} - covered
            txn.components |= {(name, None, Operation.UPDATE) for name in lost}

    def recent(self, data: st.DataObject, *others: int) -> int:
        """One of the latest transactions, open ones more often: what happens to few of them tells the most."""
        latest = sorted(self.txns)[-5:]
        return data.draw(st.sampled_from([*others, *latest, *(i for i in latest if self.txns[i].state is OPEN)]))

    def silent(self, spared: int = 0) -> list[int]:
        limit = self.clock.ms - TIMEOUT_MS
        return [i for i in self.of_state(OPEN) if self.txns[i].beat < limit and i != spared]

    def time_out(self, spared: int = 0) -> None:
        limit = self.clock.ms - TIMEOUT_MS
        self.requests = {i: r for i, r in self.requests.items() if r.txn or r.beat >= limit}
        for txn_id in self.silent(spared):
            self.end(txn_id, ABORTED)

    def blockers(self, lock_id: int, request: Request) -> list[int]:
        """Requests in the way, the dead being taken away first if there are any."""

        def overtaken() -> list[int]:
            """Those that get nothing before the transaction that asks has ended."""
            ended_after = {request.txn} - {0}
            made = list[int]()
            while True:
                for i, r in self.requests.items():
                    held = [q for q in self.requests.values() if q.granted and q.txn in ended_after]
                    before = [*held, *(self.requests[n] for n in made if n < i)]
                    is_others = not r.granted and i not in made and (not r.txn or r.txn != request.txn)
                    if is_others and any(in_the_way(r, q) for q in before):
                        made.append(i)
                        ended_after |= {r.txn} - {0}
                        break
                else:
                    return made

        def found() -> list[int]:
            others = [(i, r) for i, r in self.requests.items() if not r.txn or r.txn != request.txn]
            first = [i for i, r in others if (i < lock_id or r.granted) and in_the_way(request, r) and i != lock_id]
            passed = overtaken() if first else ()
            return [i for i in first if i not in passed]

        if found():
            self.time_out(spared=request.txn)
        return found()

    @invariant()
    def no_two_hold_what_excludes_the_other(self) -> None:
        held = [(i, r) for i, r in sorted(self.requests.items()) if r.granted]
        for place, (_, one) in enumerate(held):
            for _, other in held[place + 1 :]:
                is_one = one.txn and one.txn == other.txn
                assert is_one or not (in_the_way(one, other) and in_the_way(other, one))

    def conflicts(self, txn_id: int) -> list[Change]:
        """What others committed since a transaction began, of what it is about to change."""
        mine = [(n, p) for n, p, o in self.txns[txn_id].components if o in CHANGES]
        later = [c for c in self.changes if c.commit >= txn_id]
        return [c for c in later if any(overlap(("d", c.table, c.partition), ("d", *m)) for m in mine)]

    # --- steps -------------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 2), type=st.sampled_from([TxnType.DEFAULT, TxnType.DEFAULT, TxnType.READ_ONLY]))
    def open(self, count: int, type: TxnType) -> None:
        ids = self.store.open_txns(count, user="u", host="h", type=type)
        assert ids == list(range(self.newest + 1, self.newest + count + 1))
        self.newest += count
        self.txns.update({i: Txn(type, self.clock.ms, self.clock.ms) for i in ids})

    @rule(data=st.data(), parts=st.lists(components(), min_size=1, max_size=3))
    def ask(self, data: st.DataObject, parts: list[LockComponent]) -> None:
        self.enqueue(self.recent(data, 0), parts)

    def enqueue(self, txn_id: int, parts: list[LockComponent]) -> None:
        request = LockRequest(tuple(parts), txn_id, "u", "h")
        if txn_id and self.txns[txn_id].state is not OPEN:
            with pytest.raises((TransactionAborted, NoSuchTransaction)):
                self.store.lock(request)
            return
        response = self.store.lock(request)
        assert response.lock_id > max(self.requests, default=0)
        places = [(p.type, (p.database, p.table, p.partition)) for p in parts]
        made = Request(txn_id, places, False, self.clock.ms)
        self.answer(response.lock_id, made, response.state)
        self.requests[response.lock_id] = made
        if txn_id:
            self.record(self.txns[txn_id], parts)

    def record(self, txn: Txn, parts: list[LockComponent]) -> None:
        writes = [p for p in parts if p.operation is not Operation.NO_TXN and p.operation is not Operation.SELECT]
        dynamic = [p for p in writes if p.is_dynamic_partition_write]
        txn.components |= {(p.table or "", p.partition, p.operation) for p in writes if p not in dynamic}
        if dynamic:
            changes = any(p.operation in CHANGES for p in dynamic)
            txn.components.add(("b", None, Operation.UPDATE if changes else Operation.INSERT))

    def answer(self, lock_id: int, request: Request, state: LockState) -> None:
        request.granted = not self.blockers(lock_id, request)
        assert state is (LockState.ACQUIRED if request.granted else LockState.WAITING)

    @rule(
        place=st.sampled_from([p for p in PLACES if p[1]]),
        operation=st.sampled_from([Operation.INSERT, *CHANGES]),
        type=st.sampled_from([READ, SHARED_WRITE, EXCL_WRITE]),
    )
    def begin_to_write(self, place: Place, operation: Operation, type: LockType) -> None:
        """The usual way of a statement: a transaction, its lock, its write id."""
        self.open(1, TxnType.DEFAULT)
        self.enqueue(self.newest, [LockComponent(type, *place, operation)])
        self.take_write_id(self.newest, place[1] or "", False)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        lock_id = data.draw(st.sampled_from(sorted(self.requests)))
        request = self.requests[lock_id]
        response = self.store.check_lock(lock_id)
        if request.txn:
            self.txns[request.txn].beat = self.clock.ms
        request.beat = self.clock.ms
        if request.granted:
            assert response.state is LockState.ACQUIRED
        else:
            self.answer(lock_id, request, response.state)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        lock_id = data.draw(st.sampled_from(sorted(self.requests)))
        request = self.requests[lock_id]
        if request.txn and request.granted:
            with pytest.raises(TransactionError):
                self.store.unlock(lock_id)
            return
        self.store.unlock(lock_id)
        del self.requests[lock_id]
        with pytest.raises(NoSuchLock):
            self.store.check_lock(lock_id)

    @precondition(lambda self: self.txns)
    @rule(data=st.data(), name=st.sampled_from("ab"), reallocate=st.booleans())
    def allocate(self, data: st.DataObject, name: str, reallocate: bool) -> None:
        self.take_write_id(self.recent(data), name, reallocate)

    def take_write_id(self, txn_id: int, name: str, reallocate: bool) -> None:
        txn = self.txns[txn_id]
        if txn.state is not OPEN or txn.type is TxnType.READ_ONLY:
            with pytest.raises(TransactionError):
                self.store.allocate_table_write_id(txn_id, "d", name, reallocate=reallocate)
            return
        write_id = self.store.allocate_table_write_id(txn_id, "d", name, reallocate=reallocate)
        own = None if reallocate else self.write_ids.get((name, txn_id))
        assert write_id == (own or self.next_write_id[name])
        self.next_write_id[name] += own is None
        self.write_ids[name, txn_id] = write_id

    @precondition(lambda self: self.of_state(OPEN))
    @rule(data=st.data(), partitions=st.sets(st.sampled_from(["p=1", "p=2"])), operation=st.sampled_from(Operation))
    def name_partitions(self, data: st.DataObject, partitions: set[str], operation: Operation) -> None:
        if operation in (Operation.SELECT, Operation.NO_TXN):
            operation = Operation.INSERT
        txn_id = data.draw(st.sampled_from(self.of_state(OPEN)))
        self.take_write_id(txn_id, "b", False)
        if ("b", txn_id) not in self.write_ids:
            return
        self.store.add_dynamic_partitions(txn_id, self.write_ids["b", txn_id], "d", "b", sorted(partitions), operation)
        txn = self.txns[txn_id]
        txn.components = {c for c in txn.components if c[:2] != ("b", None)} | {("b", p, operation) for p in partitions}

    @precondition(lambda self: self.txns)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        self.commit_one(self.recent(data))

    @precondition(lambda self: self.of_state(OPEN))
    @rule(data=st.data())
    def commit_open(self, data: st.DataObject) -> None:
        self.commit_one(data.draw(st.sampled_from(self.of_state(OPEN)[-5:])))

    def commit_one(self, txn_id: int) -> None:
        txn = self.txns[txn_id]
        if txn.state is ABORTED:
            with pytest.raises(TransactionAborted):
                self.store.commit_txn(txn_id)
            return
        if txn.state is OPEN:
            shared = any(k is SHARED_WRITE for r in self.requests.values() if r.txn == txn_id for k, _ in r.parts)
            checked = txn.type is not TxnType.READ_ONLY and (shared or not self.exclusive)
            conflict = min(self.conflicts(txn_id), key=lambda c: (c.commit, c.txn), default=None) if checked else None
            if conflict is not None:
                with pytest.raises(WriteConflict) as caught:
                    self.store.commit_txn(txn_id)
                assert f"[txnid:{txn_id},{self.newest}]" in caught.value.message
                assert f"[txnid:{conflict.txn},{conflict.commit}]" in caught.value.message
                self.end(txn_id, ABORTED)
                return
            self.end(txn_id, COMMITTED)
            if txn.type is not TxnType.READ_ONLY:
                changed = [(n, p) for n, p, o in txn.components if o in CHANGES]
                self.changes += [Change(txn_id, self.newest, n, p) for n, p in changed]
            txn.components = set()
        self.store.commit_txn(txn_id)

    @precondition(lambda self: self.txns)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        some = {self.recent(data, self.newest + 1) for _ in range(data.draw(st.integers(1, 2)))}
        mine = [i for i in sorted(some) if i in self.txns and self.txns[i].state is OPEN]
        assert self.store.abort_txns(sorted(some)) == mine
        for txn_id in mine:
            self.end(txn_id, ABORTED)

    @rule(seconds=st.sampled_from([0.5, 2, 200, 301]))
    def time_passes(self, seconds: float) -> None:
        self.clock.pass_seconds(seconds)

    @precondition(lambda self: self.txns)
    @rule(data=st.data())
    def show_life(self, data: st.DataObject) -> None:
        some = data.draw(st.sets(st.sampled_from(sorted(self.txns))))
        aborted, unknown = self.store.heartbeat_txns(sorted(some))
        assert aborted == [i for i in sorted(some) if self.txns[i].state is ABORTED]
        assert unknown == [i for i in sorted(some) if self.txns[i].state is COMMITTED]
        for txn_id in some:
            self.txns[txn_id].beat = self.clock.ms

    @rule()
    def look_for_the_dead(self) -> None:
        assert self.store.time_out_txns() == self.silent()
        self.time_out()

    @precondition(lambda self: self.of_state(ABORTED))
    @rule(data=st.data())
    def forget_files(self, data: st.DataObject) -> None:
        txn_id = data.draw(st.sampled_from(self.of_state(ABORTED)))
        self.store.forget_txn_components(txn_id)
        self.txns[txn_id].components = set()

    @rule()
    def tidy(self) -> None:
        self.store.clean_empty_aborted_txns()
        for txn_id in self.of_state(ABORTED):  # without a write id nothing was written to a table
            txn = self.txns[txn_id]
            txn.components = {c for c in txn.components if not c[0] or (c[0], txn_id) in self.write_ids}
        old = max((i for i, t in self.txns.items() if t.started < self.clock.ms - YOUNG_MS), default=0)
        for txn_id in [i for i, t in self.txns.items() if i < old and t.state is not OPEN and not t.components]:
            del self.txns[txn_id]

    @rule(data=st.data())
    def take_snapshot(self, data: st.DataObject) -> None:
        current = self.recent(data, 0)
        snapshot = self.store.get_valid_txns(current)
        high = min(current, self.newest) if current else self.newest
        assert snapshot.high_watermark == high
        for state, listed in ((OPEN, snapshot.open_ids), (ABORTED, snapshot.aborted_ids)):
            assert list(listed) == sorted(i for i in self.of_state(state) if i <= high and i != current)
        self.snapshots = [*self.snapshots[-2:], snapshot]

    # --- what must hold after every step -----------------------------------------------------------------------------

    @invariant()
    def snapshots_see_what_they_saw(self) -> None:
        """A write id is seen by a snapshot as its transaction is, however long ago the snapshot was taken."""
        for snapshot in self.snapshots:
            for valid in self.store.get_valid_write_ids(["d.a", "d.b"], snapshot):
                for owner, write_id in self.owners(valid.table[-1]):
                    assert valid.is_valid(write_id) == snapshot.is_valid(owner), (valid, owner)
                    assert not (valid.is_aborted(write_id) and not snapshot.is_aborted(owner))
                assert not valid.is_valid(self.next_write_id[valid.table[-1]])

    @invariant()
    def new_snapshots_see_what_is_committed(self) -> None:
        """Those of nobody, and of the latest open transactions, which see their own writes too."""
        if not hasattr(self, "store"):
            return
        for current in (0, *self.of_state(OPEN)[-2:]):
            snapshot = self.store.get_valid_txns(current)
            for txn_id, txn in self.txns.items():
                is_seen = txn_id == current or (txn.state is COMMITTED and txn_id <= snapshot.high_watermark)
                assert snapshot.is_valid(txn_id) == is_seen, (txn_id, txn, snapshot)
            for valid in self.store.get_valid_write_ids(["d.a", "d.b"], snapshot):
                for owner, write_id in self.owners(valid.table[-1]):
                    if owner in self.txns:
                        assert valid.is_valid(write_id) == snapshot.is_valid(owner), (valid, owner)
                assert not valid.is_valid(self.next_write_id[valid.table[-1]])

    def owners(self, name: str) -> Iterator[tuple[int, int]]:
        return ((txn, w) for (of, txn), w in self.write_ids.items() if of == name)

    @invariant()
    def locks_are_shown(self) -> None:
        if hasattr(self, "store"):
            shown = {one.lock_id: one.state is LockState.ACQUIRED for one in self.store.show_locks()}
            assert shown == {i: r.granted for i, r in self.requests.items()}

    @invariant()
    def granted_locks_go_together(self) -> None:
        granted = [(i, r) for i, r in self.requests.items() if r.granted]
        for i, later in granted:
            for j, earlier in granted:
                if j < i and not (later.txn and later.txn == earlier.txn):
                    assert not any(waits_for(p, q) for p in later.parts for q in earlier.parts)

    @invariant()
    def transactions_are_shown(self) -> None:
        if hasattr(self, "store"):
            listed = {
                i: t.state for i, t in self.txns.items() if t.state is OPEN or (t.state is ABORTED and t.components)
            }
            assert {t.id: t.state for t in self.store.show_txns()} == listed

    @invariant()
    def the_latest_conflict_is_known(self) -> None:
        for txn_id in self.of_state(OPEN):
            if self.txns[txn_id].type is TxnType.DEFAULT:
                latest = max((c.txn for c in self.conflicts(txn_id)), default=None)
                assert self.store.get_latest_txn_in_conflict(txn_id) == latest


@pytest.mark.needs("own clock", "own settings", "reallocate", "forgets components", "table meets partition")
def test_any_history_goes_as_the_model_says(kind: StoreKind) -> None:
    quick = settings(
        max_examples=examples(10), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(type("HistoriesOfOneStore", (Histories,), {"kind": kind}), settings=quick)
