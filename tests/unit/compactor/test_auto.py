"""A session that looks after what it writes: when it looks, and that no statement waits for it."""

from __future__ import annotations

import threading
import time

import pytest

from acidsql.compactor.auto import AutoCompaction
from acidsql.errors import StorageError
from acidsql.metastore.model import CompactionCandidate


class Looks:
    """Stands in for initiator and worker; both wait where that is asked for."""

    def __init__(self) -> None:
        self.looked_at: list[tuple[str, str | None]] = []
        self.worked = 0
        self.is_due = False
        self.error: Exception | None = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.begun = threading.Event()
        self.auto = AutoCompaction(self.ask, self.work, lambda: 6)

    def ask(self, candidate: CompactionCandidate) -> bool:
        self.begun.set()
        self.may_go_on.wait()
        self.looked_at.append((candidate.table, candidate.partition))
        if self.error is not None:
            raise self.error
        return self.is_due

    def work(self) -> None:
        self.worked += 1


@pytest.fixture
def looks() -> Looks:
    return Looks()


def test_the_first_commit_to_a_place_is_looked_at_and_then_one_of_each_half_threshold(looks: Looks) -> None:
    for _ in range(9):
        looks.auto.wrote("default", "t", [None])
    looks.auto.wrote("default", "p", ["day=1", "day=2"])
    while len(looks.looked_at) < 5:
        time.sleep(0.01)
    looks.auto.stop(None)
    assert looks.looked_at == [*[("t", None)] * 3, ("p", "day=1"), ("p", "day=2")]


def test_what_is_due_is_carried_out(looks: Looks) -> None:
    looks.is_due = True
    looks.begun.clear()
    looks.auto.wrote("default", "t", [None])
    looks.begun.wait()
    looks.auto.stop(None)
    assert looks.worked == 1


def test_a_commit_does_not_wait_for_what_is_under_way_but_the_end_does(looks: Looks) -> None:
    looks.may_go_on.clear()
    for _ in range(20):
        looks.auto.wrote("default", "t", [None])  # returns: nobody waits
    looks.begun.wait()
    stop = threading.Thread(target=looks.auto.stop, args=(None,))
    stop.start()
    assert looks.looked_at == []
    looks.may_go_on.set()
    stop.join()
    assert looks.looked_at[0] == ("t", None)


@pytest.mark.parametrize("error", [StorageError("no"), KeyError("not one of ours")])
def test_a_place_that_cannot_be_looked_at_does_not_end_it(looks: Looks, error: Exception) -> None:
    looks.error = error
    looks.auto.wrote("default", "gone", [None])
    looks.begun.wait()
    looks.begun.clear()
    looks.auto.wrote("default", "t", [None])
    looks.begun.wait()
    looks.auto.stop(None)
    assert looks.looked_at == [("gone", None), ("t", None)]


def test_it_begins_again_after_a_stop(looks: Looks) -> None:
    for table in ("t", "u"):
        looks.begun.clear()
        looks.auto.wrote("default", table, [None])
        looks.begun.wait()
        looks.auto.stop(None)
    assert [table for table, _ in looks.looked_at] == ["t", "u"]
