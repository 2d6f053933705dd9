"""One-row updates of one table by several writers at once, beside the peers: of different rows, and of the same row.

It takes engines, session and source from the peers benchmark harness, as ``adapter.py`` does; ``README.md`` beside this
file has the commands. Each engine runs in a process and JVM of its own. The writers are threads over one Spark session,
each of which waits for its own statement; one that fails is counted, and not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peers import engine_at_work, generate  # beside this file

EACH = 10
"""Updates of each writer."""


class Updates:
    """One engine, with a table of so many rows."""

    def __init__(self, harness: Any, engine: Any, rows: int) -> None:
        self.harness, self.engine, self.rows = harness, engine, rows
        self.spark = harness.session(engine)
        self.table = engine.table("t")
        bench = harness.Bench(engine, rows, os.devnull, 1)
        bench.pid = int(self.spark._jvm.java.lang.ProcessHandle.current().pid())
        self.cpu = bench.cpu

    def run(self, writers: Sequence[int]) -> list[dict[str, Any]]:
        self.spark.read.parquet(f"{self.harness.src_path(self.rows)}/data").createOrReplaceTempView("src")
        self.engine.create("t")
        self.engine.sql(f"INSERT INTO {self.table} SELECT * FROM src")
        for id in range(8):
            self.engine.rows(f"UPDATE {self.table} SET qty = 1 WHERE id = {id}")
        made = []
        for count in writers:
            step = f"{count} x {EACH}"
            made.append(self.measured(f"{step}, different rows", count, lambda w, j: 1000 + 300 * (EACH * w + j)))
            made.append(self.measured(f"{step}, the same row", count, lambda w, j: 500))
        self.spark.stop()
        return made

    def measured(self, step: str, writers: int, row: Any) -> dict[str, Any]:
        start, took, errors = threading.Barrier(writers), list[float](), Counter[str]()

        def work(writer: int) -> None:
            start.wait()
            for j in range(EACH):
                began = time.perf_counter()
                try:
                    self.engine.rows(f"UPDATE {self.table} SET qty = qty + 1000 WHERE id = {row(writer, j)}")
                    took.append(time.perf_counter() - began)
                except Exception as e:
                    errors[type(e).__name__] += 1

        seen = f"SELECT sum(floor(qty / 1000)) FROM {self.table} WHERE id < {self.rows // 2}"
        before = self.engine.rows(seen)[0][0]
        threads = [threading.Thread(target=work, args=(n,)) for n in range(writers)]
        cpu, began = self.cpu(), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, used = time.perf_counter() - began, self.cpu() - cpu
        done = self.engine.rows(seen)[0][0] - before
        if done != len(took):
            raise SystemExit(f"{self.engine.name}, {step}: {len(took)} updates were acknowledged, {done} are there")
        latency = {"median": statistics.median(took), "worst": max(took)} if took else {}
        counts = {"ok": len(took), "failed": sum(errors.values()), "errors": dict(errors)}
        return {"engine": self.engine.name, "step": step, "seconds": seconds, "cpu": used, **counts, **latency}


def report(lines: Sequence[dict[str, Any]]) -> str:
    made = [
        "| engine | step | done / failed | seconds | CPU seconds | median, worst latency |",
        "|---|---|---|---|---|---|",
    ]
    for x in lines:
        latency = f"{x['median']:.2f}, {x['worst']:.2f}" if "median" in x else "none"
        done = f"{x['ok']} / {x['failed']}"
        made.append(f"| {x['engine']} | {x['step']} | {done} | {x['seconds']:.1f} | {x['cpu']:.1f} | {latency} |")
    return "\n".join(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, type=Path, help="the folder with the harness's bench.py")
    parser.add_argument("--engines", default="acidsql,acidsql-by-row,iceberg-mor-v3,delta-dv")
    parser.add_argument("--rows", default=1_000_000, type=int)
    parser.add_argument("--writers", default="2,8")
    parser.add_argument("--out", default=Path("updates.jsonl"), type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    out, peers = given.out.resolve(), given.peers.resolve()
    if not given.one:
        options = ["--peers", str(peers), "--rows", str(given.rows), "--writers", given.writers, "--out", str(out)]
        generate(peers, given.rows)
        for engine in given.engines.split(","):
            subprocess.run([sys.executable, __file__, "--one", *options, "--engines", engine], check=True)
        print(report([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]))
        return
    with engine_at_work(peers, given.engines, f"updates-{given.engines}") as (harness, engine, _):
        lines = Updates(harness, engine, given.rows).run([*map(int, given.writers.split(","))])
    with out.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
