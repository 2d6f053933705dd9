"""What Hive's readers make of files: TestOrcRawRecordMerger, TestVectorizedOrcAcidRowBatchReader, TestTxnCommands2.

The files are made by pyorc, the rows expected are those of Hive's tests (tests/HIVE_CASES.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyorc
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from acidsql.session import AcidSession
from acidsql.valid_ids import ValidWriteIdList
from tests.spark.hive_cases import BUCKET_1, INSERT_ONLY, check_unique, ids, make, rows
from tests.spark.hive_files import BUCKET_0, EVENT, Row, deletes, inserts, write_events, write_orc
from tests.spark.hive_tables import register

WAYS = {
    "bitmap": {},
    "broadcast join": {"bitmap.MAX_WORDS": 0},
    "scan and join": {"bitmap.MAX_WORDS": 0, "deletes.MOST_BROADCAST": 0},
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way to hide deleted rows; Hive has two, and filters on and off."""
    for name, value in WAYS[request.param].items():
        monkeypatch.setattr(f"acidsql.plan.{name}", value)


@pytest.fixture
def small_parts(spark: SparkSession) -> Iterator[None]:
    """Files are cut, as Hive's splits are."""
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    yield
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))


def write(path: Path, fields: str, events: list[Row], stripe_rows: int) -> None:
    write_orc(path, f"struct<{EVENT},row:struct<{fields}>>", events, stripe_rows, **{"hive.acid.version": b"2"})


# --- OrcRawRecordMerger ----------------------------------------------------------------------------------------------

TEN = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
BUCKET_10 = BUCKET_0 + (10 << 16)


@pytest.mark.parametrize("statement", ["", "_0000"], ids=["before Hive 1.3", "since Hive 1.3"])
def test_a_base_and_the_update_of_three_of_its_rows(acid: AcidSession, tmp_path: Path, statement: str) -> None:
    root = tmp_path / "t"
    write_events(root / "base_0000100/bucket_00010", "col1:string", inserts(0, [(v,) for v in TEN], BUCKET_10))
    gone = [(0, BUCKET_10, n) for n in (0, 2, 3, 7, 8)]
    write_events(root / f"delete_delta_0000200_0000200{statement}/bucket_00010", "col1:string", deletes(200, gone))
    new = [("update 1",), ("update 2",), ("update 3",)]
    write_events(root / f"delta_0000200_0000200{statement}/bucket_00010", "col1:string", inserts(200, new, BUCKET_10))
    register(acid, root, [("col1", "string")])
    assert ids(acid, columns="col1") == [
        (0, BUCKET_10, 1, "second"),
        (0, BUCKET_10, 4, "fifth"),
        (0, BUCKET_10, 5, "sixth"),
        (0, BUCKET_10, 6, "seventh"),
        (0, BUCKET_10, 9, "tenth"),
        (200, BUCKET_10, 0, "update 1"),
        (200, BUCKET_10, 1, "update 2"),
        (200, BUCKET_10, 2, "update 3"),
    ]
    valid = ValidWriteIdList("default.before", 2000, (200,))
    before = shutil.copytree(root, tmp_path / "before")
    register(acid, before, [("col1", "string")], name="before", valid=valid)
    assert ids(acid, "before", "col1") == [(0, BUCKET_10, n, v) for n, v in enumerate(TEN)]


VALUES = ["ignore.1", "0.1", "ignore.2", "ignore.3", "2.0", "2.1", "3.0", "ignore.4", "ignore.5", "ignore.6"]
FIELDS = "myint:int,mylong:bigint,mytext:string,myfloat:float,mydouble:double"
COLUMNS = [(n, t) for n, t in (f.split(":") for f in FIELDS.split(","))]


def big(number: int, text: str) -> Row:
    return (number, number, text, float(number), float(number))


