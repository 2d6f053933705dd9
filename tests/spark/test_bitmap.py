"""Deleted rows as a bitmap: kept from statement to statement, and tested by the same code whatever is deleted."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acidsql.plan import bitmap
from acidsql.session import AcidSession
from tests.oracle.spark_conf import settings
from tests.spark.answers import rows

CODEGEN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
}


def generated_code(acid: AcidSession, spark: SparkSession, query: str) -> list[str]:
    """The lines of code that Spark generates for a query, comments left out."""
    jvm = spark._jvm
    assert jvm is not None
    mode = jvm.org.apache.spark.sql.execution.ExplainMode.fromString("codegen")
    with settings(spark, CODEGEN):
        text = acid.sql(query)._jdf.queryExecution().explainString(mode)
    return [re.sub(r"/\*.*?\*/", "", line) for line in text.splitlines() if line.startswith("/* ")]


def test_the_code_of_a_scan_is_the_same_whatever_was_deleted(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t SELECT id, 'v' FROM range(1000)")
    acid.sql("DELETE FROM t WHERE id = 1")
    before = generated_code(acid, spark, "SELECT id FROM t")
    for n in range(3):
        acid.sql(f"UPDATE t SET v = 'w' WHERE id % 10 = {n + 2}")
        acid.sql(f"INSERT INTO t VALUES ({1000 + n}, 'x')")
        acid.sql(f"DELETE FROM t WHERE id >= 1000 OR id % 50 = {n + 3}")
    assert len(before) > 50
    assert generated_code(acid, spark, "SELECT id FROM t") == before


def test_the_code_of_a_scan_is_no_longer_for_many_partitions(acid: AcidSession, spark: SparkSession) -> None:
    """Java's compiler leaves methods of more than 8,000 bytes alone."""
    lengths = []
    for count in (3, 60):
        name = f"p{count}"
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int) PARTITIONED BY (p int)")
        acid.sql(f"INSERT INTO {name} SELECT CAST(id AS int), CAST(id % {count} AS int) FROM range({count * 10})")
        acid.sql(f"INSERT INTO {name} SELECT CAST(-id - 1 AS int), CAST(id % {count} AS int) FROM range({count * 10})")
        acid.sql(f"DELETE FROM {name} WHERE abs(id) % 7 = 1 AND p % 3 <> 2")
        query = f"SELECT p, count(*), sum(id) FROM {name} GROUP BY p"
        lengths.append(len(generated_code(acid, spark, query)))
        left = [(i, i % count) for i in range(count * 10)] + [(-i - 1, i % count) for i in range(count * 10)]
        left = [(i, p) for i, p in left if not (abs(i) % 7 == 1 and p % 3 != 2)]
        expected = [(p, len(ids), sum(ids)) for p in range(count) for ids in [[i for i, q in left if q == p]]]
        assert sorted(rows(acid, query)) == expected
    assert lengths[0] > 50
    assert lengths[1] == lengths[0]


def test_what_is_deleted_is_added_to_what_is_kept(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bitmap.Bitmap] = []
    monkeypatch.setattr(bitmap, "_kept", lambda own: kept)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t SELECT id FROM range(1000)")
    acid.sql("DELETE FROM t WHERE id < 10")
    before = acid.sql("SELECT count(*), min(id) FROM t")
    assert rows(acid, "SELECT count(*) FROM t") == [(990,)]
    [first] = kept
    assert rows(acid, "SELECT min(id) FROM t") == [(10,)]
    assert kept == [first], "the same files are the same bitmap"
    acid.sql("DELETE FROM t WHERE id < 20")
    assert rows(acid, "SELECT count(*), min(id) FROM t") == [(980, 20)]
    [second] = kept
    assert first.runs.keys() < second.runs.keys()
    assert first.places == second.places
    assert [tuple(row) for row in before.collect()] == [(990, 10)], "an older snapshot has its own"


