"""Ctrl-C while a statement runs."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

_PAUSE = 0.1
_LOGGERS = (None, "py4j.clientserver")
"""Where py4j tells of interrupted calls."""


@contextmanager
def interruptible(spark: SparkSession, patience: float = 2.0) -> Iterator[None]:
    """Let Ctrl-C end the running statement: by cancelling its Spark jobs, or by KeyboardInterrupt if it has none.

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
        cancel.join(2 * patience)
        if not (cancelled and in_call):
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    previous = signal.signal(signal.SIGINT, end_statement)
    for one in loggers:
        one.addFilter(_is_relevant)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(_is_relevant)
        signal.signal(signal.SIGINT, previous)


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C came before an error: an interrupted call closes its connection, and may fail in doing so."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


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
    return not (record.exc_info and was_interrupted(record.exc_info[1]))
