"""Ctrl-C while a statement runs."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

_PATIENCE = 10.0
"""Seconds that the JVM gets to cancel jobs."""


@contextmanager
def interruptible(spark: SparkSession) -> Iterator[None]:
    """Let Ctrl-C cancel Spark's running jobs and raise KeyboardInterrupt where Python stands.

    PySpark's own handler asks the JVM to cancel from inside the handler, on the very connection whose answer the
    interrupted call waits for; that fails, and the jobs run on. Here a thread asks, on a connection of its own, and is
    waited for: py4j closes all connections when a call of its own is interrupted.
    """

    def cancel_and_raise(number: int, frame: FrameType | None) -> None:
        cancel = threading.Thread(target=spark.sparkContext.cancelAllJobs, daemon=True)
        cancel.start()
        cancel.join(_PATIENCE)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    previous = signal.signal(signal.SIGINT, cancel_and_raise)
    logging.getLogger().addFilter(_is_worth_telling)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(_is_worth_telling)
        signal.signal(signal.SIGINT, previous)


def _is_worth_telling(record: logging.LogRecord) -> bool:
    """Not py4j's note, with all frames, that one of its calls was interrupted: the user knows."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")
