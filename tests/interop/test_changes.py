"""The change feed of a table that a live Hive writes, too; and changes that are applied where Hive reads them."""

from __future__ import annotations

import pytest

from acidsql.errors import SnapshotTooOld
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both

COLUMNS = "id int, v string"


def test_changes_of_both_engines_are_told(both: Both) -> None:
    t = both.table(COLUMNS, "k int", by=HIVE)
    acid, name = both.acid, t.name
    first = acid.newest_version(name) + 1
    t.hive("INSERT INTO {t} PARTITION (k) VALUES (1, 'a', 0), (2, 'b', 1), (3, 'c', 0)")
    t.acid("UPDATE {t} SET v = 'bb' WHERE id = 2")
    t.hive("UPDATE {t} SET v = 'cc' WHERE id = 3", "DELETE FROM {t} WHERE id = 1")
    found = acid.changes(name, first, keys=["id"]).selectExpr("_change_type", "id", "v", "_commit_timestamp IS NULL")
    assert sorted(map(tuple, found.collect())) == [
        ("delete", 1, "a", True),
        ("insert", 1, "a", True),
        ("insert", 2, "b", True),
        ("insert", 3, "c", True),
        ("update_postimage", 2, "bb", True),
        ("update_postimage", 3, "cc", True),
        ("update_preimage", 2, "b", True),
        ("update_preimage", 3, "c", True),
    ]
    t.hive("INSERT OVERWRITE TABLE {t} PARTITION (k = 0) SELECT id, v FROM {t} WHERE k = 1")
    with pytest.raises(SnapshotTooOld):
        acid.changes(name, first)
    text = f"SELECT _change_type, id FROM table_changes('{name}', {first}) WHERE k = 1"
    assert len(acid.sql(text).collect()) == 3


@pytest.mark.parametrize("scd_type", [1, 2])
@pytest.mark.parametrize("by", SIDES)
def test_hive_reads_what_was_applied(both: Both, by: str, scd_type: int) -> None:
    history = ", valid_from bigint, valid_to bigint" if scd_type == 2 else ""
    t = both.table(COLUMNS + history, by=by)
    events = [(1, "a", 1, "U"), (1, "c", 3, "U"), (2, "x", 5, "D")]
    late = [(1, "b", 2, "U"), (2, "y", 4, "U"), (3, "z", 1, "U"), (3, None, 2, "D")]
    for batch in (events, late, events):
        changes = both.acid.spark.createDataFrame(batch, "id int, v string, n int, op string")
        both.acid.apply_changes(
            t.name, changes, keys=["id"], sequence_by="CAST(n AS bigint)", deletes="op = 'D'",
            except_columns=["n", "op"], scd_type=scd_type,
        )  # fmt: skip
        both.wrote(ACIDSQL)
        t.agree()
    found = {tuple(map(str, r)) for r in t.agree()}
    if scd_type == 1:
        assert len(found) == 1
    else:
        assert len(found) == 5
