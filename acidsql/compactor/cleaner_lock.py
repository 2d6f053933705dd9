"""The cleaner's lock on a table or partition."""

from __future__ import annotations

import itertools
import logging
import os
from types import TracebackType

from acidsql.compactor.compaction import WorkerContext
from acidsql.errors import AcidError, NoSuchLock
from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType
from acidsql.metastore.waiting import wait_for_lock

logger = logging.getLogger(__name__)

_numbers = itertools.count(1)


class CleanerLock:
    """Locks a table or partition SHARED_READ while its files are listed and removed and their records deleted.

    Without it, DROP or RENAME could put another table's files at the listed paths, since files are removed by path. The
    lock has no transaction, which would itself delay the cleaner. It is released at the end of the block. Hive's
    cleaner takes no lock (any more), and relies on the metastore being the only one that drops.
    """

    def __init__(
        self, context: WorkerContext, database: str, table: str, partition: str | None = None, *, owner: str = "cleaner"
    ) -> None:
        """
        Args:
            context: The shared context of the services.
            database, table, partition: What to lock; no partition for the whole table.
            owner: Shown by SHOW LOCKS, together with the process.
        """
        self._context = context
        self._place = ".".join(part for part in (database, table, partition) if part)
        part = LockComponent(LockType.SHARED_READ, database, table, partition)
        agent = f"acidsql-{os.getpid()}-{owner}-{next(_numbers)}"  # unique: see _ids
        self._request = LockRequest((part,), 0, context.user, context.host, agent)
        self._id: int | None = None
        self._is_given_back = True

    def is_free(self) -> bool:
        """Take the lock if it is free; False if it would have to wait."""
        self._is_given_back = False
        response = self._context.metastore.lock(self._request)
        self._id = response.lock_id
        if response.state is not LockState.ACQUIRED:
            logger.info("%s is locked by others and will be cleaned later", self._place)
            self._give_back()  # at once: later requests must not wait for a waiting lock
            return False
        self._context.heartbeats.hold_lock(self._id)
        return True

    def wait(self) -> None:
        """Wait for the lock. Raises: LockTimeout, which names the holders."""
        self._is_given_back = False
        self._id = wait_for_lock(self._context.metastore, self._context.settings, self._request).lock_id
        self._context.heartbeats.hold_lock(self._id)

    def revalidate(self) -> None:
        """Check that the lock is held, and extend it, before anything is removed or deleted.

        Raises:
            NoSuchLock: When it has timed out.
        """
        try:
            self._context.metastore.heartbeat(lock_id=self._id or 0)
        except NoSuchLock as e:
            message = f"The cleaner has lost its lock on {self._place} and stops removing files of it"
            raise NoSuchLock(message, code=e.code, hint="Run VACUUM again.") from e

    def __enter__(self) -> CleanerLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _give_back(self) -> None:
        """Release it, or leave the queue. If that fails twice, it times out, as no heartbeat keeps it alive."""
        if self._is_given_back:
            return
        self._is_given_back = True
        if self._id is not None:
            self._context.heartbeats.let_lock_go(self._id)
        try:
            self._unlock()
        except AcidError as e:
            logger.debug("retrying the release of the lock on %s: %s", self._place, e)
            try:
                self._unlock()
            except AcidError as again:
                logger.warning("the cleaner's lock on %s is held until it times out: %s", self._place, again.message)

    def _unlock(self) -> None:
        for lock_id in self._ids():
            try:
                self._context.metastore.unlock(lock_id)
            except NoSuchLock as e:
                logger.debug("lock %s on %s was already released: %s", lock_id, self._place, e)

    def _ids(self) -> set[int]:
        """The lock's ids, looked up by owner if the response was lost or the lock is waiting."""
        if self._id is not None:
            return {self._id}
        [part] = self._request.components
        known = self._context.metastore.show_locks(part.database, part.table)
        owner = (self._request.host, self._request.agent_info)
        return {one.lock_id for one in known if (one.host, one.agent_info) == owner}
