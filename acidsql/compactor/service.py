"""The four services together: in threads of a session, or one round on demand."""

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
"""How long :meth:`Compactor.stop` waits for a compaction that is under way."""


@dataclass(frozen=True)
class RoundResult:
    """What one round did.

    Attributes:
        initiated: Compactions that were asked for.
        outcomes: What became of those that waited.
        cleaned: Compactions, and aborted transactions' parts, whose files were removed.
    """

    initiated: int = 0
    outcomes: tuple[Outcome, ...] = ()
    cleaned: int = 0


@dataclass(frozen=True)
class CompactorStatus:
    """How the compactor is doing.

    Attributes:
        running: Whether its threads run in this session.
        queued: Requests that wait.
        working: Those that are worked on.
        cleaning: Those whose files wait to be removed.
        failed: Failures that the history remembers.
        oldest_queued_ms: When the oldest waiting request was made, milliseconds since 1970; None where none waits.
        compacted: Compactions that the workers of this session have carried out.
        done: Files, bytes and rows of those: what they have replaced, and by what.
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

    On a Hive Metastore the initiator, the cleaner and the housekeeper are the metastore's own; only workers run here,
    and serve its queue beside Hive's.
    """

    context: WorkerContext
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _asked: list[threading.Thread] = field(default_factory=list)
    """Those that work on what a statement waits for."""
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
        """``<host>-<process>.<start>``: what the names of its workers begin with."""
        return self._id

    @property
    def is_own_store(self) -> bool:
        """Whether nobody else initiates and cleans."""
        return not self.context.metastore.capabilities.runs_compactor

    # --- on demand ---------------------------------------------------------------------------------------------------

    def run_once(self, stop: threading.Event | None = None) -> RoundResult:
        """One round of all services, here and now: what is due is initiated, compacted, and cleaned where possible.

        Args:
            stop: When it is set, no further compaction is begun.
        """
        settings = self.context.settings
        self.context.heartbeats.end_released(collect=True)  # readers that are gone must not hold the cleaner up
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
            cleaned = self._cleaner.run()
        return RoundResult(initiated, tuple(outcomes), cleaned)

    def work_on(self, id: int) -> threading.Event:
        """Work off the queue until a request is done, where the store is ours and no worker of this session runs.

        That goes on in a thread, whatever becomes of the caller. Another process may have taken the request: then
        there is nothing to do but to wait.

        Returns:
            Set when there is nothing more to do here. It is never set where others do the work.
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
            except Exception as e:  # who waits for the request is told by its state
                logger.error("compaction %s: %s", id, e, exc_info=not isinstance(e, AcidError))
            finally:
                done.set()

        self._stop.clear()
        thread = threading.Thread(target=work, name=f"acidsql-compaction-{id}", daemon=True)
        self._asked = [*(one for one in self._asked if one.is_alive()), thread]
        thread.start()
        return done

    def wrote(self, database: str, table: str, partitions: Iterable[str | None]) -> None:
        """Be told of a commit of this session: with ``acidsql.compactor.auto`` it is looked after, in a thread.

        Args:
            database, table: What was written.
            partitions: Names of the partitions; one None for a table without any.
        """
        if self.context.settings.value(AUTO_COMPACTION) and self.is_own_store:
            self._auto.wrote(database, table, partitions)

    def _work_alone(self) -> None:
        """Work off the queue, where no worker of this session does so anyway."""
        if not self._threads:
            worker = self._worker()
            while not self._auto.stopping.is_set() and self._work(worker) is not None:
                pass

    def _worker(self, pool: str | None = None) -> Worker:
        """A worker of a pool, or of the session's own."""
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
        """Start the services in threads of this process; nothing happens where they run already."""
        if self._threads:
            return
        settings = self.context.settings
        self._stop.clear()
        if self.is_own_store:
            if settings.value(INITIATOR_ON):
                self._run_every("initiator", CHECK_INTERVAL, self._initiator.run)
            if settings.value(CLEANER_ON):
                self._run_every("cleaner", CLEANER_INTERVAL, self._cleaner.run)
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
                except Exception as e:  # the store may be away for a while; the next round comes, whatever it was
                    failures += 1
                    logger.error("%s: %s", name, e, exc_info=not isinstance(e, AcidError))
                back_off = limits.first_back_off * 2 ** min(failures - 1, 20) if failures else 0.0
                back_off = min(back_off, limits.longest_back_off)
                self._stop.wait(max(self.context.settings.value(pause), back_off))

        thread = threading.Thread(target=loop, name=f"acidsql-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, timeout: float | None = _STOP_SECONDS) -> None:
        """Stop the threads. A compaction that is under way is finished first; the queue stays.

        Args:
            timeout: How many seconds to wait for that; None for as long as it takes.
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
        """How the queue is, and what the workers of this session have done."""
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