def two_updates(root: Path, bucket: int) -> None:
    """What write ids 1 and 100 change of the ten rows of write id 0 in a bucket; one row is updated by both."""
    key, file = BUCKET_0 + (bucket << 16), f"bucket_{bucket:05d}"
    first = [big(0, "0.0"), big(3, "1.1"), big(7, "ignore.7")]
    gone = [(0, key, n) for n in (0, 3, 7, 9)]
    write_events(root / f"delete_delta_0000001_0000001_0000/{file}", FIELDS, deletes(1, gone))
    write(root / f"delta_0000001_0000001_0000/{file}", FIELDS, inserts(1, first, key), 2)
    gone = [(0, key, 2), (0, key, 8), (1, key, 2)]
    write_events(root / f"delete_delta_0000100_0000100_0000/{file}", FIELDS, deletes(100, gone))
    write(root / f"delta_0000100_0000100_0000/{file}", FIELDS, inserts(100, [big(2, "1.0"), big(7, "3.1")], key), 2)


LEFT = [(0, "0.0"), (1, "0.1"), (2, "1.0"), (3, "1.1"), (4, "2.0"), (5, "2.1"), (6, "3.0"), (7, "3.1")]


@pytest.mark.usefixtures("small_parts")
def test_an_original_file_of_many_stripes_and_updates_of_updates(acid: AcidSession, tmp_path: Path) -> None:
    write_orc(tmp_path / "t/0000010_0", f"struct<{FIELDS}>", [big(i, v) for i, v in enumerate(VALUES)], 2)
    two_updates(tmp_path / "t", 10)
    register(acid, tmp_path / "t", COLUMNS)
    assert rows(acid, "SELECT myint, mytext FROM t") == LEFT


@pytest.mark.usefixtures("small_parts")
def test_a_base_of_many_stripes_and_updates_of_updates(acid: AcidSession, tmp_path: Path) -> None:
    events = inserts(0, [big(i, v) for i, v in enumerate(VALUES)], BUCKET_0 + (11 << 16))
    write(tmp_path / "t/base_0000000/bucket_00011", FIELDS, events, 2)
    two_updates(tmp_path / "t", 11)
    register(acid, tmp_path / "t", COLUMNS)
    assert rows(acid, "SELECT myint, mytext FROM t") == LEFT


# --- VectorizedOrcAcidRowBatchReader ---------------------------------------------------------------------------------

FIELD = "field:bigint"


@pytest.mark.usefixtures("way", "small_parts")
def test_delete_events_of_three_transactions_interleave_and_one_writer_is_not_seen(
    acid: AcidSession, tmp_path: Path
) -> None:
    each = 60
    root, file = tmp_path / "t", "bucket_00000"
    events = [e for w in range(1, 11) for e in inserts(w, [((w - 1) * each + j,) for j in range(each)])]
    write(root / f"delta_0000001_0000010_0000/{file}", FIELD, events, 100)
    for write_id, kind in ((11, (True, False)), (12, (False, True)), (13, (True, True))):
        keys = [(w, BUCKET_0, j) for w in range(1, 11) for j in range(each) if (j % 2 == 0, j % 3 == 0) == kind]
        write_events(root / f"delete_delta_{write_id:07d}_{write_id:07d}_0000/{file}", FIELD, deletes(write_id, keys))
    register(acid, root, [("field", "bigint")], valid=ValidWriteIdList("default.t", 14, (1,), (5,)))
    seen = [w for w in range(1, 11) if w not in (1, 5)]
    expected = [(w, BUCKET_0, j, (w - 1) * each + j) for w in seen for j in range(each)]
    live = [e for e in expected if e[2] % 2 and e[2] % 3]
    assert ids(acid, columns="field") == live
    acid.sql("SET acid.fetch.deleted.rows=true")
    found = ids(acid, columns="field, ROW__IS__DELETED")
    assert found == [(*e, e not in live) for e in expected]


