"""A compaction that takes longer than ``hive.txn.timeout``: it lives as long as its heartbeats, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acidsql.compactor.run import run_tasks
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import TxnState
from tests.unit.compactor.world import World, unversioned

TIMEOUT = 10


@pytest.fixture(params=["hive3", "hive4"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A table that can be compacted, in a store whose clock stands still until a test moves it."""
    made = World(tmp_path, {"acidsql.compactor.layout": request.param, "hive.txn.timeout": f"{TIMEOUT}s"})
    made.table()
    made.insert(1, 2)
    made.insert(3)
    made.delete(2)
    yield made
    made.close()


def slow(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Let something happen after the files are written, and before they are moved to their places."""

    def run(*arguments: Any) -> Any:
        done = run_tasks(*arguments)
        meanwhile()
        return done

    monkeypatch.setattr("acidsql.compactor.compaction.run_tasks", run)


def test_given_heartbeats_when_it_takes_several_times_the_timeout_then_it_is_carried_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[float] = []

    def meanwhile() -> None:
        for _ in range(5):
            world.clock.pass_seconds(TIMEOUT * 0.6)
            while (txn := world.store.show_txns()[0]).heartbeat_ms != world.clock.ms:
                assert txn.state is TxnState.OPEN
                time.sleep(0.01)
            assert world.store.time_out_txns() == []
            passed.append(TIMEOUT * 0.6)

    beating = world.context.heartbeats = Heartbeats(world.store, 0.1)
    slow(monkeypatch, meanwhile)
    try:
        assert world.compact().state == State.READY_FOR_CLEANING
    finally:
        beating.close()
    assert sum(passed) > 2 * TIMEOUT
    world.clean()
    assert unversioned(world.names()) == ["base_0000003"]
    assert (world.states(), world.content()) == ([State.SUCCEEDED], [1, 3])


def test_given_no_heartbeats_when_it_takes_longer_than_the_timeout_then_it_publishes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(p.name for p in world.path().iterdir())
    timed_out: list[int] = []

    def meanwhile() -> None:
        world.clock.pass_seconds(TIMEOUT + 1)
        timed_out.extend(world.store.time_out_txns())

    with monkeypatch.context() as patch:
        slow(patch, meanwhile)
        outcome = world.compact()
    [entry] = world.entries()
    assert timed_out == [entry.txn_id]
    assert (outcome.state, entry.state) == (State.FAILED, State.FAILED)
    assert f"no heartbeat for more than {TIMEOUT} s" in (entry.error or "")
    assert sorted(p.name for p in world.path().iterdir()) == before
    assert world.store.show_locks() == []
    assert [txn for txn in world.store.show_txns() if txn.state is TxnState.OPEN] == []
    assert world.content() == [1, 3]
    assert world.compact().state == State.READY_FOR_CLEANING
    world.clean()
    assert unversioned(world.names()) == ["base_0000003"]
    assert world.content() == [1, 3]
