"""A table that acidsql compacted on its embedded store is taken to a Hive Metastore: Hive goes on with it."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.session import AcidSession
from tests.interop.both import ACIDSQL, HIVE, Both, SharedTable
from tests.interop.values import parse_fields

SHAPES = [
    pytest.param("id int, v string, p int", "", "", id="plain"),
    pytest.param("id int, v string", "p int", "", id="partitioned"),
    pytest.param("id int, v string, p int", "", "(id) INTO 3 BUCKETS", id="bucketed"),
]


def _made(acid: AcidSession, columns: str, keys: str, buckets: str, kind: str) -> str:
    """A table of inserts, updates and deletes, some before its compaction and some after; what it was made by."""
    partitioned = f" PARTITIONED BY ({keys})" if keys else ""
    clustered = f" CLUSTERED BY {buckets}" if buckets else ""
    definition = f"({columns}){partitioned}{clustered} STORED AS ORC"
    acid.sql(f"CREATE TABLE t {definition} TBLPROPERTIES ('transactional'='true')")
    for start in (1, 11, 21):
        rows = ", ".join(f"({start + i}, 'v{i}', {i % 2})" for i in range(4))
        acid.sql(f"INSERT INTO t VALUES {rows}")
    acid.sql("UPDATE t SET v = 'changed' WHERE id IN (2, 13)")
    acid.sql("DELETE FROM t WHERE id IN (1, 14)")
    acid.sql(f"ALTER TABLE t COMPACT '{kind}' AND WAIT")
    acid.sql("INSERT INTO t VALUES (31, 'later', 1)")
    acid.sql("UPDATE t SET v = 'again' WHERE id = 3")
    return definition


@pytest.mark.parametrize("is_cleaned", [False, True], ids=["before the cleaner", "after it"])
@pytest.mark.parametrize(("columns", "keys", "buckets"), SHAPES)
@pytest.mark.parametrize("kind", ["major", "minor"])
@pytest.mark.parametrize("layout", ["hive3", "hive4"])
def test_hive_reads_and_changes_it(
    both: Both,
    spark: SparkSession,
    tmp_path: Path,
    layout: str,
    kind: str,
    columns: str,
    keys: str,
    buckets: str,
    is_cleaned: bool,
) -> None:
    with acidsql.connect(spark, warehouse=tmp_path, settings={"acidsql.compactor.layout": layout}) as own:
        definition = _made(own, columns, keys, buckets, kind)
        if is_cleaned:
            own.compactor.run_once()
        query = "SELECT ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId, id, v, p FROM t"
        before = sorted(map(tuple, own.sql(query).collect()))
        source = Path(unquote(urlsplit(own.metastore.get_table("default", "t").location).path))
    name = both.new_name()
    database = both.acid.metastore.get_database(both.database)
    target = Path(unquote(urlsplit(database.location).path)) / name.partition(".")[2]
    shutil.copytree(source, target)
    both.run(ACIDSQL, f"CREATE TABLE {name} {definition} LOCATION '{target}' TBLPROPERTIES ('transactional'='true')")
    t = SharedTable(both, name, parse_fields(columns), parse_fields(keys))
    assert sorted(t.read(HIVE)) == before
    t.agree()
    t.hive("UPDATE {t} SET v = 'h' WHERE id = 4", "DELETE FROM {t} WHERE id = 11")
    t.acid("UPDATE {t} SET v = 'a' WHERE id = 12", "DELETE FROM {t} WHERE id = 21")
    t.hive("INSERT INTO {t} VALUES (40, 'h', 1)")
    assert len(t.agree()) == len(before) - 1