@pytest.mark.usefixtures("way", "small_parts")
def test_one_row_is_deleted_from_each_of_three_deltas(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root / "delta_0000001_0000001_0000/bucket_00000", FIELD, inserts(1, [(i,) for i in range(1, 2001)]), 500)
    for write_id, first in ((2, 4), (3, 7)):
        new = inserts(write_id, [(first + i,) for i in range(3)])
        write(root / f"delta_{write_id:07d}_{write_id:07d}_0000/bucket_00000", FIELD, new, 1)
    gone = [(1, BUCKET_0, 0), (2, BUCKET_0, 1), (3, BUCKET_0, 2)]
    write_events(root / "delete_delta_0000004_0000004_0000/bucket_00000", FIELD, deletes(4, gone))
    register(acid, root, [("field", "bigint")])
    assert [r[2:] for r in ids(acid, columns="field", where="ROW__ID.writeId > 1")] == [(0, 4), (2, 6), (0, 7), (1, 8)]
    assert rows(acid, "SELECT min(field), max(field), count(*) FROM t") == [(2, 2000, 2003)]
    assert rows(acid, "SELECT field FROM t WHERE field IN (1, 5, 9)") == [(5,), (9,)], "of the first delta"


@pytest.mark.usefixtures("way", "small_parts")
def test_a_delete_event_without_its_row_does_no_harm_to_a_base_of_converted_rows(
    acid: AcidSession, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    events = [*inserts(0, [(1,), (1,), (2,)], BUCKET_1), *inserts(10000001, [(3,)], BUCKET_1)]
    write(root / "base_10000002/bucket_00001", FIELD, events, 1)
    gone = [(0, BUCKET_1, 0), (10000003, BUCKET_1, 5)]
    write_events(root / "delete_delta_10000004_10000004_0000/bucket_00001", FIELD, deletes(10000004, gone))
    register(acid, root, [("field", "bigint")])
    assert ids(acid, columns="field") == [(0, BUCKET_1, 1, 1), (0, BUCKET_1, 2, 2), (10000001, BUCKET_1, 0, 3)]


@pytest.mark.usefixtures("way", "small_parts")
def test_deletes_at_the_borders_of_original_files(acid: AcidSession, tmp_path: Path) -> None:
    for number, name in enumerate(("000000_0", "000000_0_copy_1", "000000_0_copy_2")):
        write_orc(tmp_path / "t" / name, f"struct<{FIELD}>", [(number * 3 + i,) for i in range(3)], 1)
    gone = [(0, BUCKET_0, n) for n in (2, 3, 7)]
    write_events(tmp_path / "t/delete_delta_0000001_0000001_0000/bucket_00000", FIELD, deletes(1, gone))
    register(acid, tmp_path / "t", [("field", "bigint")])
    assert ids(acid, columns="field") == [(0, BUCKET_0, n, n) for n in (0, 1, 4, 5, 6, 8)]


# --- TestTxnCommands2, TestTxnNoBuckets, TestTxnCommandsForMmTable ---------------------------------------------------


def test_bucket_values_of_version_0_and_1_in_one_table(acid: AcidSession, tmp_path: Path) -> None:
    root, fields = tmp_path / "t", "a:int,b:int"
    write_events(root / "delta_0000001_0000001_0000/bucket_00000", fields, inserts(1, [(2, 1), (4, 3)], bucket=0))
    write_events(root / "delta_0000001_0000001_0000/bucket_00001", fields, inserts(1, [(5, 6), (7, 8)], bucket=1))
    register(acid, root, [("a", "int"), ("b", "int")])
    acid.sql("UPDATE t SET b = 11 WHERE a IN (5, 7)")
    acid.sql("INSERT INTO t VALUES (11, 11)")
    acid.sql("DELETE FROM t WHERE a = 7")
    assert rows(acid, "SELECT a, b FROM t") == [(11, 11), (2, 1), (4, 3), (5, 11)]
    assert ids(acid, where="a < 6") == [(1, 0, 0, 2, 1), (1, 0, 1, 4, 3), (2, BUCKET_1, 0, 5, 11)]
    assert [f.name for f in (root / "delete_delta_0000002_0000002_0000").glob("bucket*")] == ["bucket_00001"]


def test_deltas_whose_files_are_gone_are_empty(acid: AcidSession, warehouse: Path) -> None:
    make(acid, "t")
    for _ in range(2):
        acid.sql("INSERT INTO t VALUES (1, 2), (3, 4)")
    for file in (warehouse / "t").rglob("bucket_*"):
        file.unlink()
    assert rows(acid, "SELECT a, b FROM t") == []
    acid.sql("INSERT INTO t VALUES (1, 2), (3, 4)")
    assert rows(acid, "SELECT a, b FROM t") == [(1, 2), (3, 4)]


def test_an_insert_only_table_that_impala_truncated_is_empty(acid: AcidSession, tmp_path: Path) -> None:
    for write_id, row in ((1, (1, 2)), (2, (3, 4))):
        path = tmp_path / f"t/delta_{write_id:07d}_{write_id:07d}_0000/000000_0"
        path.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"a": pa.array([row[0]], pa.int32()), "b": pa.array([row[1]], pa.int32())}), path)
    (tmp_path / "t/base_0000003").mkdir()
    (tmp_path / "t/base_0000003/empty").touch()
    register(acid, tmp_path / "t", [("a", "int"), ("b", "int")], parameters={"transactional_properties": "insert_only"})
    assert rows(acid, "SELECT a, b FROM t") == []


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_files_have_the_names_of_columns_and_fields(acid: AcidSession, warehouse: Path, driver_rows: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    acid.sql(
        "CREATE TRANSACTIONAL TABLE c (a int, b string, s struct<c:int,si:struct<d:double,e:float>>)"
        " CLUSTERED BY (a) INTO 2 BUCKETS"
    )
    made = "named_struct('c', 10, 'si', named_struct('d', 1.0D, 'e', CAST(2.0 AS float)))"
    acid.sql(f"INSERT INTO c SELECT a, b, {made} FROM VALUES (1, 'foo'), (2, 'bar') AS t(a, b)")
    files = list((warehouse / "c").glob("delta_*/bucket_*"))
    assert len(files) == 2
    for file in files:
        with file.open("rb") as f:
            found = str(pyorc.Reader(f).schema)
        assert found.endswith(",row:struct<a:int,b:string,s:struct<c:int,si:struct<d:double,e:float>>>>")
    check_unique(acid, "c")


def test_rows_of_an_aborted_transaction_are_not_there(acid: AcidSession, warehouse: Path) -> None:
    """Hive's cases let a transaction abort when its files are written; they stay where they are."""
    acid.sql(f"CREATE TABLE mm (a int, b int) STORED AS ORC {INSERT_ONLY}")
    acid.sql("INSERT INTO mm VALUES (1, 2)")
    [txn] = acid.metastore.open_txns(user="hive", host="elsewhere")
    assert acid.metastore.allocate_table_write_id(txn, "default", "mm") == 2
    write_orc(warehouse / "mm/delta_0000002_0000002_0000/000000_0", "struct<a:int,b:int>", [(3, 4)])
    acid.metastore.abort_txns([txn])
    assert rows(acid, "SELECT a, b FROM mm") == [(1, 2)]
    acid.sql("INSERT INTO mm VALUES (5, 6)")
    assert rows(acid, "SELECT a, b FROM mm") == [(1, 2), (5, 6)]
    assert (warehouse / "mm/delta_0000002_0000002_0000/000000_0").exists()


@pytest.mark.usefixtures("way")
def test_a_row_that_its_own_transaction_deletes_stays_deleted_in_compacted_directories(
    acid: AcidSession, tmp_path: Path
) -> None:
    """Transactions of several statements write such directories; a minor compaction of write ids 1 and 2. Of a row that
    one of them has inserted and deleted again the changes tell nothing."""
    root = tmp_path / "t"
    write_events(root / "delta_0000001_0000002/bucket_00000", "id:int", inserts(1, [(1,), (2,), (3,)]))
    gone = [*deletes(1, [(1, BUCKET_0, 1)]), *deletes(2, [(1, BUCKET_0, 2)])]
    write_events(root / "delete_delta_0000001_0000002/bucket_00000", "id:int", gone)
    register(acid, root, [("id", "int")])
    assert rows(acid, "SELECT id FROM t") == [(1,)]
    told = [("delete", 2, 3), ("insert", 1, 1), ("insert", 1, 3)]
    assert rows(acid, "SELECT _change_type, _commit_version, id FROM table_changes('t', 1)") == told
