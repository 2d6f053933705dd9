"""What becomes of a statement in the middle: an error at some step, an answer that is lost, a writer who dies.

Only the thread that drew the fate meets it: the others, and the compactor, work on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore


class Fate(Enum):
    """What becomes of a statement."""

    FAILS = "errors injected"
    """A step before the commit fails; the statement cleans up behind itself."""
    LOST = "answers lost"
    """It is committed, but the writer is told of an error."""
    DIES = "writers dead before the commit"
    """It has published its files, and then nothing more is heard of it: its transaction stays open, its files stay."""


class Interrupted(StorageError):
    """The error of a fate."""


STEPS = {
    LocalFileSystem: ("list", "exists", "mkdirs", "rename", "sync", "write_bytes", "open_write"),
    EmbeddedMetastore: (
        "open_txns",
        "lock",
        "get_latest_txn_in_conflict",
        "get_valid_txns",
        "get_valid_write_ids",
        "allocate_table_write_id",
        "commit_txn",
    ),
}
ENDS = ("commit_txn", "abort_txns", "forget_txn_components", "heartbeat")
"""Whoever is dead sends none of these."""


@dataclass
class Drawn:
    """A fate, and how many steps are left until it comes."""

    fate: Fate
    steps: int
    met: bool = False


class Fates:
    """Puts itself before the steps of the store and of the file system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._here = threading.local()
        for owner, names in STEPS.items():
            for name in names:
                self._wrap(monkeypatch, owner, name)
        for name in set(ENDS) - set(STEPS[EmbeddedMetastore]):
            self._wrap(monkeypatch, EmbeddedMetastore, name)

    @contextmanager
    def of_this_thread(self, fate: Fate | None, steps: int) -> Iterator[None]:
        """A fate for the statement that this thread runs in the block."""
        self._here.drawn = None if fate is None else Drawn(fate, steps)
        try:
            yield
        finally:
            self._here.drawn = None

    def _wrap(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        original = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            drawn: Drawn | None = getattr(self._here, "drawn", None)
            if drawn is None:
                return original(*args, **kwargs)
            return self._meet(drawn, name, lambda: original(*args, **kwargs))

        monkeypatch.setattr(owner, name, step)

    def _meet(self, drawn: Drawn, name: str, go: Any) -> Any:
        if drawn.fate is Fate.DIES:
            drawn.met |= name == "commit_txn"
            if drawn.met and name in ENDS:
                raise Interrupted("the power is gone")
        elif drawn.fate is Fate.LOST:
            if name == "commit_txn" and not drawn.met:
                drawn.met = True
                go()
                raise Interrupted("the answer is lost")
        elif not drawn.met:
            drawn.steps -= 1
            if drawn.steps == 0:
                drawn.met = True
                raise Interrupted(f"injected at {name}")
        return go()
