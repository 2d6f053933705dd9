"""One thread per session: it keeps transactions and locks alive, commits those of readers that are gone, and aborts
timed-out transactions."""

from __future__ import annotations

import gc
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from acidsql.errors import AcidError, NoSuchLock, NoSuchTransaction, TransactionAborted
from acidsql.interrupts import Deferred
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)

_FIRST_RETRY = 16
"""The part of the usual pause after which a beat that failed is tried again."""


LOOSE_PINS = 50
"""With more pins than this that Python does not hold, Spark's JVM collects garbage to find out which can end."""
COLLECT_ROUNDS = 3
"""What one collection frees may hold what only the next one does."""
COLLECT_ROUND_PAUSE = 0.05
"""Seconds between two of them."""
COLLECT_PAUSE = 30.0
"""Seconds between two such requests, at least."""
LOOSE_SECONDS = 60.0


@dataclass(frozen=True)
class _Pin:
    """A reader's transaction: when its lease ends (monotonic clock), and whether anything still reads its files."""

    ends: float
    is_read: Callable[[], bool] | None


def _is_read(pin: _Pin | None) -> bool:
    return pin is not None and pin.is_read is not None and pin.is_read()


class Heartbeats:
    """Heartbeats for the open transactions of a session, and for its locks of no transaction.

    Args:
        metastore: Where the transactions live.
        timeout: ``hive.txn.timeout`` in seconds; heartbeats go out twice in that time, as Hive's ``DbTxnManager`` does.
        collect: Runs the garbage collector of Spark's JVM, after which pins tell the truth about who reads their files.
        loose_seconds: How long a pin that Python does not hold may wait for the JVM to collect garbage by itself: it
            delays the cleaner, in Hive, too.
    """

    def __init__(
        self,
        metastore: Metastore,
        timeout: float,
        collect: Callable[[], None] | None = None,
        loose_seconds: float = LOOSE_SECONDS,
    ) -> None:
        self._metastore = metastore
        self._pause = max(timeout / 2, 0.05)
        self._collect = collect
        self._loose_seconds = loose_seconds
        self._collected = -COLLECT_PAUSE
        self._lock = threading.Lock()
        self._ending = threading.RLock()
        """Held while readers' transactions are ended: who asks for that meanwhile returns when it is done."""
        self._alive: dict[int, _Pin | None] = {}
        self._loose: dict[int, float] = {}
        """Pins that Python does not hold, and since when."""
        self._held: set[int] = set()
        self._to_abort: dict[int, str] = {}
        """Transactions that could not be aborted when that was due, and why they are."""
        self._released: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keep_alive(self, txn_id: int) -> Iterator[None]:
        """Send heartbeats for a transaction while the block runs; on from there, if it was pinned in it."""
        self.hold(txn_id)
        try:
            yield
        finally:
            self.let_go(txn_id)

    def hold(self, txn_id: int) -> None:
        """Send heartbeats for a transaction until it is let go, or :meth:`release` says that nobody holds it."""
        self._add(txn_id, None)

    def let_go(self, txn_id: int) -> None:
        """Send none any more, unless it was pinned meanwhile."""
        with self._lock:
            if txn_id in self._alive and self._alive[txn_id] is None:
                del self._alive[txn_id]

    def pin(self, txn_id: int, lease: float, is_read: Callable[[], bool] | None = None) -> None:
        """Send heartbeats for a reader's transaction until it is released, for ``lease`` seconds at most.

        Args:
            txn_id: The transaction.
            lease: Seconds.
            is_read: Whether anything still reads what the transaction protects: as long as it says so the transaction
                stays, also where the frame that it was opened for is gone.
        """
        self._add(txn_id, _Pin(time.monotonic() + lease, is_read))

    def release(self, txn_id: int) -> None:
        """Tell that Python holds a reader's frame, or a writer, no longer. Takes no lock: it is called by the garbage
        collector."""
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

    def end(self, txn_id: int) -> None:
        """Commit a reader's transaction now, or soon if the store cannot be asked now."""
        try:
            self._metastore.commit_txn(txn_id)
        except (NoSuchTransaction, TransactionAborted) as e:
            logger.debug("reader's transaction %s had ended already: %s", txn_id, e)
        except BaseException as e:
            self.abort_later(txn_id, "its reader is gone")
            if not isinstance(e, Exception):
                raise
            logger.warning("reader's transaction %s could not be ended: %s", txn_id, e)  # the thread must go on

    def abort_later(self, txn_id: int, reason: str) -> None:
        """Abort a transaction soon, until it is done: the store could not be asked when that was due."""
        with self._lock:
            self._to_abort[txn_id] = reason
            self._start()
        self._wake.set()

    def end_released(self, *, collect: bool = False) -> None:
        """Commit the transactions of readers that are gone: neither Python nor a plan in Spark refers to their scans.
        Those of writers that are gone are aborted.

        Args:
            collect: Have Spark's JVM collect its garbage first, so that no reader that is gone counts as alive.
        """
        loose = self._loosened()
        if collect and not loose and self._has_pins():
            gc.collect()  # frames that refer to themselves: Python has not told yet that they are gone
            loose = self._loosened()
        now = time.monotonic()
        due = len(loose) > LOOSE_PINS and now - self._collected > COLLECT_PAUSE
        rounds = (COLLECT_ROUNDS if collect else int(due)) if loose else 0
        for number in range(rounds if self._collect is not None else 0):
            assert self._collect is not None
            if number:
                self._stop.wait(COLLECT_ROUND_PAUSE)  # threads of py4j and of Spark that are about to let go
            self._collected = now
            self._collect()
            loose = self._loosened()
            if not any(_is_read(pin) for pin in loose.values()):
                break
        gone = [t for t, pin in loose.items() if not _is_read(pin)]
        with self._ending:
            for txn_id in gone:
                with Deferred():  # or nobody would know of it any more
                    self._end_one(txn_id)

    def _end_one(self, txn_id: int) -> None:
        with self._lock:
            is_mine = txn_id in self._alive
            pin = self._alive.pop(txn_id, None)
            self._loose.pop(txn_id, None)
        if is_mine and pin is None:
            self._abort(txn_id)
        elif is_mine:
            self.end(txn_id)

    def _abort(self, txn_id: int) -> None:
        """Abort a writer's transaction now, or soon: it may have published what it never committed."""
        reason = "its writer is gone"
        try:
            self._metastore.abort_txns([txn_id], reason=reason)
        except BaseException as e:
            self.abort_later(txn_id, reason)
            if not isinstance(e, Exception):
                raise
            logger.warning("writer's transaction %s could not be aborted: %s", txn_id, e)

    def _loosened(self) -> dict[int, _Pin | None]:
        """The pins that Python does not hold, those included that were released since the last time."""
        now = time.monotonic()
        with self._lock:
            while True:
                try:
                    self._loose[self._released.get_nowait()] = now
                except queue.Empty:
                    break
            self._loose = {t: since for t, since in self._loose.items() if t in self._alive}
            return {t: self._alive[t] for t in self._loose}

    def _has_pins(self) -> bool:
        with self._lock:
            return any(pin is not None for pin in self._alive.values())

    def close(self) -> None:
        """Stop the thread and end all readers' transactions."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        with self._lock:
            pinned = [txn_id for txn_id, pin in self._alive.items() if pin is not None]
            self._alive.clear()
        with Deferred():
            for txn_id in pinned:
                self.end(txn_id)
        try:
            self._abort_what_waits()
        except Exception as e:  # they end by their time-out
            logger.warning("transactions could not be aborted: %s", e)

    def _add(self, txn_id: int, pin: _Pin | None) -> None:
        with self._lock:
            self._alive[txn_id] = pin
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

    def _abort_what_waits(self) -> None:
        with self._lock:
            waiting = dict(self._to_abort)
        for txn_id, reason in waiting.items():
            self._metastore.abort_txns([txn_id], reason=reason)
            with self._lock:
                del self._to_abort[txn_id]

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
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self._beat()
                pause = self._pause
            except Exception as e:  # the statement itself meets the error at its next call; the thread must go on
                pause = min(self._pause, self._pause / _FIRST_RETRY if pause == self._pause else pause * 2)
                logger.warning("heartbeat failed: %s", e, exc_info=not isinstance(e, AcidError))

    def _beat(self) -> None:
        now = time.monotonic()
        with self._lock:
            expired = [t for t, pin in self._alive.items() if pin is not None and pin.ends < now]
            for txn_id in expired:
                del self._alive[txn_id]
            alive = list(self._alive)
        if alive:  # before all else: nothing else that fails may cost it
            aborted, unknown = self._metastore.heartbeat_txns(alive)
            self._give_up([*aborted, *unknown])
        self._keep_locks()
        self._abort_what_waits()
        for txn_id in expired:
            self.end(txn_id)
        with self._lock:
            is_delaying = any(now - since > self._loose_seconds for since in self._loose.values())
        self.end_released(collect=is_delaying)
        # housekeeping that Hive leaves to its server; here any session does it
        self._metastore.time_out_txns()
        self._metastore.clean_empty_aborted_txns()
