"""Bucketed and insert-only tables, and tables with files from before they were transactional, by turns."""

from __future__ import annotations

import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.values import parse_fields

KEYS = [
    ("id int, v string", "(id) INTO 4 BUCKETS", ""),
    ("id int, v string", "(v) INTO 3 BUCKETS", ""),
    ("id int, v string", "(v, id) INTO 5 BUCKETS", ""),
    ("id int, v string", "(id) INTO 2 BUCKETS", "p int"),
]


@pytest.mark.parametrize(("columns", "buckets", "keys"), KEYS)
@pytest.mark.parametrize("by", SIDES)
def test_a_bucketed_table(both: Both, by: str, columns: str, buckets: str, keys: str) -> None:
    t = both.table(columns + ("" if keys else ", p int"), keys, by=by, buckets=buckets)
    t.hive("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'żółć', 2), (3, NULL, 1), (NULL, 'd', 2)")
    t.acid("INSERT INTO {t} VALUES (4, 'e', 1), (5, 'żółć 😀', 2), (6, '', 1), (NULL, 'g', NULL)")
    both.acid.sql("SET acidsql.write.driver.rows = 0")
    t.acid("INSERT INTO {t} SELECT coalesce(id, 50) + 100, concat(v, '+'), p FROM {t}")
    free = "p = p + 10" if not keys else "v = concat('x', v)" if buckets.startswith("(id)") else None
    if free:
        t.acid(f"UPDATE {{t}} SET {free} WHERE id > 2").hive(f"UPDATE {{t}} SET {free} WHERE id < 105")
    both.acid.sql("SET acidsql.write.driver.rows = 20000")
    t.hive("DELETE FROM {t} WHERE id IN (4, 101)").acid("DELETE FROM {t} WHERE id IN (1, 102) OR id IS NULL")
    t.hive("INSERT OVERWRITE TABLE {t} SELECT id, v, p FROM {t} WHERE id > 3")
    t.acid("INSERT OVERWRITE TABLE {t} SELECT id + 1, v, p FROM {t}")
    t.answer_alike("SELECT count(*), count(DISTINCT a.id) FROM {t} a JOIN {t} b ON a.id = b.id")


@pytest.mark.parametrize("keys", ["", "p int"], ids=["plain", "partitioned"])
@pytest.mark.parametrize("by", SIDES)
def test_an_insert_only_table(both: Both, by: str, keys: str) -> None:
    t = both.table("id int, v string" + ("" if keys else ", p int"), keys, by=by, insert_only=True)
    t.hive("INSERT INTO {t} VALUES (1, 'a', 1), (2, NULL, 2)")
    t.acid("INSERT INTO {t} VALUES (3, 'c', 1), (4, '', NULL)")
    t.hive("INSERT INTO {t} SELECT id + 10, v, p FROM {t} UNION ALL SELECT id + 20, v, p FROM {t}")
    both.acid.sql("SET acidsql.write.driver.rows = 0")
    t.acid("INSERT INTO {t} SELECT id + 100, v, p FROM {t}")
    both.acid.sql("SET acidsql.write.driver.rows = 20000")
    t.acid("INSERT OVERWRITE TABLE {t} SELECT id, v, p FROM {t} WHERE id < 20")
    t.hive("INSERT OVERWRITE TABLE {t} SELECT id + 1, v, p FROM {t} WHERE p = 1")
    t.acid("TRUNCATE TABLE {t}").holds()
    t.hive("INSERT INTO {t} VALUES (7, 'x', 1)").acid("DELETE FROM {t}").holds()
    t.acid("INSERT INTO {t} VALUES (8, 'y', 1)").holds((8, "y", 1))


@pytest.mark.parametrize("keys", ["", "p int"], ids=["plain", "partitioned"])
@pytest.mark.parametrize("converts", SIDES)
def test_files_from_before_a_table_was_transactional(both: Both, converts: str, keys: str) -> None:
    name = both.new_name()
    columns = "id int, v string" + ("" if keys else ", p int")
    partitioned = f" PARTITIONED BY ({keys})" if keys else ""
    both.run(HIVE, f"CREATE EXTERNAL TABLE {name} ({columns}){partitioned} STORED AS ORC")
    for start in (1, 11):
        rows = ", ".join(f"({start + i}, 'o{i}', {i % 2})" for i in range(4))
        both.run(HIVE, f"INSERT INTO {name} VALUES {rows}")
    both.run(converts, f"ALTER TABLE {name} SET TBLPROPERTIES ('EXTERNAL'='FALSE', 'transactional'='true')")
    t = SharedTable(both, name, parse_fields(columns), parse_fields(keys))
    assert len(t.agree()) == 8
    t.acid("UPDATE {t} SET v = 'a' WHERE id IN (2, 13)", "DELETE FROM {t} WHERE id = 1")
    t.hive("UPDATE {t} SET v = 'h' WHERE id IN (3, 13)", "DELETE FROM {t} WHERE id = 14")
    t.acid("INSERT INTO {t} VALUES (99, 'new', 1)")
    t.acid(
        "MERGE INTO {t} t USING (VALUES (4), (100)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'm', 0)"
    )
    assert len(t.agree()) == 7


def test_a_table_that_acidsql_truncated(both: Both) -> None:
    t = both.table("id int", "p int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    t.acid("TRUNCATE TABLE {t} PARTITION (p = 1)").holds((2, 2))
    t.hive("INSERT INTO {t} VALUES (3, 1)").acid("TRUNCATE TABLE {t}").holds()
    t.hive("INSERT INTO {t} VALUES (4, 1)").holds((4, 1))


def test_tables_made_as_queries_and_like_others(both: Both) -> None:
    source = both.table("id int, v string", by=HIVE)
    source.hive("INSERT INTO {t} VALUES (1, 'a'), (2, NULL)")
    made = both.new_name()
    both.run(ACIDSQL, f"CREATE TRANSACTIONAL TABLE {made} AS SELECT id, v, id * 2 AS n FROM {source.name}")
    t = SharedTable(both, made, parse_fields("id int, v string, n int"), ())
    t.holds((1, "a", 2), (2, None, 4))
    t.hive("UPDATE {t} SET n = 0 WHERE id = 1").acid("DELETE FROM {t} WHERE id = 2").holds((1, "a", 0))
    like = both.new_name()
    both.run(ACIDSQL, f"CREATE TABLE {like} LIKE {made}")
    SharedTable(both, like, t.columns, ()).hive("INSERT INTO {t} VALUES (1, 'x', 1)").acid("UPDATE {t} SET v = 'y'")
