"""CREATE TABLE … AS query of an ACID table."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.errors import AcidError, AlreadyExists, AnalysisError, ColumnNotFound, TableNotFound
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.hive_rules import check_table


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name char(4), pay decimal(8,2), at timestamp)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 5.5, timestamp'2024-01-01 10:00:00'), (2, 'Bob', NULL, NULL)")
    return acid


def _rows(acid: AcidSession, query: str) -> list[tuple[object, ...]]:
    return [tuple(r) for r in acid.sql(query).collect()]


def test_columns_types_and_rows_come_from_the_query(shop: AcidSession, warehouse: Path) -> None:
    counts = shop.sql("CREATE TRANSACTIONAL TABLE c COMMENT 'copy' AS SELECT e.*, id * 2 AS twice FROM emp e").collect()
    assert tuple(counts[0]) == (2, 0, 0, 2)
    table = shop.metastore.get_table("default", "c")
    assert [(c.name, c.type) for c in table.columns] == [
        ("id", "int"),
        ("name", "char(4)"),
        ("pay", "decimal(8,2)"),
        ("at", "timestamp"),
        ("twice", "int"),
    ]
    assert table.comment == "copy"
    assert _rows(shop, "SELECT id, name, pay, at, twice FROM c ORDER BY id") == _rows(
        shop, "SELECT *, id * 2 FROM emp ORDER BY id"
    )
    check_table(warehouse / "c")
    shop.sql("UPDATE c SET twice = 0 WHERE id = 1")
    assert _rows(shop, "SELECT twice FROM c ORDER BY id") == [(0,), (4,)]


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_partitioned_bucketed_and_insert_only(shop: AcidSession, warehouse: Path, driver_rows: str) -> None:
    shop.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    query = "AS SELECT id AS p, name, id + 1 AS n FROM emp UNION ALL SELECT NULL, 'x', 9"
    shop.sql(f"CREATE TRANSACTIONAL TABLE p PARTITIONED BY (p) {query}")
    assert _rows(shop, "SHOW PARTITIONS p") == [("p=1",), ("p=2",), ("p=__HIVE_DEFAULT_PARTITION__",)]
    assert _rows(shop, "SELECT * FROM p ORDER BY n") == [("Ann ", 2, 1), ("Bob ", 3, 2), ("x   ", 9, None)]
    shop.sql(f"CREATE TRANSACTIONAL TABLE b CLUSTERED BY (n) INTO 3 BUCKETS {query}")
    assert _rows(shop, "SELECT n FROM b ORDER BY n") == [(2,), (3,), (9,)]
    properties = "'transactional'='true', 'transactional_properties'='insert_only'"
    shop.sql(f"CREATE TABLE i STORED AS ORC TBLPROPERTIES({properties}) {query}")
    assert _rows(shop, "SELECT n FROM i ORDER BY n") == [(2,), (3,), (9,)]
    for table in ("p", "b"):
        check_table(warehouse / table)


def test_a_query_without_rows_makes_an_empty_table(shop: AcidSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE e AS SELECT id FROM emp WHERE false")
    assert shop.table("e").count() == 0
    shop.sql("INSERT INTO e VALUES (1)")
    assert shop.table("e").count() == 1


def test_if_not_exists_leaves_a_table_alone(shop: AcidSession) -> None:
    assert shop.sql("CREATE TRANSACTIONAL TABLE IF NOT EXISTS emp AS SELECT 7 AS id").collect()[0][0] == 0
    assert shop.table("emp").count() == 2
    with pytest.raises(AlreadyExists):
        shop.sql("CREATE TRANSACTIONAL TABLE emp AS SELECT 7 AS id")


@pytest.mark.parametrize(
    ("text", "kind", "piece"),
    [
        ("CREATE TRANSACTIONAL TABLE n AS SELECT 1 AS a, 2 AS A", AnalysisError, "a"),
        ("CREATE TRANSACTIONAL TABLE n AS SELECT NULL AS a", AnalysisError, "a"),
        ("CREATE TRANSACTIONAL TABLE n PARTITIONED BY (zz) AS SELECT 1 AS a", ColumnNotFound, "zz"),
        ("CREATE TRANSACTIONAL TABLE n PARTITIONED BY (a) AS SELECT 1 AS a", AcidError, "column"),
        ("CREATE TRANSACTIONAL TABLE nowhere.n AS SELECT 1 AS a", AcidError, "nowhere"),
        ("CREATE TRANSACTIONAL TABLE n AS SELECT nope FROM emp", Exception, "nope"),
        ("CREATE TRANSACTIONAL TABLE n AS SELECT 1 / (id - 1) AS a FROM emp", Exception, "DIVIDE"),
    ],
)
def test_a_failure_leaves_nothing(
    shop: AcidSession, warehouse: Path, text: str, kind: type[Exception], piece: str
) -> None:
    with pytest.raises(kind, match=piece):
        shop.sql(text)
    assert shop.metastore.list_tables("default") == ["emp"]
    assert not (warehouse / "n").exists()
    nothing_is_open(shop)


def test_a_failure_at_the_commit_leaves_nothing(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AcidError("no commit today")

    monkeypatch.setattr(shop.metastore, "commit_txn", refuse)
    with pytest.raises(AcidError, match="no commit"):
        shop.sql("CREATE TRANSACTIONAL TABLE n AS SELECT 1 AS a")
    monkeypatch.undo()
    assert shop.metastore.list_tables("default") == ["emp"]
    assert not (warehouse / "n").exists()
    with pytest.raises(TableNotFound):
        shop.sql("UPDATE n SET a = 1")
