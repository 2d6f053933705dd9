"""One thread per session: it keeps transactions and locks alive, and ends those of readers that are gone and of the
dead."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from acidsql.errors import AcidError, NoSuchLock
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)

_FIRST_RETRY = 16
"""The part of the usual pause after which a beat that failed is tried again."""


class Heartbeats:
    """Heartbeats for the open transactions of a session, and for its locks of no transaction.

    Args:
        metastore: Where the transactions live.
        timeout: ``hive.txn.timeout`` in seconds; heartbeats go out twice in that time, as Hive's ``DbTxnManager`` does.
    """

    def __init__(self, metastore: Metastore, timeout: float) -> None:
        self._metastore = metastore
        self._pause = max(timeout / 2, 0.05)
        self._lock = threading.Lock()
        self._alive: dict[int, float | None] = {}
        self._held: set[int] = set()
        self._released: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keep_alive(self, txn_id: int) -> Iterator[None]:
        """Send heartbeats for a transaction while the block runs; on from there, if it was pinned in it."""
        self._add(txn_id, None)
        try:
            yield
        finally:
            with self._lock:
                if self._alive.get(txn_id, 0.0) is None:
                    del self._alive[txn_id]

    def pin(self, txn_id: int, lease: float) -> None:
        """Send heartbeats for a reader's transaction until it is released, for ``lease`` seconds at most."""
        self._add(txn_id, time.monotonic() + lease)

    def release(self, txn_id: int) -> None:
        """Mark a pinned transaction as no longer needed. Takes no lock: it is called by the garbage collector."""
        self._released.put(txn_id)

    def hold_lock(self, lock_id: int) -> None:
        """Send heartbeats for a lock of no transaction until it is let go. Its owner meets it where it was lost."""
        with self._lock:
            self._held.add(lock_id)
            self._start()

    def let_lock_go(self, lock_id: int) -> None:
        """Send none any more: the lock is given back."""
        with self._lock:
            self._held.discard(lock_id)

    def end_released(self) -> None:
        """Commit the transactions of readers that are gone."""
        while True:
            try:
                txn_id = self._released.get_nowait()
            except queue.Empty:
                return
            with self._lock:
                known = txn_id in self._alive
                self._alive.pop(txn_id, None)
            if known:
                self._end(txn_id)

    def close(self) -> None:
        """Stop the thread and end all readers' transactions."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        with self._lock:
            pinned = [txn_id for txn_id, lease in self._alive.items() if lease is not None]
            self._alive.clear()
        for txn_id in pinned:
            self._end(txn_id)

    def _end(self, txn_id: int) -> None:
        try:
            self._metastore.commit_txn(txn_id)
        except AcidError as e:
            logger.debug("reader's transaction %s had ended already: %s", txn_id, e)
        except Exception:  # it ends by its time-out; the thread must go on
            logger.exception("reader's transaction %s could not be ended", txn_id)

    def _add(self, txn_id: int, lease: float | None) -> None:
        with self._lock:
            self._alive[txn_id] = lease
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="acidsql-heartbeat", daemon=True)
            self._thread.start()

    def _keep_locks(self) -> None:
        with self._lock:
            held = list(self._held)
        for lock_id in held:
            try:
                self._metastore.heartbeat(lock_id=lock_id)
            except NoSuchLock as e:
                logger.debug("given back meanwhile, or lost: %s", e)

    def _give_up(self, lost: Sequence[int]) -> None:
        """Tell of readers whose transactions were ended by others. A statement meets the error at its next call."""
        for txn_id in lost:
            with self._lock:
                is_pinned = self._alive.get(txn_id) is not None
                if is_pinned:
                    del self._alive[txn_id]
            if is_pinned:
                message = "reader's transaction %s was ended by others, or had timed out: its DataFrames may fail"
                logger.warning(message, txn_id)

    def _run(self) -> None:
        """Beat until the end, whatever goes wrong: all that this process has open dies of one beat that is left out.

        A beat that failed is tried again soon, and later each time, up to the usual pause.
        """
        pause = self._pause
        while not self._stop.wait(pause):
            try:
                self._beat()
                pause = self._pause
            except Exception as e:  # the statement itself meets the error at its next call; the thread must go on
                pause = min(self._pause, self._pause / _FIRST_RETRY if pause == self._pause else pause * 2)
                logger.warning("heartbeat failed: %s", e, exc_info=not isinstance(e, AcidError))

    def _beat(self) -> None:
        now = time.monotonic()
        with self._lock:
            expired = [t for t, lease in self._alive.items() if lease is not None and lease < now]
            for txn_id in expired:
                del self._alive[txn_id]
            alive = list(self._alive)
        if alive:  # before all else: nothing else that fails may cost it
            aborted, unknown = self._metastore.heartbeat_txns(alive)
            self._give_up([*aborted, *unknown])
        self._keep_locks()
        for txn_id in expired:
            self._end(txn_id)
        self.end_released()
        # housekeeping that Hive leaves to its server; here whoever is there does it
        self._metastore.time_out_txns()
        self._metastore.clean_empty_aborted_txns()
