"""A full disk, a real one: statements fail and nothing of them is there, but what was acknowledged is.

A process with a mount namespace of its own has a file system of some megabytes. It fills it, statement by statement,
until each kind has failed, and makes room after each failure to look: readers, too, have transactions in the store.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.processes import ROOT, environment, on_small_disk

pytestmark = pytest.mark.long

PROGRAM = """
import json, os, random, sys, time
from pathlib import Path
import acidsql
from contextlib import suppress
from acidsql.errors import AcidError
from tests.oracle.small_spark import small_spark

place, report = map(Path, sys.argv[1:])
draw = random.Random(1)
spark = small_spark(spark__local__dir=str(report.parent / "spark"))
acid = acidsql.connect(spark, warehouse=place / "w")
acid.sql("CREATE TRANSACTIONAL TABLE t (id int, text string)")
sink = acid.sink("t", name="s")
ballast = place / "ballast"
rows, failures, batch = {}, {}, 0


def stream(id, text):
    with acid.streaming("t") as connection:
        connection.begin()
        connection.write([(id, text)])
        connection.commit()


def insert(id, text):
    acid.sql("INSERT INTO t VALUES (:id, :text)", id=id, text=text)


def update(id, text):
    acid.sql("UPDATE t SET text = :text WHERE id = :id", id=min(rows), text=text)


def merge(id, text):
    source = spark.createDataFrame([(id, text)], "id int, text string")
    acid.merge("t", source).on("t.id = source.id").when_not_matched_insert_all().execute()


def job(id, text):
    acid.sql("SET acidsql.write.driver.rows = 0")
    try:
        acid.sql("INSERT INTO t SELECT :id, :text", id=id, text=text)
    finally:
        acid.sql("RESET acidsql.write.driver.rows")


def sunk(id, text):
    global batch
    sink(spark.createDataFrame([(id, text)], "id int, text string"), batch)
    batch += 1


def write(kind, id):
    text = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=100_000))
    kind(id, text)
    rows[min(rows) if kind is update else id] = text


def fill(but):
    status = os.statvfs(place)
    ballast.write_bytes(bytes(max(0, status.f_bavail * status.f_bsize - but)))


def check(when):
    ballast.unlink()
    found = {row.id: row.text for row in acid.table("t").collect()}
    assert found == rows, (when, sorted(found), sorted(rows))
    end = time.monotonic() + 60  # an abort that the store had no room for comes soon
    while acid.sql("SHOW LOCKS").collect() and time.monotonic() < end:
        time.sleep(0.2)
    assert acid.sql("SHOW LOCKS").collect() == [], when


kinds = [stream, insert, update, merge, job, sunk]
for id in range(12):
    write(kinds[id % len(kinds)], id)
fill(2 << 20)
for id in range(100, 400):
    kind = kinds[id % len(kinds)]
    try:
        write(kind, id)
    except Exception as e:
        failures.setdefault(kind.__name__, f"{type(e).__name__}: {str(e)[:200]}")
        check(kind.__name__)
        fill(draw.choice([0, 30_000, 200_000]))
    if len(failures) == len(kinds):
        break
ballast.unlink()
acid.sql("ALTER TABLE t COMPACT 'major'")
fill(100_000)
with suppress(AcidError):
    acid.compactor.run_once()
check("a compaction on a full disk")
for id, kind in enumerate(kinds, 1000):
    write(kind, id)
fill(1 << 20)
check("room again")
report.write_text(json.dumps(failures))
acid.close()
"""


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    place, report = tmp_path / "disk", tmp_path / "report.json"
    place.mkdir()
    unshared = on_small_disk(place, 16)
    program = [sys.executable, "-c", PROGRAM, str(place), str(report)]
    done = subprocess.run(
        [*unshared, *program], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    failures = json.loads(report.read_text())
    assert set(failures) >= {"stream", "insert", "update", "merge", "job", "sunk"}
    for kind, error in failures.items():
        assert error.split(":")[0] in ("StorageError", "MetastoreError", "OSError", "TransactionError"), (kind, error)
