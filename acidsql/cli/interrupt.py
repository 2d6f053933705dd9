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


@contextmanager
def interruptible(spark: SparkSession, patience: float = 2.0) -> Iterator[None]:
    """Let Ctrl-C end the running statement: by cancelling its Spark jobs, or by KeyboardInterrupt where it has none.

    PySpark's own handler asks the JVM to cancel from inside the handler, on the very connection whose answer the
    interrupted call waits for: that fails, and the jobs run on. Here a thread asks, on a connection of its own. A call
    whose jobs were cancelled then ends with Spark's error. It is not interrupted as well, since py4j answers an
    interrupt by closing connections, and those that clean up behind the statement would be among them.

    Args:
        spark: The session.
        patience: Seconds in which a call to the JVM, still planning perhaps, is expected to start a job that can be
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
    previous = signal.signal(signal.SIGINT, end_statement)
    logging.getLogger().addFilter(_is_worth_telling)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(_is_worth_telling)
        signal.signal(signal.SIGINT, previous)


def _cancel_jobs(spark: SparkSession, patience: float) -> list[int]:
    """Cancel the running jobs, or the first to start within some seconds; which they were."""
    until = time.monotonic() + patience
    while True:
        running = list(spark.sparkContext.statusTracker().getActiveJobsIds())
        if running:
            spark.sparkContext.cancelAllJobs()
        if running or time.monotonic() >= until:
            return running
        time.sleep(_PAUSE)


def _waits_for_jvm(frame: FrameType | None) -> bool:
    """Whether a signal came in the middle of a call to the JVM."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("py4j."):
            return True
        frame = frame.f_back
    return False


def _is_worth_telling(record: logging.LogRecord) -> bool:
    """Not py4j's note, with all frames, that one of its calls was interrupted: the user knows."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")
