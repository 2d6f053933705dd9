"""ALTER TABLE: properties, columns and partitions of ACID tables; what it refuses leaves nothing behind."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.errors import AcidError, AlreadyExists, LockTimeout, PartitionNotFound, UnsupportedError
from acidsql.metastore.model import Capabilities, LockComponent, LockRequest, LockType, Operation, Table
from acidsql.session import AcidSession
from acidsql.valid_ids import ValidWriteIdList
from tests.spark.answers import check_refusal, emp_and_part, nothing_is_open, rows
from tests.spark.hive_rules import check_table
from tests.spark.tree import tree


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    return emp_and_part(acid)


def parameters(acid: AcidSession, table: str = "emp") -> dict[str, str]:
    return dict(acid.metastore.get_table("default", table).parameters)


def no_time(found: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in found.items() if k != "transient_lastDdlTime"}


# --- properties ------------------------------------------------------------------------------------------------------


def test_properties_are_set_and_unset(shop: AcidSession) -> None:
    before = parameters(shop)
    assert shop.sql("ALTER TABLE emp SET TBLPROPERTIES ('NO_AUTO_COMPACTION'='true', a.b = 5)").columns == []
    assert no_time(parameters(shop)) == no_time(before) | {"NO_AUTO_COMPACTION": "true", "a.b": "5"}
    shop.sql("ALTER TABLE emp UNSET TBLPROPERTIES ('a.b')")
    shop.sql("ALTER TABLE emp UNSET TBLPROPERTIES IF EXISTS ('a.b', 'NO_AUTO_COMPACTION')")
    assert no_time(parameters(shop)) == no_time(before)
    assert rows(shop, "SELECT * FROM emp") == [(1, "Ann"), (2, "Bob")]


def test_what_an_acid_table_is_anyway_may_be_said_again(shop: AcidSession) -> None:
    before = parameters(shop)
    shop.sql(
        "ALTER TABLE emp SET TBLPROPERTIES ('transactional'='TRUE', 'transactional_properties'='default',"
        " 'bucketing_version'='2', 'EXTERNAL'='FALSE')"
    )
    assert no_time(parameters(shop)) == no_time(before)


def test_the_comment_is_a_property_as_in_hive(shop: AcidSession) -> None:
    shop.sql("ALTER TABLE emp SET TBLPROPERTIES ('comment'='staff')")
    assert shop.metastore.get_table("default", "emp").comment == "staff"
    shop.sql("ALTER TABLE emp UNSET TBLPROPERTIES ('comment')")
    assert shop.metastore.get_table("default", "emp").comment is None


def test_an_alter_takes_a_write_id_and_notes_the_time(shop: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Table, int | None, ValidWriteIdList | None]] = []
    real = shop.metastore.alter_table

    def alter_table(table: Table, *, write_id: int | None = None, write_ids: ValidWriteIdList | None = None) -> None:
        given.append((table, write_id, write_ids))
        real(table, write_id=write_id, write_ids=write_ids)

    monkeypatch.setattr(shop.metastore, "alter_table", alter_table)
    now = time.time()
    shop.sql("ALTER TABLE emp SET TBLPROPERTIES ('a'='b', 'transient_lastDdlTime'='5')")
    [(table, write_id, write_ids)] = given
    assert write_id == 2
    assert write_ids is not None
    assert (write_ids.table, write_ids.high_watermark, write_ids.exceptions) == ("default.emp", 2, ())
    assert int(table.parameters["transient_lastDdlTime"]) >= int(now)
    shop.sql("INSERT INTO emp VALUES (3, 'Eve')")
    assert rows(shop, "SELECT ROW__ID.writeId, id FROM emp") == [(1, 1), (1, 2), (3, 3)]


def test_an_alter_waits_for_writers_and_starts_from_what_they_left(
    shop: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    [txn] = shop.metastore.open_txns(user="olga", host="far")
    held = LockComponent(LockType.EXCL_WRITE, "default", "emp", operation=Operation.UPDATE)
    shop.metastore.lock(LockRequest((held,), txn, "olga", "far"))
    shop.sql("SET acidsql.lock.timeout = 200ms")
    for text in (
        "ALTER TABLE emp SET TBLPROPERTIES ('a'='b')",
        "ALTER TABLE emp UNSET TBLPROPERTIES IF EXISTS ('a')",
        "ALTER TABLE emp ADD COLUMNS (c int)",
    ):
        with pytest.raises(LockTimeout):
            shop.sql(text)
    shop.metastore.commit_txn(txn)
    real = shop.metastore.lock

    def lock(request: LockRequest) -> object:
        response = real(request)
        monkeypatch.setattr(shop.metastore, "lock", real)
        table = shop.metastore.get_table("default", "emp")
        shop.metastore.alter_table(Table(**{**table.__dict__, "parameters": {**table.parameters, "theirs": "1"}}))
        return response

    monkeypatch.setattr(shop.metastore, "lock", lock)
    shop.sql("ALTER TABLE emp SET TBLPROPERTIES ('ours'='2')")
    assert {k: v for k, v in parameters(shop).items() if k in ("ours", "theirs")} == {"ours": "2", "theirs": "1"}


@pytest.mark.parametrize(
    ("meanwhile", "transactions"), [("SET TBLPROPERTIES ('numRows'='7')", 1), ("ADD COLUMNS (c int)", 2)]
)
def test_a_writer_that_waited_starts_over_for_new_columns_but_not_for_properties(
    shop: AcidSession, monkeypatch: pytest.MonkeyPatch, meanwhile: str, transactions: int
) -> None:
    opened: list[int] = []
    lock, open_txns = type(shop.metastore).lock, type(shop.metastore).open_txns

    def counted(*args: Any, **kwargs: Any) -> list[int]:
        opened.append(1)
        return open_txns(*args, **kwargs)

    def changed_first(*args: Any, **kwargs: Any) -> Any:
        if not opened[1:]:
            monkeypatch.setattr(type(shop.metastore), "lock", lock)
            with monkeypatch.context() as inner:
                inner.setattr(type(shop.metastore), "open_txns", open_txns)
                shop.sql(f"ALTER TABLE emp {meanwhile}")
        return lock(*args, **kwargs)

    monkeypatch.setattr(type(shop.metastore), "open_txns", counted)
    monkeypatch.setattr(type(shop.metastore), "lock", changed_first)
    assert shop.sql("UPDATE emp SET name = 'x'").collect()[0].num_updated_rows == 2
    assert len(opened) == transactions
    assert {name for _, name, *_ in rows(shop, "SELECT * FROM emp")} == {"x"}
    nothing_is_open(shop)


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_old_rows_have_null_in_an_added_column(shop: AcidSession, warehouse: Path, driver_rows: str) -> None:
    shop.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    shop.sql("INSERT INTO emp SELECT id, 'many' FROM range(10, 13)")
    shop.sql("ALTER TABLE emp ADD COLUMNS (Salary decimal(10,2) COMMENT 'a month', s struct<a:int, b:array<string>>)")
    assert [tuple(r) for r in shop.sql("DESCRIBE emp").collect()][2:] == [
        ("salary", "decimal(10,2)", "a month"),
        ("s", "struct<a:int,b:array<string>>", None),
    ]
    assert rows(shop, "SELECT * FROM emp WHERE id < 3") == [(1, "Ann", None, None), (2, "Bob", None, None)]
    assert rows(shop, "SELECT count(*), count(salary) FROM emp") == [(5, 0)]
    shop.sql("INSERT INTO emp VALUES (3, 'Eve', 7.5, named_struct('a', 1, 'b', array('x')))")
    shop.sql("UPDATE emp SET name = upper(name) WHERE salary IS NULL AND id < 3")
    shop.sql("UPDATE emp SET salary = id * 10 WHERE id IN (2, 11)")
    shop.sql("DELETE FROM emp WHERE salary IS NULL AND id > 9")
    assert rows(shop, "SELECT id, name, int(salary * 10), s.b FROM emp") == [
        (1, "ANN", None, None),
        (11, "many", 1100, None),
        (2, "BOB", 200, None),
        (3, "Eve", 75, ["x"]),
    ]
    assert rows(shop, "SELECT id FROM emp WHERE salary > 7") == [(11,), (2,), (3,)]
    check_table(warehouse / "emp")


def test_an_added_column_is_there_in_all_partitions(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("ALTER TABLE part ADD COLUMN n bigint")
    assert rows(shop, "SELECT * FROM part WHERE p = 1") == [(1, "a", None, 1, "x"), (2, "b", None, 1, "y")]
    shop.sql("INSERT INTO part PARTITION (p = 1, q = 'x') VALUES (4, 'd', 40)")
    shop.sql("UPDATE part SET n = id WHERE q = 'x' AND n IS NULL")
    shop.sql("INSERT INTO part VALUES (5, 'e', 50, 9, 'new')")
    assert rows(shop, "SELECT id, n, p FROM part") == [(1, 1, 1), (2, None, 1), (3, 3, 2), (4, 40, 1), (5, 50, 9)]
    check_table(warehouse / "part")


def test_a_dataframe_made_before_keeps_its_columns(shop: AcidSession) -> None:
    before = shop.table("emp")
    shop.sql("ALTER TABLE emp ADD COLUMNS (c int)")
    assert before.columns == ["id", "name"]
    assert sorted(tuple(r) for r in before.collect()) == [(1, "Ann"), (2, "Bob")]
    assert shop.table("emp").columns == ["id", "name", "c"]


# --- partitions ------------------------------------------------------------------------------------------------------


def test_partitions_are_added_and_filled(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("ALTER TABLE part ADD PARTITION (p = 3, q = 'x') PARTITION (q = 'a=b/c', p = 04)")
    shop.sql("ALTER TABLE part ADD IF NOT EXISTS PARTITION (p = 3, q = 'x') PARTITION (p = NULL, q = 'n')")
    names = ["p=1/q=x", "p=1/q=y", "p=2/q=x", "p=3/q=x", "p=4/q=a%3Db%2Fc", "p=__HIVE_DEFAULT_PARTITION__/q=n"]
    assert rows(shop, "SHOW PARTITIONS part") == [(n,) for n in names]
    assert (warehouse / "part" / "p=4" / "q=a%3Db%2Fc").is_dir()
    assert rows(shop, "SELECT count(*) FROM part") == [(3,)]
    shop.sql("INSERT INTO part PARTITION (p = 4, q = 'a=b/c') VALUES (7, 'z')")
    shop.sql("INSERT INTO part VALUES (8, 'z', NULL, 'n')")
    assert rows(shop, "SELECT id, p, q FROM part WHERE v = 'z'") == [(7, 4, "a=b/c"), (8, None, "n")]


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_a_partition_somewhere_else_is_written_and_read_there(
    shop: AcidSession, warehouse: Path, tmp_path: Path, driver_rows: str
) -> None:
    shop.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    there = tmp_path / "else" / "where"
    shop.sql(f"ALTER TABLE part ADD PARTITION (p = 5, q = 'x') LOCATION '{there}' PARTITION (p = 6, q = 'x')")
    shop.sql("INSERT INTO part PARTITION (p = 5, q = 'x') VALUES (50, 'e')")
    shop.sql("INSERT INTO part VALUES (51, 'f', 5, 'x'), (60, 'g', 6, 'x')")
    shop.sql("UPDATE part SET v = 'F' WHERE id = 51")
    shop.sql("DELETE FROM part WHERE id = 50")
    assert rows(shop, "SELECT id, v FROM part WHERE p >= 5") == [(51, "F"), (60, "g")]
    assert not (warehouse / "part" / "p=5").exists()
    assert check_table(there) == 5
    shop.sql("INSERT OVERWRITE part PARTITION (p = 5, q = 'x') VALUES (52, 'h')")
    assert rows(shop, "SELECT id, v FROM part WHERE p >= 5") == [(52, "h"), (60, "g")]
    shop.sql("ALTER TABLE part DROP PARTITION (p = 5, q = 'x')")
    assert (there.parent.exists(), there.exists(), tree(there.parent)) == (True, False, [])


def test_a_failing_write_elsewhere_leaves_nothing_there(shop: AcidSession, tmp_path: Path) -> None:
    there = tmp_path / "else"
    shop.sql(f"ALTER TABLE part ADD PARTITION (p = 5, q = 'x') LOCATION '{there}'")
    shop.sql("INSERT INTO part PARTITION (p = 5, q = 'x') VALUES (50, 'e')")
    before = tree(there)
    real = shop.metastore.commit_txn
    shop.metastore.commit_txn = _refuse  # type: ignore[method-assign]
    with pytest.raises(AcidError, match="no commit"):
        shop.sql("UPDATE part SET v = 'x' WHERE p = 5")
    shop.metastore.commit_txn = real  # type: ignore[method-assign]
    assert tree(there) == before
    assert rows(shop, "SELECT v FROM part WHERE p = 5") == [("e",)]


def _refuse(*args: object) -> None:
    raise AcidError("no commit")


def test_partitions_are_dropped_with_their_files(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("ALTER TABLE part DROP PARTITION (p = 1, q = 'y'), PARTITION (p = 02, q = 'x') PURGE")
    assert rows(shop, "SHOW PARTITIONS part") == [("p=1/q=x",)]
    assert rows(shop, "SELECT id FROM part") == [(1,)]
    assert {f.split("/delta")[0] for f in tree(warehouse / "part")} == {"p=1/q=x"}
    shop.sql("ALTER TABLE part DROP IF EXISTS PARTITION (p = 2, q = 'x')")
    shop.sql("INSERT INTO part VALUES (9, 'new', 2, 'x')")
    assert rows(shop, "SELECT id FROM part WHERE p = 2") == [(9,)]
    shop.sql("ALTER TABLE part ADD PARTITION (p = 1, q = 'y')")
    assert rows(shop, "SELECT id FROM part") == [(1,), (9,)]
    nothing_is_open(shop)


def test_values_for_some_keys_drop_all_that_have_them(shop: AcidSession) -> None:
    shop.sql("INSERT INTO part VALUES (4, 'd', NULL, 'x'), (5, 'e', 7, NULL)")
    shop.sql("ALTER TABLE part DROP PARTITION (q = 'x')")
    assert rows(shop, "SELECT id FROM part") == [(2,), (5,)]
    shop.sql("ALTER TABLE part DROP PARTITION (q = '__HIVE_DEFAULT_PARTITION__'), PARTITION (p = 1)")
    assert rows(shop, "SHOW PARTITIONS part") == []


def test_dropping_waits_for_whoever_writes_to_the_partition(shop: AcidSession) -> None:
    shop.sql("SET acidsql.lock.timeout = 200ms")
    [txn] = shop.metastore.open_txns(user="olga", host="far")
    held = LockComponent(LockType.SHARED_WRITE, "default", "part", "p=1/q=x", Operation.INSERT)
    shop.metastore.lock(LockRequest((held,), txn, "olga", "far"))
    shop.sql("ALTER TABLE part DROP PARTITION (p = 1, q = 'y')")
    with pytest.raises(LockTimeout):
        shop.sql("ALTER TABLE part DROP PARTITION (p = 1)")
    shop.metastore.commit_txn(txn)
    assert rows(shop, "SHOW PARTITIONS part") == [("p=1/q=x",), ("p=2/q=x",)]


def test_a_drop_whose_files_cannot_be_moved_is_done_and_they_go_later(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from acidsql.fs import LocalFileSystem

    real = LocalFileSystem.rename

    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        if "q=x" in source and "p=2" in source:
            raise AcidError("no rename")
        real(self, source, target)

    monkeypatch.setattr(LocalFileSystem, "rename", rename)
    shop.sql("ALTER TABLE part DROP PARTITION (p = 1), PARTITION (p = 2)")
    assert rows(shop, "SELECT id FROM part") == []
    assert rows(shop, "SHOW PARTITIONS part") == []
    assert shop.sql("SHOW LOCKS").collect() == []
    monkeypatch.setattr(LocalFileSystem, "rename", real)
    shop.compactor.run_once()
    assert [path for path in tree(warehouse / "part") if path.startswith("p=")] == []


# --- refused ---------------------------------------------------------------------------------------------------------

PROPERTY_ERRORS = [
    ("emp SET TBLPROPERTIES ('transactional'='false')", 40000, "1:36", "without 'transactional_properties'"),
    (
        "emp SET TBLPROPERTIES ('Transactional'='false', 'transactional_properties'='default')",
        40013,
        "1:36",
        "cannot be unset: default.emp",
    ),
    ("emp SET TBLPROPERTIES ('a'='b', 'transactional_properties'='insert_only')", 40013, "1:45", "cannot be altered"),
    ("emp SET TBLPROPERTIES ('EXTERNAL'='TRUE')", 40013, "1:36", "cannot be converted to external table"),
    ("emp SET TBLPROPERTIES ('bucketing_version'='1')", 40013, "1:36", "bucketing_version cannot be changed"),
    ("emp SET TBLPROPERTIES ('acidsql.valid.write.ids'='x')", 40013, "1:36", "CREATE TABLE"),
    ("emp UNSET TBLPROPERTIES ('transactional')", 40013, "1:38", "'transactional'='true' cannot be unset: default.emp"),
    ("emp UNSET TBLPROPERTIES IF EXISTS ('TRANSACTIONAL_PROPERTIES')", 40013, "1:48", "cannot be altered"),
    ("emp UNSET TBLPROPERTIES ('bucketing_version')", 40013, "1:38", "cannot be changed"),
    ("emp UNSET TBLPROPERTIES ('transient_lastDdlTime', 'nope')", 10215, "1:63", "nope does not exist in emp"),
    ("nope SET TBLPROPERTIES ('a'='b')", 10001, "1:13", "Table not found default.nope"),
]
COLUMN_ERRORS = [
    ("emp ADD COLUMNS (c int, ID string)", 10036, "1:37", "Duplicate column name: id"),
    ("emp ADD COLUMNS (z int, z int)", 10036, "1:37", "Duplicate column name: z"),
    ("part ADD COLUMNS (P int)", 40000, "1:31", "Partition column name p conflicts"),
    ("emp ADD COLUMNS (row__id int)", 40000, "1:30", "reserved"),
    ("emp ADD COLUMNS (c zint)", None, "1:32", "zint"),
    ("emp ADD COLUMNS (c int NOT NULL)", None, "1:30", "NOT NULL is not supported"),
    ("emp ADD COLUMNS (c int DEFAULT 5)", None, "1:30", "DEFAULT is not supported"),
    ("emp ADD COLUMNS (c int FIRST)", None, "1:17", "is not supported"),
]
PARTITION_ERRORS = [
    ("part ADD PARTITION (p = 1, q = 'x')", 40000, "1:22", "Partition already exists: p=1/q=x"),
    ("part ADD PARTITION (p = 8, q = 'x') PARTITION (p = 1, q = 'x')", 40000, "1:49", "already exists: p=1/q=x"),
    ("part ADD PARTITION (p = 8, q = 'x') PARTITION (q = 'x', p = 08)", 40000, "1:49", "Duplicate partitions"),
    ("part ADD PARTITION (p = 8)", 40000, "1:22", "{p=8} doesn't contain all (2) partition columns"),
    ("part ADD PARTITION (p = 8, nope = 'x')", 40000, "1:22", "{p=8, nope=x} contains non-partition columns"),
    ("part ADD PARTITION (p = 'abc', q = 'x')", 10248, "1:33", "cannot be converted to type int"),
    ("part ADD PARTITION (p = 1, p = 2)", 40000, "1:33", "named twice"),
    ("part ADD PARTITION (p = zzz, q = 'x')", None, None, "zzz"),
    (
        "emp ADD PARTITION (p = 1)",
        40000,
        "1:21",
        "default.emp table is not partitioned but partition spec exists: {p=1}",
    ),
    ("part DROP PARTITION (p = 77, q = 'x')", 10006, "1:23", "Partition not found {p=77, q=x}"),
    ("part DROP PARTITION (p = 1, q = 'x'), PARTITION (p = 77)", 10006, "1:51", "Partition not found {p=77}"),
    ("nope DROP PARTITION (p = 1)", 10001, "1:13", "Table not found default.nope"),
    ("part DROP PARTITION (nope = 1)", 40000, "1:23", "contains non-partition columns"),
    ("emp DROP IF EXISTS PARTITION (p = 1)", 40000, "1:32", "not partitioned"),
    ("part DROP PARTITION (p > 1)", None, "1:36", "Partitions can only be selected with ="),
]
REFUSED = [*PROPERTY_ERRORS, *COLUMN_ERRORS, *PARTITION_ERRORS]


@pytest.mark.parametrize(("text", "code", "place", "piece"), REFUSED, ids=[r[0][:60] for r in REFUSED])
def test_a_wrong_alter_is_refused_and_leaves_nothing(
    shop: AcidSession, warehouse: Path, text: str, code: int | None, place: str | None, piece: str
) -> None:
    shop.sql("SET hive.exec.drop.ignorenonexistent = false")
    error = fails_and_leaves_nothing(shop, warehouse, lambda: shop.sql(f"ALTER TABLE {text}"))
    check_refusal(error, code, place, piece)


def fails_and_leaves_nothing(
    acid: AcidSession, warehouse: Path, run: Callable[[], object]
) -> AcidError | PySparkException:
    tables = [acid.metastore.get_table("default", t) for t in ("emp", "part")]
    partitions = acid.metastore.list_partitions("default", "part")
    before = tree(warehouse / "emp") + tree(warehouse / "part")
    with pytest.raises((AcidError, PySparkException)) as caught:
        run()
    nothing_is_open(acid)
    assert tables == [acid.metastore.get_table("default", t) for t in ("emp", "part")]
    assert partitions == acid.metastore.list_partitions("default", "part")
    assert before == tree(warehouse / "emp") + tree(warehouse / "part")
    [valid] = acid.metastore.get_valid_write_ids(["default.emp"], acid.metastore.get_valid_txns())
    assert (valid.high_watermark, valid.exceptions) == (1, ())
    return caught.value


def test_places_that_hold_other_files_are_refused(shop: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    full, free = tmp_path / "full", tmp_path / "free"
    (full / "delta_0000001_0000001_0000").mkdir(parents=True)
    shop.sql(f"ALTER TABLE part ADD PARTITION (p = 20, q = 'x') LOCATION '{free}'")
    taken = [
        (full, UnsupportedError, "is not empty"),
        (warehouse / "part", AlreadyExists, "is not free"),
        (warehouse / "part" / "p=1" / "q=x", AlreadyExists, "is not free"),
        (warehouse / "part" / "elsewhere", AlreadyExists, "is not free"),
        (warehouse, AlreadyExists, "is not free"),
        (free, AlreadyExists, "is not free"),
        (free / "below", AlreadyExists, "is not free"),
        (f"file:{free}/", AlreadyExists, "is not free"),
    ]
    for place, kind, piece in taken:
        with pytest.raises(kind, match=piece) as caught:
            shop.sql(f"ALTER TABLE part ADD PARTITION (p = 21, q = 'x') LOCATION '{place}'")
        assert (caught.value.line, caught.value.column) == (1, 59)
    with pytest.raises(AlreadyExists, match="is not free"):
        shop.sql(
            f"ALTER TABLE part ADD PARTITION (p = 21, q = 'x') LOCATION '{tmp_path}/n'"
            f" PARTITION (p = 22, q = 'x') LOCATION '{tmp_path}/n/m'"
        )
    assert not (tmp_path / "n").exists()
    assert rows(shop, "SHOW PARTITIONS part PARTITION (p = 21)") == []
    usual = warehouse / "part" / "p=30" / "q=x"
    shop.sql(f"ALTER TABLE part ADD PARTITION (p = 30, q = 'x') LOCATION 'file:{usual}'")
    assert usual.is_dir()


def test_on_a_hive_metastore_partitions_are_below_their_table(
    shop: AcidSession, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(shop.metastore), "capabilities", Capabilities(is_shared_with_hive=True))
    with pytest.raises(UnsupportedError, match="below the table") as caught:
        shop.sql(f"ALTER TABLE part ADD PARTITION (p = 21, q = 'x') LOCATION '{tmp_path}/new'")
    assert caught.value.column == 59
    assert not (tmp_path / "new").exists()
    usual = warehouse / "part" / "p=21" / "q=x"
    shop.sql(f"ALTER TABLE part ADD PARTITION (p = 21, q = 'x') LOCATION '{usual}'")
    assert rows(shop, "SHOW PARTITIONS part PARTITION (p = 21)") == [("p=21/q=x",)]


def test_the_usual_place_may_hold_what_the_table_wrote_there(
    shop: AcidSession, warehouse: Path, tmp_path: Path
) -> None:
    place = warehouse / "part" / "p=2" / "q=x"
    shutil.copytree(place, tmp_path / "kept")
    shop.sql("ALTER TABLE part DROP PARTITION (p = 2, q = 'x')")
    assert rows(shop, "SELECT id FROM part") == [(1,), (2,)]
    shutil.copytree(tmp_path / "kept", place)
    shop.sql("ALTER TABLE part ADD PARTITION (p = 2, q = 'x')")
    assert rows(shop, "SELECT id FROM part") == [(1,), (2,), (3,)]
    foreign = warehouse / "part" / "p=3" / "q=x" / "delta_0000009_0000009_0000"
    foreign.mkdir(parents=True)
    with pytest.raises(UnsupportedError, match="never allocated"):
        shop.sql("ALTER TABLE part ADD PARTITION (p = 3, q = 'x')")
    assert rows(shop, "SHOW PARTITIONS part PARTITION (p = 3)") == []


# --- tables of Spark's own -------------------------------------------------------------------------------------------


def test_tables_of_sparks_own_are_altered_by_spark(shop: AcidSession, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE own (a int, p int) USING parquet PARTITIONED BY (p)")
    try:
        shop.sql("ALTER TABLE own SET TBLPROPERTIES ('x'='1', 'transactional'='false')")
        shop.sql("ALTER TABLE own ADD COLUMNS (b int DEFAULT 5)")
        shop.sql("ALTER TABLE own ADD PARTITION (p = 1)")
        shop.sql("ALTER TABLE own UNSET TBLPROPERTIES IF EXISTS ('x')")
        assert rows(shop, "SHOW PARTITIONS own") == [("p=1",)]
        assert spark.table("own").columns == ["a", "b", "p"]
        shop.sql("ALTER TABLE own DROP PARTITION (p = 1)")
        shop.sql("INSERT INTO own VALUES (1, 2, 3)")
        shop.sql("TRUNCATE TABLE own")
        assert spark.table("own").count() == 0
    finally:
        spark.sql("DROP TABLE own")


def test_a_column_may_be_qualified_with_the_current_database(acid: AcidSession) -> None:
    acid.sql("CREATE DATABASE hr")
    acid.sql("USE hr")
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, n int)")
    acid.sql("INSERT INTO emp VALUES (1, 2)")
    assert rows(acid, "SELECT hr.emp.id FROM emp WHERE hr.emp.n = 2") == [(1,)]
    acid.sql("UPDATE emp SET n = hr.emp.n + 1 WHERE hr.emp.id IN (SELECT hr.emp.id FROM emp)")
    assert rows(acid, "SELECT spark_catalog.hr.emp.n FROM emp") == [(3,)]


def test_a_missing_partition_is_named_as_hive_names_it(shop: AcidSession) -> None:
    shop.sql("SET hive.exec.drop.ignorenonexistent = false")
    with pytest.raises(PartitionNotFound) as caught:
        shop.sql("ALTER TABLE part DROP PARTITION (p = :p)", p=5)
    assert caught.value.message == "Partition not found {p=5}"
