"""Transactions of several statements beside a live Hive: it reads all of them at the commit, or nothing."""

from __future__ import annotations

import threading
import time

import pytest

from acidsql.errors import AcidError, Deadlock, WriteConflict
from acidsql.metastore.model import CompactionState
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.conftest import OpenAcid


def prepared(both: Both, keys: str) -> SharedTable:
    t = both.table("id int, v string" + ("" if keys else ", k int"), keys, by=HIVE)
    return t.hive("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")


@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_hive_sees_all_statements_at_the_commit(both: Both, open_acid: OpenAcid, keys: str) -> None:
    one, two = prepared(both, keys), prepared(both, keys)
    before = [sorted(t.read(HIVE), key=repr) for t in (one, two)]
    writer = open_acid()
    for is_kept in (False, True):
        writer.sql("START TRANSACTION")
        for text in (
            "INSERT INTO {one} VALUES (4, 'd', 1), (5, 'e', 3)",
            "UPDATE {one} SET v = 'changed' WHERE id IN (1, 4)",
            "UPDATE {one} SET v = 'again' WHERE id = 4",
            "DELETE FROM {one} WHERE id = 2",
            "INSERT INTO {two} SELECT id + 10, v, k FROM {one}",
            "MERGE INTO {two} AS t USING (SELECT * FROM {one} WHERE id > 3) AS s ON t.id = s.id + 10"
            " WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged'"
            " WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.k)",
            "INSERT OVERWRITE TABLE {one} SELECT id, v, k FROM {one} WHERE id <> 3",
            "INSERT INTO {one} VALUES (6, 'f', 2)",
        ):
            writer.sql(text.format(one=one.name, two=two.name))
        assert [sorted(t.read(HIVE), key=repr) for t in (one, two)] == before
        writer.sql("COMMIT" if is_kept else "ROLLBACK")
        if not is_kept:
            assert [sorted(t.read(HIVE), key=repr) for t in (one, two)] == before
    both.wrote(ACIDSQL, 8)
    for t in (one, two):
        t.agree()
    expected = [(1, "changed", 1), (4, "again", 1), (5, "e", 3), (6, "f", 2)]
    if keys:  # the rows of partition 2 are none of those that the OVERWRITE had
        expected.append((3, "c", 2))
    assert sorted(row[3:] for row in one.read(HIVE)) == sorted(expected)
    one.hive("UPDATE {t} SET v = 'by Hive' WHERE id > 3")
    two.hive("DELETE FROM {t} WHERE id > 10")
    for side in SIDES:
        assert sorted(row[4] for row in one.read(side) if row[3] > 3) == ["by Hive"] * 3


def test_a_minor_compaction_of_such_a_transaction_alone(both: Both, open_acid: OpenAcid) -> None:
    """Names of compacted directories have no statement: Hive would show what the transaction has deleted of its own."""
    t = both.table("id int, v string", by=HIVE)
    writer = open_acid()
    with writer.transaction():
        for text in (
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "UPDATE {t} SET v = 'changed' WHERE id = 1",
            "DELETE FROM {t} WHERE id = 2",
            "INSERT INTO {t} VALUES (4, 'd')",
            "DELETE FROM {t} WHERE id = 4",
        ):
            writer.sql(t.text(text))
    both.wrote(ACIDSQL, 5)
    t.agree()
    before = t.read(HIVE)
    assert sorted(row[3:] for row in before) == [(1, "changed"), (3, "c")]
    both.run(ACIDSQL, t.text("ALTER TABLE {t} COMPACT 'minor'"))
    [outcome] = [o for o in both.acid.compactor.run_once().outcomes if o.entry.table == t.name.partition(".")[2]]
    assert outcome.state == CompactionState.READY_FOR_CLEANING
    assert any("_v" in path.name for path in t.directory.iterdir())
    for side in SIDES:
        assert t.differences(before, t.read(side)) == []
    t.hive("UPDATE {t} SET v = 'by Hive'")
    t.agree()
    assert len(t.read(HIVE)) == 2


def test_hives_change_of_the_same_rows_is_a_conflict(both: Both, open_acid: OpenAcid) -> None:
    t = prepared(both, "")
    writer = open_acid()
    writer.sql("START TRANSACTION")
    assert writer.sql(t.text("SELECT * FROM {t}")).count() == 3
    t.hive("UPDATE {t} SET v = 'by Hive' WHERE id = 1")
    assert writer.sql(t.text("SELECT * FROM {t} WHERE v = 'by Hive'")).count() == 0
    with pytest.raises(WriteConflict):
        writer.sql(t.text("UPDATE {t} SET v = 'lost' WHERE id = 1"))
    writer.sql("ROLLBACK")
    t.agree()
    assert sorted(row[4] for row in t.read(HIVE)) == ["b", "by Hive", "c"]


def test_two_that_wait_for_each_other(both: Both, open_acid: OpenAcid) -> None:
    """The metastore does not look for that: each session does, and the younger transaction gives way."""
    one, two = prepared(both, ""), prepared(both, "")
    sessions = [open_acid(), open_acid()]
    errors: list[AcidError] = []
    for session, t in zip(sessions, (one, two), strict=True):
        session.sql("START TRANSACTION")
        session.sql(t.text("UPDATE {t} SET v = 'first'"))

    def change(number: int) -> None:
        try:
            sessions[number].sql((two, one)[number].text("UPDATE {t} SET v = 'second'"))
            sessions[number].sql("COMMIT")
        except AcidError as e:
            errors.append(e)
            sessions[number].sql("ROLLBACK")

    threads = [threading.Thread(target=change, args=(number,)) for number in (0, 1)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [error] = errors
    assert isinstance(error, Deadlock)
    assert time.monotonic() - begun < 60
    both.wrote(ACIDSQL, 2)
    found = {row[4] for t in (one, two) for row in t.read(HIVE)}
    assert found == {"first", "second"}
    for t in (one, two):
        t.agree()
