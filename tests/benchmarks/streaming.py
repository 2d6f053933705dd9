"""Commits a second of small appends, beside the peers: streaming queries of one and of four writers, and connections.

It takes engines and session from the peers benchmark harness, as ``adapter.py`` does; ``README.md`` beside this file
has the commands. Each engine runs in a process and JVM of its own. A batch is one file of ``--size`` rows, read by the
file source of Spark and appended by a streaming query: by the engine's own sink, or by ``acid.sink``. Connections of
acidsql write the same rows without a streaming query, by threads of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peers import engine_at_work  # beside this file

SCHEMA = "id bigint, k int, name string, city string, salary double, qty int, d date, note string"
WARM = 3
"""Batches before those that are measured."""


def records(number: int, size: int) -> list[dict[str, Any]]:
    same = {"city": "City_7", "d": "2024-02-29", "note": f"note {number}"}
    return [
        {"id": number * size + i, "k": i % 1000, "name": f"name{i}", "salary": 1.5 * i, "qty": i % 100, **same}
        for i in range(size)
    ]


def make_source(place: Path, batches: int, size: int) -> None:
    place.mkdir(parents=True)
    for number in range(batches):
        lines = "".join(json.dumps(record) + "\n" for record in records(number, size))
        (place / f"{number:05d}.json").write_text(lines, encoding="utf-8")


class Streaming:
    """One engine."""

    def __init__(self, harness: Any, engine: Any, work: Path, batches: int, size: int) -> None:
        self.engine, self.work, self.batches, self.size = engine, work, batches, size
        self.spark = harness.session(engine)
        self.pid = int(self.spark._jvm.java.lang.ProcessHandle.current().pid())
        self.is_ours = hasattr(engine, "acid")

    def query(self, table: str, source: Path, checkpoint: Path) -> None:
        """Append a directory of batches by a streaming query."""
        frame = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
        now = {"availableNow": True}
        if self.is_ours:
            acid, name = self.engine.acid, str(checkpoint)
            acid.write_stream(frame, table, checkpoint=str(checkpoint), name=name, trigger=now).awaitTermination()
            return
        writer = frame.writeStream.trigger(**now).option("checkpointLocation", str(checkpoint))
        if "delta" in self.engine.name:
            query = writer.format("delta").start(os.path.abspath(self.engine.location(table)))
        else:
            query = writer.format("iceberg").toTable(self.engine.table(table))
        query.awaitTermination()

    def connection(self, table: str, batches: int) -> None:
        """Append the same rows by one of acidsql's connections."""
        from acidsql.streaming import Json

        lines = [[json.dumps(one) for one in records(number, self.size)] for number in range(batches)]
        with self.engine.acid.streaming(table, records=Json()) as stream:
            for batch in lines:
                stream.begin()
                stream.write(batch)
                stream.commit()

    def measured(self, step: str, writers: int, write: Callable[[int], None], batches: int) -> dict[str, Any]:
        """Seconds and CPU seconds of some writers at once."""
        threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
        cpu, start = self.cpu(), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, used = time.monotonic() - start, self.cpu() - cpu
        commits = writers * batches
        return {"engine": self.engine.name, "step": step, "commits": commits, "seconds": seconds, "cpu": used}

    def run(self) -> list[dict[str, Any]]:
        made = []
        for writers in (1, 4):
            table = f"q{writers}"
            self.engine.create(table)
            for n in range(writers):
                make_source(self.work / f"warm{writers}{n}", WARM, self.size)
                make_source(self.work / f"source{writers}{n}", self.batches, self.size)
            self.query(table, self.work / f"warm{writers}0", self.work / f"cw{writers}")

            def by_query(n: int, writers: int = writers, table: str = table) -> None:
                self.query(table, self.work / f"source{writers}{n}", self.work / f"c{writers}{n}")

            made.append(self.measured(f"streaming query, {writers} at once", writers, by_query, self.batches))
            self.check(table, (writers * self.batches + WARM) * self.size)
            if self.is_ours:
                table, many = f"s{writers}", self.batches * 10
                self.engine.create(table)
                self.connection(table, WARM)

                def by_connection(n: int, table: str = table, many: int = many) -> None:
                    self.connection(table, many)

                made.append(self.measured(f"connection, {writers} at once", writers, by_connection, many))
                self.check(table, (writers * many + WARM) * self.size)
        self.spark.stop()
        return made

    def check(self, table: str, expected: int) -> None:
        found = self.engine.rows(f"SELECT count(*) FROM {self.engine.table(table)}")[0][0]
        if found != expected:
            raise SystemExit(f"{self.engine.name}: {found} rows in {table}, expected {expected}")

    def cpu(self) -> float:
        """CPU seconds of this process and the JVM."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK") + time.process_time()


def report(lines: Sequence[dict[str, Any]]) -> str:
    made = ["| engine | step | commits a second | CPU ms a commit |", "|---|---|---|---|"]
    for x in lines:
        rate, cpu = x["commits"] / x["seconds"], 1000 * x["cpu"] / x["commits"]
        made.append(f"| {x['engine']} | {x['step']} | {rate:.1f} | {cpu:.0f} |")
    return "\n".join(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, type=Path, help="the folder with the harness's bench.py")
    parser.add_argument("--engines", default="acidsql,iceberg-mor-v3,delta-dv")
    parser.add_argument("--batches", default=30, type=int)
    parser.add_argument("--size", default=100, type=int, help="rows of a batch")
    parser.add_argument("--out", default=Path("streaming.jsonl"), type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    out, peers = given.out.resolve(), given.peers.resolve()
    if not given.one:
        options = ["--peers", str(peers), "--batches", str(given.batches), "--size", str(given.size), "--out", str(out)]
        for engine in given.engines.split(","):
            subprocess.run([sys.executable, __file__, "--one", *options, "--engines", engine], check=True)
        print(report([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]))
        return
    with engine_at_work(peers, given.engines, f"streaming-{given.engines}") as (harness, engine, work):
        lines = Streaming(harness, engine, work, given.batches, given.size).run()
    with out.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
