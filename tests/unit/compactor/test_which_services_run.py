"""The services together: which of them run, and when."""

from __future__ import annotations

import threading

import pytest

from acidsql.compactor import Compactor
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import World


@pytest.fixture
def due(world: World) -> World:
    """A table of which a compaction was asked for."""
    world.table()
    world.insert(1)
    world.insert(2)
    world.ask()
    world.settings.set("hive.compactor.initiator.on", "false")
    return world


def services(before: list[threading.Thread]) -> set[str]:
    """The threads of a compactor that was not there before."""
    names = {thread.name for thread in threading.enumerate() if thread not in before}
    return {name for name in names if name.startswith("acidsql-")} - {"acidsql-heartbeat"}


class TestWithoutACleaner:
    """``hive.compactor.cleaner.on`` = false."""

    def test_a_round_compacts_and_leaves_the_files_to_somebody_elses_cleaner(self, due: World) -> None:
        names = due.names()
        due.settings.set("hive.compactor.cleaner.on", "false")
        result = Compactor(due.context).run_once()
        assert ([one.state for one in result.outcomes], result.cleaned) == ([State.READY_FOR_CLEANING], 0)
        assert set(names) < set(due.names())
        assert due.states() == [State.READY_FOR_CLEANING]
        due.settings.set("hive.compactor.cleaner.on", "true")
        assert Compactor(due.context).run_once().cleaned == 1
        assert (due.states(), len(due.names())) == ([State.SUCCEEDED], 1)

    @pytest.mark.parametrize(("is_on", "cleaner"), [("false", set()), ("true", {"acidsql-cleaner"})])
    def test_none_is_started(self, world: World, is_on: str, cleaner: set[str]) -> None:
        world.settings.set("hive.compactor.cleaner.on", is_on)
        world.settings.set("hive.compactor.initiator.on", "false")
        compactor, before = Compactor(world.context), threading.enumerate()
        compactor.start()
        try:
            assert services(before) == {"acidsql-housekeeper", "acidsql-worker-0", *cleaner}
        finally:
            compactor.stop()
        assert services(before) == set()


class Pauses(threading.Event):
    """Notes how long the housekeeper is to wait, and does not wait; after two pauses it is told to stop."""

    def __init__(self, happened: list[object]) -> None:
        super().__init__()
        self.happened = happened

    def wait(self, timeout: float | None = None) -> bool:
        if threading.current_thread().name != "acidsql-housekeeper":
            return super().wait(timeout)
        self.happened.append(timeout)
        if len(self.happened) > 2:
            self.set()
        return self.is_set()


def test_the_housekeeper_begins_after_hive_timedout_txn_reaper_start_and_then_keeps_its_interval(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.settings.set("hive.timedout.txn.reaper.start", "7s")
    world.settings.set("hive.timedout.txn.reaper.interval", "9s")
    happened: list[object] = []
    monkeypatch.setattr("acidsql.compactor.housekeeper.Housekeeper.run", lambda _: happened.append("a round"))
    stop = Pauses(happened)
    compactor = Compactor(world.context, _stop=stop)
    compactor.start()
    stop.wait()
    compactor.stop()
    assert happened == [7.0, "a round", 9.0]
