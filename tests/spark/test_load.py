"""LOAD DATA: files become part of a table as they are, named as Hive names them, or nothing happens at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from acidsql.commands.dml import load_files
from acidsql.commands.dml.load_files import ClaimedFiles
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, AnalysisError, MetastoreError, NoSuchTransaction, StorageError
from acidsql.fs.local import LocalFileSystem
from acidsql.interrupts import Deferred
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.plan.staging import Staging
from acidsql.session import AcidSession
from tests.spark.answers import check_refusal, nothing_is_open, rows
from tests.spark.tree import tree

MakeFile = Callable[..., Path]


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann')")
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int, name string) PARTITIONED BY (p int)")
    return acid


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> MakeFile:
    """Writes an ORC file of a query's rows."""

    def write(name: str, query: str) -> Path:
        folder, target = tmp_path / "made", tmp_path / "in" / name
        spark.sql(query).coalesce(1).write.mode("overwrite").orc(f"file:{folder}")
        target.parent.mkdir(parents=True, exist_ok=True)
        [file] = folder.glob("part-*.orc")
        file.rename(target)
        return target

    return write


TWO = "SELECT * FROM VALUES (10, 'x'), (11, 'y') AS t(id, name)"


def test_a_local_file_is_copied_and_its_rows_have_ids(shop: AcidSession, warehouse: Path, make: MakeFile) -> None:
    file = make("any name.orc", TWO)
    assert shop.sql(f"LOAD DATA LOCAL INPATH '{file}' INTO TABLE emp").columns == []
    assert file.exists()
    assert rows(shop, "SELECT ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId, * FROM emp WHERE id > 9") == [
        (2, 536870912, 0, 10, "x"),
        (2, 536870912, 1, 11, "y"),
    ]
    assert (warehouse / "emp" / "delta_0000002_0000002_0000" / "000000_0").read_bytes() == file.read_bytes()
    shop.sql("UPDATE emp SET name = upper(name) WHERE id IN (1, 10)")
    shop.sql("DELETE FROM emp WHERE id = 11")
    assert rows(shop, "SELECT * FROM emp") == [(1, "ANN"), (10, "X")]
    nothing_is_open(shop)


def test_the_files_of_a_directory_are_moved(shop: AcidSession, warehouse: Path, make: MakeFile) -> None:
    folder = make("b.orc", TWO).parent
    make("a.orc", "SELECT 20 AS x, 'z' AS y")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden").touch()
    shop.sql(f"LOAD DATA INPATH '{folder}' INTO TABLE emp")
    assert tree(folder) == [".hidden", "_SUCCESS"]
    assert [f for f in tree(warehouse / "emp") if "0000002" in f] == [
        "delta_0000002_0000002_0000/000000_0",
        "delta_0000002_0000002_0000/000001_0",
        "delta_0000002_0000002_0000/_orc_acid_version",
    ]
    assert rows(shop, "SELECT ROW__ID.bucketId >> 16 & 4095, ROW__ID.rowId, id FROM emp WHERE id > 9") == [
        (0, 0, 20),
        (1, 0, 10),
        (1, 1, 11),
    ]


def test_overwrite_hides_what_was_there(shop: AcidSession, warehouse: Path, make: MakeFile) -> None:
    shop.sql(f"LOAD DATA LOCAL INPATH '{make('f', TWO)}' OVERWRITE INTO TABLE emp")
    assert rows(shop, "SELECT ROW__ID.writeId, id FROM emp") == [(2, 10), (2, 11)]
    assert "base_0000002/000000_0" in tree(warehouse / "emp")
    shop.sql("UPDATE emp SET name = 'new' WHERE id = 10")
    assert rows(shop, "SELECT * FROM emp") == [(10, "new"), (11, "y")]


def test_a_pattern_names_some_files(shop: AcidSession, make: MakeFile) -> None:
    folder = make("kv1.orc", TWO).parent
    make("kv2.orc", "SELECT 20 AS x, 'z' AS y")
    make("other.orc", "SELECT 30 AS x, 'z' AS y")
    shop.sql(f"LOAD DATA LOCAL INPATH '{folder}/kv?.orc' INTO TABLE emp")
    assert rows(shop, "SELECT id FROM emp") == [(1,), (10,), (11,), (20,)]


