"""Draws curves: how long a scan, a look-up and an UPDATE of one row take while one thing about a table grows.

Run from the project's root::

    python -m tests.benchmarks.scale [--curves deltas,partitions] [--limit 1000] [--out FOLDER]

========== ========================================================= ===============================================
curve      what grows                                                 statements besides those three
========== ========================================================= ===============================================
deltas     deltas that no compaction has merged, to 1,000
partitions partitions of four rows, to 10,000                         INSERT into all, UPDATE of all rows
deleted    the part of a million rows that is deleted, to 50 %
rows       rows, from one million to 30 million
history    transactions that have ended, to 100,000
========== ========================================================= ===============================================

``--limit`` leaves out sizes above it (of ``deleted`` it bounds the rows of the table). Every answer that the curves
depend on is checked. The points go to ``scale.jsonl`` in the folder, one a line (:class:`.scale_meter.Point`), as soon
as they are known; the pictures beside it need matplotlib (``pip install 'acidsql[notebook]'``). Starting Spark and
connecting is measured once, apart from them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from acidsql.metastore.model import LockComponent, LockRequest, LockType, Operation
from acidsql.session import AcidSession
from tests.benchmarks.scale_meter import Point, Processes, ScaleMeter
from tests.benchmarks.scale_plot import AXES, draw, read
from tests.benchmarks.statements import COLUMNS, SOURCE, expect, opened

RESULTS = "scale.jsonl"
SETTINGS = {"acidsql.compactor.auto": "false", "hive.max.open.txns": "1000000"}
"""Nothing is compacted while it grows."""
DELTAS = (1, 3, 10, 30, 100, 300, 1000)
PARTITIONS = (1, 10, 100, 1000, 10_000)
PERCENT = (0, 1, 5, 10, 25, 50)
ROWS = (1_000_000, 3_000_000, 10_000_000, 30_000_000)
HISTORY = (0, 1000, 10_000, 100_000)
FEW_ROWS = 100_000
"""Rows of a table of which something else grows."""
ROWS_OF_PARTITION = 4
_AT_ONCE = 1000
"""Past transactions that are put on record together."""
_STRIDE = 7919
"""A prime: the rows that are looked up and changed lie apart, and in all parts of a table."""


@dataclass
class Bench:
    """The curves of one session."""

    meter: ScaleMeter
    limit: int | None
    _tables: int = 0
    _ids: dict[str, int] = field(default_factory=dict)

    @property
    def acid(self) -> AcidSession:
        """The session."""
        return self.meter.acid

    def sizes(self, wanted: tuple[int, ...]) -> list[int]:
        """Those up to the limit; the smallest always."""
        return [size for size in wanted if self.limit is None or size <= self.limit or size == wanted[0]]

    # --- tables ------------------------------------------------------------------------------------------------------

    def table(self, rows: int, partitions: int | None = None) -> str:
        """A new table with rows numbered from 0, all of one INSERT."""
        self._tables += 1
        name = f"scale_{self._tables}"
        by = "PARTITIONED BY (p int) " if partitions else ""
        self.acid.sql(f"CREATE TABLE {name} ({COLUMNS}) {by}STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
        if rows:
            self.acid.sql(self.insert(name, rows, partitions))
        return name

    def insert(self, table: str, rows: int, partitions: int | None = None) -> str:
        """The statement that fills a table."""
        keys = f", cast(id % {partitions} AS int)" if partitions else ""
        return f"INSERT INTO {table} SELECT {', '.join(SOURCE)}{keys} FROM range({rows})"

    def drop(self, table: str) -> None:
        """Drop a table: the next size has one of its own."""
        self.acid.sql(f"DROP TABLE {table} PURGE")

    def of_one_row(self, curve: str, size: int, table: str, rows: int) -> None:
        """The three points that all curves have; UPDATE is the last, as it makes the table grow.

        Rows that the curve may have deleted are not asked for: their numbers are even.
        """
        scan = f"SELECT count(*) AS n, sum(qty), sum(amount), max(note) FROM {table}"
        self.meter.point(curve, size, "full scan", [scan])
        ids = [self._next_id(table, rows) for _ in range(self.meter.statements)]
        self.meter.point(curve, size, "look-up by id", [f"SELECT * FROM {table} WHERE id = {id}" for id in ids])
        found = self.acid.sql(f"SELECT * FROM {table} WHERE id = {ids[-1]}").collect()
        expect(curve, "rows of an id", len(found), 1)
        updates = [f"UPDATE {table} SET qty = qty + 1 WHERE id = {id}" for id in ids]
        self.meter.point(curve, size, "UPDATE of one row", updates)

    def _next_id(self, table: str, rows: int) -> int:
        number = self._ids[table] = self._ids.get(table, 0) + 1
        return (number * _STRIDE % (rows - 1)) // 2 * 2 + 1

    def count(self, table: str) -> int:
        """The rows of a table."""
        return int(self.acid.sql(f"SELECT count(*) FROM {table}").collect()[0][0])

    # --- curves ------------------------------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """What Spark and acidsql load and compile at the first statements is not measured."""
        table = self.table(FEW_ROWS, 3)
        for text in (
            f"SELECT count(*), sum(qty), sum(amount), max(note) FROM {table}",
            f"UPDATE {table} SET qty = qty + 1 WHERE id = 5",
            f"SELECT * FROM {table} WHERE id = 5",
        ):
            self.acid.sql(text).collect()
        self.drop(table)

    def deltas(self) -> None:
        """Deltas of one row each beside a large one. What UPDATE adds counts as well: where it is too much for the next
        size, that begins anew."""
        table, there = self.table(FEW_ROWS), 1
        for size in self.sizes(DELTAS):
            if there > size:
                self.drop(table)
                table, there = self.table(FEW_ROWS), 1
            for number in range(there, size):
                self.acid.sql(f"INSERT INTO {table} VALUES ({FEW_ROWS + number}, 1, 1.5D, 'note of a delta')")
            expect("deltas", "number of rows", self.count(table) >= FEW_ROWS, True)
            self.of_one_row("deltas", size, table, FEW_ROWS)
            there = size + self.meter.statements
        self.drop(table)

    def partitions(self) -> None:
        """Each INSERT that is measured fills a table of its own; the last one is that of the other points."""
        for size in self.sizes(PARTITIONS):
            rows = size * ROWS_OF_PARTITION
            tables = [self.table(0, size) for _ in range(self.meter.statements)]
            inserts = [self.insert(table, rows, size) for table in tables]
            self.meter.point("partitions", size, "INSERT into all", inserts)
            *others, table = tables
            for other in others:
                self.drop(other)
            expect("partitions", "number of rows", self.count(table), rows)
            self.of_one_row("partitions", size, table, rows)
            self.meter.point("partitions", size, "UPDATE of all rows", [f"UPDATE {table} SET qty = qty + 1"])
            expect("partitions", "number of rows", self.count(table), rows)
            self.drop(table)

    def deleted(self) -> None:
        """Rows that lie scattered, of an even number each."""
        rows = min(self.limit or ROWS[0], ROWS[0])
        table, before = self.table(rows), 0
        for percent in PERCENT:
            if percent:
                between = f"id % 100 >= {2 * before} AND id % 100 < {2 * percent}"
                self.acid.sql(f"DELETE FROM {table} WHERE id % 2 = 0 AND {between}")
                before = percent
            left = sum(rows // 100 + (residue < rows % 100) for residue in range(100))
            left -= sum(rows // 100 + (residue < rows % 100) for residue in range(0, 2 * percent, 2))
            expect("deleted", "number of rows", self.count(table), left)
            self.of_one_row("deleted", percent, table, rows)
        self.drop(table)

    def rows(self) -> None:
        """One INSERT, one delta."""
        for size in self.sizes(ROWS):
            rows = min(size, self.limit or size)
            table = self.table(rows)
            expect("rows", "number of rows", self.count(table), rows)
            self.of_one_row("rows", rows, table, rows)
            self.drop(table)

    def history(self) -> None:
        """Transactions that have inserted into another table and committed, of which nothing was cleaned up."""
        table, other, there = self.table(FEW_ROWS), self.table(0), 0
        for size in self.sizes(HISTORY):
            for start in range(there, size, _AT_ONCE):
                self._pass(other, min(_AT_ONCE, size - start))
            there = size
            self.of_one_row("history", size, table, FEW_ROWS)
        self.drop(table)
        self.drop(other)

    def _pass(self, table: str, count: int) -> None:
        """Some transactions as INSERT has them: opened, locked, with a write id, committed; but none writes a file."""
        metastore = self.acid.metastore
        component = LockComponent(LockType.SHARED_READ, "default", table, None, Operation.INSERT)
        with metastore.alone():  # one transaction of the store, or each of its commits would be synced
            for _ in range(count):
                [txn] = metastore.open_txns(user="bench", host="localhost")
                metastore.lock(LockRequest((component,), txn, "bench", "localhost", ""))
                metastore.allocate_table_write_id(txn, "default", table)
                metastore.commit_txn(txn)


CURVES: dict[str, Callable[[Bench], None]] = {name: getattr(Bench, name) for name in AXES}


def keeping(results: TextIO) -> Callable[[Point], None]:
    """Writes each point to the file of results, and a line about it to the terminal."""

    def keep(point: Point) -> None:
        _write(results, point.record())
        cpu = "-" if point.cpu is None else f"{point.cpu:.2f}"
        memory = point.memory_mb
        used = "-" if memory is None else f"{memory.jvm:.0f} / {memory.python:.0f} / {memory.workers:.0f}"
        print(
            f"| {point.curve} | {point.size} | {point.statement} | {point.planning:.2f} | {point.wall:.2f}"
            f" | {cpu} | {used} |",
            flush=True,
        )

    return keep


def _write(results: TextIO, record: dict[str, Any]) -> None:
    results.write(json.dumps(record) + "\n")
    results.flush()


def arguments() -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale", description="Draws curves.")
    parser.add_argument("--curves", default=",".join(CURVES), help=f"some of {','.join(CURVES)} (default: all)")
    parser.add_argument("--limit", type=int, help="the largest size (default: none)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each statement after the first (default 3)")
    parser.add_argument("--cores", type=int, default=2, help="N of Spark's local[N] (default 2)")
    parser.add_argument("--memory", default="3g", help="of the driver's JVM (default 3g)")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "curves", help="folder of the results (default: curves)"
    )
    made = parser.parse_args()
    made.curves = made.curves.split(",")
    if unknown := [name for name in made.curves if name not in CURVES]:
        parser.error(f"no curve is called {unknown[0]}: there are {', '.join(CURVES)}")
    if made.runs < 1 or (made.limit is not None and made.limit < 1):
        parser.error("--runs and --limit take positive numbers")
    return made


def measure(args: argparse.Namespace, results: TextIO) -> None:
    """Start Spark, connect, and measure the curves."""
    warehouse = tempfile.mkdtemp(prefix="acidsql-scale-")
    start = time.perf_counter()
    try:
        with opened(warehouse, SETTINGS, args.cores, {"spark.driver.memory": args.memory}) as (acid, spark):
            memory = Processes(spark).memory()
            started = {"seconds": time.perf_counter() - start, "memory_mb": None if memory is None else vars(memory)}
            _write(results, {"kind": "start", **started, "spark": spark.version, "cores": args.cores})
            bench = Bench(ScaleMeter(acid, args.runs, keeping(results)), args.limit)
            bench.warm_up()
            print(f"Spark and the session started in {started['seconds']:.1f} s\n")
            print("| curve | size | statement | planning, s | wall, s | CPU, s | MB: JVM / Python / workers |")
            print("|---" * 7 + "|")
            for name in args.curves:
                CURVES[name](bench)
    finally:
        shutil.rmtree(warehouse, ignore_errors=True)


def main() -> None:
    """Measure, then draw; results of other curves in the folder are kept."""
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    path = args.out / RESULTS
    with path.open("a") as results:
        measure(args, results)
    try:
        for picture in draw(read(path), args.out):
            print(picture)
    except ImportError:
        print(
            f"No pictures: matplotlib is not installed. See tests/benchmarks/scale_plot.py; the results are in {path}"
        )


if __name__ == "__main__":
    main()
