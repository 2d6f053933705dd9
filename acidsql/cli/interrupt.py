"""Ctrl-C, and the signals that end the process, while a statement runs."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

from acidsql.interrupts import interrupt_behind

_PAUSE = 0.1
_ANSWER = 2.0
"""Seconds that Spark has for its answers, beside those of waiting for a job."""
_LOGGERS = (None, "py4j.clientserver")
"""Where py4j tells of interrupted calls."""


_ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
KILLED = 128
"""The exit code of a process killed by a signal is this plus the signal's number."""


class Terminated(KeyboardInterrupt):
    """The process is to end: an interrupt that ends no statement alone, but all of them. A transaction is rolled back.

    Attributes:
        code: The exit code.
    """

    def __init__(self, number: int, more: str = "") -> None:
        super().__init__("; ".join(filter(None, [f"ended by {signal.Signals(number).name}", more])))
        self.code = KILLED + number


@contextmanager
def interruptible(spark: SparkSession, patience: float = 2.0) -> Iterator[None]:
    """Let Ctrl-C end the running statement: by cancelling its Spark jobs, or by KeyboardInterrupt if it has none.

    SIGTERM and SIGHUP, where nobody answers or ignores them, do that too, and raise :class:`Terminated`; a second one
    ends the process at once.

    PySpark's own handler cancels from inside the handler, on the connection that the interrupted call is waiting on:
    that fails, and the jobs continue. Here a thread cancels them on its own connection. The call then ends with Spark's
    error. It is not interrupted as well, because py4j reacts to an interrupt by closing connections, including those
    that clean up after the statement.

    Args:
        spark: The session.
        patience: Seconds to wait for an interrupted JVM call, which may still be planning, to start a job that can be
            cancelled.
    """

    def end_statement(number: int, frame: FrameType | None) -> None:
        in_call = _waits_for_jvm(frame)
        cancelled: list[int] = []
        cancel = threading.Thread(
            target=lambda: cancelled.extend(_cancel_jobs(spark, patience if in_call else 0.0)), daemon=True
        )
        cancel.start()
        cancel.join(patience + _ANSWER)
        if number != signal.SIGINT:
            raise Terminated(number)
        if not (cancelled and in_call):
            raise KeyboardInterrupt

    def end_process(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        end_statement(number, frame)

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    previous = {signal.SIGINT: signal.signal(signal.SIGINT, end_statement)}
    for number in _ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:
            previous[number] = signal.signal(number, end_process)
    for one in loggers:
        one.addFilter(_is_relevant)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(_is_relevant)
        for number, handler in previous.items():
            signal.signal(number, handler)


class KeptInterrupts:
    """Ctrl-C is kept while the block runs, but where :meth:`answered` says: elsewhere nobody would catch it."""

    def __init__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()  # others get no signals
        self._answer = signal.getsignal(signal.SIGINT)
        self._has_come = False

    def __enter__(self) -> KeptInterrupts:
        self.keep()
        return self

    def __exit__(self, *error: object) -> None:
        self._set(self._answer)

    def keep(self) -> None:
        """Keep what comes from now on."""
        self._set(self._keep)

    def forget(self) -> None:
        """Drop what has been kept."""
        self._has_come = False

    @contextmanager
    def answered(self) -> Iterator[None]:
        """A block that Ctrl-C ends, also one that has been kept.

        Raises:
            KeyboardInterrupt: When it has come already.
        """
        try:
            self._set(self._answer)
            if self._has_come:
                raise KeyboardInterrupt
            yield
        finally:
            self.forget()
            self.keep()

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self._has_come = True

    def _set(self, handler: Callable[[int, FrameType | None], object] | int | None) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, handler)


def _cancel_jobs(spark: SparkSession, patience: float) -> list[int]:
    """Cancel the running jobs, or the first to start within ``patience`` seconds; returns their ids."""
    until = time.monotonic() + patience
    while True:
        running = list(spark.sparkContext.statusTracker().getActiveJobsIds())
        if running:
            spark.sparkContext.cancelAllJobs()
        if running or time.monotonic() >= until:
            return running
        time.sleep(_PAUSE)


def _waits_for_jvm(frame: FrameType | None) -> bool:
    """Whether a signal interrupted a call to the JVM."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("py4j."):
            return True
        frame = frame.f_back
    return False


def _is_relevant(record: logging.LogRecord) -> bool:
    """False for py4j's messages, with a stack trace, that one of its calls was interrupted."""
    return not (record.exc_info and interrupt_behind(record.exc_info[1]))
