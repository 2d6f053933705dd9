"""Fail the Nth step of a streamed transaction, or of a batch: its rows are there wholly or not at all, and once."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.session import AcidSession
from acidsql.streaming.sink import BATCHES
from tests.faults.test_every_step import DECIDING, FS_STEPS, METASTORE_STEPS
from tests.injection import Injector
from tests.spark.answers import nothing_is_open
from tests.spark.processes import ROOT, environment
from tests.spark.tree import tree

STEPS = {LocalFileSystem: FS_STEPS, EmbeddedMetastore: METASTORE_STEPS}
AFTER = [False, pytest.param(True, marks=pytest.mark.long)]


def rows(acid: AcidSession, table: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, acid.table(table).collect()))


def files(warehouse: Path) -> list[str]:
    return [f for f in tree(warehouse) if not f.startswith("acidsql.db")]


def end_what_nobody_was_told_of(acid: AcidSession) -> None:
    """Who was not told the id of a transaction sends no heartbeats: it ends with hive.txn.timeout."""
    acid.metastore.abort_txns([t.id for t in acid.metastore.show_txns()])
    acid.metastore.clean_empty_aborted_txns()


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("batch", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_error_at_any_step_of_a_streamed_transaction(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, batch: int
) -> None:
    warehouse = tmp_path / "w"
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO p VALUES (1, 1)")
        injector = Injector(monkeypatch, STEPS)
        before, known, fired = rows(acid, "p"), files(warehouse), set()
        for number in itertools.count(1):
            injector.arm(number, after)
            with acid.streaming("p", batch=batch, buffer_rows=2) as stream, injector.on():
                stream.begin()
                stream.write([(2, 1), (3, 2)])
                stream.write([(4, 3)])
                stream.commit()
            if injector.fired is None or (injector.fired == "commit_txn" and after):
                break
            fired.add(injector.fired)
            assert rows(acid, "p") == before, injector.fired
            if injector.fired == "open_txns" and after:
                end_what_nobody_was_told_of(acid)
            nothing_is_open(acid)
            assert files(warehouse) == known, injector.fired
        assert {"open_txns", "lock", "allocate_table_write_id", "rename"} <= fired
        assert rows(acid, "p") == [(1, 1), (2, 1), (3, 2), (4, 3)]
        nothing_is_open(acid)


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
def test_an_error_at_any_step_of_a_mutation(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    warehouse = tmp_path / "w"
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO p VALUES (1, 1), (2, 1), (3, 2)")
        injector = Injector(monkeypatch, STEPS)
        before, known, fired = rows(acid, "p"), files(warehouse), set()
        is_done = False
        for number in itertools.count(1):
            injector.arm(number, after)
            with injector.on(), acid.mutation("p") as mutation:
                found = {row.id: row for row in mutation.rows().collect()}
                first, second = mutation.tasks(2)
                with first.open() as one, second.open() as two:
                    one.delete(found[1]["ROW__ID"], {"p": 1})
                    one.update(found[2]["ROW__ID"], (20, 1))
                    one.insert((4, 1))
                    two.update(found[3]["ROW__ID"], (30, 2))
                    two.insert((5, 3))
                mutation.commit([two.written, one.written])
                is_done = True
            if is_done or (injector.fired == "commit_txn" and after):
                break  # also where it has failed to look for what is left over
            fired.add(injector.fired)
            assert rows(acid, "p") == before, injector.fired
            if injector.fired == "open_txns" and after:
                end_what_nobody_was_told_of(acid)
            nothing_is_open(acid)
            assert files(warehouse) == known, injector.fired
        assert {"open_txns", "lock", "allocate_table_write_id", "write_bytes", "rename"} <= fired
        assert ("commit_txn" in fired) != after
        assert rows(acid, "p") == [(4, 1), (5, 3), (20, 1), (30, 2)]
        nothing_is_open(acid)


@pytest.mark.parametrize(
    ("mode", "after", "counted"),
    [
        pytest.param("append", False, DECIDING, id="append-before some"),
        *(
            pytest.param(mode, after, None, id=f"{mode}-{'after' if after else 'before'} any", marks=pytest.mark.long)
            for mode in ("append", "merge")
            for after in (False, True)
        ),
    ],
)
def test_an_error_at_any_step_of_a_batch(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    after: bool,
    counted: Collection[str] | None,
) -> None:
    warehouse = tmp_path / "w"
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        keys = ["id"] if mode == "merge" else []
        frames = [spark.sql(f"SELECT {i} AS id") for i in range(3)]
        acid.sink("t", mode=mode, keys=keys)(frames[0], 0)
        injector = Injector(monkeypatch, STEPS, counted=counted)
        batches = rows(acid, BATCHES)
        known, fired = files(warehouse), set()
        for number in itertools.count(1):
            sink = acid.sink("t", mode=mode, keys=keys)
            sink._prepare()
            sink._is_ready = True
            injector.arm(number, after)
            with injector.on():
                sink(frames[1], 1)
            if injector.fired is None or (injector.fired == "commit_txn" and len(rows(acid, "t")) == 2):
                break
            fired.add(injector.fired)
            assert rows(acid, "t") == [(0,)], injector.fired
            assert rows(acid, BATCHES) == batches, injector.fired
            if injector.fired == "open_txns" and after:
                end_what_nobody_was_told_of(acid)
            nothing_is_open(acid)
            assert files(warehouse) == known, injector.fired
        wanted = {"lock", "allocate_table_write_id", "rename"}
        assert (wanted if counted else {"open_txns", *wanted}) <= fired
        for _ in range(2):  # whatever Spark was told: it calls again with the batch
            acid.sink("t", mode=mode, keys=keys)(frames[1], 1)
            assert rows(acid, "t") == [(0,), (1,)]
        acid.sink("t", mode=mode, keys=keys)(frames[2], 2)
        assert rows(acid, "t") == [(0,), (1,), (2,)]
        nothing_is_open(acid)


WRITER = """
import sys, acidsql
from tests.oracle.small_spark import small_spark
warehouse, first, log = sys.argv[1:]
acid = acidsql.connect(small_spark(), warehouse=warehouse, settings={"hive.txn.timeout": "2s"})
with acid.streaming("t", batch=3, buffer_rows=4) as stream, open(log, "a", buffering=1) as out:
    for number in range(int(first), int(first) + 1_000_000):
        stream.begin()
        out.write(f"begin {number}\\n")
        stream.write([(number, i) for i in range(10)])
        stream.commit()
        out.write(f"done {number}\\n")