def test_a_partition_is_loaded_and_made_where_it_is_new(shop: AcidSession, warehouse: Path, make: MakeFile) -> None:
    shop.sql(f"LOAD DATA LOCAL INPATH '{make('f', TWO)}' INTO TABLE part PARTITION (p = 05)")
    shop.sql("INSERT INTO part VALUES (1, 'a', 5), (2, 'b', 6)")
    assert rows(shop, "SHOW PARTITIONS part") == [("p=5",), ("p=6",)]
    shop.sql(f"LOAD DATA LOCAL INPATH '{make('g', TWO)}' OVERWRITE INTO TABLE part PARTITION (p = 6)")
    assert rows(shop, "SELECT id, p FROM part") == [(1, 5), (10, 5), (10, 6), (11, 5), (11, 6)]
    shop.sql("DELETE FROM part WHERE id = 10")
    assert rows(shop, "SELECT id, p FROM part") == [(1, 5), (11, 5), (11, 6)]
    nothing_is_open(shop)


def test_an_insert_only_table_takes_files_too(acid: AcidSession, warehouse: Path, make: MakeFile) -> None:
    acid.sql(
        "CREATE TABLE mm (id int, name string) TBLPROPERTIES ('transactional'='true',"
        "'transactional_properties'='insert_only')"
    )
    acid.sql(f"LOAD DATA LOCAL INPATH '{make('f', TWO)}' INTO TABLE mm")
    acid.sql("INSERT INTO mm VALUES (1, 'a')")
    assert rows(acid, "SELECT * FROM mm") == [(1, "a"), (10, "x"), (11, "y")]
    assert "delta_0000001_0000001_0000/000000_0" in tree(warehouse / "mm")


def test_narrower_types_in_a_file_are_read_as_the_tables(acid: AcidSession, make: MakeFile) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE wide (a bigint, b decimal(12,2), c string)")
    acid.sql(f"LOAD DATA LOCAL INPATH '{make('f', 'SELECT 5Y AS a, 7S AS b, 8 AS c')}' INTO TABLE wide")
    assert [[str(v) for v in r] for r in acid.sql("SELECT * FROM wide").collect()] == [["5", "7.00", "8"]]
    assert rows(acid, "SELECT a FROM wide WHERE c = '8' AND b = 7") == [(5,)]


