"""Insert-only tables: plain files, visible by write id, their rows without row ids."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.session import AcidSession
from acidsql.valid_ids import ValidWriteIdList
from tests.spark.hive_files import inserts, write_events, write_orc
from tests.spark.hive_tables import register

COLUMNS = [("a", "int"), ("b", "string")]
SCHEMA = "struct<a:int,b:string>"
INSERT_ONLY = {"transactional_properties": "insert_only"}


def answer(acid: AcidSession, text: str) -> list[tuple[object, ...]]:
    return sorted((tuple(r) for r in acid.sql(text).collect()), key=str)


def test_bases_and_deltas_count_by_write_id(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_orc(root / "delta_0000001_0000001_0000/000000_0", SCHEMA, [(1, "under the base")])
    write_orc(root / "base_0000002/000000_0", SCHEMA, [(2, "x")])
    write_orc(root / "delta_0000003_0000003_0000/000000_0", SCHEMA, [(3, "aborted")])
    write_orc(root / "delta_0000004_0000004_0001/HIVE_UNION_SUBDIR_1/000000_0", SCHEMA, [(4, "x")])
    write_orc(root / "delta_0000004_0000004_0001/HIVE_UNION_SUBDIR_2/000000_0", SCHEMA, [(5, "x")])
    write_orc(root / "delta_0000005_0000007_v0000012/000000_0", SCHEMA, [(6, "compacted")])
    write_orc(root / "delta_0000009_0000009_0000/000000_0", SCHEMA, [(9, "open")])
    valid = ValidWriteIdList("default.t", 9, (9,), (3,))
    register(acid, root, COLUMNS, parameters=INSERT_ONLY, valid=valid)
    assert answer(acid, "SELECT a FROM t") == [(2,), (4,), (5,), (6,)]
    assert acid.table("t").count() == 4


def test_columns_are_found_by_position_whatever_the_files_call_them(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_orc(root / "delta_1_1_0/000000_0", "struct<_col0:int,_col1:string>", [(1, "one")])
    write_orc(root / "delta_2_2_0/000000_0", "struct<b:int>", [(2,)])
    write_orc(root / "delta_3_3_0/000000_0", "struct<x:smallint,y:char(8),c:int,d:double>", [(3, "three", 33, 0.5)])
    register(acid, root, [("a", "bigint"), ("b", "varchar(3)"), ("c", "int")], parameters=INSERT_ONLY)
    assert answer(acid, "SELECT * FROM t") == [(1, "one", None), (2, None, None), (3, "thr", 33)]
    assert answer(acid, "SELECT a FROM t WHERE c = 33 OR b IS NULL") == [(2,), (3,)]
    assert answer(acid, "SELECT a, c FROM t WHERE a > 1 AND c > 0") == [(3, 33)]


def test_files_of_any_name_are_read_and_empty_ones_passed_over(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_orc(root / "delta_1_1_0/4b1fd-00000000_12_data.0.orc", SCHEMA, [(1, "one")])
    (root / "delta_1_1_0/000001_0").touch()
    write_orc(root / "000000_0", SCHEMA, [(2, "from before it was transactional")])
    register(acid, root, COLUMNS, parameters=INSERT_ONLY)
    assert answer(acid, "SELECT a FROM t") == [(1,), (2,)]


def test_an_empty_table_has_its_columns(acid: AcidSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    register(acid, tmp_path / "t", COLUMNS, parameters=INSERT_ONLY)
    assert acid.table("t").columns == ["a", "b"]
    assert acid.table("t").count() == 0


def test_partition_keys_come_from_the_directories(acid: AcidSession, tmp_path: Path) -> None:
    for p in (1, 2):
        write_orc(tmp_path / f"t/p={p}/delta_1_1_0/000000_0", SCHEMA, [(p * 10, "x"), (p * 10 + 1, "y")])
    keys, partitions = [("p", "int")], ["p=1", "p=2"]
    register(acid, tmp_path / "t", COLUMNS, keys=keys, partitions=partitions, parameters=INSERT_ONLY)
    assert answer(acid, "SELECT p, a FROM t WHERE b = 'y'") == [(1, 11), (2, 21)]


def test_its_rows_have_no_row_id(acid: AcidSession, tmp_path: Path) -> None:
    write_orc(tmp_path / "t/delta_1_1_0/000000_0", SCHEMA, [(1, "one")])
    write_events(tmp_path / "u/delta_1_1_0/bucket_00000", "a:int", inserts(1, [(1,)]))
    register(acid, tmp_path / "t", COLUMNS, parameters=INSERT_ONLY)
    register(acid, tmp_path / "u", [("a", "int")], name="u")
    with pytest.raises(AnalysisError, match=r"The rows of default\.t have no ROW__ID") as error:
        acid.sql("SELECT ROW__ID FROM t")
    assert "SELECT ROW__ID FROM t" in str(error.value)
    assert answer(acid, "SELECT u.ROW__ID.rowId, t.b FROM t JOIN u ON t.a = u.a") == [(0, "one")]


def test_parquet_files_are_read_by_column_name(acid: AcidSession, tmp_path: Path) -> None:
    path = tmp_path / "t/delta_0000001_0000001_0000/000000_0"
    path.parent.mkdir(parents=True)
    parquet.write_table(pa.table({"b": ["one", "two"], "a": pa.array([1, 2], pa.int32())}), path)
    register(acid, tmp_path / "t", [*COLUMNS, ("c", "double")], parameters=INSERT_ONLY)
    assert answer(acid, "SELECT * FROM t WHERE a = 2") == [(2, "two", None)]


def test_days_in_parquet_files_that_javas_old_calendar_does_not_have(acid: AcidSession, tmp_path: Path) -> None:
    """A predicate that Spark pushes into Parquet's reader would be about another day."""
    for number, day in enumerate((dt.date(1582, 10, 15), dt.date(1, 1, 1)), start=1):
        path = tmp_path / f"t/delta_000000{number}_000000{number}_0000/000000_0"
        path.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"d": [day] * 3}), path)
    register(acid, tmp_path / "t", [("d", "date")], parameters=INSERT_ONLY)
    assert answer(acid, "SELECT count(*) FROM t WHERE d > DATE'1582-10-14'") == [(3,)]
    assert answer(acid, "SELECT count(*) FROM t WHERE d > DATE'0000-12-31'") == [(6,)]


