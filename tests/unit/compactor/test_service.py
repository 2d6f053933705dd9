"""``acid.compactor``: its threads, what is worked on for a statement that waits, and interruptions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from acidsql.compactor.service import Compactor
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import CompactionRequest
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import MAJOR, World

PATIENCE = 60.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.table()
    made.insert(1)
    made.insert(2)
    yield made
    made.close()


@pytest.fixture
def compactor(world: World) -> Iterator[Compactor]:
    made = Compactor(world.context)
    yield made
    made.stop()


class TestWorkForAStatementThatWaits:
    def test_is_done_in_a_thread(self, world: World, compactor: Compactor) -> None:
        id = world.ask()
        assert compactor.work_on(id).wait(PATIENCE)
        assert world.states() == [State.READY_FOR_CLEANING]

    def test_goes_on_when_nobody_waits_any_more(self, world: World, compactor: Compactor) -> None:
        release, begun = threading.Event(), threading.Event()
        mark_compacted = EmbeddedMetastore.mark_compacted

        def slow(*args: Any, **kwargs: Any) -> None:
            begun.set()
            assert release.wait(PATIENCE)
            mark_compacted(*args, **kwargs)

        with patch.object(EmbeddedMetastore, "mark_compacted", slow):
            done = compactor.work_on(world.ask())
            assert begun.wait(PATIENCE)
            assert not done.wait(0)
            assert world.states() == [State.WORKING]
            release.set()
            assert done.wait(PATIENCE)
        assert world.states() == [State.READY_FOR_CLEANING]

    def test_is_left_to_the_workers_of_the_session_where_they_run(self, world: World, compactor: Compactor) -> None:
        world.settings.set("hive.compactor.initiator.on", "false")
        compactor.start()
        assert not compactor.work_on(world.ask()).is_set()


class TestAnInterruption:
    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_leaves_a_failed_entry_and_nothing_else(
        self, world: World, compactor: Compactor, kind: type[BaseException]
    ) -> None:
        world.ask()
        before = world.names()
        with patch.object(EmbeddedMetastore, "set_job_id", side_effect=kind), pytest.raises(kind):
            compactor.run_once()
        [entry] = world.entries()
        assert (entry.state, entry.error) == (State.FAILED, f"The worker was interrupted: {kind.__name__}")
        assert world.names() == before
        assert world.store.show_txns() == []
        world.compact()
        assert world.content() == [1, 2]

    @pytest.mark.parametrize("step", ["find_next_compact", "open_txns"])
    def test_that_comes_before_the_answer_of_the_store_is_kept_leaves_nothing_either(
        self, world: World, compactor: Compactor, step: str
    ) -> None:
        """The request stayed as one that is being worked on, for a day, and the transaction open."""
        world.ask()
        made = getattr(EmbeddedMetastore, step)

        def interrupted(*args: object, **kwargs: object) -> object:
            answer = made(*args, **kwargs)
            signal.raise_signal(signal.SIGINT)
            return answer

        with patch.object(EmbeddedMetastore, step, interrupted), pytest.raises(KeyboardInterrupt):
            compactor.run_once()
        assert (world.states(), world.store.show_txns()) == ([State.FAILED], [])
        world.compact()
        assert world.content() == [1, 2]


class TestPools:
    def test_have_as_many_workers_as_their_setting_says(self, world: World, compactor: Compactor) -> None:
        settings = {
            "hive.compactor.initiator.on": "false",
            "hive.compactor.worker.threads": "0",
            "hive.compactor.worker.slow.threads": "1",
        }
        for name, text in settings.items():
            world.settings.set(name, text)
        world.table("u")
        world.insert(1, name="u")
        world.insert(2, name="u")
        world.store.compact(CompactionRequest("default", "u", None, MAJOR, "ann", "desk", pool="slow"))
        world.ask()
        compacted = threading.Event()
        mark_compacted = EmbeddedMetastore.mark_compacted

        def told(*args: Any, **kwargs: Any) -> None:
            mark_compacted(*args, **kwargs)
            compacted.set()

        with patch.object(EmbeddedMetastore, "mark_compacted", told):
            compactor.start()
            assert compacted.wait(PATIENCE)
            compactor.stop()
        states = {entry.table: entry.state for entry in world.entries()}
        assert states["t"] == State.INITIATED
        assert states["u"] in (State.READY_FOR_CLEANING, State.SUCCEEDED)
