"""acidsql's worker rebalances what either side asks for: Hive reads the rows, and changes them by their new ids."""

from __future__ import annotations

import pytest

from acidsql.metastore.model import CompactionState as State
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable

FILES = 3


def _written(both: Both, keys: bool) -> SharedTable:
    """A table with rows of both sides, most of them in its first file; its partition is k=1."""
    t = both.table("id int, v string", "k int" if keys else "", by=ACIDSQL)
    tail = ", 1" if keys else ""
    for number in range(6):
        t.on(SIDES[number % 2], f"INSERT INTO {{t}} VALUES ({number}, 'a'{tail}), ({number + 10}, 'b'{tail})")
    t.acid("UPDATE {t} SET v = 'acidsql' WHERE id = 1").hive("DELETE FROM {t} WHERE id = 10")
    t.agree()
    return t


@pytest.mark.parametrize("asking", SIDES)
@pytest.mark.parametrize("keys", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("order", ["", " ORDER BY id DESC"], ids=["by row id", "by column"])
def test_what_acidsql_rebalances_is_read_and_changed_by_both(both: Both, order: str, keys: bool, asking: str) -> None:
    t = _written(both, keys)
    before = t.agree()
    place = t.directory / "k=1" if t.keys else t.directory
    old = set(place.glob("base_*"))
    partition = " PARTITION (k=1)" if keys else ""
    text = f"ALTER TABLE {{t}}{partition} COMPACT 'rebalance' CLUSTERED INTO {FILES} BUCKETS{order}"
    both.run(asking, t.text(text))
    [outcome] = [o for o in both.acid.compactor.run_once().outcomes if o.entry.table == t.name.partition(".")[2]]
    assert outcome.state == State.READY_FOR_CLEANING, outcome.message
    [base] = set(place.glob("base_*_v*")) - old
    assert sorted(p.name for p in base.glob("bucket_*")) == [f"bucket_{i:05d}" for i in range(FILES)]
    assert t.agree() == before
    ids = sorted(row[:3] for row in t.read(HIVE))
    assert sorted(row_id for _, _, row_id in ids) == list(range(len(before)))
    t.hive("DELETE FROM {t} WHERE id = 2", "UPDATE {t} SET v = 'hive' WHERE id = 13")
    t.acid("DELETE FROM {t} WHERE id = 3", "UPDATE {t} SET v = 'acidsql' WHERE id = 14")
    assert len(t.agree()) == len(before) - 2
