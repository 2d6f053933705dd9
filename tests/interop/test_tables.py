"""Tables that acidsql makes and changes are right in Hive, and those of Hive's in acidsql."""

from __future__ import annotations

import re

import pytest

from acidsql.errors import TableNotFound
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.values import parse_fields
from tests.services.hiveserver2 import HiveError

VOLATILE = re.compile(r"^(CreateTime|LastAccessTime|Location|Owner|transient_lastDdlTime|Database)\b")
STATISTICS = {
    "COLUMN_STATS_ACCURATE",
    "numFiles",
    "numRows",
    "rawDataSize",
    "totalSize",
    "numPartitions",
    "numFilesErasureCoded",
}


def _described(both: Both, table: SharedTable) -> list[tuple[str, str, str]]:
    """DESCRIBE FORMATTED without what differs from table to table: times, the location, statistics."""
    found = []
    for row in both.ask(HIVE, f"DESCRIBE FORMATTED {table.name}"):
        first, second, third = (("" if cell is None else str(cell)).strip() for cell in (*row, "", "")[:3])
        if VOLATILE.match(first) or VOLATILE.match(second) or second in STATISTICS:
            continue
        found.append((first, second, third))
    return sorted(set(found))


@pytest.mark.parametrize("keys", ["", "p int, q string"], ids=["plain", "partitioned"])
def test_a_table_of_acidsqls_is_the_table_that_hive_would_make(both: Both, keys: str) -> None:
    columns = "id int, d decimal(10,2), c char(3), s struct<a:int,b:array<string>>"
    ours, theirs = (both.table(columns, keys, by=side, properties="'orc.compress'='ZLIB'") for side in (ACIDSQL, HIVE))
    assert _described(both, ours) == _described(both, theirs)
    texts = []
    for table in (ours, theirs):
        lines = [str(r[0]) for r in both.ask(HIVE, f"SHOW CREATE TABLE {table.name}")]
        text = "\n".join(lines).replace(table.name.partition(".")[2], "T")
        texts.append(re.sub(r"'transient_lastDdlTime'='\d+'", "", text))
    assert texts[0] == texts[1]


def test_the_location_of_a_table_of_acidsqls_is_in_its_database(both: Both) -> None:
    ours, theirs = both.table("id int", by=ACIDSQL), both.table("id int", by=HIVE)
    assert ours.directory.parent == theirs.directory.parent
    assert ours.directory.is_dir()


def test_comments_and_a_database_of_acidsqls(both: Both) -> None:
    database = f"{both.database}_ours"
    both.run(ACIDSQL, f"CREATE DATABASE {database} COMMENT 'made by acidsql'")
    try:
        both.run(
            ACIDSQL, f"CREATE TRANSACTIONAL TABLE {database}.c (id int COMMENT 'the id', v string) COMMENT 'the table'"
        )
        assert (database,) in both.ask(HIVE, "SHOW DATABASES")
        assert both.ask(HIVE, f"SHOW TABLES IN {database}") == [("c",)]
        both.run(HIVE, f"INSERT INTO {database}.c VALUES (1, 'x')")
        assert both.answer_alike(f"SELECT * FROM {database}.c") == [("1", "x")]
        assert ("id", "int", "the id") in both.ask(HIVE, f"DESCRIBE {database}.c")
        assert any("the table" in str(r) for r in both.ask(HIVE, f"DESCRIBE FORMATTED {database}.c"))
    finally:
        both.run(HIVE, f"DROP DATABASE IF EXISTS {database} CASCADE")
    assert (database,) not in both.ask(ACIDSQL, "SHOW DATABASES")


@pytest.mark.parametrize("by", SIDES)
def test_a_dropped_table_is_gone_on_both_sides(both: Both, by: str) -> None:
    other = ACIDSQL if by == HIVE else HIVE
    t = both.table("id int", by=other)
    t.on(other, "INSERT INTO {t} VALUES (1)")
    place = t.directory
    both.run(by, f"DROP TABLE {t.name}")
    with pytest.raises(HiveError, match="not found"):
        t.read(HIVE)
    with pytest.raises(TableNotFound):
        both.run(ACIDSQL, f"UPDATE {t.name} SET id = 2")
    assert not place.exists()
    both.run(other, f"CREATE TABLE {t.name} (id int) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    t.on(by, "INSERT INTO {t} VALUES (2)").holds((2,))


def test_columns_that_hive_adds(both: Both) -> None:
    t = both.table("id int, v string", by=ACIDSQL)
    t.acid("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    both.run(HIVE, f"ALTER TABLE {t.name} ADD COLUMNS (n bigint, d date)")
    wider = SharedTable(both, t.name, [*t.columns, *parse_fields("n bigint, d date")], ())
    wider.holds((1, "a", None, None), (2, "b", None, None))
    wider.acid("INSERT INTO {t} VALUES (3, 'c', 3, date '2024-01-01')", "UPDATE {t} SET n = 1 WHERE id = 1")
    wider.hive("UPDATE {t} SET n = 2 WHERE id = 2", "DELETE FROM {t} WHERE id = 1")
    wider.holds((2, "b", 2, None), (3, "c", 3, "2024-01-01"))


def test_columns_that_acidsql_adds(both: Both) -> None:
    t = both.table("id int, v string", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    both.run(ACIDSQL, f"ALTER TABLE {t.name} ADD COLUMNS (n bigint COMMENT 'new', d date)")
    wider = SharedTable(both, t.name, [*t.columns, *parse_fields("n bigint, d date")], ())
    wider.holds((1, "a", None, None), (2, "b", None, None))
    wider.hive("INSERT INTO {t} VALUES (3, 'c', 3, date '2024-01-01')", "UPDATE {t} SET n = 1 WHERE id = 1")
    wider.acid("UPDATE {t} SET n = 2 WHERE id = 2", "DELETE FROM {t} WHERE id = 1")
    wider.holds((2, "b", 2, None), (3, "c", 3, "2024-01-01"))
    assert ("n", "bigint", "new") in both.ask(HIVE, f"DESCRIBE {t.name}")


def test_columns_added_to_a_partitioned_table(both: Both) -> None:
    t = both.table("id int", "p int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 1)").acid("INSERT INTO {t} VALUES (2, 2)")
    both.run(HIVE, f"ALTER TABLE {t.name} ADD COLUMNS (n int) CASCADE")
    wider = SharedTable(both, t.name, parse_fields("id int, n int"), parse_fields("p int"))
    wider.holds((1, None, 1), (2, None, 2))
    wider.acid("INSERT INTO {t} PARTITION (p) SELECT 3, 3, 1", "UPDATE {t} SET n = 2 WHERE p = 2").hive(
        "UPDATE {t} SET n = 1 WHERE id = 1"
    )
    wider.holds((1, 1, 1), (2, 2, 2), (3, 3, 1))


@pytest.mark.parametrize("by", SIDES)
def test_properties_set_by_one_side_are_seen_by_the_other(both: Both, by: str) -> None:
    t = both.table("id int", by=HIVE)
    t.acid("INSERT INTO {t} VALUES (1)")
    both.run(by, f"ALTER TABLE {t.name} SET TBLPROPERTIES ('answer'='42')")
    assert ("answer", "42") in [r[:2] for r in both.ask(HIVE, f"SHOW TBLPROPERTIES {t.name}")]
    database, _, name = t.name.partition(".")
    assert both.acid.metastore.get_table(database, name).parameters["answer"] == "42"
    t.hive("UPDATE {t} SET id = 2").acid("UPDATE {t} SET id = 3").holds((3,))
