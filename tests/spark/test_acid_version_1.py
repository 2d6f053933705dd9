"""Directories of Hive 1 and 2: updates and deletes as events in the deltas, merged by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.session import AcidSession
from acidsql.valid_ids import ValidWriteIdList
from tests.spark.hive_files import BUCKET_0, Row, deletes, inserts, write_events, write_orc
from tests.spark.hive_tables import register

COLUMNS = [("a", "int"), ("b", "string")]
FIELDS = "a:int,b:string"


def write(path: Path, events: list[Row], *, stats: bool = True) -> None:
    write_events(path, FIELDS, sorted(events, key=lambda e: e[1:4]), version=1, stats=stats)


def update(key: tuple[int, int, int], write_id: int, row: Row) -> Row:
    return (1, *key, write_id, row)


def answer(acid: AcidSession) -> list[Row]:
    text = "SELECT ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId, a, b FROM t ORDER BY 1, 2, 3"
    return [tuple(r) for r in acid.sql(text).collect()]


def base_and_changes(root: Path) -> None:
    """Bucket values are bare bucket numbers, as they were then."""
    write(root / "base_0000002/bucket_00000", inserts(1, [(i, f"old{i}") for i in range(4)], bucket=0))
    write(root / "base_0000002/bucket_00001", inserts(2, [(10, "old10")], bucket=1))
    write(root / "delta_0000003_0000003/bucket_00000", [update((1, 0, 0), 3, (0, "new0")), *deletes(3, [(1, 0, 2)])])
    write(root / "delta_0000003_0000003/bucket_00001", inserts(3, [(11, "new11")], bucket=1))
    write(root / "delta_0000004_0000004/bucket_00000", [update((1, 0, 0), 4, (0, "newer0"))])


EXPECTED = [(1, 0, 0, 0, "newer0"), (1, 0, 1, 1, "old1"), (1, 0, 3, 3, "old3"), (2, 1, 0, 10, "old10")]


def test_the_newest_event_of_a_key_is_the_row(acid: AcidSession, tmp_path: Path) -> None:
    base_and_changes(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    assert answer(acid) == [*EXPECTED, (3, 1, 0, 11, "new11")]
    assert acid.sql("SELECT count(*) FROM t").collect()[0][0] == 5


@pytest.mark.usefixtures("search")
def test_a_condition_that_an_old_version_meets_does_not_bring_it_back(acid: AcidSession, tmp_path: Path) -> None:
    base_and_changes(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    assert acid.sql("SELECT * FROM t WHERE b IN ('old0', 'new0', 'old2')").collect() == []
    assert acid.sql("SELECT a FROM t WHERE b = 'newer0'").collect()[0][0] == 0


def test_a_snapshot_sees_the_event_before_one_that_it_does_not_see(acid: AcidSession, tmp_path: Path) -> None:
    base_and_changes(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS, valid=ValidWriteIdList("default.t", 4, (4,)))
    assert answer(acid)[0] == (1, 0, 0, 0, "new0")


def test_in_a_compacted_delta_events_of_unseen_write_ids_do_not_count(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root / "delta_0000001_0000001/bucket_00000", inserts(1, [(1, "old")], bucket=0))
    changes = [update((1, 0, 0), 3, (1, "aborted")), update((1, 0, 0), 2, (1, "new")), *inserts(3, [(3, "no")], 0)]
    write(root / "delta_0000002_0000003/bucket_00000", changes)
    register(acid, root, COLUMNS, valid=ValidWriteIdList("default.t", 3, (), (3,)))
    assert answer(acid) == [(1, 0, 0, 1, "new")]


def test_of_two_statements_of_a_transaction_the_later_one_counts(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root / "delta_0000001_0000001_0000/bucket_00000", inserts(1, [(1, "old"), (2, "old"), (3, "old")], 0))
    write(root / "delta_0000002_0000002_0000/bucket_00000", [update((1, 0, i), 2, (i, "first")) for i in range(2)])
    second = [update((1, 0, 0), 2, (1, "second")), *deletes(2, [(1, 0, 1)])]
    write(root / "delta_0000002_0000002_0001/bucket_00000", second)
    register(acid, root, COLUMNS)
    assert answer(acid) == [(1, 0, 0, 1, "second"), (1, 0, 2, 3, "old")]


def test_update_events_that_a_compaction_left_in_a_base_are_rows(acid: AcidSession, tmp_path: Path) -> None:
    events = [*inserts(1, [(1, "one")], 0), update((1, 0, 1), 2, (2, "two"))]
    write(tmp_path / "t/base_0000002/bucket_00000", events)
    register(acid, tmp_path / "t", COLUMNS)
    assert answer(acid) == [(1, 0, 0, 1, "one"), (1, 0, 1, 2, "two")]


def test_files_that_do_not_count_their_events_are_merged_as_well(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root / "delta_0000001_0000001/bucket_00000", inserts(1, [(1, "old")], 0), stats=False)
    write(root / "delta_0000002_0000002/bucket_00000", [update((1, 0, 0), 2, (1, "new"))], stats=False)
    register(acid, root, COLUMNS)
    assert answer(acid) == [(1, 0, 0, 1, "new")]


def test_an_update_in_a_later_file_of_a_directory_is_noticed(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root / "delta_0000001_0000001/bucket_00001", inserts(1, [(1, "old")], 1))
    write(root / "delta_0000002_0000002/bucket_00000", inserts(2, [(2, "x")], 0))
    write(root / "delta_0000002_0000002/bucket_00001", [update((1, 1, 0), 2, (1, "new"))])
    register(acid, root, COLUMNS)
    assert answer(acid) == [(1, 1, 0, 1, "new"), (2, 0, 0, 2, "x")]


def test_old_updates_and_new_delete_deltas_go_together(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    base_and_changes(root)
    write_events(root / "delete_delta_0000005_0000005_0000/bucket_00000", FIELDS, deletes(5, [(1, 0, 0), (1, 0, 3)]))
    write_events(root / "delta_0000005_0000005_0001/bucket_00000", FIELDS, inserts(5, [(0, "v2")], BUCKET_0 + 1))
    register(acid, root, COLUMNS)
    assert [r[3:] for r in answer(acid)] == [(1, "old1"), (10, "old10"), (11, "new11"), (0, "v2")]


def test_updates_of_original_files_find_their_rows(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_orc(root / "000000_0", "struct<a:int,b:string>", [(0, "old"), (1, "old")])
    write_orc(root / "000001_0", "struct<a:int,b:string>", [(2, "old"), (3, "old")])
    write(root / "delta_0000001_0000001/bucket_00001", [update((0, 1, 0), 1, (2, "new")), *deletes(1, [(0, 1, 1)])])
    register(acid, root, COLUMNS)
    assert [r[3:] for r in answer(acid)] == [(2, "new"), (0, "old"), (1, "old")]


def test_partitions_are_merged_each_by_itself(acid: AcidSession, tmp_path: Path) -> None:
    for p in (1, 2):
        write(tmp_path / f"t/p={p}/delta_0000001_0000001/bucket_00000", inserts(1, [(p, "old")], 0))
    write(tmp_path / "t/p=2/delta_0000002_0000002/bucket_00000", [update((1, 0, 0), 2, (2, "new"))])
    register(acid, tmp_path / "t", COLUMNS, keys=[("p", "int")], partitions=["p=1", "p=2"])
    found = acid.sql("SELECT p, a, b FROM t ORDER BY p").collect()
    assert [tuple(r) for r in found] == [(1, 1, "old"), (2, 2, "new")]


def test_directories_of_version_2_are_not_merged(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_events(root / "delta_0000001_0000001_0000/bucket_00000", FIELDS, inserts(1, [(1, "one")]))
    register(acid, root, COLUMNS)
    plan = acid.sql("SELECT * FROM t")._jdf.queryExecution().executedPlan().toString()
    assert "Window" not in plan
    assert "Exchange" not in plan
