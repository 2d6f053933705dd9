"""Tables on HDFS from CREATE to DROP: rows, and every directory as Hadoop itself sees it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import StorageError
from acidsql.plan import deletes, search
from acidsql.session import AcidSession
from tests.hdfs.conftest import Directory
from tests.spark.answers import rows
from tests.spark.hive_rules import check_table

ODD = ["a/b=c", "50% off", "%41", "żółć 😀", "sp ace", "q?u#o+te'\"", "cur}ly"]


def directories(directory: Directory, table: str) -> list[str]:
    """The directories of events in a table, each of which holds its version file and buckets, and nothing else."""
    made = directory.names(table)
    for name in made:
        version, *buckets = directory.names(table, name)
        assert version == "_orc_acid_version"
        assert buckets
        assert all(bucket.startswith("bucket_0000") for bucket in buckets)
    return made


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_the_life_of_a_table(acid: AcidSession, directory: Directory, tmp_path: Path, driver_rows: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string, salary int)")
    assert directory.names() == ["emp"]
    assert directory.names("emp") == []

    assert rows(acid, "INSERT INTO emp VALUES (1, 'Ann', 5000), (2, 'Bob', 5500), (3, 'Cid', 4000)") == [(3, 0, 0, 3)]
    assert directories(directory, "emp") == ["delta_0000001_0000001_0000"]

    assert rows(acid, "UPDATE emp SET salary = 6000 WHERE id = 2") == [(1, 1, 0, 0)]
    assert rows(acid, "DELETE FROM emp WHERE id = 3") == [(1, 0, 1, 0)]
    deltas = [
        "delete_delta_0000002_0000002_0000",
        "delete_delta_0000003_0000003_0000",
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0000",
    ]
    assert directories(directory, "emp") == deltas
    assert rows(acid, "SELECT * FROM emp") == [(1, "Ann", 5000), (2, "Bob", 6000)]
    assert rows(acid, "SELECT count(*) FROM emp") == [(2,)]

    acid.sql("INSERT OVERWRITE emp SELECT id, upper(name), salary + 1 FROM emp")
    assert directories(directory, "emp") == ["base_0000004", *deltas]
    assert rows(acid, "SELECT * FROM emp") == [(1, "ANN", 5001), (2, "BOB", 6001)]
    check_table(directory.download(tmp_path / "copy", "emp"))

    acid.sql("DROP TABLE emp")
    assert directory.names() == []


@pytest.mark.parametrize(
    ("driver_rows", "searched"), [(20000, False), (0, True)], ids=["driver, whole files", "job, searched files"]
)
def test_partitions_with_odd_values(
    acid: AcidSession,
    directory: Directory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver_rows: int,
    searched: bool,
) -> None:
    if searched:
        monkeypatch.setattr(search, "MIN_BYTES", 0)
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p string, n int)")
    values = {f"v{number}": value for number, value in enumerate(ODD)}
    acid.sql("INSERT INTO t VALUES " + ", ".join(f"({n}, 'x', :v{n}, {n})" for n in range(len(ODD))), **values)
    acid.sql("INSERT INTO t SELECT id + 100, 'y', p, NULL FROM t WHERE id < 2")
    new = [(n + 100, "y", v, None) for n, v in enumerate(ODD[:2])]
    everything = [*((n, "x", v, n) for n, v in enumerate(ODD)), *new]
    assert rows(acid, "SELECT * FROM t") == sorted(everything, key=repr)
    assert rows(acid, "SELECT id FROM t WHERE p = '%41'") == [(2,)]

    assert rows(acid, "UPDATE t SET v = p WHERE id < 100") == [(len(ODD), len(ODD), 0, 0)]
    assert rows(acid, "DELETE FROM t WHERE id >= 101") == [(1, 0, 1, 0)]
    kept = [*((n, v, v, n) for n, v in enumerate(ODD)), new[0]]
    assert rows(acid, "SELECT * FROM t") == sorted(kept, key=repr)
    assert rows(acid, "SELECT id FROM t WHERE v = '50% off'") == [(1,)]
    check_table(directory.download(tmp_path / "copy", "t"))

    acid.sql("INSERT OVERWRITE t PARTITION (p = '%41', n) SELECT id, v, n FROM t WHERE p = 'sp ace'")
    assert rows(acid, "SELECT id, v FROM t WHERE p = '%41'") == [(2, "%41"), (4, "sp ace")]
    assert not [name for name in directory.names("t") if name.startswith(("_", "."))]


def test_a_table_is_compacted_and_cleaned(acid: AcidSession, directory: Directory, tmp_path: Path) -> None:
    def all_rows() -> object:
        return rows(acid, "SELECT *, ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId FROM t")

    def compact(type: str) -> list[str]:
        """The directories after a compaction and its cleaning, without the transactions of compactors."""
        acid.sql(f"ALTER TABLE t PARTITION (p = 'a b') COMPACT '{type}' AND WAIT")
        assert all_rows() == before
        gc.collect()  # readers' transactions end, and the cleaner need not wait for them
        assert acid.compactor.run_once().cleaned == 1
        assert all_rows() == before
        return [name.partition("_v")[0] for name in directory.names("t", "p=a b")]

    acid.sql("SET hive.compactor.initiator.on = false")
    acid.sql("SET acidsql.compactor.layout = hive4")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t VALUES (1, 'x', 'a b'), (2, 'x', 'a b'), (3, 'x', 'a b')")
    acid.sql("UPDATE t SET v = 'new' WHERE id = 1")
    acid.sql("DELETE FROM t WHERE id = 2")
    before = all_rows()
    assert len(directory.names("t", "p=a b")) == 4
    assert compact("minor") == ["delete_delta_0000001_0000003", "delta_0000001_0000003"]
    acid.sql("SET acidsql.compactor.layout = hive3")
    assert compact("major") == ["base_0000003"]
    assert rows(acid, "SELECT * FROM t") == [(1, "new", "a b"), (3, "x", "a b")]
    assert [row.state for row in acid.sql("SHOW COMPACTIONS").collect()] == ["succeeded", "succeeded"]
    assert check_table(directory.download(tmp_path / "copy", "t")) == 2


def test_a_search_reads_less_and_finds_the_same(
    acid: AcidSession, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    acid.sql("INSERT INTO t SELECT id, repeat(md5(string(id)), 4) FROM range(60000)")
    acid.sql("UPDATE t SET v = 'new' WHERE id = 31000")
    monkeypatch.setattr(search, "MIN_BYTES", 0)
    assert rows(acid, "SELECT id FROM t WHERE v = 'new'") == [(31000,)]
    assert rows(acid, "SELECT id, v FROM t WHERE id = 31000") == [(31000, "new")]
    assert rows(acid, "DELETE FROM t WHERE id BETWEEN 100 AND 59899") == [(59800, 0, 59800, 0)]
    assert rows(acid, "SELECT count(*), min(id), max(id) FROM t WHERE id > 5") == [(194, 6, 59999)]


def test_scattered_deletes_are_joined(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletes, "DRIVER_BYTES", 0)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t VALUES (1, 'a b'), (2, 'a b'), (3, 'c%d'), (4, 'c%d')")
    acid.sql("DELETE FROM t WHERE id IN (2, 3)")
    assert rows(acid, "SELECT * FROM t") == [(1, "a b"), (4, "c%d")]


def test_directories_are_taken_in(acid: AcidSession, directory: Directory) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t VALUES (1, 'a b'), (2, 'c%d'), (3, NULL)")
    acid.sql("DELETE FROM t WHERE id = 1")
    directory.hadoop.rename(directory.path("t"), directory.path("found"))
    location = f"{directory.uri}/found"
    acid.sql(f"CREATE TRANSACTIONAL TABLE u (id int) PARTITIONED BY (p string) LOCATION '{location}'")
    assert rows(acid, "SELECT * FROM u") == [(2, "c%d"), (3, None)]
    directory.hadoop.rename(directory.path("found", "p=a b"), directory.path("found", "p=new"))
    with pytest.raises(StorageError, match="p=a b does not exist"):
        acid.sql("SELECT * FROM u")
    acid.sql("MSCK REPAIR TABLE u")
    acid.sql("ALTER TABLE u DROP PARTITION (p = 'a b')")
    acid.sql("INSERT INTO u VALUES (4, 'new')")
    assert rows(acid, "SELECT * FROM u") == [(2, "c%d"), (3, None), (4, "new")]
    assert "delta_0000003_0000003_0000" in directory.names("found", "p=new")
    acid.sql("DROP TABLE u")
    assert directory.names() == []


def test_databases_have_their_directories(acid: AcidSession, directory: Directory) -> None:
    acid.sql("CREATE DATABASE hr")
    acid.sql(f"CREATE DATABASE far LOCATION '{directory.uri}/else where'")
    acid.sql("CREATE TRANSACTIONAL TABLE hr.t (a int)")
    acid.sql("CREATE TRANSACTIONAL TABLE far.t (a int)")
    acid.sql("INSERT INTO hr.t VALUES (1)")
    acid.sql("INSERT INTO far.t SELECT a + 1 FROM hr.t")
    assert rows(acid, "SELECT h.a, f.a FROM hr.t h JOIN far.t f ON f.a = h.a + 1") == [(1, 2)]
    assert directory.names("hr.db") == directory.names("else where") == ["t"]
    acid.sql("DROP DATABASE hr CASCADE")
    acid.sql("DROP DATABASE far CASCADE")
    assert directory.names() == []


def test_local_tables_and_those_on_hdfs_meet_in_one_query(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE far (id int) PARTITIONED BY (p string)")
    acid.sql(f"CREATE TRANSACTIONAL TABLE near (id int) PARTITIONED BY (p string) LOCATION 'file:{tmp_path}/near'")
    acid.sql("INSERT INTO far VALUES (1, 'a b'), (2, 'b')")
    acid.sql("INSERT INTO near SELECT * FROM far")
    acid.sql("DELETE FROM near WHERE id IN (SELECT id FROM far WHERE p = 'b')")
    assert rows(acid, "SELECT f.id, n.id FROM far f LEFT JOIN near n ON f.p = n.p") == [(1, 1), (2, None)]
    assert (tmp_path / "near" / "p=a b").is_dir()


def test_two_sessions_see_each_others_commits(
    acid: AcidSession, spark: SparkSession, directory: Directory, store: str
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    with acidsql.connect(spark.newSession(), warehouse=directory.uri, metastore=store) as other:
        acid.sql("INSERT INTO t VALUES (1), (2)")
        before = other.table("t")
        other.sql("UPDATE t SET a = a + 10")
        acid.sql("DELETE FROM t WHERE a = 11")
        assert sorted(r[0] for r in before.collect()) == [1, 2]
        assert rows(other, "SELECT a FROM t") == rows(acid, "SELECT a FROM t") == [(12,)]
    acid.sql("INSERT INTO t VALUES (5)")
    assert rows(acid, "SELECT a FROM t") == [(12,), (5,)]
