"""The harness catches what it is for: each session here is broken on purpose, and must be found out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from acidsql.fs import LocalFileSystem
from acidsql.metastore.model import LockRequest, LockResponse, LockState, Partition
from acidsql.session import AcidSession
from tests.phases import encounter
from tests.phases.encounter import Encounter, Pause, Phase, StuckError, Walk, walk
from tests.phases.matrix import VARIANTS, Failure, Matrix, Pair, Tampering
from tests.phases.statements import BY_NAME, attempt
from tests.phases.verdict import Answer
from tests.phases.warehouses import Warehouses


def failures(warehouses: Warehouses, tampering: Tampering, first: str, second: str, at: str) -> list[Failure]:
    """The failures of a pair, stopped before the first of the steps of that name."""
    matrix = Matrix(warehouses, tampering)
    pair = Pair(VARIANTS["partitioned"], BY_NAME[first], BY_NAME[second])
    phase = next(phase for phase in matrix.phases(pair) if phase.next_step == at)
    return list(matrix.failures(pair, [phase]))


@contextmanager
def partitions_listed_before_the_snapshot(acid: AcidSession) -> Iterator[None]:
    """Partitions are those that there were before the statement began, whenever it asks; its snapshot is later."""
    store = acid.metastore
    listed = store.list_partitions
    known = listed("default", "t")

    def list_partitions(database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        return known if names is None else listed(database, table, names)

    with patch.object(store, "list_partitions", list_partitions):
        yield


@contextmanager
def locks_that_are_not_asked_for(acid: AcidSession) -> Iterator[None]:
    """Every lock is granted at once, and nobody else hears of it; nor is any conflict found at the commit."""
    store = acid.metastore

    def lock(request: LockRequest) -> LockResponse:
        return LockResponse(1, LockState.ACQUIRED)

    with patch.object(store, "lock", lock), patch.object(store, "get_latest_txn_in_conflict", lambda *_, **__: None):
        yield


@contextmanager
def commits_that_are_forgotten(acid: AcidSession) -> Iterator[None]:
    """A statement answers before its transaction is committed, and nobody commits it."""
    with patch.object(acid.metastore, "commit_txn", lambda *_: None):
        yield


@contextmanager
def staging_that_stays(acid: AcidSession) -> Iterator[None]:
    """Directories of a statement's own are left where they are."""
    delete = LocalFileSystem.delete

    def keep(filesystem: LocalFileSystem, path: str) -> None:
        if "_tmp_" not in path:
            delete(filesystem, path)

    with patch.object(LocalFileSystem, "delete", keep):
        yield


def test_a_reader_that_lists_partitions_before_its_snapshot_is_found_out(warehouses: Warehouses) -> None:
    broken = partitions_listed_before_the_snapshot
    [failure] = failures(warehouses, broken, "select", "insert into a new partition", at="open_txns")
    assert "(5, e, 1)" in failure.report.partition("got")[2].partition(";")[0]  # half of what one transaction wrote
    assert "(5, e, 3)" not in failure.report.partition("got")[2].partition(";")[0]


@pytest.mark.long
def test_phases_that_are_spared_come_to_what_the_one_before_came_to(warehouses: Warehouses) -> None:
    pair = Pair(VARIANTS["partitioned"], BY_NAME["select"], BY_NAME["insert into a new partition"])
    matrix = Matrix(warehouses, partitions_listed_before_the_snapshot)
    phases = matrix.phases(pair)
    spared = {f.phase for f in matrix.failures(pair)}
    assert 0 < matrix.spared < len(phases)
    driven = {f.phase for f in matrix.failures(pair, phases)}
    assert spared <= driven
    assert min(p.number for p in spared) == min(p.number for p in driven)
    for phase in driven - spared:
        assert phases[phase.number - 3] in driven  # phases begin with the second one


def test_a_writer_that_takes_no_locks_is_found_out(warehouses: Warehouses) -> None:
    broken = locks_that_are_not_asked_for
    [failure] = failures(warehouses, broken, "overwrite from itself", "insert values", at="allocate_table_write_id")
    assert "(4, d, 1)" not in failure.report.partition("got")[2]


