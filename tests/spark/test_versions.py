"""VERSION AS OF: a table as it was at a write id, while its files are there; an error, never other rows, when not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from acidsql.errors import InvalidValue, SnapshotTooOld, StorageError, UnsupportedError
from acidsql.fs import LocalFileSystem
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.hive_files import write_orc
from tests.spark.hive_tables import register
from tests.spark.test_golden_tables import GOLDEN, adopt


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in frame.collect()), key=repr)


def _steps(table: str) -> list[tuple[str, int, list[int], list[Any]]]:
    """Step, high watermark, hidden write ids, and Hive's rows with their identity, of each step of a golden table."""
    found = []
    for path in sorted(p for p in (GOLDEN / table).iterdir() if p.is_dir()):
        [valid] = json.loads((path / "meta.json").read_text())["validWriteIds"]
        shown = json.loads((path / "rowid.json").read_text())["rows"]
        found.append((path.name, valid["writeIdHighWaterMark"], valid["invalidWriteIds"], shown))
    return found


def _read(acid: AcidSession, table: str, version: int) -> list[list[Any]]:
    frame = acid.sql(f"SELECT ROW__ID, * FROM {table} VERSION AS OF {version}")
    return sorted(
        ([json.dumps(dict(zip(("writeid", "bucketid", "rowid"), r[0], strict=True))), *r[1:]] for r in frame.collect()),
        key=repr,
    )


def _expected(shown: list[Any]) -> list[list[Any]]:
    return sorted(([json.dumps(json.loads(r[0])), *r[2:]] for r in shown), key=repr)


@pytest.mark.parametrize(
    ("table", "later"),
    [
        ("emp", "07_delete2"),
        ("emp", "10_minor"),
        ("emp", "11_minor_cleaned"),
        ("ow", "09_noop_update_delete"),
        ("ab", "05_aborted_delete"),
        ("ab", "11_minor_cleaned"),
    ],
)
def test_each_older_step_of_a_hive_written_table_reads_as_hive_read_it_then(
    acid: AcidSession, tmp_path: Path, table: str, later: str
) -> None:
    name = adopt(acid, f"{table}/{later}", tmp_path / "adopted")
    hidden_later = next(hidden for step, _, hidden, _ in _steps(table) if step == later)
    checked = 0
    for step, high, hidden, shown in _steps(table):
        if step > later or hidden != [h for h in hidden_later if h <= high]:
            continue  # an id that was open then is aborted now, or the other way round
        assert _read(acid, name, high) == _expected(shown), step
        checked += 1
    assert checked >= 3


@pytest.mark.parametrize("step", ["12_major", "13_major_cleaned"])
def test_a_version_before_a_major_compaction_is_too_old(acid: AcidSession, tmp_path: Path, step: str) -> None:
    name = adopt(acid, f"emp/{step}", tmp_path / "adopted")
    assert len(_read(acid, name, 7)) == 2
    for version in range(1, 7):
        with pytest.raises(SnapshotTooOld, match=r"\[Error 10327\]"):
            acid.sql(f"SELECT * FROM {name} VERSION AS OF {version}")


def test_files_that_a_cleaner_removed_below_an_overwrite_are_missed(acid: AcidSession, tmp_path: Path) -> None:
    """A base of INSERT OVERWRITE hides what a cleaner may remove: an empty answer would be wrong."""
    name = adopt(acid, "ow/02_overwrite", tmp_path / "adopted")
    assert len(_read(acid, name, 2)) == 3
    for old in (tmp_path / "adopted").glob("de*_*"):
        shutil.rmtree(old)
    assert len(_read(acid, name, 3)) == 4
    with pytest.raises(SnapshotTooOld, match="whose files may have been removed"):
        acid.sql(f"SELECT * FROM {name} VERSION AS OF 2")
    assert _read(acid, name, 0) == [], "nothing was written before the first write id"


