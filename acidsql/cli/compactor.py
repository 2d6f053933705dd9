"""``acidsql compactor``: the services of the compactor as a separate process."""

from __future__ import annotations

import getpass
import logging
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.cli.connection import Connection
from acidsql.cli.interrupt import KILLED
from acidsql.cli.streams import StandardOutput
from acidsql.compactor import Compactor, RoundResult, WorkerContext
from acidsql.errors import AcidError, UnsupportedError
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import CompactionState
from acidsql.metastore.protocol import Metastore
from acidsql.output import describe
from acidsql.session import attach_files, open_store, start_spark
from acidsql.settings import Settings

logger = logging.getLogger("acidsql")

_MOMENT = 0.2
"""Seconds after which whoever waits for a round looks for signals."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class LazySpark:
    """A Spark session that is started on first use and stopped with the compactor."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._session: SparkSession | None = None

    def get(self) -> SparkSession:
        """The session; from then on file systems that are not local are accessed through it."""
        with self._lock:
            if self._session is None:
                logger.info("starting Spark")
                where = self._connection
                self._session = start_spark(where.warehouse, master=where.master, conf=where.for_spark)
                attach_files(self._session)
            return self._session

    def attach(self) -> None:
        """For :func:`acidsql.fs.attach_when_needed`."""
        self.get()

    def stop(self) -> None:
        """Stop Spark if it was started."""
        fs.attach_when_needed(None)
        if self._session is not None:
            fs.detach()
            self._session.stop()


def run_compactor(connection: Connection, *, once: bool = False, with_spark: bool = True) -> int:
    """Run the compactor until it receives a signal, or for one round.

    Args:
        connection: Where the tables are.
        once: Run one round and print a summary.
        with_spark: Whether Spark may be started when needed.

    Returns:
        The exit code: 0; 1 when the store could not be opened or, with ``once``, a compaction has failed.
    """
    try:
        with _log_lines(), _until_signal() as stop, _opened(connection, with_spark) as compactor:
            return _one_round(compactor, stop) if once else _serve(compactor, stop)
    except AcidError as e:
        print(f"acidsql: {describe(e)}", file=sys.stderr)
        return 1


def _serve(compactor: Compactor, stop: threading.Event) -> int:
    compactor.start()
    logger.info("compactor %s started", compactor.name)
    stop.wait()
    compactor.context.metastore.hurry()
    logger.info("stopping after the compactions in progress")
    compactor.stop(None)
    logger.info("stopped")
    return 0


def _one_round(compactor: Compactor, stop: threading.Event) -> int:
    """In a separate thread: the main one handles signals, and starting Spark in it replaces its handlers."""
    results: list[RoundResult | Exception] = []

    def run() -> None:
        try:
            results.append(compactor.run_once(stop))
        except Exception as e:
            results.append(e)

    thread = threading.Thread(target=run, name="acidsql-round")
    thread.start()
    while thread.is_alive():
        thread.join(_MOMENT)
        if stop.is_set():
            compactor.context.metastore.hurry()
    [result] = results
    if isinstance(result, Exception):
        raise result
    states = Counter(outcome.state for outcome in result.outcomes)
    compacted, failed = states[CompactionState.READY_FOR_CLEANING], states[CompactionState.FAILED]
    print(
        f"initiated {result.initiated}, compacted {compacted}, refused {states[CompactionState.REFUSED]},"
        f" failed {failed}, cleaned {result.cleaned}",
        file=StandardOutput(),
    )
    return 1 if failed else 0


@contextmanager
def _opened(connection: Connection, with_spark: bool) -> Iterator[Compactor]:
    """The compactor of a store with all its resources, which are released at the end."""
    spark = LazySpark(connection) if with_spark else None
    settings = Settings(connection.settings)
    if spark is not None:
        fs.attach_when_needed(spark.attach)
    try:
        store, _ = open_store(connection.warehouse, connection.metastore, settings)
        _require_queue(store)
        heartbeats = Heartbeats(store, store.txn_timeout)
        start = None if spark is None else spark.get
        context = WorkerContext(store, heartbeats, settings, socket.gethostname(), getpass.getuser(), start_spark=start)
        try:
            yield Compactor(context)
        finally:
            heartbeats.close()
            store.close()
    finally:
        if spark is not None:
            spark.stop()


def _require_queue(store: Metastore) -> None:
    """Raises: UnsupportedError when the store does not offer its queue to others: every round would fail."""
    if not store.capabilities.has_open_queue:
        version = store.version
        store.close()
        raise UnsupportedError(
            f"This Hive Metastore, version {version}, hands compactions only to its own workers",
            hint="Run its own workers (hive.compactor.worker.threads).",
        )


@contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set; a second signal ends the process at once.

    What a compaction has written by then is invisible or, in the layout of Hive 3 after the rename, complete with the
    same rows for every reader. Its entry is requeued by the next compactor on this host, or after
    ``hive.compactor.worker.timeout``.
    """
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(KILLED + number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _log_lines() -> Iterator[None]:
    """Log messages of the services on standard error, with timestamps."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
