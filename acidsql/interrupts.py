"""Ctrl-C, and other signals that a program answers in Python, wait for the end of what must be done whole.

The answer to a signal may be an exception anywhere. Inside of SQLAlchemy it makes it close the connection while a
cursor is alive: SQLite then keeps that connection, and its write lock. Between a call of the store and what its answer
is kept in, nobody would know any more of what the call has made.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

_SIGNALS = tuple(signal.valid_signals())
_Handler = Callable[[int, "FrameType | None"], object]


@contextmanager
def deferred() -> Iterator[Sequence[int]]:
    """Keep signals from the block; their handlers are called at the end of it. Only the main thread gets signals.

    Yields:
        Those that have come so far: a block that waits can end early.
    """
    pending: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pending
        return

    def keep(number: int, frame: FrameType | None) -> None:
        pending.append(number)

    handlers: dict[int, _Handler] = {}
    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, keep)
        yield pending
    finally:
        _answer(handlers, list(handlers), pending)


def _answer(handlers: Mapping[int, _Handler], hidden: list[int], pending: list[int]) -> None:
    """Put the handlers back and call those of what has come, one by one: each of them may raise an exception.

    They are called, not their signals raised again: an event loop is told of each signal when it comes
    (``signal.set_wakeup_fd``), and would count it twice.
    """
    try:
        while hidden:
            signal.signal(hidden[-1], handlers[hidden[-1]])
            hidden.pop()
        while pending:
            number = pending[0]
            pending[:] = [other for other in pending if other != number]
            handlers[number](number, sys._getframe())
    finally:
        if hidden or pending:
            _answer(handlers, hidden, pending)
