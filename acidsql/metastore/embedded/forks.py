"""Forks of this process, and why no thread may use the database during one.

SQLite keeps in memory which file locks its process holds. A child gets a copy of that memory, but not the locks: it
would believe to hold those of its parent, and wait for a writer that does not exist in it. So a fork waits until the
calls under way have ended, the connections are closed before it, and calls that come meanwhile wait until it is done.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from acidsql.interrupts import Deferred


class _Mine(threading.local):
    calls = 0


class _Gate:
    """Lets any number of calls in, or any number of forks, but never both.

    A thread that is in already is let in again: a fork waits for the call that it is in.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._mine = _Mine()
        self._calls = 0
        self._forks = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        with self._changed:
            while self._forks and not self._mine.calls:
                self._changed.wait()
            self._calls += 1
            self._mine.calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._mine.calls -= 1
                self._changed.notify_all()

    def begin_fork(self) -> None:
        with self._changed:
            self._forks += 1
            while self._calls > self._mine.calls:  # it would wait for itself for ever
                self._changed.wait()

    def end_fork(self) -> None:
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()


_gate = _Gate()


def no_fork() -> AbstractContextManager[None]:
    """A context in which this process is not forked."""
    return _gate.call()


def before_forks(close_connections: Callable[[], None]) -> None:
    """Have a function called before each fork, when no call is under way."""

    def before() -> None:
        try:
            _guarded()
        except BaseException:  # Python passes over what is raised here, and goes on to fork
            _guarded()
            raise
        finally:
            _gate.begin_fork()
            _forking.add(threading.get_ident())
            close_connections()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


_guards: dict[int, Deferred] = {}
"""By thread: a signal's handler that raises would leave the gate as it is, and the exception would be passed over."""
_forking: set[int] = set()
"""The threads that have closed the gate."""


def _guarded() -> None:
    guard = _guards[threading.get_ident()] = Deferred()
    guard.__enter__()


_SOON = 0.05
"""Seconds after which signals that came during a fork come once more: it is over then."""


def _after_in_parent() -> None:
    if threading.get_ident() in _forking:
        _forking.discard(threading.get_ident())
        _gate.end_fork()
    for number in _came_meanwhile():
        # not the signal itself: if its handler is not there any more by then, it would end the process
        threading.Timer(_SOON, _thread.interrupt_main, (number,)).start()


def _after_in_child() -> None:
    global _gate
    _gate = _Gate()  # the other threads, and whatever they were about to do with the old one, are not in this process
    _came_meanwhile()
    _guards.clear()
    _forking.clear()


def _came_meanwhile() -> list[int]:
    guard = _guards.pop(threading.get_ident(), None)
    return [] if guard is None else guard.end_unanswered()
