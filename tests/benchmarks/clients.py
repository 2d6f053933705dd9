"""Many clients at one store: transactions a second and their latency, on SQLite and on PostgreSQL, as curves.

``python -m tests.benchmarks.clients [--seconds 10] [--clients 1,4,16,64,100] [--kinds insert] [--stores sqlite]``

Each client is a process with a session of the store; what it does over and over is what a statement asks of the store:

* ``insert``: open a transaction, SHARED_READ lock of the table, snapshot, write id, heartbeat, statistics, commit;
* ``update``: the same with EXCL_WRITE on one of as many tables as there are clients, or all on one (``one table``).

No Spark and no files: this measures the store, which all clients share, and not the machine that the clients run on.
``sessions.py`` is the same with both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acidsql.errors import AcidError
from acidsql.metastore import open_metastore
from acidsql.metastore.model import Column, LockComponent, LockRequest, LockType, Operation, Table
from acidsql.metastore.protocol import Metastore
from acidsql.metastore.waiting import wait_for_lock
from acidsql.settings import Settings

SETTINGS = Settings({"acidsql.metastore.busy.timeout": "120s"})
KINDS = ("insert", "update", "update of one table")


def _open(url: str) -> Metastore:
    return open_metastore(url, SETTINGS, warehouse="file:/w")


def statement(store: Metastore, kind: str, number: int) -> None:
    """The calls of a statement."""
    name = "t0" if kind != "update" else f"t{number}"
    is_insert = kind == "insert"
    type = LockType.SHARED_READ if is_insert else LockType.EXCL_WRITE
    operation = Operation.INSERT if is_insert else Operation.UPDATE
    [txn] = store.open_txns(user="u", host=f"h{number}")
    part = LockComponent(type, "default", name, None, operation)
    wait_for_lock(store, SETTINGS, LockRequest((part,), txn, "u", "h"))
    store.get_table("default", name)
    store.get_valid_write_ids([f"default.{name}"], store.get_valid_txns(txn))
    store.get_latest_txn_in_conflict(txn)
    store.allocate_table_write_id(txn, "default", name)
    store.heartbeat(txn_id=txn)
    store.heartbeat(txn_id=txn)
    store.commit_txn(txn)


def client(url: str, kind: str, number: int, seconds: float, barrier: Any, answers: Any) -> None:
    """Run statements for some seconds; answers the latencies, and how many failed."""
    store = _open(url)
    statement(store, kind, number)
    barrier.wait()
    end, latencies, failed = time.monotonic() + seconds, [], 0
    while (started := time.monotonic()) < end:
        try:
            statement(store, kind, number)
        except AcidError:
            failed += 1
        latencies.append(time.monotonic() - started)
    answers.put((latencies, failed))
    store.close()


def measure(url: str, kind: str, clients: int, seconds: float) -> dict[str, Any]:
    """One point of a curve."""
    barrier, answers = multiprocessing.Barrier(clients), multiprocessing.Queue()
    arguments = (seconds, barrier, answers)
    running = [multiprocessing.Process(target=client, args=(url, kind, n, *arguments)) for n in range(clients)]
    for process in running:
        process.start()
    found = [answers.get() for _ in running]
    for process in running:
        process.join()
    latencies = [one for some, _ in found for one in some]
    return {"kind": kind, "clients": clients, **point(latencies, seconds), "failed": sum(failed for _, failed in found)}


def point(latencies: Sequence[float], seconds: float) -> dict[str, float]:
    """How many a second there were, and how long they took, all of them in seconds."""
    latencies = sorted(latencies)
    return {
        "a second": round(len(latencies) / seconds, 1),
        "median ms": round(statistics.median(latencies) * 1000, 1),
        "95 % ms": round(latencies[int(len(latencies) * 0.95)] * 1000, 1),
        "worst ms": round(latencies[-1] * 1000, 1),
    }


@contextmanager
def stores(directory: Path) -> Iterator[dict[str, str]]:
    """A new store of each kind."""
    from tests.services.postgres import PostgresServer

    as_users = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "400"}
    with PostgresServer(others=as_users) as server:
        yield {"sqlite": f"sqlite:///{directory}/store.db", "postgres": server.create_database("clients")}


def main() -> None:
    """Print a line of JSON for each point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", default="1,4,16,64,100")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--stores", default="sqlite,postgres")
    given = parser.parse_args()
    numbers = [int(one) for one in given.clients.split(",")]
    with tempfile.TemporaryDirectory() as directory, stores(Path(directory)) as urls:
        for name in given.stores.split(","):
            url = urls[name]
            store = _open(url)
            for number in range(max(numbers)):
                properties = {"transactional": "true"}
                store.create_table(
                    Table("default", f"t{number}", f"file:/w/t{number}", (Column("a", "int"),), (), properties)
                )
            store.close()
            for kind in given.kinds.split(","):
                for clients in numbers:
                    print(json.dumps({"store": name, **measure(url, kind, clients, given.seconds)}), flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    sys.exit(main())
