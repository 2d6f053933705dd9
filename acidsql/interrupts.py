"""Ctrl-C, and other signals that a program answers in Python, wait for the end of what must be done whole.

The answer to a signal may be an exception anywhere. Inside of SQLAlchemy it makes it close the connection while a
cursor is alive: SQLite then keeps that connection, and its write lock. Between a call of the store and what its answer
is kept in, nobody would know any more of what the call has made.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

_SIGNALS = tuple(signal.valid_signals())
_Handler = Callable[[int, "FrameType | None"], object]


class Deferred:
    """A block from which signals are kept: ``with Deferred(): …``. Their handlers are called at the end of it.

    Only the main thread gets signals: in any other one this does nothing.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, _Handler] = {}
        self._hidden: list[int] = []
        self._pending: list[int] = []

    def __enter__(self) -> Deferred:
        if threading.current_thread() is not threading.main_thread():
            return self
        try:
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    self._hidden.append(number)
                    signal.signal(number, self._keep)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self._pending.append(number)

    def answer(self) -> None:
        """Call the handlers of what has come, one by one, now: each of them may raise an exception.

        They are called, not their signals raised again: an event loop is told of each signal when it comes
        (``signal.set_wakeup_fd``), and would count it twice.
        """
        while self._pending:
            [number] = self._take(1)
            self._handlers[number](number, sys._getframe())

    def take(self) -> list[int]:
        """The signals that have come, which are then not answered here."""
        return self._take(len(self._pending))

    def _take(self, most: int) -> list[int]:
        taken = list(dict.fromkeys(self._pending))[:most]
        self._pending[:] = [number for number in self._pending if number not in taken]
        return taken

    def _end(self) -> None:
        """Put all handlers back before one is called, which may raise an exception."""
        try:
            while self._hidden:
                signal.signal(self._hidden[-1], self._handlers[self._hidden[-1]])
                self._hidden.pop()
            self.answer()
        finally:
            if self._hidden or self._pending:
                self._end()
