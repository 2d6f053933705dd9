"""Transactions of several statements beside a live Hive: it reads all of them at the commit, or nothing."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException

from acidsql.errors import AcidError, Deadlock, LockTimeout, SnapshotTooOld, TransactionError, WriteConflict
from acidsql.metastore.model import CompactionState, LockRequest, LockResponse
from acidsql.plan.staging import Staging
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.conftest import OpenAcid
from tests.interop.values import parse_fields

Lock = Callable[[LockRequest], LockResponse]


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


UNSEEN = {
    "TRUNCATE of the table": "TRUNCATE TABLE {t}",
    "TRUNCATE of the partition": "TRUNCATE TABLE {t} PARTITION (k = 1)",
    "dynamic OVERWRITE": "INSERT OVERWRITE TABLE {t} PARTITION (k) SELECT id, concat(v, '!'), k FROM {t}",
    "static OVERWRITE": "INSERT OVERWRITE TABLE {t} PARTITION (k = 1) SELECT id, v FROM {t} WHERE k = 1 AND id = 1",
    "DELETE": "DELETE FROM {t} WHERE id = 1",
}
"""What Hive may do beside a transaction that has read the table; of the first three its metastore tells nothing."""
CHANGES = (
    "UPDATE {t} SET v = 'lost' WHERE k = 1",
    "MERGE INTO {t} AS t USING (SELECT 1 AS n) AS s ON t.id = s.n AND t.k = 1 WHEN MATCHED THEN UPDATE SET v = 'lost'",
)


@pytest.mark.parametrize("unseen", UNSEEN.values(), ids=list(UNSEEN))
def test_what_hive_has_replaced_unseen_is_a_conflict(both: Both, open_acid: OpenAcid, unseen: str) -> None:
    """The rows that it had replaced came back, or were there twice."""
    writer = open_acid()
    for change in CHANGES:
        t = prepared(both, "k int")
        writer.sql("START TRANSACTION")
        assert writer.sql(t.text("SELECT * FROM {t}")).count() == 3
        t.hive(unseen)
        before = sorted(t.read(HIVE), key=repr)
        with pytest.raises(WriteConflict):
            writer.sql(t.text(change))
        writer.sql("ROLLBACK")
        assert sorted(t.read(HIVE), key=repr) == before
        t.agree()


@pytest.mark.parametrize("unseen", UNSEEN.values(), ids=list(UNSEEN))
def test_what_hive_has_replaced_before_the_lock_is_seen(
    both: Both, open_acid: OpenAcid, monkeypatch: pytest.MonkeyPatch, unseen: str
) -> None:
    """A statement's snapshot ends at its own transaction, which is older than Hive's."""
    writer = open_acid()
    for change in CHANGES:
        t, twin = prepared(both, "k int"), prepared(both, "k int")
        twin.hive(unseen)
        writer.sql(twin.text(change))
        lock, waiting = writer.metastore.lock, [t]

        def locked(request: LockRequest, lock: Lock = lock, waiting: list[SharedTable] = waiting) -> LockResponse:
            if waiting:
                waiting.pop().hive(unseen)
            return lock(request)

        with monkeypatch.context() as patch:
            patch.setattr(writer.metastore, "lock", locked)
            writer.sql(t.text(change))
        assert waiting == []
        assert sorted(r[3:] for r in t.read(HIVE)) == sorted(r[3:] for r in twin.read(HIVE))
        t.agree()


def test_what_hive_has_inserted_unseen_is_no_conflict(both: Both, open_acid: OpenAcid) -> None:
    t, writer = prepared(both, "k int"), open_acid()
    writer.sql("START TRANSACTION")
    assert writer.sql(t.text("SELECT * FROM {t}")).count() == 3
    t.hive("INSERT INTO {t} VALUES (4, 'by Hive', 1)")
    writer.sql(t.text("UPDATE {t} SET v = 'changed' WHERE k = 1"))
    t.hive("INSERT INTO {t} VALUES (5, 'by Hive', 1)")
    writer.sql(t.text("DELETE FROM {t} WHERE k = 1 AND id = 2"))
    writer.sql("COMMIT")
    t.agree()
    assert sorted(r[3:5] for r in t.read(HIVE)) == [(1, "changed"), (3, "c"), (4, "by Hive"), (5, "by Hive")]


@pytest.mark.parametrize("name", ["TRUNCATE of the partition", "static OVERWRITE"])
def test_a_base_of_hives_hides_no_row_of_an_earlier_write_id(both: Both, open_acid: OpenAcid, name: str) -> None:
    """The write id was allocated for another partition: the row was gone after the COMMIT."""
    t, writer = prepared(both, "k int"), open_acid()
    writer.sql("START TRANSACTION")
    writer.sql(t.text("INSERT INTO {t} PARTITION (k = 2) VALUES (4, 'd')"))
    t.hive(UNSEEN[name])
    before = sorted(t.read(HIVE), key=repr)
    with pytest.raises(WriteConflict):
        writer.sql(t.text("INSERT INTO {t} PARTITION (k = 1) VALUES (5, 'lost')"))
    writer.sql("ROLLBACK")
    assert sorted(t.read(HIVE), key=repr) == before


def test_what_hives_truncate_would_hide_is_a_conflict(both: Both, open_acid: OpenAcid) -> None:
    """It does not wait for whoever is inserting; where it is about another partition nothing is hidden."""
    t, writer = prepared(both, "k int"), open_acid()
    for truncated, outcome in ((1, pytest.raises(WriteConflict)), (2, nullcontext())):
        writer.sql("START TRANSACTION")
        writer.sql(t.text("INSERT INTO {t} VALUES (4, 'd', 1)"))
        t.hive(f"TRUNCATE TABLE {{t}} PARTITION (k = {truncated})")
        with outcome:
            writer.sql("COMMIT")
        for side in SIDES:
            assert [r[3:5] for r in t.read(side)] == [(3, "c") if truncated == 1 else (4, "d")]


@pytest.mark.parametrize(
    "added", ["INSERT INTO {t} VALUES (4, 'd', 9)", "INSERT INTO {t} PARTITION (k = 9) VALUES (4, 'd')"]
)
def test_what_hives_truncate_would_hide_of_a_new_partition_is_a_conflict(
    both: Both, open_acid: OpenAcid, added: str
) -> None:
    """The partition was none of those that were known when its files were published: its row was gone."""
    t, writer = prepared(both, "k int"), open_acid()
    writer.sql("START TRANSACTION")
    writer.sql(t.text(added))
    t.hive("TRUNCATE TABLE {t} PARTITION (k = 9)")
    with pytest.raises(WriteConflict):
        writer.sql("COMMIT")
    assert all(len(t.read(side)) == 3 for side in SIDES)


def test_what_hives_truncate_hides_of_a_stream_is_a_conflict(both: Both, open_acid: OpenAcid) -> None:
    """A row that was written after the TRUNCATE was acknowledged, and never seen."""
    t, writer = prepared(both, "k int"), open_acid()
    with writer.streaming(t.text("{t}"), buffer_rows=1) as stream:
        stream.begin()
        stream.write([(10, "s", 2)])
        t.hive("TRUNCATE TABLE {t} PARTITION (k = 1)")
        stream.write([(11, "s", 1)])
        with pytest.raises(WriteConflict):
            stream.commit()
    assert all(r[3] not in (10, 11) for r in t.read(HIVE))
    t.agree()


def test_an_insert_that_hives_truncate_would_hide_runs_again(both: Both, open_acid: OpenAcid) -> None:
    t, writer = prepared(both, "k int"), open_acid()
    publish, done = Staging.publish, list[SharedTable]()

    def truncated(self: Staging, locations: Mapping[str, str] | None = None) -> None:
        publish(self, locations)
        if not done:
            done.append(t.hive("TRUNCATE TABLE {t} PARTITION (k = 1)"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Staging, "publish", truncated)
        writer.sql(t.text("INSERT INTO {t} VALUES (4, 'd', 1)"))
    t.agree()
    assert [r[3:5] for r in t.read(HIVE) if r[5] == 1] == [(4, "d")]


def test_what_was_never_locked_counts_for_nothing(both: Both, open_acid: OpenAcid) -> None:
    """A metastore keeps what was asked for."""
    t, u = prepared(both, "k int"), prepared(both, "k int")
    writer, other = open_acid(**{"acidsql.lock.timeout": "1s"}), open_acid()
    writer.sql("START TRANSACTION")
    writer.sql(u.text("UPDATE {t} SET v = 'u' WHERE k = 1"))
    other.sql("START TRANSACTION")
    other.sql(t.text("UPDATE {t} SET v = 'o' WHERE k = 1"))
    with pytest.raises(LockTimeout):
        writer.sql(t.text("UPDATE {t} SET v = 'w' WHERE k = 1"))
    other.sql("COMMIT")
    writer.sql(u.text("INSERT INTO {t} VALUES (5, 'e', 2)"))
    with pytest.raises(WriteConflict):
        writer.sql(t.text("UPDATE {t} SET v = 'w' WHERE k = 1"))
    writer.sql("ROLLBACK")
    writer.sql("START TRANSACTION")
    writer.sql(u.text("UPDATE {t} SET v = 'u' WHERE k = 1"))
    writer.sql("COMMIT")
    for side in SIDES:
        assert [sorted(r[4] for r in x.read(side)) for x in (t, u)] == [["c", "o", "o"], ["c", "u", "u"]]


def test_a_table_that_was_made_anew_before_its_first_use_is_told(both: Both, open_acid: OpenAcid) -> None:
    """It was empty for the snapshot: an answer of no moment."""
    t, u, writer = prepared(both, "k int"), prepared(both, "k int"), open_acid()
    writer.sql("START TRANSACTION")
    assert writer.sql(u.text("SELECT * FROM {t}")).count() == 3
    time.sleep(1)  # the metastore counts seconds
    for change in ("CREATE TABLE {t}_like LIKE {t}", "DROP TABLE {t} PURGE", "CREATE TABLE {t} LIKE {t}_like"):
        both.hive.run(t.text(change))
    for text in ("SELECT * FROM {t}", "INSERT INTO {t} VALUES (1, 'x', 1)", "DELETE FROM {t}"):
        with pytest.raises(TransactionError, match="after the transaction's snapshot"):
            writer.sql(t.text(text))
    assert writer.sql(u.text("SELECT * FROM {t}")).count() == 3
    writer.sql("COMMIT")


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_what_hives_cleaner_removes_of_the_snapshot_is_told(
    both: Both, open_acid: OpenAcid, keys: str, is_seen: bool
) -> None:
    """After aborted transactions it removes what INSERT OVERWRITE has replaced, whoever reads it: rows were missing."""
    t, u, writer = prepared(both, keys), prepared(both, keys), open_acid()
    time.sleep(1)  # a partition of the same second would be taken for a new one
    writer.sql("START TRANSACTION")
    assert writer.sql((t if is_seen else u).text("SELECT * FROM {t}")).count() == 3
    into = "INSERT OVERWRITE TABLE {t} PARTITION (k = 1) " if keys else "INSERT OVERWRITE TABLE {t} "
    both.hive.run(t.text(f"{into} SELECT id, v{'' if keys else ', k'} FROM {{t}} WHERE k = 1"))
    where = Path(urlsplit(writer._env.metastore.get_table(*t.name.split(".")).location).path)
    removed = list((where / "k=1" if keys else where).glob("delta_*"))
    assert removed
    for directory in removed:
        shutil.rmtree(directory)
    for text in (
        "SELECT * FROM {t}",
        "SELECT * FROM {t} VERSION AS OF 1",
        f"{u.text('INSERT INTO {t}')} SELECT * FROM {{t}}",
        "DELETE FROM {t}",
    ):
        with pytest.raises((SnapshotTooOld, WriteConflict)):
            writer.sql(t.text(text)).count()
        if "DELETE" not in text:
            assert writer.sql(u.text("SELECT * FROM {t}")).count() == 3
    writer.sql("ROLLBACK")
    t.agree()


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_empty_table_that_hive_fills_stays_empty(both: Both, open_acid: OpenAcid, overwrite: bool) -> None:
    """Or it is told that files from before the table was transactional may be gone, which a base would have hidden."""
    t, u, writer = both.table("id int, v string", "", by=HIVE), prepared(both, "k int"), open_acid()
    writer.sql("START TRANSACTION")
    assert writer.sql(u.text("SELECT * FROM {t}")).count() == 3
    both.hive.run(t.text(f"INSERT {'OVERWRITE' if overwrite else 'INTO'} TABLE {{t}} SELECT 1, 'x'"))
    with pytest.raises(SnapshotTooOld) if overwrite else nullcontext():
        assert writer.sql(t.text("SELECT * FROM {t}")).count() == 0
    writer.sql("COMMIT")
    assert len(t.agree()) == 1


@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_original_files_that_hives_cleaner_removes_are_told(both: Both, open_acid: OpenAcid, keys: str) -> None:
    """A compaction of nothing else makes a base of no write id: it was not taken for what has replaced them."""
    columns, name = "id int, v string" + ("" if keys else ", k int"), both.new_name()
    for text in (
        f"CREATE EXTERNAL TABLE {name} ({columns}){f' PARTITIONED BY ({keys})' if keys else ''} STORED AS ORC",
        f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",
        f"ALTER TABLE {name} SET TBLPROPERTIES ('EXTERNAL'='FALSE', 'transactional'='true')",
    ):
        both.run(HIVE, text)
    t = SharedTable(both, name, parse_fields(columns), parse_fields(keys))
    u, writer = prepared(both, keys), open_acid()
    time.sleep(1)  # a partition of the same second would be taken for a new one
    writer.sql("START TRANSACTION")
    assert writer.sql(u.text("SELECT * FROM {t}")).count() == 3
    both.acid.sql(t.text(f"ALTER TABLE {{t}} {'PARTITION (k = 1) ' if keys else ''}COMPACT 'major'"))
    assert both.acid.compactor.run_once().outcomes
    place = t.directory / "k=1" if keys else t.directory
    [base] = place.glob("base_*_v*")
    base.rename(base.with_name(f"base_-9223372036854775808_v{base.name.partition('_v')[2]}"))  # as Hive names it
    removed = [file for file in place.iterdir() if file.is_file() and file.name[0] == "0"]
    assert removed
    for file in removed:
        file.unlink()
    for text in (
        "SELECT * FROM {t}",
        "SELECT * FROM {t} VERSION AS OF 0",
        "UPDATE {t} SET v = 'x' WHERE id = 1",
        "DELETE FROM {t}",
    ):
        with pytest.raises((SnapshotTooOld, WriteConflict)):
            writer.sql(t.text(text)).count()
        if not writer.sql("SHOW TRANSACTIONS").count():
            break
    writer.sql("ROLLBACK")
    t.agree()


@pytest.mark.parametrize("place", ["of it", "of another"])
def test_a_rebalance_before_the_snapshot_is_no_conflict(both: Both, open_acid: OpenAcid, place: str) -> None:
    """It was one with each later compaction of the table, for as long as the metastore remembered it."""
    t, writer = prepared(both, "k int"), open_acid()
    t.hive("INSERT INTO {t} VALUES (4, 'd', 1), (5, 'e', 2)")
    rebalanced = 1 if place == "of it" else 2
    both.acid.sql(t.text(f"ALTER TABLE {{t}} PARTITION (k = {rebalanced}) COMPACT 'rebalance'"))
    assert both.acid.compactor.run_once().outcomes
    t.hive("INSERT INTO {t} VALUES (6, 'f', 1)")
    writer.sql("START TRANSACTION")
    assert writer.sql(t.text("SELECT * FROM {t}")).count() == 6
    both.acid.sql(t.text("ALTER TABLE {t} PARTITION (k = 1) COMPACT 'major'"))
    assert both.acid.compactor.run_once().outcomes
    writer.sql(t.text("UPDATE {t} SET v = 'x' WHERE id IN (1, 6) AND k = 1"))
    writer.sql("COMMIT")
    t.agree()
    assert sorted(row[3:5] for row in t.read(HIVE) if row[4] == "x") == [(1, "x"), (6, "x")]


def test_an_insert_that_was_open_at_the_snapshot_is_no_conflict(both: Both, open_acid: OpenAcid) -> None:
    """Its write id is below that of a base that the snapshot sees."""
    t, writer, other = prepared(both, "k int"), open_acid(), open_acid()
    other.sql("START TRANSACTION")
    other.sql(t.text("INSERT INTO {t} PARTITION (k = 2) VALUES (4, 'd')"))
    t.hive("INSERT OVERWRITE TABLE {t} PARTITION (k = 1) SELECT id, v FROM {t} WHERE k = 1")
    writer.sql("START TRANSACTION")
    assert writer.sql(t.text("SELECT * FROM {t}")).count() == 3
    other.sql("COMMIT")
    writer.sql(t.text("UPDATE {t} SET v = 'changed' WHERE k = 1"))
    writer.sql("COMMIT")
    t.agree()
    assert sorted(r[3:5] for r in t.read(HIVE)) == [(1, "changed"), (2, "changed"), (3, "c"), (4, "d")]


@pytest.mark.parametrize("waits", ["true", "false"])
def test_a_change_of_many_partitions_meets_one_of_a_single_partition(
    both: Both, open_acid: OpenAcid, waits: str
) -> None:
    """The metastore compares names of partitions: a lock of the whole table was in conflict with none of them."""
    t, writer, other = prepared(both, "k int"), open_acid(), open_acid()
    for session in (writer, other):
        session.sql(f"SET hive.txn.xlock.write={waits}")
    other.sql("SET hive.locks.max.partitions=1")
    writer.sql("START TRANSACTION")
    assert writer.sql(t.text("SELECT * FROM {t}")).count() == 3
    other.sql(t.text("UPDATE {t} SET v = concat(v, '!')"))
    with pytest.raises(WriteConflict):
        writer.sql(t.text("UPDATE {t} SET v = 'lost' WHERE k = 1"))
    writer.sql("ROLLBACK")
    t.agree()
    assert sorted(r[4] for r in t.read(HIVE)) == ["a!", "b!", "c!"]


def test_the_setting_of_a_statement_counts_not_that_of_the_commit(both: Both, open_acid: OpenAcid) -> None:
    t, sessions = prepared(both, ""), [open_acid(), open_acid()]
    for session in sessions:
        session.sql("SET hive.txn.xlock.write=false")
        session.sql("START TRANSACTION")
        session.sql(t.text("UPDATE {t} SET v = concat(v, '!') WHERE id = 1"))
        session.sql("SET hive.txn.xlock.write=true")
    sessions[0].sql("COMMIT")
    with pytest.raises(WriteConflict):
        sessions[1].sql("COMMIT")
    t.agree()
    assert sorted(r[4] for r in t.read(HIVE)) == ["a!", "b", "c"]


REDEFINED = {
    "partition dropped": ["ALTER TABLE {t} DROP PARTITION (k = 1)"],
    "partition made anew": ["ALTER TABLE {t} DROP PARTITION (k = 1)", "INSERT INTO {t} VALUES (7, 'new', 1)"],
    "partition renamed": ["ALTER TABLE {t} PARTITION (k = 1) RENAME TO PARTITION (k = 5)"],
    "table made anew": ["DROP TABLE {t} PURGE", "CREATE TABLE {t} LIKE {t}_like"],
    "columns added": ["ALTER TABLE {t} ADD COLUMNS (x int)"],
}


@pytest.mark.parametrize("changes", REDEFINED.values(), ids=list(REDEFINED))
def test_what_hive_has_redefined_is_told(both: Both, open_acid: OpenAcid, changes: list[str]) -> None:
    """The snapshot was without the rows of the partition, and nobody was told."""
    t, writer = prepared(both, "k int"), open_acid()
    both.hive.run(t.text("CREATE TABLE {t}_like LIKE {t}"))
    writer.sql("START TRANSACTION")
    assert writer.sql(t.text("SELECT * FROM {t}")).count() == 3
    for change in changes:
        both.hive.run(t.text(change))
    for text in (
        "SELECT * FROM {t}",
        "UPDATE {t} SET v = 'lost' WHERE id = 1",
        "UPDATE {t} SET v = 'lost' WHERE k = 1",
        "DELETE FROM {t} WHERE k = 1",
        "DELETE FROM {t}",
    ):
        with pytest.raises(AcidError, match=r"after the transaction's snapshot|has replaced rows"):
            writer.sql(t.text(text))
        if not writer.sql("SHOW TRANSACTIONS").count():
            break
    writer.sql("ROLLBACK")


@pytest.mark.usefixtures("compactor")
@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_what_is_rolled_back_does_not_count(both: Both, open_acid: OpenAcid, keys: str) -> None:
    """After a major compaction Hive answers ``count(*)`` from the number that stands in the metastore."""
    t, writer = prepared(both, keys), open_acid()
    t.hive("DELETE FROM {t} WHERE id = 1")
    writer.sql("START TRANSACTION")
    writer.sql(t.text("INSERT INTO {t} VALUES (4, 'd', 1), (5, 'e', 2)"))
    writer.sql("ROLLBACK")
    with writer.transaction():
        writer.sql(t.text("INSERT INTO {t} VALUES (6, 'f', 1), (7, 'g', 1)"))
        with pytest.raises(PySparkException):
            writer.sql(t.text("INSERT INTO {t} SELECT id, assert_true(id < 3), k FROM {t}"))
        writer.sql(t.text("DELETE FROM {t} WHERE id = 7"))
    both.wrote(ACIDSQL, 2)
    for name in ["PARTITION (k = 1)", "PARTITION (k = 2)"] if keys else [""]:
        both.run(HIVE, t.text(f"ALTER TABLE {{t}} {name} COMPACT 'major' AND WAIT"))
    found = both.ask(HIVE, t.text("SELECT count(*) FROM {t}"))
    assert found == [(3,)]
    t.agree()


HELD = {
    "INSERT": ("INSERT INTO {t} VALUES (9, 'n', 1)", "INSERT INTO {t} PARTITION (k = 1) VALUES (10, 'n')"),
    "OVERWRITE": (
        "INSERT OVERWRITE TABLE {t} PARTITION (k) SELECT * FROM {t}",
        "UPDATE {t} SET v = 'ours' WHERE k = 1",
    ),
    "TRUNCATE": ("TRUNCATE TABLE {t}", "INSERT INTO {t} PARTITION (k = 1) VALUES (10, 'n')"),
}
"""Two statements, the first of which locks the whole table."""


@pytest.mark.parametrize("texts", HELD.values(), ids=list(HELD))
def test_who_waits_for_a_lock_of_the_table_is_not_in_the_way_of_its_partitions(
    both: Both, open_acid: OpenAcid, texts: tuple[str, str]
) -> None:
    """It asked for a lock of the partition, too, behind who waited for this transaction: a deadlock without need."""
    t, writer = prepared(both, "k int"), open_acid()
    writer.sql("START TRANSACTION")
    writer.sql(t.text(texts[0]))
    overwrite = t.text("INSERT OVERWRITE TABLE {t} PARTITION (k = 1) VALUES (11, 'theirs')")
    other = threading.Thread(target=lambda: both.hive.run(overwrite))
    other.start()
    end = time.monotonic() + 60
    while "WAITING" not in {r.lock_state for r in writer.sql("SHOW LOCKS").collect()} and time.monotonic() < end:
        time.sleep(0.2)
    writer.sql(t.text(texts[1]))
    writer.sql("COMMIT")
    other.join()
    both.wrote(ACIDSQL, 2)
    assert [row[3:] for row in t.read(HIVE) if row[-1] == 1] == [(11, "theirs", 1)]
    t.agree()


def test_nothing_is_inserted_into_a_partition_that_was_read_and_dropped(both: Both, open_acid: OpenAcid) -> None:
    """It was, and could not be read in the transaction: the partition was made anew, by itself."""
    t, writer = prepared(both, "k int"), open_acid()
    writer.sql("START TRANSACTION")
    assert writer.sql(t.text("SELECT * FROM {t}")).count() == 3
    both.hive.run(t.text("ALTER TABLE {t} DROP PARTITION (k = 1)"))
    for text in (
        "INSERT INTO {t} PARTITION (k = 1) VALUES (9, 'x')",
        "INSERT INTO {t} VALUES (9, 'x', 1), (8, 'y', 2)",
    ):
        with pytest.raises(TransactionError, match=r"k=1 of .* was dropped, moved or made anew"):
            writer.sql(t.text(text))
    writer.sql(t.text("INSERT INTO {t} VALUES (7, 'z', 3)"))
    writer.sql("COMMIT")
    both.wrote(ACIDSQL, 1)
    assert sorted(row[3] for row in t.read(HIVE)) == [3, 7]
    t.agree()


def test_one_of_hives_that_waits_for_us(both: Both, open_acid: OpenAcid) -> None:
    """Hive does not look whether it is part of a circle: ours gives way, though it is the older one."""
    t, writer = prepared(both, ""), open_acid()
    writer.sql("START TRANSACTION")
    writer.sql(t.text("INSERT INTO {t} VALUES (4, 'd', 1)"))
    other = threading.Thread(target=lambda: both.hive.run(t.text("ALTER TABLE {t} ADD COLUMNS (x int)")))
    other.start()
    end = time.monotonic() + 60
    while (
        "WAITING" not in {str(r["lock_state"]) for r in writer.sql("SHOW LOCKS").collect()} and time.monotonic() < end
    ):
        time.sleep(0.2)
    begun = time.monotonic()
    with pytest.raises(Deadlock):
        writer.sql(t.text("UPDATE {t} SET v = 'lost'"))
    assert time.monotonic() - begun < 60  # acidsql.lock.timeout is 300
    writer.sql("ROLLBACK")
    other.join()
    assert [row[-1] for row in both.ask(HIVE, t.text("SELECT * FROM {t} WHERE id < 4"))] == [None] * 3


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
