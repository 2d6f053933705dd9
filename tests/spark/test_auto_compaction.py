"""``acidsql.compactor.auto``: a session keeps the tables that it writes in shape."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.answers import rows


@pytest.fixture
def auto(acid: AcidSession) -> AcidSession:
    acid.sql("SET hive.compactor.delta.num.threshold = 2")
    acid.sql("SET acidsql.compactor.auto = true")
    return acid


def until_compacted(acid: AcidSession, expected: set[str | None]) -> None:
    """Wait until there is a compaction of each of these partitions."""
    while True:
        found = acid.sql("SHOW COMPACTIONS").collect()
        if {r.partname if r.partname != " --- " else None for r in found} >= expected and all(
            r.state in ("ready for cleaning", "succeeded") for r in found
        ):
            return
        time.sleep(0.05)


def test_a_table_and_partitions_that_are_written_again_and_again_are_compacted(
    auto: AcidSession, warehouse: Path
) -> None:
    auto.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    auto.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (day int)")
    for i in range(4):
        auto.sql(f"INSERT INTO t VALUES ({i})")
        auto.sql(f"INSERT INTO p VALUES ({i}, 1), ({i}, 2)")
    until_compacted(auto, {None, "day=1", "day=2"})
    assert any(p.name.startswith("base_") for p in (warehouse / "t").iterdir())
    assert sorted(rows(auto, "SELECT id FROM t")) == [(0,), (1,), (2,), (3,)]
    assert auto.sql("SELECT * FROM p").count() == 8


def test_it_leaves_alone_what_opts_out_and_does_nothing_where_nobody_asked_for_it(acid: AcidSession) -> None:
    acid.sql("SET hive.compactor.delta.num.threshold = 2")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("CREATE TRANSACTIONAL TABLE own (id int) TBLPROPERTIES ('NO_AUTO_COMPACTION' = 'true')")
    for i in range(4):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    acid.sql("SET acidsql.compactor.auto = true")
    for i in range(4):
        acid.sql(f"INSERT INTO own VALUES ({i})")
    acid.compactor.stop()  # what was under way has ended
    assert acid.sql("SHOW COMPACTIONS").collect() == []