def test_files_of_a_bucketed_table_are_named_after_their_buckets(
    acid: AcidSession, warehouse: Path, make: MakeFile, tmp_path: Path
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE b (id int, name string) CLUSTERED BY (id) INTO 2 BUCKETS")
    acid.sql("INSERT INTO b SELECT id, 'x' FROM range(20)")
    found = rows(acid, "SELECT id, ROW__ID.bucketId >> 16 & 4095 FROM b")
    ids = {n: ", ".join(f"({i}, 'y')" for i, b in found if b == n) for n in (0, 1)}
    zero = make("000000_0", f"SELECT * FROM VALUES {ids[0]} AS t(id, name)")
    make("000001_0_copy_1", f"SELECT * FROM VALUES {ids[1]} AS t(id, name)")
    acid.sql("TRUNCATE TABLE b")
    acid.sql(f"LOAD DATA LOCAL INPATH '{zero.parent}' INTO TABLE b")
    assert [f for f in tree(warehouse / "b") if "delta_0000003" in f][:2] == [
        "delta_0000003_0000003_0000/000000_0",
        "delta_0000003_0000003_0000/000001_0_copy_1",
    ]
    assert rows(acid, "SELECT id, ROW__ID.bucketId >> 16 & 4095 FROM b") == found
    wrong = zero.rename(tmp_path / "000001_0")
    for file, piece in ((wrong, "do not belong to bucket 1"), (make("00000x", TWO), "file name is not valid")):
        with pytest.raises(AcidError, match=piece) as caught:
            acid.sql(f"LOAD DATA LOCAL INPATH '{file}' INTO TABLE b")
        assert caught.value.code == 30023


# --- by INSERT -------------------------------------------------------------------------------------------------------


def test_without_a_partition_the_last_columns_of_the_files_are_its_keys(
    shop: AcidSession, warehouse: Path, make: MakeFile
) -> None:
    shop.sql("SET hive.exec.dynamic.partition.mode=strict")  # Hive's LOAD does not mind
    shop.sql("INSERT INTO part PARTITION (p = 1) VALUES (1, 'a'), (2, 'b')")
    folder = make("a.orc", "SELECT * FROM VALUES (10, 'x', 1), (11, 'y', 2), (12, 'z', NULL) AS t(a, b, c)").parent
    make("b.orc", "SELECT 2L AS p, 'n' AS name, 13 AS id")
    shop.sql(f"LOAD DATA INPATH '{folder}' INTO TABLE part")
    assert rows(shop, "SELECT * FROM part") == [
        (1, "a", 1),
        (10, "x", 1),
        (11, "y", 2),
        (12, "z", None),
        (13, "n", 2),
        (2, "b", 1),
    ], "columns that are called as the table's go by name, others by position"
    assert tree(folder) == ["a.orc", "b.orc"], "the files stay: they were read, and not moved"
    assert "p=2/delta_0000002_0000002_0000/_orc_acid_version" in tree(warehouse / "part")
    shop.sql(f"LOAD DATA LOCAL INPATH '{folder}/b.orc' OVERWRITE INTO TABLE part")
    assert rows(shop, "SELECT id FROM part WHERE p = 2") == [(13,)]
    assert rows(shop, "SELECT count(*) FROM part WHERE p = 1") == [(3,)], "other partitions stay"
    nothing_is_open(shop)


def test_keys_of_the_clause_without_a_value_come_from_the_files(acid: AcidSession, make: MakeFile) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE two (id int) PARTITIONED BY (p int, q string)")
    file = make("f", "SELECT * FROM VALUES (1, 'x'), (2, 'y') AS t(id, q)")
    acid.sql(f"LOAD DATA LOCAL INPATH '{file}' INTO TABLE two PARTITION (p = 7, q)")
    assert rows(acid, "SELECT * FROM two") == [(1, 7, "x"), (2, 7, "y")]
    text = f"EXPLAIN LOAD DATA LOCAL INPATH '{file}' OVERWRITE INTO TABLE two PARTITION (p = 8, q)"
    [[plan]] = acid.sql(text).collect()
    assert f"  the rows of {file}" in plan.split("\n")
    assert "  base in the partitions of its rows" in plan.split("\n")
    assert "FileScan orc" in plan


def test_text_files_are_read_as_hives_default_serde_reads_them(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (i int, s string, b boolean, d decimal(5,2), c varchar(2), day date)")
    lines = [
        "1\x01one\x01true\x011.505\x01long\x012024-02-29",
        "x\x01\x01yes\x01\\N\x01\\N\x01\x01more",
        "3",
    ]
    (tmp_path / "f.txt").write_text("\n".join(lines) + "\n")
    clause = (
        "INPUTFORMAT 'org.apache.hadoop.mapred.TextInputFormat'"
        " SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe'"
    )
    acid.sql(f"LOAD DATA LOCAL INPATH '{tmp_path}/f.txt' INTO TABLE t {clause}")
    assert [[None if v is None else str(v) for v in r] for r in acid.sql("SELECT * FROM t ORDER BY i").collect()] == [
        [None, "", None, None, None, None],
        ["1", "one", "True", "1.51", "lo", "2024-02-29"],
        ["3", None, None, None, None, None],
    ]


def test_parquet_files_are_read_where_the_statement_says_so(shop: AcidSession, tmp_path: Path) -> None:
    shop.spark.sql("SELECT 'q' AS name, 77 AS id").coalesce(1).write.parquet(f"file:{tmp_path}/in")
    clause = (
        "INPUTFORMAT 'org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat'"
        " SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'"
    )
    shop.sql(f"LOAD DATA LOCAL INPATH '{tmp_path}/in' OVERWRITE INTO TABLE emp {clause}")
    assert rows(shop, "SELECT * FROM emp") == [(77, "q")]


# --- refused ---------------------------------------------------------------------------------------------------------

REFUSED = [
    ("LOCAL INPATH '{in}/none.orc' INTO TABLE emp", 10027, "1:24", "No files matching path"),
    ("LOCAL INPATH '{in}/empty' INTO TABLE emp", 10027, "1:24", "No files matching path"),
    ("LOCAL INPATH '{in}' INTO TABLE emp", 10027, "1:24", "source contains directory"),
    ("LOCAL INPATH '{in}/text' INTO TABLE emp", 40000, "1:24", "does not match the file format"),
    ("LOCAL INPATH '{in}/three' INTO TABLE emp", 40000, "1:24", "has 3 columns, and default.emp has 2"),
    ("LOCAL INPATH '{in}/wrong' INTO TABLE emp", 40000, "1:24", "cannot read"),
    ("LOCAL INPATH 'hdfs://nowhere:1/x' INTO TABLE emp", None, None, ""),
    ("INPATH '{emp}/delta_0000001_0000001_0000' INTO TABLE part PARTITION (p = 1)", 10413, "1:18", "by Acid write"),
    ("INPATH '{emp}' INTO TABLE emp", 10028, "1:18", "contains files of default.emp"),
    ("LOCAL INPATH '{in}/good' INTO TABLE part", None, "1:24", "has 2 columns; default.part takes 3"),
    ("LOCAL INPATH '{in}/text' INTO TABLE part", 40000, "1:24", "does not match the file format"),
    ("INPATH '{emp}/delta_0000001_0000001_0000' INTO TABLE part", 10413, "1:18", "by Acid write"),
    ("LOCAL INPATH '{in}/three' INTO TABLE part PARTITION (nope)", 10098, None, "is not a partition key"),
    ("LOCAL INPATH '{in}/text' INTO TABLE emp INPUTFORMAT 'a' SERDE 'b'", None, None, "not supported"),
    ("LOCAL INPATH '{in}/good' INTO TABLE emp PARTITION (p = 1)", 40000, None, "not partitioned"),
    ("LOCAL INPATH '{in}/good' INTO TABLE nope", 10001, None, "Table not found default.nope"),
]


@pytest.mark.parametrize(("text", "code", "place", "piece"), REFUSED, ids=[r[0][:60] for r in REFUSED])
def test_a_wrong_load_is_refused_and_leaves_nothing(
    shop: AcidSession,
    warehouse: Path,
    make: MakeFile,
    text: str,
    code: int | None,
    place: str | None,
    piece: str,
) -> None:
    folder = make("good", TWO).parent
    make("three", "SELECT 1 AS a, 'x' AS b, 2 AS c")
    make("wrong", "SELECT 'x' AS id, 'y' AS name")
    (folder / "text").write_text("1,x\n")
    (folder / "empty").mkdir()
    before = tree(folder) + tree(warehouse / "emp") + tree(warehouse / "part")
    with pytest.raises(AcidError) as caught:
        shop.sql("LOAD DATA " + text.replace("{in}", str(folder)).replace("{emp}", str(warehouse / "emp")))
    check_refusal(caught.value, code, place, piece)
    assert tree(folder) + tree(warehouse / "emp") + tree(warehouse / "part") == before
    nothing_is_open(shop)


@pytest.mark.parametrize("step", ["open_write", "rename", "commit_txn"])
def test_a_load_that_fails_leaves_the_files_where_they_were(
    shop: AcidSession, warehouse: Path, make: MakeFile, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    file = make("f", TWO)
    before, content = tree(warehouse / "emp"), file.read_bytes()

    def fail(*args: object) -> None:
        raise AcidError("injected")

    with monkeypatch.context() as patched:
        patched.setattr(type(shop.metastore) if step == "commit_txn" else LocalFileSystem, step, fail)
        with pytest.raises(AcidError, match="injected"):
            shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert file.read_bytes() == content
    assert tree(warehouse / "emp") == before
    assert rows(shop, "SELECT * FROM emp") == [(1, "Ann")]
    nothing_is_open(shop)


@pytest.mark.parametrize(("is_before", "left", "ids"), [(True, [], [1, 10, 11, 20]), (False, ["a"], [1, 20])])
def test_a_file_is_loaded_once_by_two_statements(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch, is_before: bool, left: list[str], ids: list[int]
) -> None:
    """The second statement runs whole before the first renames its first file, or after that."""
    folder = make("a", TWO).parent
    make("b", "SELECT 20 AS id, 'z' AS name")
    original, second = LocalFileSystem.rename, iter([f"LOAD DATA INPATH '{folder}/[ab]' INTO TABLE emp"])

    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        other = next(second, None) if source == f"{folder}/a" else None
        if is_before and other:
            shop.sql(other)
        original(self, source, target)
        if not is_before and other:
            shop.sql(other)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFileSystem, "rename", rename)
        with pytest.raises(AnalysisError) as caught:
            shop.sql(f"LOAD DATA INPATH '{folder}' INTO TABLE emp")
    assert caught.value.code == 10027
    assert tree(folder) == left
    assert sorted(rows(shop, "SELECT id FROM emp")) == [(id,) for id in ids]
    nothing_is_open(shop)


def test_the_rows_of_a_file_that_was_replaced_meanwhile_are_not_lost(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = make("a", TWO), make("../b", "SELECT 20 AS id, 'z' AS name")
    claim = ClaimedFiles.claim

    def replaced(self: ClaimedFiles, *args: Any) -> None:
        other.replace(file)
        claim(self, *args)

    monkeypatch.setattr(ClaimedFiles, "claim", replaced)
    with pytest.raises(AnalysisError, match="replaced"):
        shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert rows(shop, "SELECT id FROM emp") == [(1,)]
    monkeypatch.undo()
    shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert sorted(rows(shop, "SELECT id FROM emp")) == [(1,), (20,)]


def test_files_keep_their_hidden_names_where_it_is_unclear_whether_they_were_loaded(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows must not come twice: the store has committed, and its answer is lost."""
    file = make("a", TWO)
    commit = type(shop.metastore).commit_txn

    def lost(self: Any, txn_id: int, *args: Any) -> None:
        commit(self, txn_id, *args)
        raise MetastoreError("the answer is lost")

    with monkeypatch.context() as patched:
        patched.setattr(type(shop.metastore), "commit_txn", lost)
        with pytest.raises(AcidError, match="lost"):
            shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert sorted(rows(shop, "SELECT id FROM emp")) == [(1,), (10,), (11,)]
    [left] = tree(file.parent)
    assert left.startswith(".acidsql_load_")
    assert left.endswith("_a")


def test_files_get_their_names_back_where_the_commit_was_refused(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others had ended the transaction, and the store had forgotten it: that counted as an unknown outcome."""
    file = make("a", TWO)
    metastore = type(shop.metastore)

    def forgotten(self: Any, txn_id: int, *args: Any) -> None:
        self.abort_txns([txn_id])
        patched.setattr(metastore, "heartbeat", Mock(side_effect=NoSuchTransaction("forgotten")))
        patched.setattr(metastore, "abort_txns", Mock(return_value=[]))
        raise NoSuchTransaction("forgotten")

    with monkeypatch.context() as patched:
        patched.setattr(metastore, "commit_txn", forgotten)
        with pytest.raises(NoSuchTransaction, match="forgotten"):
            shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert tree(file.parent) == ["a"]
    shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert sorted(rows(shop, "SELECT id FROM emp")) == [(1,), (10,), (11,)]


def test_files_are_removed_where_an_interrupt_comes_behind_the_commit(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They kept their hidden names for good."""
    file = make("a", TWO)

    def interrupted(self: WriteTransaction) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(WriteTransaction, "committed", interrupted)
        with pytest.raises(KeyboardInterrupt, match="after its commit"):
            shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert sorted(rows(shop, "SELECT id FROM emp")) == [(1,), (10,), (11,)]
    assert tree(file.parent) == []


@pytest.mark.parametrize("moment", ["in the commit", "as they are removed", "as they get their names back"])
def test_no_file_keeps_its_hidden_name_where_an_interrupt_comes(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Those that were left had been loaded and looked as if they had not, or had not been and were not found."""
    file = make("a", TWO)
    make("b", "SELECT 20 AS id, 'z' AS name")
    fails = moment == "as they get their names back"
    changes = {"in the commit": (EmbeddedMetastore, "commit_txn"), "as they are removed": (LocalFileSystem, "delete")}
    owner, method = changes.get(moment, (LocalFileSystem, "rename"))
    step, pressed = getattr(owner, method), list[str]()

    def pressing(self: Any, *args: Any, **options: Any) -> Any:
        is_hidden = not pressed and (owner is EmbeddedMetastore or ".acidsql_load_" in str(args[0]))
        if is_hidden:
            pressed.append(method)
            os.kill(os.getpid(), signal.SIGINT)
        return step(self, *args, **options)

    def published(*args: Any) -> None:
        raise StorageError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(owner, method, pressing)
        if fails:
            patched.setattr(Staging, "publish", published)
        with pytest.raises(KeyboardInterrupt, match=r"^$" if fails else "after its commit"):
            shop.sql(f"LOAD DATA INPATH '{file.parent}' INTO TABLE emp")
    assert pressed
    assert sorted(rows(shop, "SELECT id FROM emp")) == ([(1,)] if fails else [(1,), (10,), (11,), (20,)])
    assert tree(file.parent) == (["a", "b"] if fails else [])
    nothing_is_open(shop)


@pytest.mark.parametrize("fails", [False, True])
def test_no_file_keeps_its_hidden_name_where_an_interrupt_comes_before_it_is_ended(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    file, pressed = make("a", TWO), list[str]()

    class Pressed(Deferred):
        """Ctrl-C comes before the handlers are put aside."""

        def __enter__(self) -> Deferred:
            if not pressed:
                pressed.append("Ctrl-C")
                signal.raise_signal(signal.SIGINT)
            return super().__enter__()

    def published(*args: Any) -> None:
        raise StorageError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(load_files, "Deferred", Pressed)
        if fails:
            patched.setattr(Staging, "publish", published)
        with pytest.raises(KeyboardInterrupt):
            shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE emp")
    assert pressed
    assert sorted(rows(shop, "SELECT id FROM emp")) == ([(1,)] if fails else [(1,), (10,), (11,)])
    assert tree(file.parent) == (["a"] if fails else [])
    nothing_is_open(shop)


def test_it_starts_over_where_others_put_the_partition_elsewhere(
    shop: AcidSession, make: MakeFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It failed, where an INSERT starts over."""
    file, publish, added = make("a", TWO), Staging.publish, list[str]()

    def beside(self: Staging, *args: Any) -> Any:
        if not added:
            added.append("p=1")
            with ThreadPoolExecutor(1) as pool:
                text = f"ALTER TABLE part ADD PARTITION (p = 1) LOCATION '{tmp_path}/elsewhere'"
                pool.submit(shop.sql, text).result(60)
        return publish(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Staging, "publish", beside)
        shop.sql(f"LOAD DATA INPATH '{file}' INTO TABLE part PARTITION (p = 1)")
    assert added
    assert sorted(rows(shop, "SELECT id, p FROM part")) == [(10, 1), (11, 1)]
    assert tree(file.parent) == []
    nothing_is_open(shop)


def test_a_table_of_sparks_own_is_loaded_by_spark(acid: AcidSession, spark: SparkSession, make: MakeFile) -> None:
    spark.sql("CREATE TABLE own (id int, name string) USING orc")
    try:
        with pytest.raises(Exception, match="LOAD"):
            acid.sql(f"LOAD DATA LOCAL INPATH '{make('f', TWO)}' INTO TABLE own")
    finally:
        spark.sql("DROP TABLE own")