def test_a_partition_that_began_with_an_overwrite_was_not_there_before(acid: AcidSession, warehouse: Path) -> None:
    """The daily load: each partition is written by INSERT OVERWRITE. Yesterday's version knows nothing of today's."""
    acid.sql("CREATE TRANSACTIONAL TABLE days (id int) PARTITIONED BY (d int)")
    for day in (1, 2, 3):
        acid.sql(f"INSERT OVERWRITE TABLE days PARTITION (d = {day}) VALUES ({day})")
    acid.sql("INSERT OVERWRITE TABLE days PARTITION (d) VALUES (4, 4), (20, 2)")
    for version, expected in enumerate(([], [(1, 1)], [(1, 1), (2, 2)], [(1, 1), (2, 2), (3, 3)])):
        assert rows(acid.table("days", version=version)) == expected
    shutil.rmtree(warehouse / "days" / "d=2" / "base_0000002")
    assert rows(acid.table("days", version=1)) == [(1, 1)]
    with pytest.raises(SnapshotTooOld, match="d=2"):
        acid.table("days", version=3)


@pytest.mark.parametrize(
    "end", ["INSERT OVERWRITE TABLE w PARTITION (p = 0) VALUES (9)", "TRUNCATE TABLE w PARTITION (p = 0)"]
)
@pytest.mark.parametrize("is_original", [True, False])
def test_files_that_a_vacuum_removed_are_missed_whatever_the_store_remembers(
    acid: AcidSession, tmp_path: Path, is_original: bool, end: str
) -> None:
    """The store forgets writes once a compaction over them is cleaned, and never knew those of original files."""
    place = tmp_path / "w"
    if is_original:
        write_orc(place / "p=0" / "000000_0", "struct<id:int>", [(1,), (2,)])
        register(acid, place, [("id", "int")], name="w", keys=[("p", "int")], partitions=["p=0"])
    else:
        acid.sql("CREATE TRANSACTIONAL TABLE w (id int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO w VALUES (1, 0)")
        acid.sql("INSERT INTO w VALUES (2, 0)")
        acid.sql("ALTER TABLE w PARTITION (p = 0) COMPACT 'major' AND WAIT")
        acid.compactor.run_once()
    acid.sql("INSERT INTO w VALUES (5, 5)")
    last = acid.newest_version("w")
    acid.sql(end)
    before = rows(acid.table("w", version=last))
    assert before == [(1, 0), (2, 0), (5, 5)]
    acid.sql("VACUUM w RETAIN 0 HOURS")
    for version in range(last + 1):
        with pytest.raises(SnapshotTooOld):
            acid.table("w", version=version)
    assert len(rows(acid.table("w"))) == (1 if end.startswith("TRUNCATE") else 2)


