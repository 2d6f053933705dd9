"""The housekeeper: aborts timed-out transactions and purges obsolete records."""

from __future__ import annotations

import logging
import time

from acidsql.compactor.cleaner import Cleaner
from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.dropped import remove_dropped
from acidsql.compactor.processes import give_back_of_the_dead
from acidsql.settings import STAGING_SWEEP, WORKER_TIMEOUT

logger = logging.getLogger(__name__)


class Housekeeper:
    """Hive's ``AcidHouseKeeperService``, ``AcidTxnCleanerService``, ``CompactionHouseKeeperService`` in one.

    1. Abort transactions without heartbeats, and release their locks.
    2. Requeue compactions whose workers on this host are dead, or did not finish in time.
    3. Purge old history entries, records of ended transactions without effects, and write ids no longer needed.
    4. Remove the directories of dropped tables and partitions whose statements were killed.
    5. From time to time remove staging directories of dead writers.
    """

    def __init__(self, context: WorkerContext, cleaner: Cleaner) -> None:
        self._context = context
        self._cleaner = cleaner
        self._next_sweep = 0.0

    def run(self) -> None:
        """Run one round: all steps, even if some fail; the first error is raised at the end."""
        metastore = self._context.metastore
        errors = []
        for step in (
            self._time_out,
            lambda: give_back_of_the_dead(metastore, self._context.host),
            self._give_back_of_the_slow,
            metastore.purge_compaction_history,
            metastore.prune_txn_to_write_id,
            metastore.clean_empty_aborted_txns,
            lambda: remove_dropped(metastore),
            self._sweep,
        ):
            try:
                step()
            except Exception as e:  # the later steps must still run
                errors.append(e)
        for error in errors[1:]:
            logger.error("housekeeper: %s", error)
        if errors:
            raise errors[0]

    def _time_out(self) -> None:
        aborted = self._context.metastore.time_out_txns()
        if aborted:
            logger.info("timed out: transactions %s", ", ".join(map(str, aborted)))

    def _give_back_of_the_slow(self) -> None:
        timeout = int(self._context.settings.value(WORKER_TIMEOUT) * 1000)
        given_back = self._context.metastore.revoke_timed_out_workers(timeout)
        if given_back:
            logger.warning("%s compactions were not finished in time and are queued again", given_back)

    def _sweep(self) -> None:
        settings = self._context.settings
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + settings.value(STAGING_SWEEP)
            self._cleaner.sweep_staging()
