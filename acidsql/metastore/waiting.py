"""Waiting for locks, and for writers that no lock keeps away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from acidsql.errors import AcidError, Deadlock, LockTimeout
from acidsql.interrupts import Deferred
from acidsql.metastore.model import LockRequest, LockResponse, LockState, Table
from acidsql.metastore.protocol import Metastore
from acidsql.settings import LOCK_RETRIES, LOCK_SLEEP, LOCK_WAIT, Settings

PAUSE_GROWTH = 1.3
_SAME_ORDER = "Run it again; transactions that lock tables in the same order do not wait for each other."


def wait_for_lock(metastore: Metastore, settings: Settings, request: LockRequest) -> LockResponse:
    """Ask for locks and wait until they are granted, with growing pauses.

    Raises:
        Deadlock: When the holder waits for this transaction, too.
        LockTimeout: When ``acidsql.lock.timeout`` or ``hive.lock.numretries`` is used up; names the holder.
    """
    first, _ = metastore.lock_pauses
    retries = islice(_growing(first, settings.value(LOCK_SLEEP)), settings.value(LOCK_RETRIES))
    deadline = time.monotonic() + min(settings.value(LOCK_WAIT), sum(retries))
    response: LockResponse | None = None
    try:
        with Deferred():
            response = metastore.lock(request)
        return _granted(metastore, settings, response, deadline)
    except BaseException:
        # a transaction of several statements goes on: others would wait for what nobody asks for any more
        with suppress(AcidError):
            for lock_id in _waiting(metastore, request.txn_id) if response is None else {response.lock_id}:
                metastore.unlock(lock_id, request)
        raise


def _waiting(metastore: Metastore, txn_id: int) -> set[int]:
    """The requests of a transaction that wait: the answer to one may have been lost with the connection."""
    if not txn_id:
        return set()
    return {k.lock_id for k in metastore.show_locks() if k.txn_id == txn_id and k.state is LockState.WAITING}


def _granted(metastore: Metastore, settings: Settings, response: LockResponse, deadline: float) -> LockResponse:
    first, longest = metastore.lock_pauses
    ahead, since = response.ahead, time.monotonic()
    while response.state is LockState.WAITING:
        if response.circle:
            others = ", ".join(map(str, response.circle[1:]))
            raise Deadlock(
                f"Transaction {response.circle[0]} and {others} wait for each other's locks: it is ended",
                hint=_SAME_ORDER,
            )
        if time.monotonic() >= deadline:
            raise LockTimeout(
                _who_holds(response),
                code=10307,
                hint="SHOW LOCKS lists the holders; acidsql.lock.timeout bounds the wait.",
            )
        if response.ahead != ahead:
            ahead, since = response.ahead, time.monotonic()
        # the first in the queue asks often, as long as locks are held as shortly as this one is by now
        held = (time.monotonic() - since) * (PAUSE_GROWTH - 1)
        pause = min(max(first * (2 * ahead - 1), held), longest, settings.value(LOCK_SLEEP))
        time.sleep(min(pause, max(deadline - time.monotonic(), 0.001)))
        response = metastore.check_lock(response.lock_id)
    return response


def _growing(pause: float, longest: float) -> Iterator[float]:
    while True:
        yield pause
        pause = min(pause * PAUSE_GROWTH, longest)


def wait_for_earlier_writers(
    metastore: Metastore, settings: Settings, table: Table, write_id: int, txn_id: int
) -> None:
    """Wait until whoever has a lower write id in a table has committed or aborted.

    A base hides what all of them have written. By Hive's locks INSERT (SHARED_READ) and TRUNCATE (EXCL_WRITE) run at
    the same time, so an INSERT might commit rows afterwards that no snapshot ever sees.

    Args:
        metastore: The store.
        settings: For ``acidsql.lock.timeout``.
        table: The table.
        write_id: The caller's own.
        txn_id: The caller's transaction.

    Raises:
        Deadlock: When one of them waits for a lock of the caller's, or for somebody who does.
        LockTimeout: When one is still open after that time.
    """
    try:
        _wait_for_earlier_writers(metastore, settings, table, write_id, txn_id)
    except BaseException:
        # a transaction of several statements goes on, and does not wait any more
        with suppress(AcidError):
            metastore.circle_with_writers(txn_id, table.database, table.name, 0)
        raise


def _wait_for_earlier_writers(
    metastore: Metastore, settings: Settings, table: Table, write_id: int, txn_id: int
) -> None:
    deadline = time.monotonic() + settings.value(LOCK_WAIT)
    first, longest = metastore.lock_pauses
    pauses = _growing(first, min(longest, settings.value(LOCK_SLEEP)))
    while True:
        [seen] = metastore.get_valid_write_ids([table.full_name], metastore.get_valid_txns())
        earlier = [one for one in seen.open_ids if one < write_id]
        if not earlier:
            return
        if metastore.time_out_txns(spared=txn_id):
            continue
        if circle := metastore.circle_with_writers(txn_id, table.database, table.name, write_id):
            others = ", ".join(map(str, circle[1:]))
            raise Deadlock(
                f"Transaction {txn_id} waits for earlier writers of {table.full_name}, and {others} for it: it ends",
                hint=_SAME_ORDER,
            )
        if time.monotonic() >= deadline:
            ids = ", ".join(map(str, earlier))
            raise LockTimeout(
                f"Transactions that write to {table.full_name} have not ended in time (write ids {ids})",
                code=10307,
                hint="SHOW TRANSACTIONS lists them; acidsql.lock.timeout bounds the wait.",
            )
        time.sleep(min(next(pauses), max(deadline - time.monotonic(), 0.001)))


def _who_holds(response: LockResponse) -> str:
    held = response.blocked_by
    if held is None:
        return "Lock not granted in time"
    place = ".".join(p for p in (held.database, held.table, held.partition) if p)
    owner = f"transaction {held.txn_id}" if held.txn_id else f"lock {held.lock_id}"
    since = (
        ""
        if held.acquired_ms is None
        else f" since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(held.acquired_ms / 1000))}"
    )
    return (
        f"Lock not granted in time: {place} is locked {held.type.name} by {owner} of {held.user}@{held.host}"
        f" ({held.agent_info or 'unknown agent'}){since}"
    )
