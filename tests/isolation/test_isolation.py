"""Sessions side by side show nothing that snapshot isolation does not allow, whatever happens to them.

``ACIDSQL_TEST_SEED`` repeats what was drawn by chance, ``ACIDSQL_TEST_SECONDS`` says how long a long run lasts.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.row_set import RowSet
from acidsql.session import AcidSession
from tests.isolation.checker import anomalies
from tests.isolation.run import SETTINGS, Faults, Report, Run, make_tables
from tests.metastore import postgres_store

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("ACIDSQL_TEST_SEED") or random.SystemRandom().randrange(10**6))
SECONDS = float(os.environ.get("ACIDSQL_TEST_SECONDS") or 300)
SESSIONS = 5


def judged(report: Report) -> None:
    """Fail with all that was found, and with the seed."""
    found = anomalies(report.history)
    told = "\n".join([f"seed {SEED}", *report.problems, *map(str, found), str(dict(report.counts))])
    assert not found, told
    assert not report.problems, told
    assert report.counts["transactions committed"] >= 5, told
    print("isolation:", told)


def ran(connect: Callable[[], AcidSession], seconds: float, faults: Faults) -> Report:
    with connect() as acid:
        make_tables(acid)
    report = Run(connect, SEED, faults).go(SESSIONS, seconds)
    with connect() as acid:
        acid._env.heartbeats.end_released(collect=True)
        left = [r.txnid for r in acid.sql("SHOW TRANSACTIONS").collect() if r.state == "OPEN"]
        locks = [r.lockid for r in acid.sql("SHOW LOCKS").collect() if r.lockid.isdigit()]
    if not faults.sleeps and not faults.cuts:
        report.problems += [f"transaction {one} is left" for one in left] + [f"lock {one} is left" for one in locks]
    return report


@pytest.mark.parametrize("conflicts", ["partition", "row"])
def test_sessions_side_by_side(spark: SparkSession, tmp_path: Path, conflicts: str) -> None:
    settings = {**SETTINGS, "acidsql.write.conflicts": conflicts}
    judged(ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=settings), 15, Faults()))


@pytest.mark.long
def test_sessions_that_look_for_no_conflicts_are_found_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What these tests would say of a store that forgot whom a transaction is in conflict with."""
    monkeypatch.setattr(EmbeddedMetastore, "get_latest_txn_in_conflict", lambda *args, **kwargs: None)
    report = ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=SETTINGS), 45, Faults())
    assert {"G-SI", "lost append"} & {one.kind for one in anomalies(report.history)} or report.problems


@pytest.mark.long
def test_sessions_that_do_not_compare_rows_are_found_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowSet, "meets", lambda *args: False)
    settings = {**SETTINGS, "acidsql.write.conflicts": "row"}
    report = ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=settings), 45, Faults())
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
    judged(ran(lambda: acidsql.connect(spark, warehouse=tmp_path / "w", settings=settings), SECONDS, faults))


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
                SECONDS,
                faults,
            )
        )
