"""What other processes do to a store in :mod:`tests.metastore.test_processes`: ``python programs.py <name> <url> …``.

Each prints one line of JSON as its answer; what it prints before that says how far it is.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

from acidsql.metastore import open_metastore
from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType, Operation
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings


def _open(url: str) -> Metastore:
    return open_metastore(url, Settings(), warehouse="file:/w")


def _wait_for_start() -> None:
    """All that is slow is done: say so, and wait until everybody is as far."""
    print("ready", flush=True)
    sys.stdin.readline()


def first_to_open(url: str) -> object:
    """Open a store that may not be there yet, and open a transaction in it."""
    _wait_for_start()
    store = _open(url)
    [txn_id] = store.open_txns(user="u", host="h")
    databases = store.list_databases()
    store.close()
    return {"txn": txn_id, "databases": databases}


def statements(url: str, count: str) -> object:
    """Insert into ``default.t`` a number of times, as a statement does; every third one is aborted."""
    store = _open(url)
    _wait_for_start()
    done = []
    for i in range(int(count)):
        [txn_id] = store.open_txns(user="u", host="h")
        component = LockComponent(LockType.SHARED_READ, "default", "t", None, Operation.INSERT)
        response = store.lock(LockRequest((component,), txn_id, "u", "h"))
        assert response.state is LockState.ACQUIRED
        valid = store.get_valid_write_ids(["default.t"], store.get_valid_txns(txn_id))
        write_id = store.allocate_table_write_id(txn_id, "default", "t")
        assert not valid[0].is_valid(write_id), "a write id was seen before it was handed out"
        if i % 3 == 2:
            store.abort_txns([txn_id], "on purpose")
        else:
            store.commit_txn(txn_id)
        done.append({"txn": txn_id, "write_id": write_id, "committed": i % 3 != 2})
    store.close()
    return done


def killed_inside_a_step(url: str) -> object:
    """Die in the middle of a commit: its statements are executed, the step is not committed."""
    from sqlalchemy import Engine, event

    store = _open(url)
    [txn_id] = store.open_txns(user="u", host="h")
    component = LockComponent(LockType.EXCLUSIVE, "default", "t", None, Operation.UPDATE)
    store.lock(LockRequest((component,), txn_id, "u", "h"))
    store.allocate_table_write_id(txn_id, "default", "t")
    print(json.dumps({"txn": txn_id}), flush=True)

    @event.listens_for(Engine, "commit")
    def die(_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    store.commit_txn(txn_id)
    return "still alive"


def takes_compactions(url: str) -> object:
    """Take requests for compactions until there are none."""
    store = _open(url)
    _wait_for_start()
    taken = []
    while (entry := store.find_next_compact(f"desk-{os.getpid()}")) is not None:
        taken.append(entry.id)
    store.close()
    return taken


PROGRAMS: dict[str, Callable[..., object]] = {
    f.__name__: f for f in (first_to_open, statements, killed_inside_a_step, takes_compactions)
}


if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]](*sys.argv[2:])), flush=True)
