"""Processes at work on one store, which are killed and stopped, while the clock jumps and the disk is full.

A program of its own: the tests run it where it has a small disk, too. It makes the tables, starts the processes, does
to them what is drawn by chance, and reads all of it at the end; what was seen is in the journals that it leaves.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import acidsql
from tests.isolation.journal import Journal, events_of, report_of
from tests.isolation.run import DEAD_AFTER, Faults, Run, make_tables
from tests.oracle.small_spark import small_spark
from tests.spark.processes import ROOT, environment

STARTING = 25.0
"""Seconds that a process gets to begin, before anything is done to one."""


@dataclass(frozen=True)
class Plan:
    """What a herd does.

    Attributes:
        journals: Directory of the journals, which are not on the small disk.
        warehouse: The tables.
        metastore: The store; empty: the embedded one in the warehouse.
        settings: Of the sessions.
        fates: What is done to them: names of :class:`Herd`'s methods.
    """

    journals: str
    warehouse: str
    settings: dict[str, str]
    seed: int
    seconds: float
    metastore: str = ""
    processes: int = 3
    sessions: int = 2
    fates: tuple[str, ...] = ("kill", "stop", "jump")

    @staticmethod
    def of(given: dict[str, Any]) -> Plan:
        """One that was JSON."""
        return Plan(**{**given, "fates": tuple(given["fates"])})

    def connect(self, spark: SparkSession, **settings: str) -> acidsql.AcidSession:
        """A session, with further settings."""
        where = {"metastore": self.metastore} if self.metastore else {}
        return acidsql.connect(spark, warehouse=self.warehouse, settings={**self.settings, **settings}, **where)


@dataclass
class Herd:
    """The processes."""

    plan: Plan
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: dict[int, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    _number: int = 0

    def __post_init__(self) -> None:
        self.folder = Path(self.plan.journals)
        self.clock = self.folder / "clock"
        self.clock.write_text("0")
        self.ballast = Path(self.plan.warehouse).parent / "ballast"
        self.end = time.monotonic() + self.plan.seconds

    def start(self) -> None:
        self._number += 1
        number = self._number
        given = {
            "plan": asdict(self.plan),
            "number": number,
            "seconds": max(1.0, self.end - time.monotonic()),
            "clock": str(self.clock),
            "journal": str(self.folder / f"{number:04d}.jsonl"),
            "local": str(self.folder / "local"),
        }
        with (self.folder / f"{number:04d}.err").open("wb") as log:
            self.running[number] = subprocess.Popen(
                [sys.executable, "-m", "tests.isolation.worker", json.dumps(given)],
                cwd=ROOT,
                env=environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started[number] = time.monotonic()

    def kill(self, number: int) -> None:
        """The process and its JVM end, and another one begins."""
        os.killpg(self.running[number].pid, signal.SIGKILL)
        self.running.pop(number).wait()
        self.start()

    def stop(self, number: int) -> None:
        """The process is away for longer than its transactions live."""
        group = self.running[number].pid
        os.killpg(group, signal.SIGSTOP)
        time.sleep(DEAD_AFTER + 2)
        os.killpg(group, signal.SIGCONT)

    def jump(self, number: int) -> None:
        """The clock of all is set forward by an hour; or back, which is where it was."""
        self.clock.write_text("0" if self.clock.read_text() != "0" else str(3_600_000))

    def fill(self, number: int) -> None:
        """The disk is full for some seconds."""
        status = os.statvfs(self.ballast.parent)
        with suppress(OSError):
            self.ballast.write_bytes(bytes(max(0, status.f_bavail * status.f_bsize - 20_000)))
        time.sleep(2)
        self.ballast.unlink()

    def go(self) -> None:
        """Run to the end."""
        chance = random.Random(self.plan.seed)
        for _ in range(self.plan.processes):
            self.start()
        while time.monotonic() < self.end:
            time.sleep(chance.uniform(1, 5))
            now = time.monotonic()
            ready = [n for n in self.running if now - self.started[n] > STARTING]
            if ready and self.end - now > 2 * STARTING:
                fate = chance.choice(self.plan.fates)
                getattr(self, fate)(chance.choice(ready))
                self.counts[fate] += 1
        for number, process in self.running.items():
            if process.wait(timeout=300):
                raise SystemExit((self.folder / f"{number:04d}.err").read_text()[-3000:])

    def cleared(self) -> None:
        """Nothing of them goes on."""
        for process in self.running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def main(plan: Plan) -> None:
    spark = small_spark(spark__local__dir=str(Path(plan.journals, "local")))

    with plan.connect(spark) as acid:
        make_tables(acid)
    herd = Herd(plan)
    try:
        herd.go()
    finally:
        herd.cleared()
    with plan.connect(spark, **{"hive.txn.timeout": "300s"}) as acid:
        before = report_of(events_of(herd.folder.glob("*.jsonl")))
        journal = Journal("end", herd.folder / "end.jsonl")
        Run(lambda: acid, plan.seed, Faults(), journal).look(acid, before)
        _settle(acid, journal)
    for fate, count in herd.counts.items():
        for _ in range(count):
            journal.count(f"fate: {fate}")
    spark.stop()


def _settle(acid: acidsql.AcidSession, journal: Journal) -> None:
    """Whoever is dead is taken for dead, and leaves nothing."""
    acid._env.heartbeats.end_released(collect=True)

    def left() -> list[object]:
        opened = [r for r in acid.sql("SHOW TRANSACTIONS").collect() if r.state == "OPEN"]
        return [*acid.sql("SHOW LOCKS").collect(), *opened]

    end = time.monotonic() + 60
    while left() and time.monotonic() < end:
        acid.metastore.time_out_txns()
        time.sleep(0.5)
    if found := left():
        journal.problem(f"left open: {found}")


if __name__ == "__main__":
    main(Plan.of(json.loads(sys.argv[1])))
