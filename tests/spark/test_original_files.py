"""Files without event columns: rows, and the row ids that Hive makes up for them, under every way to cut the scan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.errors import UnsupportedError
from acidsql.plan import originals
from acidsql.session import AcidSession
from tests.spark.hive_files import BUCKET_0, deletes, inserts, write_events, write_orc
from tests.spark.hive_tables import register

COLUMNS = [("a", "int"), ("b", "string")]
SCHEMA = "struct<a:int,b:string>"


@pytest.fixture
def small_parts(spark: SparkSession) -> Iterator[None]:
    with conf(spark, "spark.sql.files.maxPartitionBytes", "3000"):
        yield


@contextmanager
def conf(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def rows(first: int, count: int) -> list[tuple[int, str]]:
    return [(i, f"{i * 7919 % 100003:x}" * 8) for i in range(first, first + count)]


def ids(acid: AcidSession, where: str = "true", table: str = "t") -> list[tuple[int, int, int, int]]:
    """Row id and first column."""
    text = f"SELECT ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId, a FROM {table} WHERE {where}"
    return sorted(tuple(r) for r in acid.sql(text).collect())


def three_files(root: Path) -> list[tuple[int, int, int, int]]:
    """Files of many stripes; what Hive shows of them."""
    write_orc(root / "000000_0", SCHEMA, rows(0, 1000), stripe_rows=50)
    write_orc(root / "000000_0_copy_1", SCHEMA, rows(1000, 300), stripe_rows=100)
    write_orc(root / "000001_0", SCHEMA, rows(5000, 120), stripe_rows=70)
    return [(0, BUCKET_0, i, i) for i in range(1300)] + [(0, BUCKET_0 + (1 << 16), i, 5000 + i) for i in range(120)]


@pytest.mark.usefixtures("small_parts")
def test_files_of_many_stripes_in_several_tasks_are_numbered_as_they_stand(acid: AcidSession, tmp_path: Path) -> None:
    expected = three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    frame = acid.sql("SELECT ROW__ID, a FROM t")
    assert frame.rdd.getNumPartitions() > 3
    assert ids(acid) == expected


def test_files_in_one_task_each_are_numbered_as_they_stand(acid: AcidSession, tmp_path: Path) -> None:
    expected = three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    assert acid.sql("SELECT * FROM t").rdd.getNumPartitions() == 3
    assert ids(acid) == expected


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    "where", ["a BETWEEN 777 AND 779", "a IN (3, 999, 1000, 5119)", "ROW__ID.rowId = 1299", "b IS NULL", "a % 100 = 7"]
)
def test_a_condition_that_could_skip_parts_of_files_does_not_change_the_numbers(
    acid: AcidSession, tmp_path: Path, where: str
) -> None:
    expected = three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    found = ids(acid, where)
    assert found == [e for e in expected if e in found]
    counted = {"b IS NULL": 0, "a % 100 = 7": 15, "ROW__ID.rowId = 1299": 1, "a BETWEEN 777 AND 779": 3}
    assert len(found) == counted.get(where, 4)


@pytest.mark.usefixtures("small_parts")
def test_numbers_stay_when_partitions_are_merged_joined_and_read_twice(acid: AcidSession, tmp_path: Path) -> None:
    expected = three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    one = acid.sql("SELECT ROW__ID.bucketId AS k, ROW__ID.rowId AS n, a FROM t").coalesce(1)
    assert sorted(tuple(r) for r in one.collect()) == [e[1:] for e in expected]
    joined = acid.sql("SELECT count(*) FROM t x JOIN t y ON x.ROW__ID = y.ROW__ID WHERE x.a = y.a")
    assert joined.collect()[0][0] == len(expected)


WAYS = {
    "bitmap": {},
    "broadcast join": {"bitmap.MAX_WORDS": 0},
    "scan and join": {"bitmap.MAX_WORDS": 0, "deletes.MOST_BROADCAST": 0},
}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("way", WAYS)
def test_delete_events_hide_rows_of_original_files(
    acid: AcidSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    for name, value in WAYS[way].items():
        monkeypatch.setattr(f"acidsql.plan.{name}", value)
    expected = three_files(tmp_path / "t")
    gone = [(0, BUCKET_0, n) for n in (0, 49, 50, 999, 1000, 1299)]
    other = [(0, BUCKET_0 + (1 << 16), 70)]
    write_events(tmp_path / "t/delete_delta_0000001_0000001_0000/bucket_00000", "a:int,b:string", deletes(1, gone))
    write_events(tmp_path / "t/delete_delta_0000001_0000001_0000/bucket_00001", "a:int,b:string", deletes(1, other))
    register(acid, tmp_path / "t", COLUMNS)
    assert ids(acid) == [e for e in expected if e[:3] not in {*gone, *other}]


@pytest.mark.parametrize("way", WAYS)
def test_loaded_files_have_the_ids_of_their_directory_and_are_hidden_by_later_deletes_only(
    acid: AcidSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    for name, value in WAYS[way].items():
        monkeypatch.setattr(f"acidsql.plan.{name}", value)
    root = tmp_path / "t"
    write_orc(root / "base_0000002/000000_0", SCHEMA, rows(0, 3))
    write_orc(root / "delta_0000004_0000004_0001/000000_0", SCHEMA, rows(10, 3))
    write_orc(root / "delta_0000005_0000005_0000/000000_0", SCHEMA, rows(20, 2))
    keys = [(2, BUCKET_0, 1), (4, BUCKET_0 + 1, 0), (4, BUCKET_0 + 1, 2), (5, BUCKET_0, 0)]
    events = deletes(5, keys)
    write_events(root / "delete_delta_0000005_0000005_0000/bucket_00000", "a:int,b:string", events)
    write_events(root / "delta_0000006_0000006_0000/bucket_00000", "a:int,b:string", inserts(6, rows(30, 1)))
    register(acid, root, COLUMNS)
    assert ids(acid) == [
        (2, BUCKET_0, 0, 0),
        (2, BUCKET_0, 2, 2),
        (4, BUCKET_0 + 1, 1, 11),
        (5, BUCKET_0, 0, 20),
        (5, BUCKET_0, 1, 21),
        (6, BUCKET_0, 0, 30),
    ]


def test_files_of_sub_directories_count_with_those_of_the_table_and_empty_files_not_at_all(
    acid: AcidSession, tmp_path: Path
) -> None:
    write_orc(tmp_path / "t/HIVE_UNION_SUBDIR_1/000000_0", SCHEMA, rows(0, 2))
    write_orc(tmp_path / "t/HIVE_UNION_SUBDIR_2/000000_0", SCHEMA, rows(10, 2))
    (tmp_path / "t/000000_0").touch()
    register(acid, tmp_path / "t", COLUMNS)
    assert ids(acid) == [(0, BUCKET_0, 0, 0), (0, BUCKET_0, 1, 1), (0, BUCKET_0, 2, 10), (0, BUCKET_0, 3, 11)]


def test_columns_of_original_files_are_found_by_position(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_orc(root / "000000_0", "struct<_col0:int,_col1:string>", [(1, "one")])
    write_orc(root / "000001_0", "struct<b:smallint>", [(2,)])
    write_orc(root / "000002_0", "struct<x:bigint,y:varchar(9),z:int,gone:date>", [(3, "three45", 33, None)])
    write_orc(root / "000003_0", "struct<A:int,c:string,B:int>", [(4, "four", None)])
    register(acid, root, [("a", "int"), ("b", "varchar(5)"), ("c", "bigint")])
    found = sorted(tuple(r) for r in acid.sql("SELECT a, b, c FROM t").collect())
    assert found == [(1, "one", None), (2, None, None), (3, "three", 33), (4, "four", None)]
    assert acid.sql("SELECT b FROM t WHERE c = 33").collect()[0][0] == "three"


def test_original_files_of_partitions_are_numbered_in_each(acid: AcidSession, tmp_path: Path) -> None:
    for p in ("p=1", "p=2", "p=__HIVE_DEFAULT_PARTITION__"):
        write_orc(tmp_path / "t" / p / "000000_0", SCHEMA, rows(0, 2))
    write_events(tmp_path / "t/p=2/delete_delta_1_1_0/bucket_00000", "a:int,b:string", deletes(1, [(0, BUCKET_0, 0)]))
    parts = ["p=1", "p=2", "p=__HIVE_DEFAULT_PARTITION__"]
    register(acid, tmp_path / "t", COLUMNS, keys=[("p", "int")], partitions=parts)
    found = acid.sql("SELECT p, ROW__ID.rowId, a FROM t ORDER BY p, 2").collect()
    assert [tuple(r) for r in found] == [(None, 0, 0), (None, 1, 1), (1, 0, 0), (1, 1, 1), (2, 1, 1)]
    assert [r[0] for r in acid.sql("SELECT a FROM t WHERE p = 2").collect()] == [1]


@pytest.mark.usefixtures("small_parts")
def test_update_and_delete_name_rows_of_original_files_by_their_ids(acid: AcidSession, tmp_path: Path) -> None:
    expected = three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    assert acid.sql("DELETE FROM t WHERE a BETWEEN 90 AND 109 OR a = 5119").collect()[0].num_deleted_rows == 21
    assert acid.sql("UPDATE t SET b = 'new' WHERE a = 1299").collect()[0].num_updated_rows == 1
    left = [e for e in expected if not 90 <= e[3] <= 109 and e[3] not in (5119, 1299)]
    assert [e for e in ids(acid) if e[0] == 0] == left
    assert [tuple(r) for r in acid.sql("SELECT ROW__ID.writeId, a FROM t WHERE b = 'new'").collect()] == [(2, 1299)]


def test_a_file_whose_name_has_no_bucket_number_is_refused(acid: AcidSession, tmp_path: Path) -> None:
    write_orc(tmp_path / "t/part-00000.orc", SCHEMA, rows(0, 1))
    register(acid, tmp_path / "t", COLUMNS)
    with pytest.raises(UnsupportedError, match="has no bucket number in its name"):
        acid.sql("SELECT * FROM t")


def test_a_frame_over_original_files_can_be_read_under_other_settings_later(
    acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    expected = three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    frame = acid.sql("SELECT ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId, a FROM t")
    with conf(spark, "spark.sql.files.maxPartitionBytes", "1000"), conf(spark, "spark.sql.files.openCostInBytes", "1"):
        assert sorted(tuple(r) for r in frame.collect()) == expected


@pytest.mark.parametrize("bytes", [2**63 - 1, 2**63 - 1000, 2**62])
def test_parts_may_be_as_large_as_spark_lets_them_be(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, bytes: int
) -> None:
    """Spark adds their sizes as longs: it took several files into one task, and the second one's ids were wrong."""
    expected = three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    with conf(spark, "spark.sql.files.maxPartitionBytes", str(bytes)):
        assert ids(acid) == expected
        answer = acid.sql("DELETE FROM t WHERE a BETWEEN 1005 AND 1014 OR a BETWEEN 5003 AND 5006").first()
    assert answer is not None
    assert answer.num_deleted_rows == 14
    left = [row for row in expected if not (1005 <= row[3] <= 1014 or 5003 <= row[3] <= 5006)]
    assert ids(acid) == left


def test_rows_that_cannot_be_numbered_are_an_error(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should Spark ever take two parts into one task after all."""
    three_files(tmp_path / "t")
    register(acid, tmp_path / "t", COLUMNS)
    monkeypatch.setattr(originals, "_MAX_PART_BYTES", 2**63 - 1)
    with conf(spark, "spark.sql.files.maxPartitionBytes", str(2**63 - 1)):
        with pytest.raises(PySparkException, match="rows of original files cannot be numbered"):
            ids(acid)
        with pytest.raises(PySparkException, match="rows of original files cannot be numbered"):
            acid.sql("DELETE FROM t WHERE a < 1010")
