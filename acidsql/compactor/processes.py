"""Names of compactors, and detection of dead ones.

A worker is named ``<host>-<process>.<start>.<number>``: the part after the last dash is its id in SHOW COMPACTIONS. The
start time distinguishes processes with the same pid.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from acidsql.errors import CompactionError, NoSuchTransaction, TransactionAborted
from acidsql.metastore.model import CompactionFilter, CompactionState
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)

_START = 19
"""Index of the start time in ``/proc/<pid>/stat``, counted after the program name."""


def process_name(host: str) -> str:
    """The name of this process: ``<host>-<process>.<start>``."""
    pid = os.getpid()
    return f"{host}-{pid}.{_started(pid) or 0}"


def is_dead(worker: str, host: str) -> bool:
    """Whether a worker belongs to a process of this host that no longer exists.

    Args:
        worker: The worker's name. Workers of other hosts, or with other names, may be alive.
        host: This host.
    """
    match = re.fullmatch(rf"{re.escape(host)}-(\d+)\.(\d+)(?:\.\d+)?", worker)
    if match is None:
        return False
    pid, start = int(match[1]), int(match[2])
    if pid == os.getpid() or _exists(pid):
        now = _started(pid)
        return bool(start and now is not None and now != start)
    return True


def give_back_of_the_dead(metastore: Metastore, host: str) -> int:
    """Requeue compactions of dead workers on this host, and abort their transactions.

    Any number of compactors may run on the host: only those whose process has ended are affected. If machines share a
    host name but not their processes (such as containers), a live worker may be considered dead. Its work is then lost,
    as after ``hive.compactor.worker.timeout``: it cannot finish an entry that the queue has given to another worker.

    Returns:
        How many entries.
    """
    given_back = 0
    for entry in metastore.show_compactions(CompactionFilter(state=CompactionState.WORKING)):
        if entry.worker is None or not is_dead(entry.worker, host):
            continue
        given_back += metastore.revoke_from_local_workers(entry.worker)
        logger.warning("compaction %s is queued again: its worker %s is dead", entry.id, entry.worker)
        if entry.txn_id is not None:
            try:
                metastore.abort_txns([entry.txn_id], reason=f"worker {entry.worker} is dead")
            except (NoSuchTransaction, TransactionAborted, CompactionError) as e:
                logger.debug("transaction %s of a dead worker: %s", entry.txn_id, e)
    return given_back


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        return True
    return True


def _started(pid: int) -> int | None:
    """Start time of a process, in kernel ticks; None if unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[_START]) if len(fields) > _START else None
