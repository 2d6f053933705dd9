"""A table that is dropped and made anew: what was read of the old one never shows rows of the new one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

import acidsql
from acidsql.errors import AcidError
from acidsql.session import AcidSession

MAKES = {
    "the same name": ["CREATE TRANSACTIONAL TABLE t (id int, v string)", "INSERT INTO t VALUES (7, 'new'), (8, 'new')"],
    "as a query": ["CREATE TRANSACTIONAL TABLE t AS SELECT 7 AS id, 'new' AS v UNION ALL SELECT 8, 'new'"],
    "another name at the place": [
        "CREATE TRANSACTIONAL TABLE u (id int, v string) LOCATION '{place}'",
        "INSERT INTO u VALUES (7, 'new'), (8, 'new')",
    ],
    "a rename into its name": [
        "CREATE TRANSACTIONAL TABLE u (id int, v string)",
        "INSERT INTO u VALUES (7, 'new'), (8, 'new')",
        "ALTER TABLE u RENAME TO t",
    ],
}


def rows(acid: AcidSession, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(r) for r in acid.sql(f"SELECT * FROM {name}").collect())


def read_late(frame: DataFrame) -> list[tuple[object, ...]] | None:
    """The rows of a frame whose table was dropped, which Spark may still have in its cache; None where it fails."""
    try:
        return sorted(tuple(r) for r in frame.collect())
    except (PySparkException, Py4JJavaError, AcidError):
        return None


@pytest.mark.parametrize("how", MAKES)
def test_a_frame_of_the_old_table_shows_no_row_of_the_new_one(acid: AcidSession, warehouse: Path, how: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    lazy, cached = acid.sql("SELECT * FROM t"), acid.table("t").cache()
    assert cached.count() == 2
    acid.sql("DROP TABLE t")
    for text in MAKES[how]:
        acid.sql(text.format(place=warehouse / "t"))
    name = "u" if how.startswith("another") else "t"
    assert read_late(lazy) in (None, [(1, "old"), (2, "old")])
    assert rows(acid, name) == [(7, "new"), (8, "new")]
    assert sorted(map(tuple, acid.table(name).collect())) == [(7, "new"), (8, "new")]
    assert acid.sql(f"UPDATE {name} SET v = concat(v, '+')").collect()[0].num_updated_rows == 2
    assert sorted(map(tuple, cached.collect())) == [(1, "old"), (2, "old")]
    cached.unpersist()
    assert rows(acid, name) == [(7, "new+"), (8, "new+")]


def test_a_dropped_partition_is_new_when_rows_come_again(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    lazy = acid.sql("SELECT * FROM t WHERE p = 1")
    acid.sql("ALTER TABLE t DROP PARTITION (p = 1)")
    acid.sql("INSERT INTO t VALUES (5, 1)")
    assert rows(acid, "t") == [(2, 2), (5, 1)]
    assert read_late(lazy) is None


def test_a_killed_drop_partition_brings_nothing_back(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    acid.metastore.drop_partitions("default", "t", ["p=1"])  # killed there
    assert rows(acid, "t") == [(2, 2)]
    acid.sql("INSERT INTO t VALUES (5, 1)")
    assert rows(acid, "t") == [(2, 2), (5, 1)]
    assert acid.metastore.dropped_directories() == []


def test_a_session_with_a_shorter_time_out_does_not_end_readers_of_another(acid: AcidSession) -> None:
    """The unit tests move the clock; this is the whole way of a reader's transaction."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    frame = acid.sql("SELECT * FROM t")
    pinned = [t.id for t in acid.metastore.show_txns()]
    hasty = acidsql.connect(acid.spark, warehouse=acid._env.warehouse, settings={"hive.txn.timeout": "1ms"})
    with hasty:
        hasty.metastore.time_out_txns()
    assert [t.id for t in acid.metastore.show_txns() if t.state.name == "OPEN"] == pinned
    assert frame.count() == 1


def test_swapped_tables_do_not_show_each_others_rows(acid: AcidSession) -> None:
    for name, value in (("t", "old"), ("u", "new")):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int, v string)")
        acid.sql(f"INSERT INTO {name} VALUES (1, '{value}')")
    lazy, cached = acid.sql("SELECT v FROM t"), acid.table("u").cache()
    assert cached.count() == 1
    for old, new in (("t", "x"), ("u", "t"), ("x", "u")):
        acid.sql(f"ALTER TABLE {old} RENAME TO {new}")
    assert (rows(acid, "t"), rows(acid, "u")) == ([(1, "new")], [(1, "old")])
    assert read_late(lazy) in (None, [("old",)])
    acid.sql("UPDATE u SET v = 'changed'")
    assert (rows(acid, "t"), rows(acid, "u")) == ([(1, "new")], [(1, "changed")])
    cached.unpersist()


@pytest.mark.parametrize("how", ["dropped", "renamed"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_partition_renamed_into_the_name_of_another_shows_its_own_rows(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch, how: str, is_known: bool
) -> None:
    """Both were written by one statement, so that their files have the same names.

    A Hive Metastore does not know which directories were used, and there a DataFrame does show the other's rows.
    """
    if not is_known:
        monkeypatch.setattr(type(acid.metastore), "was_used", lambda *_, **__: False)
    acid.sql("CREATE TRANSACTIONAL TABLE t (v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES ('old', 1), ('new', 2)")
    lazy, cached = acid.sql("SELECT v FROM t WHERE p = 1"), acid.sql("SELECT * FROM t WHERE p = 1").cache()
    assert cached.count() == 1
    gone = "DROP PARTITION (p = 1)" if how == "dropped" else "PARTITION (p = 1) RENAME TO PARTITION (p = 3)"
    acid.sql(f"ALTER TABLE t {gone}")
    acid.sql("ALTER TABLE t PARTITION (p = 2) RENAME TO PARTITION (p = 1)")
    kept = [("old", 3)] if how == "renamed" else []
    assert rows(acid, "t") == [("new", 1), *kept]
    assert [tuple(r) for r in acid.sql("SELECT * FROM t WHERE p = 1").collect()] == [("new", 1)]
    assert not is_known or read_late(lazy) in (None, [("old",)])
    assert acid.sql("UPDATE t SET v = concat(v, '+') WHERE p = 1").collect()[0].num_updated_rows == 1
    assert rows(acid, "t") == [("new+", 1), *kept]
    assert [tuple(r) for r in cached.collect()] == [("old", 1)]
    cached.unpersist()


def test_partitions_are_renamed_in_a_circle(acid: AcidSession, warehouse: Path) -> None:
    """Their directories get other spellings of the same path, which a table made of the directory reads alike."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES ('a', 1), ('b', 2)")
    for old, new in ((1, 3), (2, 1), (3, 2), (1, 3), (2, 1), (3, 2)):
        acid.sql(f"ALTER TABLE t PARTITION (p = {old}) RENAME TO PARTITION (p = {new})")
    assert rows(acid, "t") == [("a", 1), ("b", 2)]
    assert sorted(p.name for p in (warehouse / "t").iterdir()) == ["%70=1", "%70=2"]
    acid.sql("INSERT INTO t VALUES ('c', 1)")
    shutil.copytree(warehouse / "t", warehouse.parent / "copy")
    acid.sql(f"CREATE TRANSACTIONAL TABLE u (v string) PARTITIONED BY (p int) LOCATION '{warehouse.parent / 'copy'}'")
    assert rows(acid, "u") == rows(acid, "t") == [("a", 1), ("b", 2), ("c", 1)]
