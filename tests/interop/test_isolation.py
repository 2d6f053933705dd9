"""Sessions side by side on a live Hive Metastore, judged as those of tests/isolation are."""

from __future__ import annotations

import os
import random

import pytest

from acidsql.session import AcidSession
from tests.interop.conftest import OpenAcid, OpenHive
from tests.isolation.run import ACCOUNTS, START, Faults, judged, ran

SEED = int(os.environ.get("ACIDSQL_TEST_SEED") or random.SystemRandom().randrange(10**6))
SECONDS = float(os.environ.get("ACIDSQL_TEST_SECONDS") or 90)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("xlock", ["true", "false"])
def test_sessions_side_by_side(open_acid: OpenAcid, open_hive: OpenHive, database: str, xlock: str) -> None:
    database = f"{database}_{xlock}"
    hive = open_hive()
    hive.run(f"CREATE DATABASE {database}")

    def connect() -> AcidSession:
        made = open_acid(**{"hive.txn.xlock.write": xlock, "acidsql.lock.timeout": "60s"})
        made.sql(f"USE {database}")
        return made

    report = ran(connect, SEED, SECONDS, Faults())
    judged(report, SEED)
    money = [hive.run(f"SELECT sum(balance) FROM {database}.{name}")[0][0] for name in ("checking", "saving")]
    assert sum(money) == 2 * ACCOUNTS * START
    assert hive.run(f"SELECT n FROM {database}.counter")[0][0] >= report.counts["counted"]
    hive.run(f"DROP DATABASE {database} CASCADE")
