"""The services go on, whatever goes wrong in a round, in a step of it, or with one table: not only with our errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acidsql.compactor import service
from acidsql.compactor.cleaner import Cleaner
from acidsql.compactor.compaction import Limits
from acidsql.compactor.service import Compactor
from acidsql.compactor.worker import Worker
from acidsql.errors import MetastoreError
from acidsql.metastore.embedded import EmbeddedMetastore
from tests.unit.compactor.world import World

PATIENCE = 60.0
INTERVALS = {
    "hive.compactor.check.interval": "10ms",
    "hive.compactor.cleaner.run.interval": "10ms",
    "hive.timedout.txn.reaper.start": "10ms",
    "hive.timedout.txn.reaper.interval": "10ms",
    "hive.compactor.worker.sleep.time": "10ms",
}
ERRORS = [MetastoreError("the store is away"), KeyError("not one of ours"), FileNotFoundError("gone")]
STEPS = {
    "initiator": "find_potential_compactions",
    "cleaner": "find_ready_to_clean",
    "housekeeper": "time_out_txns",
    "worker": "find_next_compact",
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.table()
    yield made
    made.close()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", STEPS)
def test_a_service_goes_on_after_rounds_that_failed(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    world.context.limits = Limits(first_back_off=0.001)
    for setting, value in INTERVALS.items():
        world.settings.set(setting, value)
    rounds, goes_on = 0, threading.Event()
    real = getattr(EmbeddedMetastore, STEPS[name])

    def fails_thrice(*args: Any, **kwargs: Any) -> Any:
        nonlocal rounds
        rounds += 1
        if rounds <= 3:
            raise error
        goes_on.set()
        return real(*args, **kwargs)

    monkeypatch.setattr(EmbeddedMetastore, STEPS[name], fails_thrice)
    compactor = Compactor(world.context)
    compactor.start()
    try:
        assert goes_on.wait(PATIENCE)
    finally:
        compactor.stop()


def test_a_round_that_fails_again_and_again_is_tried_ever_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    compactor, waits = Compactor(world.context), list[float]()

    def wait(timeout: float) -> bool:
        waits.append(timeout)
        if len(waits) == 12:
            compactor._stop.set()
        return compactor._stop.is_set()

    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(compactor._stop, "wait", wait)
    compactor._run_every("test", service.WORKER_SLEEP, fail)
    compactor._threads[0].join(PATIENCE)
    assert waits == sorted(waits)
    assert waits[-1] == world.context.limits.longest_back_off


def test_a_request_that_a_statement_waits_for_ends_the_wait_whatever_happens(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Worker) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Worker, "run_one", fail)
    compactor = Compactor(world.context)
    assert compactor.work_on(1).wait(PATIENCE)
    compactor.stop()


def test_the_housekeeper_does_all_its_steps_whichever_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def fail(*args: object) -> None:
        raise ZeroDivisionError("the first")

    monkeypatch.setattr(EmbeddedMetastore, "time_out_txns", fail)
    monkeypatch.setattr(EmbeddedMetastore, "prune_txn_to_write_id", fail)
    monkeypatch.setattr(EmbeddedMetastore, "clean_empty_aborted_txns", lambda _: done.append("forgotten"))
    monkeypatch.setattr(Cleaner, "sweep_staging", lambda _: done.append("swept"))
    with pytest.raises(ZeroDivisionError):
        world.housekeeper.run()
    assert done == ["forgotten", "swept"]


def test_a_table_that_fails_keeps_neither_initiator_nor_cleaner_from_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.table("u")
    for name in ("t", "u"):
        for number in range(12):
            world.insert(number, name=name)
    real = EmbeddedMetastore.find_table

    def find(self: EmbeddedMetastore, database: str, name: str) -> Any:
        if name == "t":
            raise ZeroDivisionError("not one of ours")
        return real(self, database, name)

    monkeypatch.setattr(EmbeddedMetastore, "find_table", find)
    assert [entry[:2] for entry in world.initiate() if entry[0] == "u"] != []
    monkeypatch.undo()
    world.ask(name="t")
    while Worker(world.context, "worker").run_one() is not None:
        pass
    monkeypatch.setattr(EmbeddedMetastore, "find_table", find)
    assert world.clean() == 1
    assert not [name for name in world.names("u") if name.startswith("delta")]
    assert [name for name in world.names("t") if name.startswith("delta")]
