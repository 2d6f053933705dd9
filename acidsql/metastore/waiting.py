"""Waiting for locks."""

from __future__ import annotations

import time

from acidsql.errors import LockTimeout
from acidsql.metastore.model import LockRequest, LockResponse, LockState
from acidsql.metastore.protocol import Metastore
from acidsql.settings import LOCK_RETRIES, LOCK_SLEEP, LOCK_WAIT, Settings

PAUSE_GROWTH = 1.3


def wait_for_lock(metastore: Metastore, settings: Settings, request: LockRequest) -> LockResponse:
    """Ask for locks and wait until they are granted, with growing pauses.

    Raises:
        LockTimeout: When ``acidsql.lock.timeout`` or ``hive.lock.numretries`` is used up; names the holder.
    """
    deadline = time.monotonic() + settings.value(LOCK_WAIT)
    pause, tries = metastore.lock_pause, settings.value(LOCK_RETRIES)
    response = metastore.lock(request)
    while response.state is LockState.WAITING:
        if tries <= 0 or time.monotonic() >= deadline:
            raise LockTimeout(
                _who_holds(response),
                code=10307,
                hint="SHOW LOCKS lists the holders; acidsql.lock.timeout bounds the wait.",
            )
        time.sleep(min(pause, max(deadline - time.monotonic(), 0.001)))
        pause, tries = min(pause * PAUSE_GROWTH, settings.value(LOCK_SLEEP)), tries - 1
        response = metastore.check_lock(response.lock_id)
    return response


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
