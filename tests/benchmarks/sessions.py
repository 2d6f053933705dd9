"""Many sessions of one Spark at one store: one-row ``INSERT`` and ``UPDATE`` with all that they do, as curves.

``python -m tests.benchmarks.sessions [--clients 1,4,16,64,100] [--statements 100] [--rows 100000] [--stores sqlite]``

Each client is a thread with a connection of its own; together they run as many statements as there are clients, or
``--statements`` if that is more. They share the table, the store and the cores of one machine:

* ``insert``: ``INSERT`` of one row;
* ``update``: ``UPDATE`` of a row that no other client changes, with ``acidsql.write.conflicts=row``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.session import AcidSession, start_spark
from tests.benchmarks.clients import point, stores

KINDS = {
    "insert": "INSERT INTO t VALUES ({row}, 0, 'new')",
    "update": "UPDATE t SET n = n + 1 WHERE id = {row}",
}


def measure(sessions: list[AcidSession], kind: str, clients: int, statements: int, rows: int) -> dict[str, Any]:
    """One point of a curve."""
    each, failed = max(1, statements // clients), 0

    def client(number: int) -> list[float]:
        nonlocal failed
        took = []
        for _ in range(each):
            started = time.monotonic()
            try:
                sessions[number].sql(KINDS[kind].format(row=number * (rows // clients)))
            except AcidError:
                failed += 1
            took.append(time.monotonic() - started)
        return took

    started = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        latencies = [one for some in pool.map(client, range(clients)) for one in some]
    return {"kind": kind, "clients": clients, **point(latencies, time.monotonic() - started), "failed": failed}


def main() -> None:
    """Print a line of JSON for each point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="1,4,16,64,100")
    parser.add_argument("--statements", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--stores", default="sqlite,postgres")
    given = parser.parse_args()
    numbers = [int(one) for one in given.clients.split(",")]
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        urls = stack.enter_context(stores(Path(directory)))
        spark = start_spark(directory, master="local[2]", conf={"spark.driver.memory": "4g"})
        stack.callback(spark.stop)
        for name in given.stores.split(","):
            with ExitStack() as opened:
                sessions = [
                    opened.enter_context(_connect(spark, urls[name], f"{directory}/{name}"))
                    for _ in range(max(numbers))
                ]
                sessions[0].sql("CREATE TRANSACTIONAL TABLE t (id bigint, n int, v string)")
                sessions[0].sql(f"INSERT INTO t SELECT id, 0, string(id) FROM range({given.rows})")
                for kind in given.kinds.split(","):
                    measure(sessions, kind, 1, 10, given.rows)  # not counted
                    for clients in numbers:
                        found = measure(sessions, kind, clients, given.statements, given.rows)
                        print(json.dumps({"store": name, **found}), flush=True)


def _connect(spark: SparkSession, url: str, warehouse: str) -> AcidSession:
    settings = {"acidsql.write.conflicts": "row", "acidsql.metastore.busy.timeout": "120s"}
    return acidsql.connect(spark, metastore=url, warehouse=warehouse, settings=settings)


if __name__ == "__main__":
    sys.exit(main())
