"""Ctrl-C, and other signals that a program answers in Python, wait for the end of what must be done whole.

The answer to a signal may be an exception anywhere. Inside of SQLAlchemy it makes it close the connection while a
cursor is alive: SQLite then keeps that connection, and its write lock. Between a call of the store and what its answer
is kept in, nobody would know any more of what the call has made.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_SIGNALS = tuple(signal.valid_signals())


@contextmanager
def deferred() -> Iterator[Sequence[int]]:
    """Keep signals from the block; they are raised again at the end of it. Only the main thread gets signals.

    Yields:
        Those that have come so far: a block that waits can end early.
    """
    pending: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pending
        return

    def keep(number: int, frame: FrameType | None) -> None:
        pending.append(number)

    replaced: list[tuple[int, Callable[..., object]]] = []
    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                replaced.append((number, handler))
                signal.signal(number, keep)
        yield pending
    finally:
        _restore(replaced, pending)


def _restore(replaced: list[tuple[int, Callable[..., object]]], pending: list[int]) -> None:
    """Put the handlers back and raise what has come, one by one: each of them may be answered with an exception."""
    try:
        while replaced:
            number, handler = replaced.pop()
            signal.signal(number, handler)
        while pending:
            number = pending[0]
            pending[:] = [other for other in pending if other != number]
            signal.raise_signal(number)
    finally:
        if replaced or pending:
            _restore(replaced, pending)
