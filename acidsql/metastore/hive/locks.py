"""Locks of a Hive Metastore."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hive_metastore import ttypes

from acidsql.errors import TransactionAborted
from acidsql.metastore.hive import translate
from acidsql.metastore.hive.client import PROCESSOR, HiveClient
from acidsql.metastore.hive.errors import TRANSACTION_ABORTED
from acidsql.metastore.lock_rules import circle_of, conflicts
from acidsql.metastore.model import LockInfo, LockRequest, LockResponse, LockState, LockType

_ABORT = ttypes.LockState.ABORT
_BLOCKER = re.compile(r"lockid:(\d+) intLockId:(\d+)")
"""How the metastore names a lock in its messages."""


class HiveLocks(HiveClient):
    """The locks of :class:`~acidsql.metastore.protocol.Transactions` over Thrift."""

    def lock(self, request: LockRequest) -> LockResponse:
        components = [translate.lock_component_to_thrift(c, exclusive_write=self._is_hive4) for c in request.components]
        asked = ttypes.LockRequest(
            component=components,
            txnid=request.txn_id,
            user=request.user,
            hostname=request.host,
            agentInfo=request.agent_info or PROCESSOR,
            zeroWaitReadEnabled=request.zero_wait_reads,
        )
        return self._lock_response(self._call(lambda c: c.lock(asked)))

    def check_lock(self, lock_id: int) -> LockResponse:
        request = ttypes.CheckLockRequest(lockid=lock_id)
        return self._lock_response(self._call(lambda c: c.check_lock(request)))

    def _lock_response(self, found: Any) -> LockResponse:
        """The answer; who is in the way is told by another call, made only while a request waits."""
        if found.state == _ABORT:
            raise TransactionAborted(
                f"The transaction of lock {found.lockid} is aborted: {found.errorMessage}", code=TRANSACTION_ABORTED
            )
        state = translate.lock_state_from_thrift(found.state)
        if state is LockState.ACQUIRED and self._is_hive4:
            return LockResponse(found.lockid, state)
        locks = self.show_locks()
        if state is LockState.ACQUIRED:
            return _as_hive4_answers(locks, found.lockid)
        in_the_way = {
            (one.blocked_by_lock_id, one.blocked_by_internal_id) for one in locks if one.lock_id == found.lockid
        }
        if named := _BLOCKER.search(found.errorMessage or ""):  # a read that does not wait is not in the list
            in_the_way = {(int(named[1]), int(named[2]))}
        holder = next((one for one in locks if (one.lock_id, one.internal_id) in in_the_way), None)
        return LockResponse(found.lockid, state, holder, _circle(self._judged(locks), found.lockid))

    def _judged(self, locks: Sequence[LockInfo]) -> Sequence[LockInfo]:
        return locks if self._is_hive4 else _by_rules_of_hive4(locks)

    def unlock(self, lock_id: int, withdrawn: LockRequest | None = None) -> None:
        self._call(lambda c: c.unlock(ttypes.UnlockRequest(lockid=lock_id)))

    def show_locks(
        self, database: str | None = None, table: str | None = None, partition: str | None = None
    ) -> list[LockInfo]:
        request = ttypes.ShowLocksRequest(dbname=database, tablename=table, partname=partition)
        found = self._call(lambda c: c.show_locks(request)).locks or ()
        return [translate.lock_from_thrift(one) for one in found]

    def circle_with_writers(self, txn_id: int, database: str, table: str, below: int) -> tuple[int, ...]:
        """The metastore does not tell whose a write id is: whoever holds a lock of the table counts as a writer."""
        locks = self.show_locks()
        of_table = {
            k.txn_id for k in locks if k.state is LockState.ACQUIRED and (k.database, k.table) == (database, table)
        }
        return circle_of(self._judged(locks), txn_id, overtaking=False, beside=of_table - {0, txn_id})


def _by_rules_of_hive4(locks: Sequence[LockInfo]) -> list[LockInfo]:
    """The locks of a metastore 3 as those of Hive 4 that have the same effect: one SHARED_WRITE waits for another."""
    return [replace(one, type=LockType.EXCL_WRITE) if one.type is LockType.SHARED_WRITE else one for one in locks]


def _as_hive4_answers(locks: Sequence[LockInfo], lock_id: int) -> LockResponse:
    """What becomes of a request that a metastore 3 has granted.

    It grants a request at once that meets a lock of its own transaction, and looks at no earlier one of another
    (``TxnHandler.checkLock``: what is no conflict falls through to ``ACQUIRE``). Such a request waits all the same.
    """
    judged = sorted(_by_rules_of_hive4(locks), key=lambda one: (one.lock_id, one.internal_id))
    asked = [one for one in judged if one.lock_id == lock_id]
    own = {one.txn_id for one in asked} - {0}
    earlier = (one for one in judged if one.lock_id < lock_id and one.txn_id not in own)
    holder, _ = next(conflicts(asked, earlier), (None, None))
    if holder is None:
        return LockResponse(lock_id, LockState.ACQUIRED)
    as_waiting = [replace(one, state=LockState.WAITING) if one.lock_id == lock_id else one for one in judged]
    return LockResponse(lock_id, LockState.WAITING, holder, _circle(as_waiting, lock_id))


def _circle(locks: Sequence[LockInfo], lock_id: int) -> tuple[int, ...]:
    """The transactions that wait for each other, for the youngest one of ours alone: each of ours finds out.

    Not for the one that has asked last, as in the embedded store: here an old transaction that asks for more is in a
    circle with any younger one that waits for it. And not for one of Hive's, which does not look.
    """
    own = next((one.txn_id for one in locks if one.lock_id == lock_id), 0)
    circle = circle_of(locks, own, overtaking=False) if own else ()
    ours = {one.txn_id for one in locks if one.agent_info.startswith(PROCESSOR)}
    return circle if circle and own == max(ours & {*circle}, default=own) else ()