"""


@pytest.mark.file_store
@pytest.mark.long
def test_killed_writers_leave_what_was_acknowledged(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, draw = tmp_path / "w", random.Random(7)
    with acidsql.connect(spark, warehouse=warehouse, settings={"hive.txn.timeout": "2s"}) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (n int, i int)")
        logs = []
        for life in range(6):
            log = tmp_path / f"log{life}"
            command = [sys.executable, "-c", WRITER, str(warehouse), str(life * 1_000_000), str(log)]
            child = subprocess.Popen(command, cwd=ROOT, env=environment(), start_new_session=True)
            end = time.monotonic() + 60
            while (not log.exists() or "done" not in log.read_text()) and time.monotonic() < end:
                time.sleep(0.1)
            time.sleep(draw.uniform(0, 2))
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            logs.append(log.read_text().splitlines())
            if life == 3:
                acid.sql("ALTER TABLE t COMPACT 'minor'")
                acid.compactor.run_once()
        time.sleep(3)
        found = dict(map(tuple, acid.sql("SELECT n, count(DISTINCT i) FROM t GROUP BY n").collect()))
        assert acid.sql("SELECT count(*) FROM t").collect()[0][0] == 10 * len(found)
        begun = {int(line.split()[1]) for lines in logs for line in lines if line.startswith("begin ")}
        done = {int(line.split()[1]) for lines in logs for line in lines if line.startswith("done ")}
        assert set(found.values()) == {10}
        assert done <= set(found) <= begun
        assert len(set(found) - done) <= len(logs)  # the one that was committed, and not acknowledged any more
        acid.sql("UPDATE t SET i = -1 WHERE n = 0")
        assert acid.sql("SHOW LOCKS").collect() == []
