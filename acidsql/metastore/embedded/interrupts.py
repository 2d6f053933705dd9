"""Ctrl-C during a transaction of the store comes after it.

An interrupt inside of SQLAlchemy makes it close the connection while a cursor is alive. SQLite then keeps the
connection, and its write lock, until the process ends: nobody could write to the store any more.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred() -> Iterator[list[int]]:
    """Keep SIGINT from the block; its handler is called at the end of it. Only the main thread gets signals.

    Yields:
        The signals that have come so far: a block that waits can end early.
    """
    pending: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield pending
        return

    def keep(number: int, frame: FrameType | None) -> None:
        pending.append(number)

    signal.signal(signal.SIGINT, keep)
    try:
        yield pending
    finally:
        signal.signal(signal.SIGINT, handler)
        if pending:
            handler(pending[0], None)
