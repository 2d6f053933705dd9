"""Random histories of writes, readers, requests, workers and cleaners, against a model in plain Python.

The model forgets nothing by itself: it knows every write with its fate and whether its files are there, and says from
that what a snapshot sees, what there is to clean, and what may be due for compaction.
"""

from __future__ import annotations

import tempfile
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

from acidsql.errors import CompactionError
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import CompactionFilter, CompactionRequest, CompactionType, Operation, TxnType
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from acidsql.valid_ids import ValidTxnList
from tests.examples import examples
from tests.metastore.situations import READ, Clock, begin, partition, table, take
from tests.metastore.stores import StoreKind

Place = tuple[str, str | None]
PLACES: list[Place] = [("t", None), ("p", "p=1"), ("p", "p=2")]
TIMEOUT_MS = 3_600_000
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


@dataclass
class Write:
    """A transaction that writes to one place."""

    txn: int
    place: Place
    write_id: int | None = None
    fate: str = OPEN
    is_compacted: bool = False
    """A compaction over it was cleaned: nothing tells of it any more, and no files either where it was aborted."""


@dataclass
class Entry:
    """A compaction."""

    place: Place
    state: State = State.INITIATED
    worker: str | None = None
    started: int | None = None
    txn: int | None = None
    highest: int | None = None
    newest_at_commit: int | None = None
    retries: int = 0
    retry_at: int = 0


@dataclass(frozen=True)
class Reader:
    """A snapshot, and the write ids that it sees and does not see, by table."""

    txns: ValidTxnList
    seen: dict[str, frozenset[int]] = field(default_factory=dict)
    hidden: dict[str, frozenset[int]] = field(default_factory=dict)