@pytest.mark.parametrize("limit", [{}, {"MAX_ORIGINS": 3}, {"MAX_WORDS": 0}, {"_KEPT_WORDS": 0}], ids=str)
def test_random_deletes_of_many_origins(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]
) -> None:
    """Each partition, write and bucket has row ids of its own, and so have rows that were replaced."""
    for name, value in limit.items():
        monkeypatch.setattr(bitmap, name, value)
    chance = random.Random(1)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int) PARTITIONED BY (p int)")
    expected: dict[int, tuple[int, int]] = {}
    for step in range(7):
        new = {step * 100 + n: (0, chance.randrange(3)) for n in range(chance.choice([1, 40, 100]))}
        values = ", ".join(f"({id}, {v}, {p})" for id, (v, p) in new.items())
        acid.sql(f"INSERT INTO t VALUES {values}")
        expected |= new
        residue = chance.randrange(7)
        acid.sql(f"UPDATE t SET v = v + 1 WHERE id % 7 = {residue} AND p < 2")
        expected = {id: (v + (id % 7 == residue and p < 2), p) for id, (v, p) in expected.items()}
        residue = chance.randrange(11)
        acid.sql(f"DELETE FROM t WHERE id % 11 = {residue}")
        expected = {id: row for id, row in expected.items() if id % 11 != residue}
    assert rows(acid, "SELECT id, v, p FROM t") == sorted([(id, *row) for id, row in expected.items()], key=repr)
    assert rows(acid, "SELECT count(*) FROM t WHERE p = 1") == [(sum(p == 1 for _, p in expected.values()),)]


def test_row_ids_beyond_the_words_of_their_origin_are_not_deleted(acid: AcidSession) -> None:
    """The first origin has few words, and rows far behind them, whose places are those of another's."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t SELECT id FROM range(0, 1000, 1, 1)")
    acid.sql("INSERT INTO t SELECT id FROM range(1000, 2000, 1, 1)")
    acid.sql("DELETE FROM t WHERE id = 3 OR id BETWEEN 1000 AND 1998")
    assert rows(acid, "SELECT count(*), min(id), max(id) FROM t") == [(1000, 0, 1999)]
    assert rows(acid, "SELECT count(*) FROM t WHERE id > 500") == [(500,)]


@pytest.mark.parametrize("highest", [(1 << 32) - 1, 1 << 32])
def test_write_ids_of_more_than_32_bits(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, highest: int) -> None:
    """Write id and bucket share 64 bits; above, rows are told apart by a join."""
    monkeypatch.setattr("acidsql.plan.deletes._MOST_PACKED", highest - (1 << 32) + 2)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    for n in range(3):
        acid.sql(f"INSERT INTO t VALUES ({n})")
    acid.sql("DELETE FROM t WHERE id = 1")
    assert rows(acid, "SELECT id FROM t") == [(0,), (2,)]


@pytest.mark.parametrize("way", ["rename", "set location"])
def test_the_same_files_in_partitions_of_other_numbers(acid: AcidSession, tmp_path: Path, way: str) -> None:
    """Row ids are those of a partition, whose number in a snapshot is another one after a change of partitions."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    for p, place in ((1, "x"), (2, "y")):
        acid.sql(f"ALTER TABLE t ADD PARTITION (p={p}) LOCATION '{tmp_path}/{place}'")
    acid.sql("INSERT INTO t SELECT id, id % 2 + 1 FROM range(0, 10, 1, 1)")
    acid.sql("DELETE FROM t WHERE id IN (0, 9)")
    assert [id for id, _ in rows(acid, "SELECT id, p FROM t")] == list(range(1, 9))
    if way == "rename":
        acid.sql("ALTER TABLE t PARTITION (p=1) RENAME TO PARTITION (p=3)")
    else:
        for p, place in ((1, "z"), (2, "x"), (1, "y")):
            acid.sql(f"ALTER TABLE t PARTITION (p={p}) SET LOCATION '{tmp_path}/{place}'")
    assert [id for id, _ in rows(acid, "SELECT id, p FROM t")] == list(range(1, 9))


def test_partitions_that_change_their_names_with_each_other(acid: AcidSession) -> None:
    """All their files have one length and one time."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int) TBLPROPERTIES('orc.compress'='NONE')")
    acid.sql("INSERT INTO t SELECT id, id % 2 + 1 FROM range(0, 10, 1, 1)")
    acid.sql("DELETE FROM t WHERE id IN (2, 5)")
    left = [id for id in range(10) if id not in (2, 5)]
    root = Path(acid.sql("DESCRIBE DETAIL t").collect()[0]["location"])
    files = list(root.rglob("bucket_*"))
    for file in files:
        os.utime(file, ns=(10**18, 10**18))
    assert len({file.stat().st_size for file in files if "delete" in str(file)}) == 1
    assert rows(acid, "SELECT id, p FROM t") == [(id, id % 2 + 1) for id in left]
    for old, new in ((1, 3), (2, 1), (3, 2)):
        acid.sql(f"ALTER TABLE t PARTITION (p={old}) RENAME TO PARTITION (p={new})")
    assert rows(acid, "SELECT id, p FROM t") == [(id, 2 - id % 2) for id in left]