def test_a_statement_that_does_not_commit_is_found_out(warehouses: Warehouses) -> None:
    [failure] = failures(warehouses, commits_that_are_forgotten, "insert values", "cleaner", at="end")
    assert "open transaction" in failure.report


def test_a_statement_that_leaves_its_staging_directory_is_found_out(warehouses: Warehouses) -> None:
    [failure] = failures(warehouses, staging_that_stays, "insert values", "cleaner", at="end")
    assert "left   directory" in failure.report


# --- what it runs on -------------------------------------------------------------------------------------------------


Sessions = tuple[AcidSession, AcidSession]


@pytest.fixture
def sessions(warehouses: Warehouses) -> Iterator[Sessions]:
    warehouses.fresh("partitioned")
    with warehouses.connect({}) as first, warehouses.connect({}) as second:
        yield first, second


def statement(warehouses: Warehouses, name: str) -> Callable[[AcidSession, Pause], Answer]:
    [part] = BY_NAME[name].parts["partitioned"]
    return lambda acid, pause: attempt(part, acid, warehouses.root, pause)


def test_a_statement_has_the_same_phases_each_time(warehouses: Warehouses) -> None:
    walks = []
    for _ in range(2):
        warehouses.fresh("partitioned")
        steps = Walk()
        with warehouses.connect({}) as acid:
            walk(acid, statement(warehouses, "insert values"), steps)
        walks.append(steps.phases)
    assert walks[0] == walks[1]
    names = [phase.next_step for phase in walks[0]]
    assert {"open_txns", "lock", "fs.rename", "commit_txn"} <= set(names)
    assert names[-1] == "end"


def test_the_second_statement_runs_whole_where_the_first_is_stopped(warehouses: Warehouses, sessions: Sessions) -> None:
    seen: list[str] = []

    def second(acid: AcidSession, pause: Pause) -> Answer:
        seen.append("second")
        return ()

    def first(acid: AcidSession, pause: Pause) -> Answer:
        pause("here")
        seen.append("first")
        return ()

    answers = Encounter(*sessions, ("first", "second")).run(first, second, Phase(1, "begin -> here"))
    assert (answers, seen) == (((), ()), ["second", "first"])


def test_a_second_statement_that_waits_for_a_lock_goes_on_after_the_first(
    warehouses: Warehouses, sessions: Sessions
) -> None:
    run, steps = statement(warehouses, "truncate"), Walk()
    with warehouses.connect({}) as alone:
        walk(alone, run, steps)
    published = next(phase for phase in steps.phases if phase.next_step == "fs.rename")
    meeting = Encounter(*sessions, ("truncate", "truncate"))
    assert meeting.run(run, run, published) == ((), ())
    assert meeting.second_has_waited


def test_who_waits_in_vain_is_told_with_who_it_waits_for(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()

    def first(acid: AcidSession, pause: Pause) -> Answer:
        pause("here")
        return ()

    def second(acid: AcidSession, pause: Pause) -> Answer:
        never.wait(30)
        return ()

    monkeypatch.setattr(encounter, "PATIENCE", 0.2)
    with pytest.raises(StuckError, match=r"(?s)update, stopped at .*here.* waited .* for delete to end.*never\.wait"):
        Encounter(*sessions, ("update", "delete")).run(first, second, Phase(1, "begin -> here"))
    never.set()


def test_a_phase_that_is_not_reached_is_an_error(sessions: Sessions) -> None:
    meeting = Encounter(*sessions, ("first", "second"))
    with pytest.raises(AssertionError, match="ended before 9"):
        meeting.run(lambda acid, pause: (), lambda acid, pause: (), Phase(9, "lock -> commit_txn"))


def test_serial_orders_keep_the_order_of_the_parts_of_each_statement() -> None:
    whole = Pair(VARIANTS["partitioned"], BY_NAME["update"], BY_NAME["delete"])
    assert whole.orders() == [(0, 1), (1, 0)]
    parted = replace(whole, first=BY_NAME["drop and create"])
    assert parted.orders() == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
