"""Ctrl-C, and other signals that a program answers in Python, wait for the end of what must be done whole.

The answer to a signal may be an exception anywhere. Inside of SQLAlchemy it makes it close the connection while a
cursor is alive: SQLite then keeps that connection, and its write lock. Between a call of the store and what its answer
is kept in, nobody would know any more of what the call has made.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

_SIGNALS = tuple(signal.valid_signals())
_Handler = Callable[[int, "FrameType | None"], object]


def interrupt_behind(error: BaseException | None, before: BaseException | None = None) -> KeyboardInterrupt | None:
    """The interrupt that an error has replaced: what was interrupted may fail in putting its things away, as PySpark
    does, which asks for the answer of the job that was cancelled.

    Args:
        error: The error.
        before: Where to stop: what was being handled already when what has failed began.

    Returns:
        It; None where the error is that of nobody's interrupt.
    """
    while error is not None and error is not before:
        if isinstance(error, KeyboardInterrupt):
            return error
        error = error.__context__
    return None


class Deferred:
    """A block from which signals are kept: ``with Deferred(): …``. Their handlers are called at the end of it.

    Only the main thread gets signals: in any other one this does nothing.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._handlers: dict[int, _Handler] = {}
        self._hidden: list[int] = []
        self._pending: list[int] = []

    def __enter__(self) -> Deferred:
        if threading.current_thread() is not threading.main_thread():
            return self
        _under_way.append(self)
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

    def end_unanswered(self) -> list[int]:
        """End the block; the signals that have come are the caller's to answer."""
        self._put_back()
        return self._take(len(self._pending))

    def _take(self, most: int) -> list[int]:
        taken = list(dict.fromkeys(self._pending))[:most]
        self._pending[:] = [number for number in self._pending if number not in taken]
        return taken

    def _end(self) -> None:
        """Put all handlers back before one is called, which may raise an exception."""
        try:
            self._put_back()
            self.answer()
        finally:
            if self._hidden or self._pending:
                self._end()

    def _put_back(self) -> None:
        while self._hidden:
            signal.signal(self._hidden[-1], self._handlers[self._hidden[-1]])
            self._hidden.pop()
        if self in _under_way:
            _under_way.remove(self)

    def end_of_another_thread(self) -> None:
        """Put the handlers back in a child that another thread has forked, where this block never ends."""
        if self._thread != threading.get_ident():
            self._put_back()


_under_way: list[Deferred] = []
"""The blocks that the main thread is in."""


def _after_in_child() -> None:
    for block in _under_way[::-1]:  # the inner ones first: what they have hidden is the outer ones'
        block.end_of_another_thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)
