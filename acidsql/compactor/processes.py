"""Names of compactors, and which of them are dead.

A worker is called ``<host>-<process>.<start>.<number>``: what stands behind the last dash of the host is its own id in
SHOW COMPACTIONS. The start of the process tells two processes of one number apart.
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
"""Where ``/proc/<pid>/stat`` tells the start, counted from what follows the name of the program."""


def process_name(host: str) -> str:
    """The name of this process: ``<host>-<process>.<start>``."""
    pid = os.getpid()
    return f"{host}-{pid}.{_started(pid) or 0}"


def is_dead(worker: str, host: str) -> bool:
    """Whether a worker is of a process of this host that is not there any more.

    Args:
        worker: The worker's name. One that is of another host, or is called otherwise, may be alive.
        host: This host.
    """
    found = re.fullmatch(rf"{re.escape(host)}-(\d+)\.(\d+)(?:\.\d+)?", worker)
    if found is None:
        return False
    pid, start = int(found[1]), int(found[2])
    if pid == os.getpid() or _is_there(pid):
        now = _started(pid)
        return bool(start and now is not None and now != start)
    return True


def give_back_of_the_dead(metastore: Metastore, host: str) -> int:
    """Put what dead workers of this host were working on back into the queue, and abort their transactions.

    Any number of compactors may run on the host: only those whose process has ended are meant. Where machines share a
    name and not their processes (containers, say), one that lives may be taken for dead. It then does its work in vain,
    as after ``hive.compactor.worker.timeout``: what the queue has given to another worker it cannot finish.

    Returns:
        How many entries.
    """
    given_back = 0
    for entry in metastore.show_compactions(CompactionFilter(state=CompactionState.WORKING)):
        if entry.worker is None or not is_dead(entry.worker, host):
            continue
        given_back += metastore.revoke_from_local_workers(entry.worker)
        logger.warning("compaction %s is in the queue again: its worker %s is dead", entry.id, entry.worker)
        if entry.txn_id is not None:
            try:
                metastore.abort_txns([entry.txn_id], reason=f"worker {entry.worker} is dead")
            except (NoSuchTransaction, TransactionAborted, CompactionError) as e:
                logger.debug("transaction %s of a dead worker: %s", entry.txn_id, e)
    return given_back


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _started(pid: int) -> int | None:
    """When a process began, in the kernel's ticks; None where that is not told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[_START]) if len(fields) > _START else None