def test_timestamps_in_parquet_files_are_refused(acid: AcidSession, tmp_path: Path) -> None:
    path = tmp_path / "t/delta_0000001_0000001_0000/000000_0"
    path.parent.mkdir(parents=True)
    parquet.write_table(pa.table({"a": [dt.datetime(2024, 1, 1)]}), path)
    register(acid, tmp_path / "t", [("a", "timestamp")], parameters=INSERT_ONLY)
    with pytest.raises(UnsupportedError, match="has timestamps in Parquet files"):
        acid.sql("SELECT * FROM t")


def test_files_of_another_format_are_refused(acid: AcidSession, tmp_path: Path) -> None:
    path = tmp_path / "t/delta_0000001_0000001_0000/000000_0"
    path.parent.mkdir(parents=True)
    path.write_text("1\x01one\n2\x01two\n")
    register(acid, tmp_path / "t", COLUMNS, parameters=INSERT_ONLY)
    with pytest.raises(UnsupportedError, match="is neither an ORC nor a Parquet file"):
        acid.sql("SELECT * FROM t")


@pytest.mark.parametrize("type", ["int", "decimal(5,2)"])
def test_a_predicate_is_about_its_own_column_whatever_the_columns_are_called(acid: AcidSession, type: str) -> None:
    """Files are read by position: no name by which a column is called meanwhile may be looked up in the file."""
    acid.sql(
        f"CREATE TABLE t (a int, c0 {type}, c1 string) TBLPROPERTIES ('transactional'='true',"
        "'transactional_properties'='insert_only')"
    )
    acid.sql("INSERT INTO t VALUES (1, 100, 'x')")
    assert answer(acid, "SELECT a FROM t WHERE a = 1") == [(1,)]
    assert answer(acid, "SELECT a FROM t WHERE c0 = 100 AND a < 5") == [(1,)]
    assert answer(acid, "SELECT c1 FROM t WHERE c1 = 'x' AND a + 0 = 1") == [("x",)]
