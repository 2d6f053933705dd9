"""SHOW COMPACTIONS and ABORT COMPACTIONS from the statement to the embedded store and the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows
from tests.spark.tree import tree

FILTERS = [
    ("", [5, 4, 3, 2, 1]),
    ("COMPACTIONID = 3", [3]),
    ("COMPACTIONID = 33", []),
    ("DATABASE hr", [5, 1]),
    ("SCHEMA HR", [5, 1]),
    ("DATABASE nowhere", []),
    ("hr.emp", [5, 1]),
    ("part", [4, 3, 2]),
    ("emp", []),
    ("part PARTITION (p = 2)", [3]),
    ("part PARTITION (p = 02) TYPE 'minor'", []),
    ("POOL 'night'", [4, 2]),
    ("POOL 'default'", [5, 3, 1]),
    ("POOL 'Night'", []),
    ("TYPE 'Major'", [5, 4, 3]),
    ("TYPE 'minor'", [2, 1]),
    ("TYPE 'rebalance'", []),
    ("STATUS 'initiated'", [5, 4, 3]),
    ("STATUS 'Succeeded'", [1]),
    ("STATUS 'refused'", [2]),
    ("STATUS 'working'", []),
    ("LIMIT 2", [5, 4]),
    ("ORDER BY compactionid", [1, 2, 3, 4, 5]),
    ("ORDER BY type DESC, partname, compactionid DESC LIMIT 4", [1, 2, 5, 3]),
    ("ORDER BY state, compactionid", [3, 4, 5, 2, 1]),
    ("part POOL 'night' TYPE 'major' STATUS 'initiated' ORDER BY compactionid DESC LIMIT 1", [4]),
    ("part POOL 'night' TYPE 'minor' STATUS 'initiated'", []),
]


@pytest.fixture
def asked(acid: AcidSession) -> AcidSession:
    """Five requests: one is done, one was refused, three wait."""
    acid.sql("CREATE DATABASE hr")
    acid.sql("CREATE TRANSACTIONAL TABLE hr.emp (id int)")
    for number in range(2):
        acid.sql(f"INSERT INTO hr.emp VALUES ({number})")
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO part VALUES (1, 1), (2, 2), (3, 3)")
    acid.sql("SET hive.compactor.initiator.on = false")
    acid.sql("ALTER TABLE hr.emp COMPACT 'minor'")
    acid.sql("ALTER TABLE part PARTITION (p = 1) COMPACT 'minor' POOL 'night'")
    acid.sql("SET hive.compactor.job.queue = night")
    acid.compactor.run_once()
    acid.sql("SET hive.compactor.job.queue = ")
    acid.compactor.run_once()
    acid.sql("ALTER TABLE part PARTITION (p = 2) COMPACT 'major'")
    acid.sql("ALTER TABLE part PARTITION (p = 3) COMPACT 'major' POOL 'night'")
    acid.sql("INSERT INTO hr.emp VALUES (2)")
    acid.sql("ALTER TABLE hr.emp COMPACT 'major'")
    return acid


def shown(acid: AcidSession, text: str) -> list[int]:
    return [int(row.compactionid) for row in acid.sql(f"SHOW COMPACTIONS {text}").collect()]


def test_show_compactions_chooses_and_orders_entries(asked: AcidSession) -> None:
    found = {text: shown(asked, text) for text, _ in FILTERS}
    assert found == dict(FILTERS)
    columns = ["compactionid", "dbname", "tabname", "partname", "type", "state", "poolname"]
    entries = [tuple(row[c] for c in columns) for row in asked.sql("SHOW COMPACTIONS").collect()]
    assert entries == [
        ("5", "hr", "emp", " --- ", "MAJOR", "initiated", "default"),
        ("4", "default", "part", "p=3", "MAJOR", "initiated", "night"),
        ("3", "default", "part", "p=2", "MAJOR", "initiated", "default"),
        ("2", "default", "part", "p=1", "MINOR", "refused", "night"),
        ("1", "hr", "emp", " --- ", "MINOR", "succeeded", "default"),
    ]


def test_a_request_that_waits_can_be_taken_back_and_one_that_is_done_cannot(
    asked: AcidSession, warehouse: Path
) -> None:
    before = tree(warehouse)
    answers = asked.sql("ABORT COMPACTIONS 5 1 2 77")
    assert answers.columns == ["compactionid", "message"]
    assert [tuple(row) for row in answers.collect()] == [
        ("5", "Successfully aborted compaction"),
        ("1", "Error while aborting compaction as compaction is in state-succeeded"),
        ("2", "Error while aborting compaction as compaction is in state-refused"),
        ("77", "No Such Compaction Id Available"),
    ]
    assert shown(asked, "STATUS 'aborted'") == [5]
    assert [(r.compactionid, r.state) for r in asked.sql("SHOW COMPACTIONS hr.emp").collect()] == [
        ("5", "aborted"),
        ("1", "succeeded"),
    ]
    asked.sql("ABORT COMPACTIONS 3 4")
    for pool in ("night", ""):
        asked.sql(f"SET hive.compactor.job.queue = {pool}")
        assert asked.compactor.run_once().outcomes == ()
    assert tree(warehouse) == before
    assert shown(asked, "STATUS 'aborted'") == [5, 4, 3]
    assert rows(asked, "SELECT id FROM hr.emp") == [(0,), (1,), (2,)]
    nothing_is_open(asked)
    asked.sql("ALTER TABLE hr.emp COMPACT 'major' AND WAIT")  # the place is free for another request
    assert shown(asked, "hr.emp STATUS 'ready for cleaning'") == [6]