def test_what_is_left_of_replaced_files_is_not_taken_for_all_of_them(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleaner that dies after its first directory has left a note before it."""
    for name, properties in (("full", ""), ("only", "TBLPROPERTIES ('transactional_properties'='insert_only')")):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int) {properties}")
        for number in range(1, 5):
            acid.sql(f"INSERT INTO {name} VALUES ({number})")
        kind = "minor" if name == "only" else "major"
        acid.sql(f"ALTER TABLE {name} COMPACT '{kind}' AND WAIT")
        assert rows(acid.table(name, version=2)) == [(1,), (2,)]
        real, removed = LocalFileSystem.delete, list[str]()

        def failing(self: LocalFileSystem, path: str, real: Any = real, removed: list[str] = removed) -> None:
            if "/delta_" in path:
                if removed:
                    raise StorageError("the power is gone")
                removed.append(path)
            real(self, path)

        with monkeypatch.context() as patched:
            patched.setattr(LocalFileSystem, "delete", failing)
            acid.compactor.run_once()
        assert len(removed) == 1
        for version in (1, 2, 3):
            with pytest.raises(SnapshotTooOld):
                acid.table(name, version=version)
        assert rows(acid.table(name)) == rows(acid.table(name, version=4)) == [(1,), (2,), (3,), (4,)]


class TestATableOfOurs:
    @pytest.fixture(autouse=True)
    def _made(self, acid: AcidSession) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t PARTITION (p) VALUES (1, 'a', 1), (2, 'b', 2)")
        acid.sql("UPDATE t SET v = 'c' WHERE id = 1")
        acid.sql("DELETE FROM t WHERE id = 2")
        acid.sql("INSERT INTO t PARTITION (p = 3) VALUES (3, 'd')")

    VERSIONS = (
        (),
        ((1, "a", 1), (2, "b", 2)),
        ((1, "c", 1), (2, "b", 2)),
        ((1, "c", 1),),
        ((1, "c", 1), (3, "d", 3)),
    )

    def test_each_version_has_its_rows(self, acid: AcidSession) -> None:
        for version, expected in enumerate(self.VERSIONS):
            assert rows(acid.sql(f"SELECT * FROM t VERSION AS OF {version}")) == list(expected)
            assert rows(acid.table("t", version=version)) == list(expected)

    def test_versions_meet_in_one_query(self, acid: AcidSession) -> None:
        found = rows(
            acid.sql(
                "SELECT n.id, o.v, n.v FROM t n JOIN t VERSION AS OF 1 AS o ON n.id = o.id WHERE o.p = 1"
                " UNION ALL SELECT id, v, 'gone' FROM t FOR VERSION AS OF :old WHERE id NOT IN (SELECT id FROM t)",
                old=2,
            )
        )
        assert found == [(1, "a", "c"), (2, "b", "gone")]

    def test_a_version_can_be_put_back(self, acid: AcidSession) -> None:
        acid.sql("INSERT OVERWRITE TABLE t PARTITION (p) SELECT * FROM t VERSION AS OF 1")
        assert rows(acid.sql("SELECT * FROM t WHERE p < 3")) == list(self.VERSIONS[1])

    def test_changes_are_undone_from_a_version(self, acid: AcidSession) -> None:
        """A MERGE whose source is its own target as it was; an INSERT and an UPDATE that read older versions too."""
        acid.sql(
            "MERGE INTO t USING t VERSION AS OF :old AS s ON t.id = s.id"
            " WHEN MATCHED AND t.v <> s.v THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
            old=1,
        )
        assert rows(acid.sql("SELECT * FROM t")) == [*self.VERSIONS[1], (3, "d", 3)]
        older = "SELECT id FROM t VERSION AS OF :old"
        acid.sql(f"UPDATE t SET v = (SELECT max(v) FROM t VERSION AS OF 2) WHERE id IN ({older})", old=3)
        assert rows(acid.sql("SELECT v FROM t WHERE id = 1")) == [("c",)]
        acid.sql("DELETE FROM t WHERE id NOT IN (SELECT id FROM t FOR VERSION AS OF 3)")
        acid.sql("INSERT INTO t PARTITION (p = 9) SELECT id, v FROM t VERSION AS OF 2 WHERE p = 2")
        assert rows(acid.sql("SELECT * FROM t")) == [(1, "c", 1), (2, "b", 9)]
        with pytest.raises(InvalidValue, match=r"line 1:\d+ .*no version 99"):
            acid.sql("MERGE INTO t USING t VERSION AS OF 99 s ON t.id = s.id WHEN MATCHED THEN DELETE")
        nothing_is_open(acid)

    def test_a_table_is_made_of_a_version(self, acid: AcidSession) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE copy AS SELECT o.ROW__ID.writeId AS w, o.* FROM t VERSION AS OF 2 o")
        assert rows(acid.sql("SELECT * FROM copy")) == [(1, 2, "b", 2), (2, 1, "c", 1)]
        one, other = "SELECT count(*) FROM t VERSION AS OF 3", "SELECT id FROM t VERSION AS OF 2"
        assert rows(acid.sql(f"SELECT ({one}), count(*) FROM ({other}) WHERE id > 0")) == [(1, 2)]

    def test_what_is_written_later_is_not_seen_by_a_frame(self, acid: AcidSession) -> None:
        frame = acid.sql("SELECT * FROM t VERSION AS OF 4")
        acid.sql("DELETE FROM t")
        assert rows(frame) == list(self.VERSIONS[4])
        assert rows(acid.sql("SELECT * FROM t VERSION AS OF 4")) == list(self.VERSIONS[4])

    @pytest.mark.parametrize("version", ["5", "99999999999"])
    def test_a_version_that_never_was(self, acid: AcidSession, version: str) -> None:
        with pytest.raises(InvalidValue, match=r"line 1:\d+ .*write ids go from 0 to 4"):
            acid.sql(f"SELECT * FROM t VERSION AS OF {version}")
        with pytest.raises(InvalidValue):
            acid.table("t", version=-1)

    def test_a_parameter_that_is_no_number(self, acid: AcidSession) -> None:
        with pytest.raises(InvalidValue, match="whole number"):
            acid.sql("SELECT * FROM t VERSION AS OF :v", v="yesterday")

    def test_a_view_has_no_versions(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v AS SELECT id FROM t VERSION AS OF 1")
        assert rows(acid.sql("SELECT * FROM v")) == [(1,), (2,)]
        with pytest.raises(UnsupportedError, match="is a view"):
            acid.sql("SELECT * FROM v VERSION AS OF 1")
        with pytest.raises(UnsupportedError, match="not an ACID table"):
            acid.table("v", version=1)

    @pytest.mark.parametrize("when", ["TIMESTAMP AS OF '2024-01-01'", "FOR SYSTEM_TIME AS OF current_timestamp()"])
    def test_a_time_is_refused_with_a_word_about_write_ids(self, acid: AcidSession, when: str) -> None:
        with pytest.raises(UnsupportedError, match="cannot be read as of a time") as caught:
            acid.sql(f"SELECT * FROM t {when}")
        assert "DESCRIBE HISTORY" in (caught.value.hint or "")

    def test_no_transaction_stays_behind(self, acid: AcidSession) -> None:
        with pytest.raises(InvalidValue):
            acid.sql("SELECT * FROM t VERSION AS OF 17")
        nothing_is_open(acid)

    @pytest.mark.parametrize("kind", ["major", "minor", "rebalance"])
    def test_versions_before_a_compaction_are_read_as_long_as_files_are_kept(
        self, acid: AcidSession, kind: str
    ) -> None:
        acid.sql("ALTER TABLE t SET TBLPROPERTIES ('acidsql.changes.retention' = '7d')")
        before = [rows(acid.table("t", version=version)) for version in range(4)]
        acid.sql("ALTER TABLE t PARTITION (p = 1) COMPACT 'minor' AND WAIT")
        acid.compactor.run_once()
        acid.sql("INSERT INTO t PARTITION (p = 1) VALUES (5, 'e')")
        for partition in (1, 2) if kind == "major" else (1,):
            acid.sql(f"ALTER TABLE t PARTITION (p = {partition}) COMPACT '{kind}' AND WAIT")
        acid.compactor.run_once()
        assert [rows(acid.table("t", version=version)) for version in range(4)] == before
        acid.sql("INSERT OVERWRITE TABLE t PARTITION (p = 1) VALUES (9, 'x')")
        acid.sql("ALTER TABLE t PARTITION (p = 1) COMPACT 'major' AND WAIT")
        acid.compactor.run_once()
        assert [rows(acid.table("t", version=version)) for version in range(4)] == before
        acid.sql("ALTER TABLE t SET TBLPROPERTIES ('acidsql.changes.retention' = '0s')")
        acid.sql("INSERT INTO t PARTITION (p = 1) VALUES (6, 'f')")
        for partition in (1, 2):
            acid.sql(f"ALTER TABLE t PARTITION (p = {partition}) COMPACT 'major' AND WAIT")
        acid.compactor.run_once()
        for version in range(1, 4):
            with pytest.raises(SnapshotTooOld):
                acid.table("t", version=version).collect()