class Compacting(RuleBasedStateMachine):
    """One store, one clock, any number of clients."""

    kind: StoreKind
    store: Metastore

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.writes: dict[int, Write] = {}
        self.entries: dict[int, Entry] = {}
        self.compactors: set[int] = set()
        """Open transactions of workers."""
        self.readers: dict[int, Reader] = {}
        self.newest = 0
        self.latest_taken = 0

    @initialize()
    def make(self) -> None:
        self.store = self.kind.open(self.kind.opening(Path(self.directory.name), Settings(), self.clock))
        self.store.create_table(table("t"))
        self.store.create_table(table("p", partitioned=True))
        self.store.add_partitions([partition("1", "p"), partition("2", "p")])

    def teardown(self) -> None:
        if hasattr(self, "store"):
            problems = self.store.check().problems if isinstance(self.store, EmbeddedMetastore) else ()
            self.store.close()
            assert problems == ()
        self.directory.cleanup()

    # --- what is so --------------------------------------------------------------------------------------------------

    def of_table(self, name: str) -> list[Write]:
        return [w for w in self.writes.values() if w.place[0] == name and w.write_id is not None]

    def open_txns(self) -> list[int]:
        return [*(w.txn for w in self.writes.values() if w.fate == OPEN), *self.compactors, *self.readers]

    def waiting(self) -> list[int]:
        """Entries that can be cleaned now."""
        min_open = min([*self.open_txns(), self.newest + 1])
        due = {
            id: e
            for id, e in self.entries.items()
            if e.state == State.READY_FOR_CLEANING and e.newest_at_commit is not None and self.clock.ms >= e.retry_at
        }
        return [
            id
            for id, e in due.items()
            if e.newest_at_commit is not None
            and e.newest_at_commit < min_open
            and not any(o.place == e.place and (o.highest or 0) < (e.highest or 0) for o in due.values())
        ]

    def begun(self, type: TxnType = TxnType.DEFAULT) -> int:
        txn_id = begin(self.store, type)
        assert txn_id == self.newest + 1
        self.newest = txn_id
        return txn_id

    # --- writers and readers -----------------------------------------------------------------------------------------

    @rule(place=st.sampled_from(PLACES), begins=st.sampled_from([1, 2]))
    def begin_writes(self, place: Place, begins: int) -> None:
        for _ in range(begins):
            self.begin_write(place)

    def begin_write(self, place: Place) -> Write:
        txn_id = self.begun()
        name, part = place
        take(self.store, txn_id, READ, f"default.{name}" + (f"/{part}" if part else ""), Operation.INSERT)
        self.writes[txn_id] = Write(txn_id, place)
        return self.writes[txn_id]

    @precondition(lambda self: any(w.fate == OPEN and w.write_id is None for w in self.writes.values()))
    @rule(data=st.data())
    def allocate(self, data: st.DataObject) -> None:
        waiting = [w for w in self.writes.values() if w.fate == OPEN and w.write_id is None]
        self.give_write_id(data.draw(st.sampled_from(waiting)))

    def give_write_id(self, write: Write) -> None:
        write.write_id = self.store.allocate_table_write_id(write.txn, "default", write.place[0])
        assert sorted(w.write_id or 0 for w in self.of_table(write.place[0]))[-1] == write.write_id

    @precondition(lambda self: any(w.fate == OPEN for w in self.writes.values()))
    @rule(data=st.data(), commits=st.booleans())
    def end_write(self, data: st.DataObject, commits: bool) -> None:
        self.end(data.draw(st.sampled_from([w for w in self.writes.values() if w.fate == OPEN])), commits)

    @rule(place=st.sampled_from(PLACES), commits=st.booleans())
    def write_at_once(self, place: Place, commits: bool) -> None:
        write = self.begin_write(place)
        self.give_write_id(write)
        self.end(write, commits)

    def end(self, write: Write, commits: bool) -> None:
        if commits:
            self.store.commit_txn(write.txn)
        else:
            assert self.store.abort_txns([write.txn]) == [write.txn]
        write.fate = COMMITTED if commits else ABORTED

    @precondition(lambda self: len(self.readers) < 3)
    @rule()
    def begin_read(self) -> None:
        reader = self.begun(TxnType.READ_ONLY)
        seen = {n: frozenset(w.write_id for w in self.of_table(n) if w.fate == COMMITTED and w.write_id) for n in "tp"}
        there = {
            n: frozenset(
                w.write_id for w in self.of_table(n) if w.fate != COMMITTED and w.write_id and not w.is_compacted
            )
            for n in "tp"
        }
        self.readers[reader] = Reader(self.store.get_valid_txns(reader), seen, there)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def end_read(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(sorted(self.readers)))
        self.store.commit_txn(reader)
        del self.readers[reader]

    # --- the queue ---------------------------------------------------------------------------------------------------

    @rule(place=st.sampled_from(PLACES))
    def ask_for_one(self, place: Place) -> None:
        self.ask(place)

    def ask(self, place: Place) -> None:
        [valid] = self.store.get_valid_write_ids([f"default.{place[0]}"], self.store.get_valid_txns())
        coverable = valid.for_compaction().high_watermark
        standing = [
            id
            for id, e in self.entries.items()
            if e.place == place
            and (
                e.state in (State.INITIATED, State.WORKING)
                or (e.state == State.READY_FOR_CLEANING and e.highest == coverable)
            )
        ]
        response = self.store.compact(CompactionRequest("default", *place, CompactionType.MAJOR, "ann", "desk"))
        assert response.accepted is not bool(standing)
        if standing:
            assert response.id == min(standing)
        else:
            assert response.id == max(self.entries, default=0) + 1
            self.entries[response.id] = Entry(place)

    @rule(worker=st.sampled_from(["a-1", "a-2", "b-1"]))
    def take_one(self, worker: str) -> None:
        self.take(worker)

    def take(self, worker: str) -> None:
        oldest = min((id for id, e in self.entries.items() if e.state == State.INITIATED), default=None)
        found = self.store.find_next_compact(worker)
        assert (found and found.id) == oldest
        if oldest is not None:
            entry, self.latest_taken = self.entries[oldest], oldest
            entry.state, entry.worker, entry.started = State.WORKING, worker, self.clock.ms

    @precondition(lambda self: any(e.state == State.WORKING and e.txn is None for e in self.entries.values()))
    @rule(data=st.data())
    def begin_compaction(self, data: st.DataObject) -> None:
        waiting = [id for id, e in self.entries.items() if e.state == State.WORKING and e.txn is None]
        self.compact_in_transaction(data.draw(st.sampled_from(waiting)))

    @rule(place=st.sampled_from(PLACES))
    def compact_at_once(self, place: Place) -> None:
        """All that a worker does with the oldest request, without anybody in between."""
        self.ask(place)
        if not any(e.state == State.INITIATED for e in self.entries.values()):
            return
        self.take("a-1")
        id = self.latest_taken
        self.compact_in_transaction(id)
        self.done(id)
        txn_id = self.entries[id].txn
        assert txn_id is not None
        self.end_transaction(txn_id, True)

    def compact_in_transaction(self, id: int) -> None:
        entry = self.entries[id]
        entry.txn = self.begun(TxnType.COMPACTION)
        [valid] = self.store.get_valid_write_ids([f"default.{entry.place[0]}"], self.store.get_valid_txns(entry.txn))
        entry.highest = valid.for_compaction().high_watermark
        open_ids = [w.write_id for w in self.of_table(entry.place[0]) if w.fate == OPEN and w.write_id]
        assert entry.highest < min(open_ids, default=10**9)
        self.store.update_compactor_state(id, entry.txn, entry.highest)
        self.compactors.add(entry.txn)

    @precondition(lambda self: any(e.state == State.WORKING and e.txn for e in self.entries.values()))
    @rule(data=st.data())
    def say_done(self, data: st.DataObject) -> None:
        self.done(
            data.draw(st.sampled_from([id for id, e in self.entries.items() if e.state == State.WORKING and e.txn]))
        )

    def done(self, id: int) -> None:
        self.store.mark_compacted(id)
        entry = self.entries[id]
        entry.state, entry.worker = State.READY_FOR_CLEANING, None

    @precondition(lambda self: self.compactors)
    @rule(data=st.data(), commits=st.booleans())
    def end_compaction(self, data: st.DataObject, commits: bool) -> None:
        self.end_transaction(data.draw(st.sampled_from(sorted(self.compactors))), commits)

    def end_transaction(self, txn_id: int, commits: bool) -> None:
        self.compactors.remove(txn_id)
        own = [e for e in self.entries.values() if e.txn == txn_id]
        if commits:
            self.store.commit_txn(txn_id)
            for entry in own:
                if entry.state in (State.WORKING, State.READY_FOR_CLEANING):
                    entry.newest_at_commit = self.newest
        else:
            self.store.abort_txns([txn_id])

    @precondition(lambda self: any(e.state == State.WORKING for e in self.entries.values()))
    @rule(data=st.data(), state=st.sampled_from([State.FAILED, State.REFUSED]))
    def give_up(self, data: st.DataObject, state: State) -> None:
        id = data.draw(st.sampled_from([id for id, e in self.entries.items() if e.state == State.WORKING]))
        entry = self.entries[id]
        call = self.store.mark_failed if state == State.FAILED else self.store.mark_refused
        with pytest.raises(CompactionError):
            call(id, "why", worker="nobody")
        call(id, "why", worker=entry.worker)
        entry.state = state

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.entries)))
        entry = self.entries[id]
        [word] = self.store.abort_compactions([id]).values()
        assert word.startswith("Successfully") is (entry.state == State.INITIATED)
        if entry.state == State.INITIATED:
            entry.state = State.ABORTED

    @rule(host=st.sampled_from(["a", "b", None]))
    def give_back(self, host: str | None) -> None:
        def is_given_back(e: Entry) -> bool:
            if host is not None:
                return e.state == State.WORKING and e.worker is not None and e.worker.startswith(f"{host}-")
            undone = e.txn is not None and e.txn not in self.compactors and e.newest_at_commit is None
            silent = e.state == State.WORKING and e.started is not None and e.started < self.clock.ms - TIMEOUT_MS
            return silent or (e.state == State.READY_FOR_CLEANING and undone)

        given = [e for e in self.entries.values() if is_given_back(e)]
        if host is not None:
            assert self.store.revoke_from_local_workers(host) == len(given)
        else:
            assert self.store.revoke_timed_out_workers(TIMEOUT_MS) == len(given)
        for entry in given:
            entry.state, entry.worker, entry.started, entry.txn, entry.highest = State.INITIATED, None, None, None, None
            entry.newest_at_commit = None

    # --- the cleaner and the housekeeper -----------------------------------------------------------------------------

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), keeps=st.booleans())
    def clean(self, data: st.DataObject, keeps: bool) -> None:
        id = data.draw(st.sampled_from(self.waiting()))
        entry = self.entries[id]
        self.store.mark_cleaned(id, keep_aborted=keeps)
        entry.state = State.SUCCEEDED
        for write in self.writes.values():
            is_covered = write.place == entry.place and write.write_id and write.write_id <= (entry.highest or 0)
            if is_covered and (write.fate == COMMITTED or (write.fate == ABORTED and not keeps)):
                write.is_compacted = True

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), seconds=st.integers(0, 100))
    def put_off(self, data: st.DataObject, seconds: int) -> None:
        entry = self.entries[id := data.draw(st.sampled_from(self.waiting()))]
        entry.retries, entry.retry_at = entry.retries + 1, self.clock.ms + 1000 * seconds
        self.store.set_cleaner_retry(id, retry_at_ms=entry.retry_at, message="busy")

    @precondition(lambda self: any(self.left_behind().values()))
    @rule(data=st.data())
    def clean_aborted(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from([p for p, ids in self.left_behind().items() if ids]))
        self.forget(place, data.draw(st.sets(st.sampled_from(sorted(self.left_behind()[place])), min_size=1)))

    def forget(self, place: Place, gone: set[int]) -> None:
        self.store.forget_aborted("default", *place, gone)
        for write in self.writes.values():
            if write.place == place and write.write_id in gone:
                write.is_compacted = True

    @rule(commits=st.booleans())
    def settle(self, commits: bool) -> None:
        """Everybody ends, and what was aborted is cleaned: the next ones begin on a table that is at rest."""
        for write in [w for w in self.writes.values() if w.fate == OPEN]:
            self.end(write, commits)
        for reader in sorted(self.readers):
            self.store.commit_txn(reader)
        self.readers.clear()
        for place, ids in self.left_behind().items():
            self.forget(place, ids)
        self.clock.pass_seconds(50)

    @invariant()
    def house_is_kept(self) -> None:
        """At every step: whatever may be forgotten is."""
        if hasattr(self, "store"):
            self.store.clean_empty_aborted_txns()
            self.store.prune_txn_to_write_id()

    @rule(seconds=st.sampled_from([1, 50, 4000]))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.pass_seconds(seconds)

    def left_behind(self) -> dict[Place, set[int]]:
        return {
            place: {
                w.write_id
                for w in self.writes.values()
                if w.place == place and w.fate == ABORTED and w.write_id and not w.is_compacted
            }
            for place in PLACES
        }

    # --- what must be so ---------------------------------------------------------------------------------------------

    @invariant()
    def the_queue_is_that_of_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        shown = {one.id: one for one in self.store.show_compactions(CompactionFilter())}
        assert list(shown) == sorted(self.entries, reverse=True)
        for id, entry in self.entries.items():
            one = shown[id]
            assert (one.state, (one.table, one.partition)) == (entry.state, entry.place)
            assert (one.txn_id, one.highest_write_id) == (entry.txn, entry.highest)
            if entry.state in (State.WORKING, State.READY_FOR_CLEANING):
                assert (one.worker, one.retries) == (entry.worker, entry.retries)

    @invariant()
    def the_cleaner_gets_what_nobody_sees(self) -> None:
        if not hasattr(self, "store"):
            return
        min_open = self.store.min_open_txn()
        assert min_open == min([*self.open_txns(), self.newest + 1])
        assert [one.id for one in self.store.find_ready_to_clean(min_open, 0)] == self.waiting()

    @invariant()
    def what_was_written_and_aborted_is_on_record_until_it_is_cleaned(self) -> None:
        if not hasattr(self, "store"):
            return
        found = {(one.table, one.partition): set(one.write_ids) for one in self.store.aborted_components()}
        assert found == {place: ids for place, ids in self.left_behind().items() if ids}
        due = self.store.find_potential_compactions(aborted_threshold=10**6, aborted_age_ms=None)
        written = {w.place for w in self.writes.values() if w.fate == COMMITTED and w.write_id and not w.is_compacted}
        assert {(one.table, one.partition) for one in due} == written

    @invariant()
    def every_reader_sees_what_it_saw(self) -> None:
        if not hasattr(self, "store"):
            return
        for reader in self.readers.values():
            for name in "tp":
                [valid] = self.store.get_valid_write_ids([f"default.{name}"], reader.txns)
                assert all(valid.is_valid(w) for w in reader.seen[name])
                still = {w.write_id for w in self.of_table(name) if not (w.fate == ABORTED and w.is_compacted)}
                assert not any(valid.is_valid(w) for w in reader.hidden[name] & still)
                later = {w.write_id for w in self.of_table(name)} - reader.seen[name] - reader.hidden[name]
                assert not any(valid.is_valid(w) for w in later & still if w is not None)

    @invariant()
    def whoever_begins_now_sees_what_is_committed(self) -> None:
        if not hasattr(self, "store"):
            return
        for name in "tp":
            [valid] = self.store.get_valid_write_ids([f"default.{name}"], self.store.get_valid_txns())
            for write in self.of_table(name):
                assert write.write_id is not None
                if write.fate == COMMITTED:
                    assert valid.is_valid(write.write_id)
                elif not write.is_compacted:
                    assert not valid.is_valid(write.write_id)


@pytest.mark.needs("cleans compactions", "own clock")
def test_random_histories_of_compactions(kind: StoreKind) -> None:
    machine = type("CompactingHere", (Compacting,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(8), stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
