"""Times single statements on one full-ACID table: our own profiling aid, which needs no other engine.

Run from the project's root::

    python -m tests.benchmarks.statements --rows 100000 --reps 10 [--set name=value] [--profile]

It prints a table with a line for each kind of statement: median, least and greatest wall clock, median CPU time of
the JVM and Python together, Spark jobs started, and where the time went. Every answer is checked, so a fast wrong
statement fails.

Phases: ``sql`` is the call of ``acid.sql`` and ``collect`` the fetching of its answer. A session that has an attribute
``last_phases``, a mapping of phase names to seconds of its last statement, has those phases listed as well.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import acidsql

SPARK_CONF = {
    "spark.driver.memory": "3g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
COLUMNS = "id bigint, qty int, amount double, note string"
SOURCE = (
    "id",
    "cast(id % 10 AS int) AS qty",
    "id / 4.0D AS amount",
    "concat('note ', substr(md5(cast(id AS string)), 1, 25)) AS note",
)
INSERTED_QTY = 7
DELETED_RESIDUE, UPDATED_RESIDUE = 99, 50
"""One-row statements take ids of these residues modulo 100, 1 % statements the small residues: they never meet."""


@dataclass
class Sample:
    """One timed statement; times in seconds, ``cpu`` None where the system does not tell."""

    wall: float
    cpu: float | None
    jobs: int
    phases: dict[str, float]


@dataclass
class Step:
    """All samples of one kind of statement."""

    name: str
    samples: list[Sample] = field(default_factory=list)

    def line(self) -> str:
        """This step as a line of the printed table; milliseconds."""
        walls = [s.wall for s in self.samples]
        cpus = [s.cpu for s in self.samples if s.cpu is not None]
        names = dict.fromkeys(name for s in self.samples for name in s.phases)
        phases = ", ".join(f"{name} {_ms(s.phases.get(name, 0.0) for s in self.samples)}" for name in names)
        jobs = f"{statistics.median(s.jobs for s in self.samples):g}"
        cpu = _ms(cpus) if cpus else "-"
        spread = f"{min(walls) * 1000:.0f} / {max(walls) * 1000:.0f}"
        return f"| {self.name} | {len(walls)} | {_ms(walls)} | {spread} | {cpu} | {jobs} | {phases} |"


def _ms(seconds: Iterator[float] | list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f}"


class Meter:
    """Times statements of one session."""

    def __init__(self, acid: Any, spark: SparkSession, profile: bool = False) -> None:
        self._acid = acid
        self._scheduler = spark.sparkContext._jsc.sc().dagScheduler()
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._stat = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat")
        self._profile = profile

    def _cpu(self) -> float | None:
        """CPU seconds of the JVM and this process so far (the JVM's are to be had on Linux alone)."""
        if not self._stat.exists():
            return None
        fields = self._stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def once(self, text: str) -> tuple[Sample, list[Any]]:
        """Run one statement and collect its answer."""
        jobs, cpu, start = self._scheduler.numTotalJobs(), self._cpu(), time.perf_counter()
        answer = self._acid.sql(text)
        returned = time.perf_counter()
        rows = answer.collect()
        end = time.perf_counter()
        used = self._cpu()
        phases = {"sql": returned - start, "collect": end - returned}
        offered = getattr(self._acid, "last_phases", None)
        if isinstance(offered, Mapping):
            phases.update(offered)
        spent = None if used is None or cpu is None else used - cpu
        return Sample(end - start, spent, self._scheduler.numTotalJobs() - jobs, phases), rows

    def step(self, name: str, texts: list[str], check: Callable[[list[Any]], None]) -> Step:
        """Run statements of one kind, each once; ``check`` gets the rows of each answer, outside the timing."""
        made, profiler = Step(name), cProfile.Profile()
        for text in texts:
            if self._profile:
                profiler.enable()
            sample, rows = self.once(text)
            profiler.disable()
            made.samples.append(sample)
            check(rows)
        if self._profile:
            print(f"\n## {name}: Python side of {len(texts)} statements")
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(25)
        return made


def expect(step: str, what: str, found: Any, wanted: Any) -> None:
    """Stop with a plain message where an answer is wrong.

    Raises:
        SystemExit: When ``found`` is not ``wanted``.
    """
    if found != wanted:
        raise SystemExit(f"{step}: {what} is {found}, should be {wanted}: no timing of wrong answers")


class Workload:
    """The statements on one table, and the rows and the sum of ``qty`` that the table must have after each."""

    def __init__(self, meter: Meter, table: str, rows: int, reps: int) -> None:
        self.meter, self.table, self.size, self.reps = meter, table, rows, reps
        self.rows, self.total = 0, 0

    def change(self, name: str, texts: list[str], affected: int, rows: int, qty: int) -> Step:
        """DML statements of which each affects ``affected`` rows and adds ``rows`` and ``qty`` to the table."""
        self.rows += rows * len(texts)
        self.total += qty * len(texts)
        return self.meter.step(
            name, texts, lambda answer: expect(name, "num_affected_rows", answer[0]["num_affected_rows"], affected)
        )

    def scan(self, name: str) -> Step:
        """A scan of every column."""
        text = f"SELECT count(*) AS n, sum(qty) AS total, sum(amount) AS amount, max(note) AS note FROM {self.table}"
        wanted = (self.rows, self.total)
        return self.meter.step(
            name, [text] * self.reps, lambda answer: expect(name, "(rows, sum)", tuple(answer[0])[:2], wanted)
        )

    def run(self) -> Iterator[Step]:
        """All steps, in the order in which they are printed."""
        t, n = self.table, self.size
        few, stride = range(self.reps), max(1, n // 100 // self.reps) * 100
        self.meter.once(f"CREATE TABLE {t} ({COLUMNS}) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
        load = f"INSERT INTO {t} SELECT * FROM statements_source WHERE id < {n}"
        yield self.change("bulk INSERT", [load], n, n, n // 10 * 45)
        yield self.scan("scan, one delta")
        insert = [f"INSERT INTO {t} VALUES ({n + i}, {INSERTED_QTY}, 1.5D, 'note inserted {i}')" for i in few]
        yield self.change("INSERT 1 row", insert, 1, 1, INSERTED_QTY)
        update = [f"UPDATE {t} SET qty = qty + 1 WHERE id = {UPDATED_RESIDUE + stride * i}" for i in few]
        yield self.change("UPDATE 1 row", update, 1, 0, 1)
        delete = [f"DELETE FROM {t} WHERE id = {DELETED_RESIDUE + stride * i}" for i in few]
        yield self.change("DELETE 1 row", delete, 1, -1, -(DELETED_RESIDUE % 10))
        percent = [f"UPDATE {t} SET qty = qty + 1 WHERE id < {n} AND id % 100 = {i}" for i in range(min(self.reps, 5))]
        yield self.change("UPDATE 1 %", percent, n // 100, 0, n // 100)
        yield self.scan("scan, with deltas")
        lookup = [f"SELECT * FROM {t} WHERE id = {UPDATED_RESIDUE + stride * i}" for i in few]
        yield self.meter.step("look up 1 row", lookup, lambda answer: expect("look up", "rows", len(answer), 1))


@contextmanager
def opened(
    warehouse: str, settings: Mapping[str, str], cores: int, conf: Mapping[str, str] | None = None
) -> Iterator[tuple[Any, SparkSession]]:
    """A local Spark session and an acidsql session on it, both closed at the end; ``conf`` of Spark comes first."""
    builder = SparkSession.builder.master(f"local[{cores}]").appName("acidsql statements")
    for name, value in {**SPARK_CONF, **(conf or {})}.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.sql.warehouse.dir", warehouse).getOrCreate()
    try:
        acid = acidsql.connect(spark, warehouse=warehouse, settings=dict(settings))
        try:
            yield acid, spark
        finally:
            acid.close()
    finally:
        spark.stop()


def arguments() -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.statements", description="Times single statements."
    )
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the table, in hundreds (default 100000)")
    parser.add_argument(
        "--reps", type=int, default=10, help="statements of each kind, at most 1 in 100 rows (default 10)"
    )
    parser.add_argument("--cores", type=int, default=2, help="N of Spark's local[N] (default 2)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of acidsql; repeatable"
    )
    parser.add_argument("--warehouse", help="a directory to work in and keep (default: a temporary one)")
    parser.add_argument(
        "--profile", action="store_true", help="also print where Python spends its time; slows the timings"
    )
    made = parser.parse_args()
    if made.rows <= 0 or made.rows % 100 or not 0 < made.reps <= made.rows // 100:
        parser.error("--rows takes a positive multiple of 100, --reps 1 to a hundredth of it")
    if not all("=" in s for s in made.set):
        parser.error("--set takes NAME=VALUE")
    return made


def main() -> None:
    """Warm up on a small table, then time and print."""
    args = arguments()
    settings = dict(s.split("=", 1) for s in args.set)
    warehouse = os.path.abspath(args.warehouse or tempfile.mkdtemp(prefix="acidsql-statements-"))
    try:
        with opened(warehouse, settings, args.cores) as (acid, spark):
            spark.range(args.rows + 1000).selectExpr(*SOURCE).createOrReplaceTempView("statements_source")
            stamp = int(time.time())  # a kept warehouse may hold the tables of an earlier run
            for _ in Workload(Meter(acid, spark), f"warm_{stamp}", 1000, 3).run():
                pass
            print(f"{args.rows} rows, local[{args.cores}], Spark {spark.version}; milliseconds\n")
            print("| step | n | wall median | min / max | CPU median | Spark jobs | phases, median |")
            print("|---" * 7 + "|")
            for step in Workload(Meter(acid, spark, args.profile), f"timed_{stamp}", args.rows, args.reps).run():
                print(step.line(), flush=True)
    finally:
        if args.warehouse is None:
            shutil.rmtree(warehouse, ignore_errors=True)


if __name__ == "__main__":
    main()
