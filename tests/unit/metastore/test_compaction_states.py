"""The states of a compaction, and how they follow each other."""

from __future__ import annotations

import pytest

from acidsql.metastore.model import TRANSITIONS
from acidsql.metastore.model import CompactionState as State


def test_letters_and_words_are_hives() -> None:
    assert {state.value: str(state) for state in State} == {
        "i": "initiated",
        "w": "working",
        "r": "ready for cleaning",
        "s": "succeeded",
        "f": "failed",
        "a": "did not initiate",
        "c": "refused",
        "x": "aborted",
    }


@pytest.mark.parametrize("state", State)
def test_every_state_of_the_queue_can_fail_and_none_of_the_history_changes(state: State) -> None:
    following = TRANSITIONS.get(state, ())
    assert state not in following
    assert bool(following) is (state in (State.INITIATED, State.WORKING, State.READY_FOR_CLEANING))
    assert not following or State.FAILED in following


def test_where_each_state_comes_from() -> None:
    assert State.WORKING.origins == (State.INITIATED,)
    assert State.READY_FOR_CLEANING.origins == (State.WORKING,)
    assert State.SUCCEEDED.origins == (State.READY_FOR_CLEANING,)
    assert State.ABORTED.origins == (State.INITIATED,)
    assert State.DID_NOT_INITIATE.origins == ()
