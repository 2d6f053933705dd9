"""Sessions side by side show nothing that snapshot isolation does not allow, whatever happens to them.

``ACIDSQL_TEST_SEED`` repeats what was drawn by chance, ``ACIDSQL_TEST_SECONDS`` says how long a long run lasts.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.row_set import RowSet
from tests.isolation.checker import anomalies
from tests.isolation.journal import events_of, report_of
from tests.isolation.run import SETTINGS, Faults, judged, ran
from tests.metastore import postgres_store
from tests.spark.processes import ROOT, environment, on_small_disk

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("ACIDSQL_TEST_SEED") or random.SystemRandom().randrange(10**6))
SECONDS = float(os.environ.get("ACIDSQL_TEST_SECONDS") or 300)


@pytest.mark.parametrize("conflicts", ["partition", "row"])
def test_sessions_side_by_side(spark: SparkSession, tmp_path: Path, conflicts: str) -> None:
    settings = {**SETTINGS, "acidsql.write.conflicts": conflicts}
    judged(ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=settings), SEED, 15, Faults()), SEED)


@pytest.mark.long
def test_sessions_that_look_for_no_conflicts_are_found_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What these tests would say of a store that forgot whom a transaction is in conflict with."""
    monkeypatch.setattr(EmbeddedMetastore, "get_latest_txn_in_conflict", lambda *args, **kwargs: None)
    report = ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=SETTINGS), SEED, 45, Faults())
    assert {"G-SI", "lost append"} & {one.kind for one in anomalies(report.history)} or report.problems


@pytest.mark.long
def test_sessions_that_do_not_compare_rows_are_found_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowSet, "meets", lambda *args: False)
    settings = {**SETTINGS, "acidsql.write.conflicts": "row"}
    report = ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=settings), SEED, 45, Faults())
    assert {"G-SI", "lost append"} & {one.kind for one in anomalies(report.history)} or report.problems


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "how",
    [{"hive.txn.xlock.write": "true"}, {"hive.txn.xlock.write": "false"}, {"acidsql.write.conflicts": "row"}],
    ids=["locks", "partitions", "rows"],
)
def test_sessions_that_are_away_for_too_long(spark: SparkSession, tmp_path: Path, how: dict[str, str]) -> None:
    settings = {**SETTINGS, **how}
    faults = Faults(sleeps=0.02)
    judged(
        ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=settings), SEED, SECONDS, faults), SEED
    )


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.skipif(postgres_store.missing() is not None, reason=str(postgres_store.missing()))
def test_a_store_that_is_away_for_a_while(spark: SparkSession, tmp_path: Path) -> None:
    url = postgres_store.new_database()
    with postgres_store.relayed(url) as (relay, through):
        chance = random.Random(SEED)
        faults = Faults(sleeps=0.01, cuts=0.05, cut=lambda: relay.cut_after(chance.randrange(12), 0.5))
        judged(
            ran(
                lambda: acidsql.connect(spark, warehouse=tmp_path / "w", metastore=through, settings=SETTINGS),
                SEED,
                SECONDS,
                faults,
            ),
            SEED,
        )


HERDS: dict[str, dict[str, Any]] = {
    "SQLite": {},
    "SQLite, by rows": {"settings": {"acidsql.write.conflicts": "row"}},
    "a small disk": {"fates": ("fill", "fill", "kill")},
    "PostgreSQL": {"fates": ("kill", "stop")},
    "PostgreSQL, by rows": {"fates": ("kill", "stop"), "settings": {"acidsql.write.conflicts": "row"}},
}


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", HERDS)
def test_processes_that_are_killed_and_stopped(tmp_path: Path, name: str) -> None:
    """Of machines whose clock jumps, or whose disk is full, too (see :mod:`tests.isolation.herd`)."""
    disk, journals = tmp_path / "disk", tmp_path / "journals"
    for folder in (disk, journals):
        folder.mkdir()
    unshared = on_small_disk(disk, 64) if name == "a small disk" else []
    if "PostgreSQL" in name and (reason := postgres_store.missing()):
        pytest.skip(reason)
    metastore = postgres_store.new_database() if "PostgreSQL" in name else ""
    settings = {**SETTINGS, **HERDS[name].get("settings", {})}
    places = {"journals": str(journals), "warehouse": str(disk / "w"), "metastore": metastore}
    plan = {"fates": ("kill", "stop", "jump"), **HERDS[name], **places, "settings": settings}
    program = [sys.executable, "-m", "tests.isolation.herd", json.dumps({**plan, "seed": SEED, "seconds": SECONDS})]
    with (tmp_path / "herd.log").open("wb") as log:
        done = subprocess.run([*unshared, *program], cwd=ROOT, env=environment(), stdout=log, stderr=log, check=False)
    assert done.returncode == 0, (tmp_path / "herd.log").read_text()[-3000:]
    judged(report_of(events_of(journals.glob("*.jsonl"))), SEED)
