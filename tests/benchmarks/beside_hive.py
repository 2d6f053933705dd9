"""Times the same statements by Hive and by acidsql, in turn, on one table of one metastore.

Run from the project's root (it installs and starts a Hive of its own, see :mod:`tests.services.hive`)::

    python -m tests.benchmarks.beside_hive --rows 1000000 --reps 5

It prints a line for each kind of statement: the median wall clock of either engine and their ratio. Both end with the
same rows, which is checked.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

import acidsql
from acidsql.session import AcidSession
from tests.benchmarks.statements import COLUMNS, SOURCE, SPARK_CONF, expect
from tests.services.hive import HiveServer
from tests.services.hiveserver2 import Hive

TABLE = "beside"
TEXTS: dict[str, Callable[[int], str]] = {
    "INSERT 1 row": lambda i: f"INSERT INTO {TABLE} VALUES ({10_000_000 + i}, 7, 1.5, 'note')",
    "UPDATE 1 row": lambda i: f"UPDATE {TABLE} SET qty = qty + 1 WHERE id = {1000 + 17 * i}",
    "DELETE 1 row": lambda i: f"DELETE FROM {TABLE} WHERE id = {500_000 + 17 * i}",
    "UPDATE 1 %": lambda i: f"UPDATE {TABLE} SET qty = qty + 1 WHERE id % 100 = {i}",
    "look up 1 row": lambda i: f"SELECT * FROM {TABLE} WHERE id = {2000 + 17 * i}",
    "scan": lambda i: f"SELECT count(*), sum(qty), sum(amount), max(note) FROM {TABLE} WHERE id <> {-i}",
}
CHECK = f"SELECT count(*), sum(qty), sum(id) FROM {TABLE}"


def compare(acid: AcidSession, hive: Hive, rows: int, reps: int) -> None:
    """Fill the table, run everything, and print."""
    acid.sql(f"CREATE TABLE {TABLE} ({COLUMNS}) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    acid.sql(f"INSERT INTO {TABLE} SELECT * FROM beside_source")
    runs: dict[str, Callable[[str], object]] = {"Hive": hive.run, "acidsql": lambda text: acid.sql(text).collect()}
    print(f"{rows} rows, median of {reps} by either engine in turn, seconds of wall clock\n")
    print("| statement | Hive 4.0.1 | acidsql | Hive / acidsql |\n|---|---|---|---|")
    for name, text in TEXTS.items():
        walls: dict[str, list[float]] = {engine: [] for engine in runs}
        for i in range(-2, 2 * reps):  # the first of either engine is not counted
            engine = "Hive" if i % 2 == 0 else "acidsql"
            start = time.perf_counter()
            runs[engine](text(i + 2))
            walls[engine] += [time.perf_counter() - start] if i >= 0 else []
        theirs, ours = statistics.median(walls["Hive"]), statistics.median(walls["acidsql"])
        print(f"| {name} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.1f} |", flush=True)
    expect("both", CHECK, [tuple(r) for r in acid.sql(CHECK).collect()], hive.run(CHECK))


def main() -> None:
    """Start both engines, compare, stop both."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.beside_hive", description="Hive and acidsql.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table (default 1000000)")
    parser.add_argument("--reps", type=int, default=5, help="statements of each kind by either engine (default 5)")
    given = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").appName("beside Hive")
    for name, value in SPARK_CONF.items():
        builder = builder.config(name, value)
    with HiveServer() as server:
        spark = builder.getOrCreate()
        spark.range(given.rows).selectExpr(*SOURCE).createOrReplaceTempView("beside_source")
        with acidsql.connect(spark, metastore=server.metastore_uri) as acid, server.connect() as hive:
            compare(acid, hive, given.rows, given.reps)
        spark.stop()


if __name__ == "__main__":
    main()
