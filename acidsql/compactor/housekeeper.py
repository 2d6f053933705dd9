"""The housekeeper: ends what nobody is alive behind, and forgets what nobody will ask for again."""

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

    1. Abort transactions whose heartbeats stopped, and release their locks.
    2. Give compactions back to the queue whose workers on this host are dead, or did not finish in time.
    3. Forget old entries of the history, ended transactions that left nothing, and write ids that nobody can ask for.
    4. Remove the directories of dropped tables and partitions whose statements were killed.
    5. Now and then remove staging directories of writers that died.
    """

    def __init__(self, context: WorkerContext, cleaner: Cleaner) -> None:
        self._context = context
        self._cleaner = cleaner
        self._next_sweep = 0.0

    def run(self) -> None:
        """One round."""
        metastore, settings = self._context.metastore, self._context.settings
        aborted = metastore.time_out_txns()
        if aborted:
            logger.info("timed out: transactions %s", ", ".join(map(str, aborted)))
        give_back_of_the_dead(metastore, self._context.host)
        given_back = metastore.revoke_timed_out_workers(int(settings.value(WORKER_TIMEOUT) * 1000))
        if given_back:
            logger.warning("%s compactions were not finished in time, and are in the queue again", given_back)
        metastore.purge_compaction_history()
        metastore.prune_txn_to_write_id()
        metastore.clean_empty_aborted_txns()
        remove_dropped(metastore)
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + settings.value(STAGING_SWEEP)
            self._cleaner.sweep_staging()
