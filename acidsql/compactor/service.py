"""The four services: in threads of a session, or one round on demand."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial

from acidsql.compactor.auto import AutoCompaction
from acidsql.compactor.cleaner import Cleaner
from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.housekeeper import Housekeeper
from acidsql.compactor.initiator import Initiator
from acidsql.compactor.measure import metrics_of
from acidsql.compactor.processes import process_name
from acidsql.compactor.worker import Outcome, Worker
from acidsql.errors import AcidError
from acidsql.metastore.model import CompactionFilter, CompactionMetrics, CompactionState
from acidsql.settings import (
    AUTO_COMPACTION,
    CHECK_INTERVAL,
    CLEANER_INTERVAL,
    CLEANER_ON,
    DELTA_NUM_THRESHOLD,
    HOUSEKEEPER_INTERVAL,
    HOUSEKEEPER_START,
    INITIATOR_ON,
    JOB_QUEUE,
    WORKER_SLEEP,
    WORKER_THREADS,
    Setting,
)

logger = logging.getLogger(__name__)

_STOP_SECONDS = 60.0
"""How long :meth:`Compactor.stop` waits for a compaction in progress."""


@dataclass(frozen=True)
class RoundResult:
    """The result of one round.

    Attributes:
        initiated: Number of requested compactions.
        outcomes: Results of the queued compactions.
        cleaned: Number of compactions and aborted components whose files were removed.
    """

    initiated: int = 0
    outcomes: tuple[Outcome, ...] = ()
    cleaned: int = 0


@dataclass(frozen=True)
class CompactorStatus:
    """The status of the compactor.

    Attributes:
        running: Whether its threads run in this session.
        queued: Number of queued requests.
        working: Number of running compactions.
        cleaning: Number of compactions with files still to be removed.
        failed: Number of failures in the history.
        oldest_queued_ms: Time of the oldest queued request, milliseconds since 1970; None if the queue is empty.
        compacted: Number of compactions by the workers of this session.
        done: Total files, bytes and rows of those, before and after.
    """

    running: bool
    queued: int
    working: int
    cleaning: int
    failed: int
    oldest_queued_ms: int | None
    compacted: int
    done: CompactionMetrics

    @property
    def oldest_queued(self) -> datetime | None:
        """:attr:`oldest_queued_ms` as a time, in UTC."""
        ms = self.oldest_queued_ms
        return None if ms is None else datetime.fromtimestamp(ms / 1000, timezone.utc)


@dataclass
class Compactor:
    """``acid.compactor``: initiator, workers, cleaner and housekeeper of one session.

    On a Hive Metastore the initiator, the cleaner and the housekeeper are the metastore's; only workers run here, and
    serve its queue alongside Hive's.
    """

    context: WorkerContext
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _asked: list[threading.Thread] = field(default_factory=list)
    """Threads that run compactions which a statement waits for."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _compacted: int = 0
    _done: CompactionMetrics = field(default_factory=CompactionMetrics)

    def __post_init__(self) -> None:
        self._id = process_name(self.context.host)
        self._cleaner = Cleaner(self.context)
        self._initiator = Initiator(self.context, self._id)
        self._housekeeper = Housekeeper(self.context, self._cleaner)
        settings = self.context.settings
        self._auto = AutoCompaction(self._initiator.ask, self._work_alone, lambda: settings.value(DELTA_NUM_THRESHOLD))

    @property
    def name(self) -> str:
        """``<host>-<process>.<start>``: the prefix of its workers' names."""
        return self._id

    @property
    def is_own_store(self) -> bool:
        """Whether only acidsql initiates and cleans."""
        return not self.context.metastore.capabilities.runs_compactor

    # --- on demand ---------------------------------------------------------------------------------------------------

    def run_once(self, stop: threading.Event | None = None) -> RoundResult:
        """Run one round of all services: initiate due compactions, run them, and clean where possible.

        Args:
            stop: When set, no further compaction starts, and none is cleaned after.
        """
        settings = self.context.settings
        self.context.heartbeats.end_released(collect=True)  # readers that no longer exist must not delay the cleaner
        initiated = cleaned = 0
        if self.is_own_store:
            self._housekeeper.run()
            if settings.value(INITIATOR_ON):
                initiated = self._initiator.run()
        worker = self._worker()
        outcomes = []
        while not (stop is not None and stop.is_set()) and (outcome := self._work(worker)) is not None:
            outcomes.append(outcome)
        if self.is_own_store and settings.value(CLEANER_ON):
            cleaned = self._cleaner.run(stop)
        return RoundResult(initiated, tuple(outcomes), cleaned)

    def work_on(self, id: int) -> threading.Event:
        """Process the queue until a request is done, on the embedded store if no worker of this session runs.

        This continues in a thread, regardless of the caller. If another process has taken the request, only waiting
        is left.

        Returns:
            An event that is set when there is nothing more to do here; never if others do the work.
        """
        done = threading.Event()
        if not self.is_own_store or self._threads:
            return done

        def work() -> None:
            try:
                worker = self._worker()
                while not self._stop.is_set():
                    outcome = self._work(worker)
                    if outcome is None or outcome.entry.id == id:
                        return
            except Exception as e:  # the state of the request shows the failure to whoever waits
                logger.error("compaction %s: %s", id, e, exc_info=not isinstance(e, AcidError))
            finally:
                done.set()

        self._stop.clear()
        thread = threading.Thread(target=work, name=f"acidsql-compaction-{id}", daemon=True)
        self._asked = [*(one for one in self._asked if one.is_alive()), thread]
        thread.start()
        return done

    def wrote(self, database: str, table: str, partitions: Iterable[str | None]) -> None:
        """Report a commit of this session; with ``acidsql.compactor.auto`` it may start a compaction, in a thread.

        Args:
            database, table: What was written.
            partitions: Names of the partitions; a single None for a table without partition keys.
        """
        if self.context.settings.value(AUTO_COMPACTION) and self.is_own_store:
            self._auto.wrote(database, table, partitions)

    def _work_alone(self) -> None:
        """Process the queue if no worker of this session does."""
        if not self._threads:
            worker = self._worker()
            while not self._auto.stopping.is_set() and self._work(worker) is not None:
                pass

    def _worker(self, pool: str | None = None) -> Worker:
        """A worker of the given pool, or of the session's."""
        number = next(self._numbers)
        return Worker(self.context, f"{self._id}.{number}", pool or self.context.settings.value(JOB_QUEUE) or None)

    def _work(self, worker: Worker) -> Outcome | None:
        outcome = worker.run_one()
        if outcome is not None and outcome.state.is_done:
            with self._lock:
                self._compacted += 1
                self._done += metrics_of(outcome.done)
        return outcome

    # --- in threads --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the services in threads of this process; no effect if they already run."""
        if self._threads:
            return
        settings = self.context.settings
        self._stop.clear()
        if self.is_own_store:
            if settings.value(INITIATOR_ON):
                self._run_every("initiator", CHECK_INTERVAL, self._initiator.run)
            if settings.value(CLEANER_ON):
                self._run_every("cleaner", CLEANER_INTERVAL, partial(self._cleaner.run, self._stop))
            self._run_every("housekeeper", HOUSEKEEPER_INTERVAL, self._housekeeper.run, HOUSEKEEPER_START)
        own = [None] * settings.value(WORKER_THREADS)
        of_pools = [pool for pool, threads in settings.worker_pools.items() for _ in range(threads)]
        for number, pool in enumerate([*own, *of_pools]):
            self._run_every(f"worker-{number}", WORKER_SLEEP, partial(self._work_all, self._worker(pool)))

    def _work_all(self, worker: Worker) -> None:
        while not self._stop.is_set() and self._work(worker) is not None:
            pass

    def _run_every(
        self, name: str, pause: Setting[float], run: Callable[[], object], start: Setting[float] | None = None
    ) -> None:
        def loop() -> None:
            if start is not None:
                self._stop.wait(self.context.settings.value(start))
            failures, limits = 0, self.context.limits
            while not self._stop.is_set():
                try:
                    run()
                    failures = 0
                except Exception as e:  # the store may be unavailable for a while; continue with the next round
                    failures += 1
                    logger.error("%s: %s", name, e, exc_info=not isinstance(e, AcidError))
                back_off = limits.first_back_off * 2 ** min(failures - 1, 20) if failures else 0.0
                back_off = min(back_off, limits.longest_back_off)
                self._stop.wait(max(self.context.settings.value(pause), back_off))

        thread = threading.Thread(target=loop, name=f"acidsql-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, timeout: float | None = _STOP_SECONDS) -> None:
        """Stop the threads. A compaction in progress is finished first; the queue is kept.

        Args:
            timeout: Seconds to wait for that; None to wait without limit.
        """
        self._stop.set()
        self._auto.stop(timeout)
        for thread in self._threads:
            thread.join(timeout)
        for thread in self._asked:
            thread.join(timeout)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for thread in (*self._threads, *(one for one in self._asked if one.is_alive())):
            logger.warning("%s has not stopped yet", thread.name)

    def status(self) -> CompactorStatus:
        """The state of the queue, and the work of this session's workers."""
        entries = self.context.metastore.show_compactions(CompactionFilter())
        states = Counter(entry.state for entry in entries)
        waiting = [e.enqueued_ms for e in entries if e.state is CompactionState.INITIATED and e.enqueued_ms is not None]
        with self._lock:
            compacted, done = self._compacted, self._done
        return CompactorStatus(
            running=bool(self._threads),
            queued=states[CompactionState.INITIATED],
            working=states[CompactionState.WORKING],
            cleaning=states[CompactionState.READY_FOR_CLEANING],
            failed=states[CompactionState.FAILED],
            oldest_queued_ms=min(waiting, default=None),
            compacted=compacted,
            done=done,
        )
