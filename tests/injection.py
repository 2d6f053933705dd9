"""Errors injected into the steps of whatever runs: the Nth call of a store or of a file system fails.

It fails at its entry, or right after it was done: the caller then cannot know that it was.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from acidsql.errors import StorageError

READS = frozenset(
    (
        *("list", "exists", "open_read", "read_bytes"),
        *("find_table", "get_table", "list_partitions", "on_behalf_of"),
        *("get_valid_txns", "get_valid_write_ids", "get_latest_txn_in_conflict", "min_open_txn", "min_unseen_txn"),
        *("find_ready_to_clean", "aborted_components", "aborted_compactions"),
    )
)
"""Steps that change nothing: an error after one of them is the same as one before it, so it is injected once."""


class Injected(StorageError):
    """The error that is injected."""


class Injector:
    """Counts steps, and fails the Nth.

    Attributes:
        fired: The step that has failed; None as long as none has.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        steps: Mapping[type, Iterable[str]],
        *,
        kills: bool = False,
        counted: Collection[str] | None = None,
        error: type[BaseException] | None = None,
    ) -> None:
        """
        Args:
            monkeypatch: Takes the injector out again.
            steps: Names of the methods that are steps, by their class.
            kills: Once one has failed, all further ones of the block fail, too: as if its process had been killed.
            counted: The steps at which it begins; all, when left out.
            error: What is raised; :class:`Injected`, when left out.
        """
        self._kills, self._counted, self._error = kills, counted, error or Injected
        self._countdown, self._after, self._is_on = 0, False, False
        self.fired: str | None = None
        for owner, names in steps.items():
            for name in names:
                self._wrap(monkeypatch, owner, name)

    def _wrap(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        original = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            if self._is_on and self._kills and self.fired is not None:
                raise Injected(f"killed at {self.fired}")
            is_step = self._counted is None or name in self._counted
            if self._is_on and is_step and self.fired is None and not (self._after and name in READS):
                self._countdown -= 1
                if not self._countdown:
                    self.fired = name
                    if self._after:
                        original(*args, **kwargs)
                    raise self._error(f"injected at {name}")
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, step)

    def arm(self, number: int, after: bool) -> None:
        """Let a step fail, counted from 1: before it is done or, of those that change something, ``after``."""
        self._countdown, self._after, self.fired = number, after, None

    @contextmanager
    def on(self) -> Iterator[None]:
        """Count the steps of the block; the error ends it, and goes no further."""
        self._is_on = True
        try:
            yield
        except (Injected, self._error):
            assert self.fired is not None
        finally:
            self._is_on = False


class Killed(BaseException):
    """The process ended here: nothing that comes after it is done, no clean-up either."""


class Mortal:
    """Lets whatever runs die before its Nth step: that step and all that come after it do not happen.

    Attributes:
        died: The step before which it died; None as long as it has not.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: Mapping[type, Iterable[str]]) -> None:
        self._countdown, self._is_on = 0, False
        self._thread = threading.get_ident()
        self.died: str | None = None
        for owner, names in steps.items():
            for name in names:
                self._wrap(monkeypatch, owner, name)

    def _wrap(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        original = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            if self._is_on and threading.get_ident() == self._thread:
                self._countdown -= 1
                if self._countdown <= 0:
                    self.died = self.died or name
                    raise Killed(f"killed before {name}")
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, step)

    @contextmanager
    def before(self, number: int) -> Iterator[None]:
        """Die before a step of the block, counted from 1."""
        self._countdown, self.died, self._is_on = number, None, True
        try:
            yield
        except Killed:
            assert self.died is not None
        finally:
            self._is_on = False
