"""The lock of a cleaner on what it cleans."""

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
    """A table or partition locked SHARED_READ, while somebody lists its files, removes some and forgets them.

    Without it, DROP or RENAME could put another table's files, or none, where they were listed: removed is by path. The
    lock is of no transaction, which would hold the cleaner up itself. It is given back at the end of the block. Hive's
    cleaner takes none (any more), and relies on the metastore to be the only one that drops.
    """

    def __init__(
        self, context: WorkerContext, database: str, table: str, partition: str | None = None, *, owner: str = "cleaner"
    ) -> None:
        """
        Args:
            context: What the services share.
            database, table, partition: What is locked; no partition for the whole table.
            owner: Whom SHOW LOCKS names, beside the process.
        """
        self._context = context
        self._place = ".".join(part for part in (database, table, partition) if part)
        part = LockComponent(LockType.SHARED_READ, database, table, partition)
        agent = f"acidsql-{os.getpid()}-{owner}-{next(_numbers)}"  # no two are called the same: see _ids
        self._request = LockRequest((part,), 0, context.user, context.host, agent)
        self._id: int | None = None
        self._is_given_back = True

    def is_free(self) -> bool:
        """Take the lock if nobody is in the way; False where it would have to wait."""
        self._is_given_back = False
        response = self._context.metastore.lock(self._request)
        self._id = response.lock_id
        if response.state is not LockState.ACQUIRED:
            logger.info("%s is locked by others: it is cleaned later", self._place)
            self._give_back()  # at once: whoever comes after us must not wait for one that waits
            return False
        self._context.heartbeats.hold_lock(self._id)
        return True

    def wait(self) -> None:
        """Take the lock when it is granted. Raises: LockTimeout, which names who holds it."""
        self._is_given_back = False
        self._id = wait_for_lock(self._context.metastore, self._context.settings, self._request).lock_id
        self._context.heartbeats.hold_lock(self._id)

    def confirm(self) -> None:
        """Make sure that the lock is held, and will be for some time: before anything is removed or forgotten.

        Raises:
            NoSuchLock: When it was taken away, as its owner was silent for too long.
        """
        try:
            self._context.metastore.heartbeat(lock_id=self._id or 0)
        except NoSuchLock as e:
            message = f"The cleaner has lost its lock on {self._place}: it removes nothing more of it now"
            raise NoSuchLock(message, code=e.code, hint="VACUUM may be run again.") from e

    def __enter__(self) -> CleanerLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _give_back(self) -> None:
        """Give it back, or the place in the queue. Where that fails twice, it times out, as nobody keeps it alive."""
        if self._is_given_back:
            return
        self._is_given_back = True
        if self._id is not None:
            self._context.heartbeats.let_lock_go(self._id)
        try:
            self._unlock()
        except AcidError as e:
            logger.debug("once more, for %s: %s", self._place, e)
            try:
                self._unlock()
            except AcidError as again:
                logger.warning("the cleaner's lock on %s stays until it times out: %s", self._place, again.message)

    def _unlock(self) -> None:
        for lock_id in self._ids():
            try:
                self._context.metastore.unlock(lock_id)
            except NoSuchLock as e:
                logger.debug("lock %s on %s is gone already: %s", lock_id, self._place, e)

    def _ids(self) -> set[int]:
        """Its id: found by its owner where the answer did not come, or was one that it has to wait."""
        if self._id is not None:
            return {self._id}
        [part] = self._request.components
        known = self._context.metastore.show_locks(part.database, part.table)
        owner = (self._request.host, self._request.agent_info)
        return {one.lock_id for one in known if (one.host, one.agent_info) == owner}
