"""The tables that Hive's transaction tests are about, and how their rows are looked at.

Names, columns and buckets are those of ``TxnCommandsBaseForTests``; its bucketed tables have two buckets. Which of
Hive's cases is tested where: tests/HIVE_CASES.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from acidsql.session import AcidSession
from tests.spark.hive_files import BUCKET_0, Row, inserts, write_events

BUCKET_1 = BUCKET_0 + (1 << 16)
"""The ``bucket`` value of writer 1 in statement 0."""

INSERT_ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"

_TABLES = {
    "acidtbl": "(a int, b int) CLUSTERED BY (a) INTO 2 BUCKETS",
    "acidtblpart": "(a int, b int) PARTITIONED BY (p string) CLUSTERED BY (a) INTO 2 BUCKETS",
    "acidnestedpart": "(a int, b int) PARTITIONED BY (p int, q int) CLUSTERED BY (a) INTO 2 BUCKETS",
    "acidtblnestedpart": "(a int, b int) PARTITIONED BY (p1 string, p2 string, p3 string)"
    " CLUSTERED BY (a) INTO 2 BUCKETS",
    "mmtbl": "(a int, b int)",
    "mmtblpart": "(a int, b int) PARTITIONED BY (p string)",
    "t": "(a int, b int)",
}


def make(acid: AcidSession, *names: str) -> None:
    """Create tables of Hive's tests."""
    for name in names:
        properties = INSERT_ONLY if name.startswith("mm") else "TBLPROPERTIES ('transactional'='true')"
        acid.sql(f"CREATE TABLE {name} {_TABLES[name]} STORED AS ORC {properties}")


def nonacid(acid: AcidSession, values: Sequence[tuple[Any, ...]], columns: str = "a, b", name: str = "nonacid") -> None:
    """Rows that are not in an ACID table: where Hive's tests have an ordinary one, a view does as well."""
    texts = ", ".join(f"({', '.join(map(str, v))})" for v in values)
    acid.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM VALUES {texts} AS t({columns})")


def rows(acid: AcidSession, text: str) -> list[Row]:
    """The rows of a query, sorted."""
    return sorted((tuple(r) for r in acid.sql(text).collect()), key=repr)


def ids(acid: AcidSession, table: str = "t", columns: str = "a, b", where: str = "true") -> list[Row]:
    """Row ids and columns, in the order of the ids: ``(writeId, bucketId, rowId, …)``."""
    text = f"SELECT ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId, {columns} FROM {table} WHERE {where}"
    return sorted(tuple(r) for r in acid.sql(text).collect())


def check_unique(acid: AcidSession, table: str, keys: str = "") -> None:
    """No row id twice in a partition (HIVE-16832)."""
    named = f"{keys}, ROW__ID" if keys else "ROW__ID"
    assert acid.sql(f"SELECT {named} FROM {table} GROUP BY {named} HAVING count(*) > 1").collect() == []


def directories(path: Path) -> list[str]:
    """Names of the directories in a directory, sorted."""
    return sorted(p.name for p in path.iterdir() if p.is_dir())


def abort_after_writing(acid: AcidSession, root: Path, table: str, values: Iterable[Row], kind: str = "delta") -> None:
    """A write of another engine whose transaction is aborted when its files are there; they stay, as Hive's do."""
    [txn] = acid.metastore.open_txns(user="hive", host="elsewhere")
    write_id = acid.metastore.allocate_table_write_id(txn, "default", table)
    name = f"base_{write_id:07d}" if kind == "base" else f"delta_{write_id:07d}_{write_id:07d}_0000"
    write_events(root / name / "bucket_00001", "a:int,b:int", inserts(write_id, values, BUCKET_1))
    acid.metastore.abort_txns([txn])
