"""An hour of ingest, accelerated: one connection commits small transactions, the session's compactor works beside it.

Each sample is what a user sees at that moment: how long a transaction takes from its beginning until its rows are there
for others, rows a second, deltas of the table, and how long a scan takes in another session, which checks the rows. The
points are in ``curves/ingest.jsonl``, the picture beside it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import acidsql
from acidsql.session import AcidSession, start_spark

CURVES = Path(__file__).with_name("curves")
TABLE = "CREATE TRANSACTIONAL TABLE events (id bigint, k int, name string, at timestamp)"
_SETTINGS = {
    "hive.compactor.check.interval": "1s",
    "hive.compactor.worker.sleep.time": "200ms",
}
_PANELS = (
    ("latency", "ms until visible"),
    ("rate", "rows a second"),
    ("deltas", "deltas"),
    ("scan", "s of a full scan"),
)


def ingest(acid: AcidSession, reader: AcidSession, commits: int, rows: int, samples: int) -> list[dict[str, Any]]:
    """Commit, and look every now and then."""
    made: list[dict[str, Any]] = []
    every = max(1, commits // samples)
    acid.sql(TABLE)
    latencies: list[float] = []
    with acid.streaming("events") as stream:
        begun = since = time.monotonic()
        for number in range(commits):
            first = number * rows
            start = time.monotonic()
            stream.begin()
            stream.write([(first + i, i % 100, f"name {i}", None) for i in range(rows)])
            stream.commit()
            latencies.append(time.monotonic() - start)
            if (number + 1) % every:
                continue
            now = time.monotonic()
            written = every * rows / (now - since)
            scan = time.monotonic()
            [row] = reader.sql("SELECT count(*) AS n, max(id) AS last FROM events").collect()
            scanned = time.monotonic() - scan
            if (row.n, row.last) != (first + rows, first + rows - 1):
                raise SystemExit(f"{row} after {number + 1} commits of {rows} rows")
            made.append(
                {
                    "commits": number + 1,
                    "seconds": now - begun,
                    "latency": 1000 * statistics.median(latencies),
                    "worst": 1000 * max(latencies),
                    "rate": written,
                    "deltas": deltas(acid),
                    "scan": scanned,
                }
            )
            print(json.dumps(made[-1]), flush=True)
            latencies.clear()
            since = time.monotonic()
    return made


def deltas(acid: AcidSession) -> int:
    """Directories of the table that a reader of today reads, obsolete ones that are still there included."""
    return sum(1 for path in Path(acid.warehouse, "events").iterdir() if path.name.startswith(("delta_", "base_")))


def draw(points: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Four panels over the number of commits."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 2, figsize=(8.0, 5.0), dpi=80, sharex=True)
    for axes, (name, label) in zip(panels.flat, _PANELS, strict=True):
        axes.plot([p["commits"] for p in points], [p[name] for p in points], "o-", markersize=2, linewidth=1)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, linewidth=0.4)
    for axes in panels[1]:
        axes.set_xlabel("commits")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ingest", description=__doc__)
    parser.add_argument("--commits", default=3600, type=int, help="an hour's of one a second")
    parser.add_argument("--rows", default=100, type=int, help="rows of a transaction")
    parser.add_argument("--samples", default=60, type=int)
    parser.add_argument("--out", default=CURVES, type=Path)
    given = parser.parse_args()
    warehouse = tempfile.mkdtemp(prefix="ingest-")
    spark = start_spark(warehouse, master="local[2]", conf={"spark.sql.shuffle.partitions": "2"})
    try:
        with acidsql.connect(spark, warehouse=warehouse, settings=_SETTINGS) as acid:
            acid.compactor.start()
            with acidsql.connect(spark.newSession(), warehouse=warehouse) as reader:
                points = ingest(acid, reader, given.commits, given.rows, given.samples)
    finally:
        spark.stop()
        shutil.rmtree(warehouse, ignore_errors=True)
    given.out.mkdir(exist_ok=True)
    (given.out / "ingest.jsonl").write_text("".join(json.dumps(p) + "\n" for p in points), encoding="utf-8")
    draw(points, given.out / "ingest.png")


if __name__ == "__main__":
    main()
