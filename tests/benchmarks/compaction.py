"""Major compaction after ten updates, beside the peers: seconds, bytes a second, and scans before and after.

It takes engines, data and session from the peers benchmark harness, as ``adapter.py`` does; ``README.md`` beside this
file has the commands. Each engine runs in a process and JVM of its own, in turn, as often as ``--rounds`` says.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from peers import engine_at_work, generate  # beside this file

UPDATES = 10
STEPS = ("scan before", "compact", "scan after", "clean")


def run_one(harness: Any, engine: Any, rows: int, reps: int, out: Path) -> None:
    """One engine: fill, update ten times one percent, scan, compact, scan, clean."""

    class Compaction(harness.Bench):  # type: ignore[misc]
        def run(self) -> None:
            e, t = self.e, self.t
            spark = harness.session(e)
            self.pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())
            for view, part in [("src", "data"), *((f"merge{i}", f"merge{i}") for i in range(3))]:
                spark.read.parquet(f"{harness.src_path(self.S)}/{part}").createOrReplaceTempView(view)
            self.warm()
            e.create("t")
            e.sql(f"INSERT INTO {t} SELECT * FROM src")
            for number in range(UPDATES):
                e.rows(f"UPDATE {t} SET salary = salary * 1.1 WHERE id % 100 = {7 + 3 * number}")
            self.scan("scan before")
            before, _ = harness.du(self.loc)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            self.step("compact", [lambda: e.compact("t")], before=before, python_mb_before=peak >> 10, post=self.memory)
            self.scan("scan after")
            self.step("clean", [lambda: e.clean("t")])
            spark.stop()

        def cpu(self) -> float:
            """CPU seconds of this process, the JVM, and Spark's Python workers below it, ended ones included."""
            below = {self.pid}
            ticks = 0
            stats = {
                pid: _stat(pid) for pid in sorted(int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit())
            }
            for pid, fields in stats.items():
                if fields and (pid in below or int(fields[1]) in below):
                    below.add(pid)
                    ticks += sum(int(field) for field in fields[11:15])
            return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()

        @staticmethod
        def memory(_: object) -> dict[str, int]:
            """The greatest memory of this process and of one that it started, so far."""
            own, below = (
                resource.getrusage(who).ru_maxrss >> 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            )
            return {"python_mb": own, "children_mb": below}

    Compaction(engine, rows, str(out), reps).run()


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` from the state on; none where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except OSError:
        return []


def report(lines: Sequence[dict[str, Any]]) -> str:
    """Medians over the rounds, an engine a column: CPU seconds / seconds, and megabytes a second of the compaction."""
    engines = list(dict.fromkeys(line["engine"] for line in lines))
    made = []
    for rows in sorted({line["scale"] for line in lines}):
        made += [f"{rows:,} rows", "", f"| step | {' | '.join(engines)} |", "|---|" + "---|" * len(engines)]
        for step in STEPS:
            found = [[x for x in lines if (x["engine"], x["scale"], x["step"]) == (e, rows, step)] for e in engines]
            cells = [f"{_median(f, 'cpu_median_s'):.2f} / {_median(f, 'median_s'):.2f}" if f else "" for f in found]
            made.append(f"| {step} | {' | '.join(cells)} |")
            if step == "compact":
                rates = [median(x["before"] / x["median_s"] / 1e6 for x in f) if f else 0 for f in found]
                made.append(f"| compact, MB/s | {' | '.join(f'{rate:.0f}' for rate in rates)} |")
                sizes = [f"{_median(f, 'before') / 1e6:.0f}" if f else "" for f in found]
                made.append(f"| MB before it | {' | '.join(sizes)} |")
        made.append("")
    return "\n".join(made)


def _median(lines: Sequence[dict[str, Any]], name: str) -> float:
    return float(median(line[name] for line in lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, type=Path, help="the folder with the harness's bench.py")
    parser.add_argument("--engines", default="acidsql,iceberg-mor-v3,delta-dv")
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--rounds", default=1, type=int)
    parser.add_argument("--reps", default=3, type=int, help="how often each scan is run")
    parser.add_argument("--out", default=Path("compaction.jsonl"), type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    out, peers = given.out.resolve(), given.peers.resolve()
    if given.one:
        _one(peers, given.engines, int(given.rows), given.reps, out)
        return
    own = [sys.executable, __file__, "--one", "--peers", str(peers), "--reps", str(given.reps), "--out", str(out)]
    for rows in given.rows.split(","):
        generate(peers, rows)
        for _ in range(given.rounds):
            for engine in given.engines.split(","):
                subprocess.run([*own, "--engines", engine, "--rows", rows], check=True)
    print(report([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]))


def _one(peers: Path, name: str, rows: int, reps: int, out: Path) -> None:
    with engine_at_work(peers, name, f"compaction-{name}-{rows}") as (harness, engine, _):
        run_one(harness, engine, rows, reps, out)


if __name__ == "__main__":
    main()
