"""Tables and partitions with other names and at other places: no row is lost, and none comes from elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.errors import AcidError, AlreadyExists, AnalysisError, LockTimeout, TableNotFound
from acidsql.fs.local import LocalFileSystem
from acidsql.metastore.model import DirectoryMove, LockComponent, LockRequest, LockType, Operation
from acidsql.session import AcidSession
from tests.spark.answers import check_refusal, emp_and_part, nothing_is_open, overtake_next_lock, rows
from tests.spark.hive_rules import check_table
from tests.spark.tree import tree


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE DATABASE hr")
    return emp_and_part(acid)


def moves(acid: AcidSession, table: str) -> list[DirectoryMove]:
    found = acid.metastore.find_table("default", table)
    return [] if found is None else list(found.moves)


# --- RENAME TO -------------------------------------------------------------------------------------------------------


def test_a_renamed_table_has_its_rows_and_its_directory(shop: AcidSession, warehouse: Path) -> None:
    before = tree(warehouse / "emp")
    assert shop.sql("ALTER TABLE emp RENAME TO People").columns == []
    assert rows(shop, "SELECT ROW__ID.writeId, * FROM people") == [(1, 1, "Ann"), (1, 2, "Bob")]
    with pytest.raises((AcidError, PySparkException), match="emp"):
        shop.sql("SELECT * FROM emp")
    with pytest.raises(TableNotFound):
        shop.sql("UPDATE emp SET name = 'x'")
    assert not (warehouse / "emp").exists()
    assert tree(warehouse / "people") == before
    assert moves(shop, "people") == []
    shop.sql("UPDATE people SET name = upper(name) WHERE id = 1")
    shop.sql("INSERT INTO people VALUES (3, 'Eve')")
    assert rows(shop, "SELECT * FROM people") == [(1, "ANN"), (2, "Bob"), (3, "Eve")]
    assert [t[1] for t in rows(shop, "SHOW TABLES")] == ["part", "people"]
    check_table(warehouse / "people")
    nothing_is_open(shop)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM emp", [(7, "Gus"), (8, "Hal"), (9, "Ivy")]),
        ("SELECT count(*) FROM emp e JOIN emp f ON e.id = f.id", [(3,)]),
    ],
)
@pytest.mark.parametrize("step", [1, 2])
def test_a_select_beside_a_rename_reads_one_table_or_the_other(
    shop: AcidSession, monkeypatch: pytest.MonkeyPatch, query: str, expected: list[object], step: int
) -> None:
    """It takes no locks, and looks everything up again."""
    shop.sql("CREATE TRANSACTIONAL TABLE new (id int, name string)")
    shop.sql("INSERT INTO new VALUES (7, 'Gus'), (8, 'Hal'), (9, 'Ivy')")
    real, listings = LocalFileSystem.list, [0]

    def list(self: LocalFileSystem, path: str) -> object:
        listings[0] += path.endswith("/emp") or "/emp/" in path
        if listings[0] == step:
            monkeypatch.setattr(LocalFileSystem, "list", real)
            shop.sql("ALTER TABLE emp RENAME TO old")
            shop.sql("ALTER TABLE new RENAME TO emp")
        return real(self, path)

    monkeypatch.setattr(LocalFileSystem, "list", list)
    assert rows(shop, query) == expected
    assert listings[0] == step
    nothing_is_open(shop)


def test_a_table_goes_into_another_database_and_back(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("ALTER TABLE part RENAME TO hr.pieces")
    assert rows(shop, "SELECT id, p, q FROM hr.pieces WHERE p = 1") == [(1, 1, "x"), (2, 1, "y")]
    assert not (warehouse / "part").exists()
    assert {p.location.startswith(f"{warehouse}/hr.db/pieces/") for p in shop.metastore.list_partitions("hr", "pieces")}
    shop.sql("DELETE FROM hr.pieces WHERE id = 1")
    shop.sql("INSERT INTO hr.pieces VALUES (4, 'd', 9, 'new')")
    shop.sql("USE hr")
    shop.sql("ALTER TABLE pieces RENAME TO default.part")
    shop.sql("USE default")
    assert rows(shop, "SELECT id, v, p, q FROM part") == [(2, "b", 1, "y"), (3, "c", 2, "x"), (4, "d", 9, "new")]
    assert tree(warehouse / "hr.db") == []
    check_table(warehouse / "part")


def test_a_table_at_a_place_of_its_own_stays_there(shop: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    shop.sql(f"CREATE TRANSACTIONAL TABLE own (id int) LOCATION '{tmp_path}/own'")
    shop.sql("INSERT INTO own VALUES (1)")
    shop.sql("ALTER TABLE own RENAME TO hr.mine")
    shop.sql("INSERT INTO hr.mine VALUES (2)")
    assert rows(shop, "SELECT * FROM hr.mine") == [(1,), (2,)]
    assert check_table(tmp_path / "own") == 2
    assert not (warehouse / "hr.db" / "mine").exists()


def test_partitions_elsewhere_stay_there(shop: AcidSession, tmp_path: Path) -> None:
    shop.sql(f"ALTER TABLE part ADD PARTITION (p = 7, q = 'x') LOCATION '{tmp_path}/else'")
    shop.sql("INSERT INTO part PARTITION (p = 7, q = 'x') VALUES (7, 'g')")
    shop.sql("ALTER TABLE part RENAME TO pieces")
    shop.sql("UPDATE pieces SET v = 'G' WHERE p = 7")
    assert rows(shop, "SELECT v FROM pieces WHERE p IN (2, 7)") == [("G",), ("c",)]
    assert check_table(tmp_path / "else") == 3


def test_a_dataframe_of_the_old_name_never_gives_rows_of_the_next_table_of_that_name(shop: AcidSession) -> None:
    before = shop.table("emp")
    shop.sql("ALTER TABLE emp RENAME TO people")
    shop.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string)")
    for n in (7, 8, 9):
        shop.sql(f"INSERT INTO emp VALUES ({n}, 'other')")
    with pytest.raises(Exception, match="delta_0000001_0000001_0000"):
        before.collect()
    assert rows(shop, "SELECT id FROM emp") == [(7,), (8,), (9,)]
    assert rows(shop, "SELECT id FROM people") == [(1,), (2,)]


def test_a_rename_waits_for_writers_and_writers_find_no_table(
    shop: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    [txn] = shop.metastore.open_txns(user="olga", host="far")
    held = LockComponent(LockType.SHARED_READ, "default", "emp", operation=Operation.INSERT)
    shop.metastore.lock(LockRequest((held,), txn, "olga", "far"))
    shop.sql("SET acidsql.lock.timeout = 200ms")
    with pytest.raises(LockTimeout):
        shop.sql("ALTER TABLE emp RENAME TO people")
    shop.metastore.abort_txns([txn])
    overtake_next_lock(shop, monkeypatch, "ALTER TABLE emp RENAME TO people")
    with pytest.raises(TableNotFound):
        shop.sql("UPDATE emp SET name = 'x'")
    assert rows(shop, "SELECT name FROM people") == [("Ann",), ("Bob",)]


@pytest.mark.parametrize("statement", ["SELECT id FROM u", "UPDATE u SET id = id", "ALTER TABLE u RENAME TO v"])
def test_a_killed_rename_is_finished_by_whoever_comes_next(shop: AcidSession, warehouse: Path, statement: str) -> None:
    """The store says that the table is ``u``; its directory has not followed."""
    emp = shop.metastore.get_table("default", "emp")
    move = DirectoryMove(str(warehouse / "emp"), str(warehouse / "u"), "1")
    shop.metastore.rename_table("default", "emp", replace(emp, name="u", location=move.target), move=move)
    shop.sql(statement).collect()
    name = "v" if "RENAME" in statement else "u"
    assert rows(shop, f"SELECT id FROM {name}") == [(1,), (2,)]
    assert moves(shop, name) == []
    assert not (warehouse / "emp").exists()
    check_table(warehouse / name)


def test_what_is_made_at_the_old_place_meanwhile_stays_there(shop: AcidSession, warehouse: Path) -> None:
    """The directory has followed; the property is still there, and a new table is at the old place."""
    emp = shop.metastore.get_table("default", "emp")
    move = DirectoryMove(str(warehouse / "emp"), str(warehouse / "u"), "1")
    (warehouse / "emp").rename(warehouse / "u")
    shop.metastore.rename_table("default", "emp", replace(emp, name="u", location=move.target), move=move)
    shop.sql("CREATE TRANSACTIONAL TABLE emp (id int)")
    shop.sql("INSERT INTO emp VALUES (9)")
    assert rows(shop, "SELECT id FROM u") == [(1,), (2,)]
    assert rows(shop, "SELECT id FROM emp") == [(9,)]
    assert moves(shop, "u") == []


@pytest.mark.parametrize("text", ["ALTER TABLE emp RENAME TO u", "ALTER TABLE emp RENAME TO hr.u"])
@pytest.mark.parametrize("step", ["rename", "rename_table"])
@pytest.mark.parametrize("after", [False, True], ids=["before the step", "after the step"])
def test_a_rename_that_fails_is_undone(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, text: str, step: str, after: bool
) -> None:
    files, table = tree(warehouse), shop.metastore.get_table("default", "emp")
    fails_once(monkeypatch, LocalFileSystem if step == "rename" else type(shop.metastore), step, after)
    if step == "rename" and after:  # the directory is there: it is no error that somebody said so
        shop.sql(text)
        assert not (warehouse / "emp").exists()
        return
    with pytest.raises(AcidError, match="injected"):
        shop.sql(text)
    now = shop.metastore.get_table("default", "emp")
    assert replace(now, parameters=table.parameters) == table
    assert [f for f in tree(warehouse) if "acidsql.db" not in f] == [f for f in files if "acidsql.db" not in f]
    assert rows(shop, "SELECT * FROM emp") == [(1, "Ann"), (2, "Bob")]
    nothing_is_open(shop)


def fails_once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, after: bool) -> None:
    real: Callable[..., object] = getattr(owner, name)

    def step(*args: object, **kwargs: object) -> object:
        monkeypatch.setattr(owner, name, real)
        if after:
            real(*args, **kwargs)
        raise AcidError("injected")

    monkeypatch.setattr(owner, name, step)


RENAME_ERRORS = [
    ("emp RENAME TO part", 40013, "1:27", "new table default.part already exists"),
    ("emp RENAME TO emp", 40013, "1:27", "new table default.emp already exists"),
    ("emp RENAME TO nowhere.emp", 10072, "1:27", "nowhere"),
    ("emp RENAME TO full", 40013, "1:27", "New location for this table default.full already exists"),
    ("nope RENAME TO u", 10001, "1:13", "Table not found default.nope"),
    ("part PARTITION (p = 7, q = 'x') RENAME TO PARTITION (p = 8, q = 'x')", 10006, "1:18", "{p=7, q=x}"),
    (
        "part PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 2, q = 'x')",
        40000,
        "1:55",
        "Partition already exists: p=2/q=x",
    ),
    ("part PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 8)", 40000, "1:55", "doesn't contain all (2)"),
    ("part PARTITION (p = 1) RENAME TO PARTITION (p = 8, q = 'x')", 40000, "1:18", "doesn't contain all (2)"),
    ("part PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 'abc', q = 'x')", 10248, "1:66", "type int"),
    ("part PARTITION (p = 1, q = 'x') RENAME TO PARTITION (r = 1, q = 'x')", 40000, "1:55", "non-partition columns"),
    ("emp PARTITION (p = 1) RENAME TO PARTITION (p = 2)", 40000, "1:17", "not partitioned"),
    ("part PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 5, q = 'full')", 40013, "1:55", "already exists"),
    ("part PARTITION (p = 7, q = 'x') SET LOCATION '/tmp/x'", 10006, "1:18", "{p=7, q=x}"),
    ("nope SET LOCATION '/tmp/x'", 10001, "1:13", "Table not found default.nope"),
]


@pytest.mark.parametrize(("text", "code", "at", "piece"), RENAME_ERRORS, ids=[r[0][:60] for r in RENAME_ERRORS])
def test_a_wrong_rename_is_refused_and_leaves_nothing(
    shop: AcidSession, warehouse: Path, text: str, code: int, at: str, piece: str
) -> None:
    for place in ("full", "part/p=5/q=full"):
        (warehouse / place).mkdir(parents=True)
        (warehouse / place / "file").touch()
    before = [f for f in tree(warehouse) if "acidsql.db" not in f]
    with pytest.raises(AcidError) as caught:
        shop.sql(f"ALTER TABLE {text}")
    check_refusal(caught.value, code, at, piece)
    assert [f for f in tree(warehouse) if "acidsql.db" not in f] == before
    assert shop.metastore.list_tables("default") == ["emp", "part"]
    nothing_is_open(shop)


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM emp", "UPDATE emp SET name = 'x'", "INSERT INTO part SELECT *, 1, 'x' FROM emp"]
)
def test_a_directory_that_is_gone_is_an_error_and_no_empty_table(
    shop: AcidSession, warehouse: Path, statement: str
) -> None:
    (warehouse / "emp").rename(warehouse / "gone")
    with pytest.raises(AcidError, match="emp does not exist: it was renamed, moved or dropped in the meantime"):
        shop.sql(statement)


# --- RENAME TO PARTITION ---------------------------------------------------------------------------------------------


def test_a_renamed_partition_has_its_rows_and_its_directory(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("ALTER TABLE part PARTITION (q = 'x', p = 1) RENAME TO PARTITION (p = 05, q = 'a b/c')")
    assert rows(shop, "SELECT id, p, q FROM part") == [(1, 5, "a b/c"), (2, 1, "y"), (3, 2, "x")]
    assert rows(shop, "SHOW PARTITIONS part") == [("p=1/q=y",), ("p=2/q=x",), ("p=5/q=a b%2Fc",)]
    assert not (warehouse / "part" / "p=1" / "q=x").exists()
    shop.sql("INSERT INTO part VALUES (4, 'd', 1, 'x'), (5, 'e', 5, 'a b/c')")
    shop.sql("UPDATE part SET v = upper(v) WHERE p = 5")
    assert rows(shop, "SELECT id, v, p FROM part WHERE q IN ('x', 'a b/c')") == [
        (1, "A", 5),
        (3, "c", 2),
        (4, "d", 1),
        (5, "E", 5),
    ]
    assert moves(shop, "part") == []
    check_table(warehouse / "part")
    nothing_is_open(shop)


def test_a_partition_is_renamed_to_null_and_back(shop: AcidSession) -> None:
    shop.sql("ALTER TABLE part PARTITION (p = 2, q = 'x') RENAME TO PARTITION (p = NULL, q = 'x')")
    assert rows(shop, "SELECT id FROM part WHERE p IS NULL") == [(3,)]
    shop.sql("ALTER TABLE part PARTITION (p = NULL, q = 'x') RENAME TO PARTITION (p = 2, q = 'z')")
    assert rows(shop, "SELECT id, p, q FROM part WHERE id = 3") == [(3, 2, "z")]


def test_a_partition_elsewhere_changes_its_name_only(shop: AcidSession, tmp_path: Path) -> None:
    shop.sql(f"ALTER TABLE part ADD PARTITION (p = 7, q = 'x') LOCATION '{tmp_path}/else'")
    shop.sql("INSERT INTO part PARTITION (p = 7, q = 'x') VALUES (7, 'g')")
    shop.sql("ALTER TABLE part PARTITION (p = 7, q = 'x') RENAME TO PARTITION (p = 8, q = 'x')")
    assert rows(shop, "SELECT id, p FROM part WHERE p > 6") == [(7, 8)]
    assert check_table(tmp_path / "else") == 1


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE part SET v = 'new'", [(1, "new", 5), (2, "new", 1), (3, "new", 2)]),
        ("DELETE FROM part WHERE p = 1", [(1, "a", 5), (3, "c", 2)]),
    ],
)
def test_a_writer_that_waited_does_not_miss_the_rows_of_a_renamed_partition(
    shop: AcidSession, monkeypatch: pytest.MonkeyPatch, statement: str, expected: list[tuple[object, ...]]
) -> None:
    overtake_next_lock(
        shop, monkeypatch, "ALTER TABLE part PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 5, q = 'x')"
    )
    shop.sql(statement)
    assert rows(shop, "SELECT id, v, p FROM part") == expected
    nothing_is_open(shop)


@pytest.mark.parametrize("step", ["rename", "rename_partition"])
def test_a_partition_whose_rename_fails_is_as_it_was(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = tree(warehouse / "part")
    fails_once(monkeypatch, LocalFileSystem if step == "rename" else type(shop.metastore), step, step != "rename")
    with pytest.raises(AcidError, match="injected"):
        shop.sql("ALTER TABLE part PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 5, q = 'x')")
    assert rows(shop, "SHOW PARTITIONS part") == [("p=1/q=x",), ("p=1/q=y",), ("p=2/q=x",)]
    assert tree(warehouse / "part") == before
    assert rows(shop, "SELECT id FROM part WHERE p = 1") == [(1,), (2,)]
    assert moves(shop, "part") == []
    nothing_is_open(shop)


def test_a_killed_rename_of_a_partition_is_finished_by_whoever_comes_next(shop: AcidSession, warehouse: Path) -> None:
    [old] = shop.metastore.list_partitions("default", "part", ["p=1/q=x"])
    new = replace(old, values=("5", "x"), location=str(warehouse / "part" / "p=5" / "q=x"))
    shop.metastore.rename_partition("p=1/q=x", new, move=DirectoryMove(old.location, new.location, "1"))
    assert rows(shop, "SELECT id, p FROM part") == [(1, 5), (2, 1), (3, 2)]
    assert moves(shop, "part") == []
    assert (warehouse / "part" / "p=5" / "q=x").is_dir()


# --- SET LOCATION ----------------------------------------------------------------------------------------------------


def test_a_table_is_found_where_its_directory_was_moved(shop: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    (warehouse / "emp").rename(tmp_path / "moved")
    assert shop.sql(f"ALTER TABLE emp SET LOCATION '{tmp_path}/moved'").columns == []
    shop.sql("UPDATE emp SET name = 'X' WHERE id = 1")
    assert rows(shop, "SELECT * FROM emp") == [(1, "X"), (2, "Bob")]
    check_table(tmp_path / "moved")
    nothing_is_open(shop)


def test_at_an_empty_place_a_table_is_empty_and_its_files_stay_where_they_were(
    shop: AcidSession, warehouse: Path, tmp_path: Path
) -> None:
    shop.sql(f"ALTER TABLE emp SET LOCATION 'file:{tmp_path}/fresh'")
    assert rows(shop, "SELECT * FROM emp") == []
    shop.sql("INSERT INTO emp VALUES (9, 'new')")
    assert check_table(tmp_path / "fresh") == 1
    assert len(tree(warehouse / "emp")) == 2
    shop.sql(f"ALTER TABLE emp SET LOCATION '{warehouse}/emp'")
    assert rows(shop, "SELECT * FROM emp") == [(1, "Ann"), (2, "Bob")]


def test_a_partition_is_found_where_its_directory_was_moved(shop: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    (warehouse / "part" / "p=1" / "q=x").rename(tmp_path / "moved")
    shop.sql(f"ALTER TABLE part PARTITION (p = 1, q = 'x') SET LOCATION '{tmp_path}/moved'")
    shop.sql("UPDATE part SET v = 'X' WHERE p = 1")
    assert rows(shop, "SELECT id, v FROM part") == [(1, "X"), (2, "X"), (3, "c")]
    assert check_table(tmp_path / "moved") == 3


def test_the_place_of_a_partitioned_table_is_that_of_new_partitions(
    shop: AcidSession, warehouse: Path, tmp_path: Path
) -> None:
    shop.sql(f"ALTER TABLE part SET LOCATION '{tmp_path}/later'")
    shop.sql("INSERT INTO part VALUES (4, 'd', 1, 'x'), (9, 'i', 9, 'x')")
    assert rows(shop, "SELECT id FROM part") == [(1,), (2,), (3,), (4,), (9,)]
    assert {f.split("/delta")[0] for f in tree(tmp_path / "later")} == {"p=9/q=x"}
    shop.sql(f"ALTER TABLE part SET LOCATION '{warehouse}/part'")
    assert rows(shop, "SELECT count(*) FROM part") == [(5,)]


def test_what_aborted_writers_have_left_must_go_first_or_it_would_come_back(
    shop: AcidSession, warehouse: Path, tmp_path: Path
) -> None:
    """The cleaner looks at the new place, and forgets what it does not find there."""
    for name, partition in (("emp", None), ("part", "p=1/q=x")):
        [txn_id] = shop.metastore.open_txns(user="ann", host="desk")
        lock = LockComponent(LockType.SHARED_READ, "default", name, partition, Operation.INSERT)
        shop.metastore.lock(LockRequest((lock,), txn_id, "ann", "desk"))
        write_id = shop.metastore.allocate_table_write_id(txn_id, "default", name)
        delta = warehouse / name / (partition or "") / f"delta_{write_id:07d}_{write_id:07d}_0000"
        committed = next((warehouse / name / (partition or "")).glob("delta_*"))
        shutil.copytree(committed, delta)
        shop.metastore.abort_txns([txn_id])
    for text in ("emp", "part", "part PARTITION (p = 1, q = 'x')"):
        with pytest.raises(AnalysisError, match="Aborted transactions have left files of default") as caught:
            shop.sql(f"ALTER TABLE {text} SET LOCATION '{tmp_path}/other'")
        assert caught.value.column == len("ALTER TABLE ") + 1
        assert "VACUUM" in (caught.value.hint or "")
    assert not (tmp_path / "other").exists()
    assert shop.metastore.show_locks() == []
    shop.sql(f"ALTER TABLE part PARTITION (p = 2, q = 'x') SET LOCATION '{tmp_path}/p2'")
    for name in ("emp", "part"):
        shop.sql(f"VACUUM {name}")
    for place in (tmp_path / "other", warehouse / "emp"):
        shop.sql(f"ALTER TABLE emp SET LOCATION '{place}'")
    shop.sql(f"ALTER TABLE part PARTITION (p = 1, q = 'x') SET LOCATION '{tmp_path}/p1'")
    assert rows(shop, "SELECT * FROM emp") == [(1, "Ann"), (2, "Bob")]


def test_places_that_are_not_free_are_refused(shop: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "delta_0000009_0000009_0000").mkdir(parents=True)
    taken = [
        ("emp SET LOCATION", foreign, AcidError, "never allocated"),
        ("emp SET LOCATION", warehouse / "emp" / "below", AlreadyExists, "is not free"),
        ("emp SET LOCATION", warehouse, AlreadyExists, "is not free"),
        ("part SET LOCATION", warehouse / "part" / "p=1" / "q=x", AlreadyExists, "is not free"),
        ("part PARTITION (p = 1, q = 'x') SET LOCATION", foreign, AcidError, "never allocated"),
        ("part PARTITION (p = 1, q = 'x') SET LOCATION", warehouse / "part", AlreadyExists, "is not free"),
        ("part PARTITION (p = 1, q = 'x') SET LOCATION", warehouse / "part/p=2/q=x", AlreadyExists, "is not free"),
    ]
    for text, place, kind, piece in taken:
        with pytest.raises(kind, match=piece) as caught:
            shop.sql(f"ALTER TABLE {text} '{place}'")
        assert caught.value.column == len(f"ALTER TABLE {text} '")
    assert not (warehouse / "emp" / "below").exists()
    assert rows(shop, "SELECT count(*) FROM part") == [(3,)]
    nothing_is_open(shop)


# --- tables of Spark's own -------------------------------------------------------------------------------------------


def test_tables_of_sparks_own_are_renamed_by_spark(shop: AcidSession, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE own (a int) USING parquet")
    try:
        shop.sql("ALTER TABLE own RENAME TO own2")
        assert spark.table("own2").columns == ["a"]
        with pytest.raises(AcidError, match="a Spark table: it cannot be converted to an ACID table") as caught:
            shop.sql("ALTER TABLE own2 SET TBLPROPERTIES ('transactional'='true')")
        assert caught.value.hint is not None
        assert "LOCATION" in caught.value.hint
    finally:
        spark.sql("DROP TABLE IF EXISTS own")
        spark.sql("DROP TABLE IF EXISTS own2")
