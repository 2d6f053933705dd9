"""Automatic compaction after commits: a session compacts what it writes, in a background thread."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable

from acidsql.errors import AcidError
from acidsql.metastore.model import CompactionCandidate

logger = logging.getLogger(__name__)

Place = tuple[str, str, "str | None"]
"""Database, table and partition."""


class AutoCompaction:
    """Notified of each commit; checks from time to time whether a compaction is due, and runs it.

    A statement only counts its commits: it lists no directory and does not wait. The thread checks a table or partition
    after the first commit to it (others may have written before), and again after as many commits as half the number
    of deltas that makes a compaction due.
    """

    def __init__(
        self, ask: Callable[[CompactionCandidate], bool], work: Callable[[], object], threshold: Callable[[], int]
    ) -> None:
        """
        Args:
            ask: Requests a compaction of a table or partition if one is due.
            work: Processes the queue.
            threshold: The number of deltas above which a compaction is due.
        """
        self._ask = ask
        self._work = work
        self._threshold = threshold
        self._lock = threading.Lock()
        self._left: dict[Place, int] = {}
        self._written: queue.SimpleQueue[Place | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self.stopping = threading.Event()
        """Whether no further compaction may start."""

    def wrote(self, database: str, table: str, partitions: Iterable[str | None]) -> None:
        """Count a commit to a table (partition None) or to some of its partitions."""
        for partition in partitions:
            place = (database, table, partition)
            with self._lock:
                left = self._left.get(place, 0)
                self._left[place] = left - 1 if left else self._threshold() // 2
                if left:
                    continue
                if self._thread is None:
                    self.stopping.clear()
                    self._thread = threading.Thread(target=self._run, name="acidsql-auto-compaction", daemon=True)
                    self._thread.start()
            self._written.put(place)

    def stop(self, timeout: float | None) -> None:
        """Stop the thread; a compaction in progress is finished first."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._left.clear()
            self.stopping.set()
        if thread is None:
            return
        self._written.put(None)
        thread.join(timeout)
        if thread.is_alive():
            logger.warning("%s has not stopped yet", thread.name)

    def _run(self) -> None:
        while (place := self._written.get()) is not None:
            try:
                if not self.stopping.is_set() and self._ask(CompactionCandidate(*place)):
                    self._work()
            except Exception as e:  # retried after the next commit, or by another compactor
                message = "%s could not be compacted automatically: %s"
                logger.warning(message, ".".join(filter(None, place)), e, exc_info=not isinstance(e, AcidError))
