"""Writers, readers and the compactor at the same time: every snapshot is right, nothing is lost, nothing piles up.

The rules that every snapshot is judged by stand in :mod:`tests.soak.books`. A run asserts no time and no rate, but that
something was done: a soak in which nothing is compacted or removed fails, too. ``ACIDSQL_TEST_SEED`` repeats what was
drawn by chance, ``ACIDSQL_TEST_SECONDS`` says how long the load of a long run lasts.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.soak.run import Plan, soak

SEED = int(os.environ.get("ACIDSQL_TEST_SEED") or random.SystemRandom().randrange(10**6))
SECONDS = float(os.environ.get("ACIDSQL_TEST_SECONDS") or 300)


@pytest.mark.long
def test_for_some_seconds_every_snapshot_is_right_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soak(Plan(("hive3", "hive4"), 12, SEED, processes=False), spark, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("layout", ["hive3", "hive4"])
def test_for_minutes_and_with_processes_that_are_killed_every_snapshot_is_right_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    soak(Plan((layout,), SECONDS, SEED, processes=True), spark, tmp_path, monkeypatch)
