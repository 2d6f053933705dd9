"""What ``acidsql.sync`` costs: statements with and without it in turn; ``README.md`` beside this file has the figures.

Run from the project's root, with ``--folder`` on the disk in question::

    python -m tests.benchmarks.sync --folder /var/tmp
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import acidsql
from tests.benchmarks.statements import SPARK_CONF

STATEMENTS: dict[str, tuple[int, Callable[[int], str]]] = {
    "INSERT of one row": (25, lambda i: f"INSERT INTO t VALUES ({-i - 1}, 1, 'x')"),
    "UPDATE of one row": (15, lambda i: f"UPDATE t SET qty = 3 WHERE id = {1000 + i}"),
    "INSERT of 1,000,000 rows": (5, lambda i: f"INSERT INTO t SELECT id, {i}, concat('note ', id) FROM range(1000000)"),
}
"""How often each runs, and its text."""


def main() -> None:
    """Print medians in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default="/var/tmp")
    builder = SparkSession.Builder().master("local[2]")
    for name, value in SPARK_CONF.items():
        builder = builder.config(name, value)
    spark, took = builder.getOrCreate(), defaultdict[tuple[str, str], list[float]](list)
    with tempfile.TemporaryDirectory(dir=parser.parse_args().folder) as root:
        print(f"fsync of 4 kB: {1000 * _fsync(Path(root)):.2f} ms")
        sessions = {
            sync: acidsql.connect(spark, warehouse=f"{root}/{sync}", settings={"acidsql.sync": sync})
            for sync in ("true", "false")
        }
        for acid in sessions.values():
            acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, qty int, note string)")
            acid.sql("INSERT INTO t SELECT id, 1, concat('note ', id) FROM range(100000)")
            for i in range(8):  # the JVM gets warm
                acid.sql(f"INSERT INTO t VALUES ({-1000 - i}, 1, 'x')")
                acid.sql(f"UPDATE t SET qty = 2 WHERE id = {i}")
        for name, (repetitions, text) in STATEMENTS.items():
            for i in range(repetitions):
                for sync in sorted(sessions, reverse=i % 2 == 0):
                    begun = time.perf_counter()
                    sessions[sync].sql(text(i))
                    took[name, sync].append(time.perf_counter() - begun)
        for (name, sync), times in took.items():
            print(f"{name}, acidsql.sync={sync}: {1000 * statistics.median(times):.0f} ms")
        for acid in sessions.values():
            acid.close()
    spark.stop()


def _fsync(folder: Path) -> float:
    times = []
    for i in range(50):
        with (folder / f"f{i}").open("wb") as file:
            file.write(b"x" * 4096)
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begun)
    return statistics.median(times)


if __name__ == "__main__":
    main()
