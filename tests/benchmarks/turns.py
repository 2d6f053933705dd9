"""Lets two checkouts of the project run the same statements in turns, and prints the ratio of their times.

Two runs one after the other tell little on a machine that others use, too. Here each checkout has a process and a JVM
of its own, and they take turns statement by statement, so that both meet the same load::

    git worktree add /tmp/old <commit>
    python tests/benchmarks/turns.py --old /tmp/old --new . --rows 3000000 --times 8

Both answers of each statement must be equal. The first turn of each statement is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

SCAN = "SELECT count(*), sum(qty), max(note) FROM t"
STEPS = {
    "bulk INSERT": "INSERT INTO copy SELECT * FROM statements_source",
    "INSERT of one row": "INSERT INTO t VALUES ({row}, 1, 1.5D, 'note')",
    "UPDATE of 1 %": "UPDATE t SET qty = qty + 1 WHERE id % 100 = {turn}",
    "UPDATE of one row": "UPDATE t SET qty = qty + 1 WHERE id = {turn} * 100 + 90",
    "DELETE of 1 %": "DELETE FROM t WHERE id % 100 = {turn} + 30",
    "DELETE of 0.1 %": "DELETE FROM t WHERE id % 1000 = {turn} * 10 + 69",
    "MERGE of 1 %": "MERGE INTO t USING (SELECT id + if(id % 200 = {turn}, 0, {row} * 10) AS id, qty, amount, note"
    " FROM statements_source WHERE id % 100 = {turn}) s ON t.id = s.id"
    " WHEN MATCHED AND s.id % 1000 < 200 THEN DELETE WHEN MATCHED THEN UPDATE SET qty = s.qty, note = s.note"
    " WHEN NOT MATCHED THEN INSERT *",
    "scan with deltas": SCAN,
    "look-up with deltas": "SELECT * FROM t WHERE id = {turn} * 100 + 91",
}
MOST_TURNS = 30


def child(rows: int) -> None:
    """Run the statements of the standard input, a line of JSON each; answer each with its times and its rows."""
    from tests.benchmarks.scale_meter import Processes
    from tests.benchmarks.statements import COLUMNS, SOURCE, opened

    warehouse = tempfile.mkdtemp(prefix="acidsql-turns-")
    try:
        with opened(warehouse, {}, 2) as (acid, spark):
            processes = Processes(spark)
            spark.range(rows).selectExpr(*SOURCE).createOrReplaceTempView("statements_source")
            for table in ("t", "copy"):
                acid.sql(f"CREATE TABLE {table} ({COLUMNS}) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
            acid.sql("INSERT INTO t SELECT * FROM statements_source")
            _tell([])
            for line in sys.stdin:
                cpu, start = processes.cpu(), time.perf_counter()
                found = acid.sql(json.loads(line)).collect()
                wall, used = time.perf_counter() - start, processes.cpu()
                _tell([wall, wall if used is None or cpu is None else used - cpu, [list(map(str, r)) for r in found]])
                acid.sql("TRUNCATE TABLE copy")
    finally:
        shutil.rmtree(warehouse, ignore_errors=True)


def _tell(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


class Checkout:
    """A checkout of the project in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answer(self) -> Any:
        """The next line of the process."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def run(self, text: str) -> Any:
        """Seconds of wall clock and of CPU, and the rows."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        return self.answer()


@contextmanager
def checkout(path: Path, rows: int) -> Iterator[Checkout]:
    """Start one; it has loaded its table once :meth:`Checkout.answer` comes back."""
    environment = {**os.environ, "PYTHONPATH": str(path.resolve())}
    command = [sys.executable, str(Path(__file__).resolve()), "--child", "--rows", str(rows)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, cwd=path, stdin=pipe, stdout=pipe, text=True)
    try:
        yield Checkout(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def compare(old: Checkout, new: Checkout, rows: int, times: int, steps: Sequence[str]) -> None:
    """Run all steps, and print a line for each.

    Raises:
        SystemExit: When two answers differ.
    """
    print("| step | times | old, CPU s / s | new, CPU s / s | new / old, CPU | wall clock |")
    print("|---" * 6 + "|")
    for step in steps:
        walls: list[tuple[float, float]] = []
        cpus: list[tuple[float, float]] = []
        for turn in range(times + 1):
            text = STEPS[step].format(turn=turn, row=rows + turn)
            order = (old, new) if turn % 2 else (new, old)
            answers = {one: one.run(text) for one in order}
            (old_wall, old_cpu, old_rows), (new_wall, new_cpu, new_rows) = answers[old], answers[new]
            if sorted(old_rows) != sorted(new_rows):
                raise SystemExit(f"{text}: {old_rows} by the old one, {new_rows} by the new one")
            if turn:
                walls.append((old_wall, new_wall))
                cpus.append((old_cpu, new_cpu))
        each = [f"{_median(cpus, side):.2f} / {_median(walls, side):.2f}" for side in (0, 1)]
        ratios = [f"{statistics.median(n / max(o, 0.01) for o, n in pairs):.2f}" for pairs in (cpus, walls)]
        print(f"| {step} | {times} | {' | '.join([*each, *ratios])} |", flush=True)


def _median(pairs: Sequence[tuple[float, float]], side: int) -> float:
    return statistics.median(pair[side] for pair in pairs)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--old", type=Path, help="a checkout of the project")
    parser.add_argument("--new", type=Path, default=Path(), help="another one (default: this directory)")
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the table (default 3000000)")
    parser.add_argument("--times", type=int, default=8, help=f"turns that count, up to {MOST_TURNS - 1} (default 8)")
    parser.add_argument("--steps", default=",".join(STEPS), help="some of the statements, by their names")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    steps = args.steps.split(",")
    if not set(steps) <= set(STEPS):
        parser.error(f"--steps takes some of: {', '.join(STEPS)}")
    if not 0 < args.times < MOST_TURNS:
        parser.error(f"--times takes 1 to {MOST_TURNS - 1}")
    if args.child:
        child(args.rows)
        return
    if args.old is None:
        parser.error("--old is needed")
    with ExitStack() as stack:
        old, new = (stack.enter_context(checkout(path, args.rows)) for path in (args.old, args.new))
        for one in (old, new):
            one.answer()
        compare(old, new, args.rows, args.times, steps)


if __name__ == "__main__":
    main()
