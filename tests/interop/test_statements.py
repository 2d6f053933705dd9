"""INSERT, UPDATE, DELETE and INSERT OVERWRITE of both engines by turns on one table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both


@pytest.mark.parametrize("by", SIDES)
def test_statements_by_turns_on_a_plain_table(both: Both, by: str) -> None:
    emp = both.table("id int, name string, salary int", by=by)
    emp.hive("INSERT INTO {t} VALUES (1, 'Ann', 5000), (2, 'Bob', 5500), (3, 'Cid', 4000)")
    emp.acid("INSERT INTO {t} VALUES (4, 'Dan', 3000), (5, NULL, NULL)")
    emp.acid("UPDATE {t} SET salary = 6000 WHERE id = 2")  # a row of Hive's
    emp.hive("UPDATE {t} SET salary = salary + 1 WHERE id IN (2, 4)")  # rows of acidsql's
    emp.holds((1, "Ann", 5000), (2, "Bob", 6001), (3, "Cid", 4000), (4, "Dan", 3001), (5, None, None))
    emp.acid("DELETE FROM {t} WHERE id = 2", "DELETE FROM {t} WHERE id = 3")
    emp.hive("DELETE FROM {t} WHERE id = 4", "INSERT INTO {t} SELECT id + 10, concat(name, '!'), salary FROM {t}")
    emp.acid("INSERT INTO {t} SELECT id + 20, concat(name, '?'), salary FROM {t} WHERE id > 10")
    emp.holds(
        (1, "Ann", 5000), (5, None, None), (11, "Ann!", 5000), (15, None, None), (31, "Ann!?", 5000), (35, None, None)
    )
    emp.hive("UPDATE {t} SET name = 'all'")
    emp.acid("UPDATE {t} SET name = concat(name, id)")
    emp.acid("DELETE FROM {t}")
    emp.holds()
    emp.hive("INSERT INTO {t} VALUES (1, 'again', 1)")
    emp.acid("UPDATE {t} SET id = 2").holds((2, "again", 1))


def test_insert_overwrite_by_turns(both: Both) -> None:
    t = both.table("a int", by=ACIDSQL)
    t.hive("INSERT INTO {t} VALUES (1), (2)")
    t.acid("INSERT OVERWRITE TABLE {t} SELECT a + 10 FROM {t}").holds((11,), (12,))
    t.hive("INSERT INTO {t} VALUES (3)", "INSERT OVERWRITE TABLE {t} SELECT a * 2 FROM {t}").holds((6,), (22,), (24,))
    t.acid("UPDATE {t} SET a = 0 WHERE a = 6", "INSERT OVERWRITE TABLE {t} SELECT a FROM {t} WHERE false").holds()
    t.hive("INSERT INTO {t} VALUES (4)").acid("DELETE FROM {t} WHERE a = 4").holds()
    t.acid("INSERT INTO {t} VALUES (5), (6)").hive("INSERT OVERWRITE TABLE {t} SELECT a FROM {t} WHERE a > 99").holds()
    t.acid("INSERT INTO {t} VALUES (7)").holds((7,))


def test_a_table_that_hive_truncated(both: Both) -> None:
    t = both.table("a int, b string", by=HIVE)
    t.acid("INSERT INTO {t} VALUES (1, 'x'), (2, 'y')")
    t.hive("TRUNCATE TABLE {t}").holds()
    t.acid("INSERT INTO {t} VALUES (3, 'z')", "UPDATE {t} SET b = 'zz'").holds((3, "zz"))
    t.hive("DELETE FROM {t} WHERE a = 3").holds()


def test_rows_that_a_spark_job_wrote(both: Both) -> None:
    big = both.table("a bigint, b string", by=ACIDSQL, properties="'orc.compress'='SNAPPY'")
    both.acid.sql("SET acidsql.write.driver.rows = 0")
    big.acid(
        "INSERT INTO {t} SELECT id, concat('v', id) FROM range(0, 3000, 1, 2)", "UPDATE {t} SET b = 'w' WHERE a % 2 = 0"
    )
    big.hive("DELETE FROM {t} WHERE a % 3 = 0", "UPDATE {t} SET b = 'h' WHERE a < 1000")
    big.acid("DELETE FROM {t} WHERE a % 5 = 0", "UPDATE {t} SET b = 'last' WHERE a BETWEEN 500 AND 600")
    both.acid.sql("SET acidsql.write.driver.rows = 20000")
    big.hive("INSERT INTO {t} SELECT a + 10000, b FROM {t} WHERE b = 'last'")
    big.answer_alike("SELECT b, count(*), sum(a), min(a), max(a) FROM {t} GROUP BY b")
    big.answer_alike("SELECT a, b FROM {t} WHERE a BETWEEN 495 AND 505")
    big.answer_alike("SELECT count(*) FROM {t} WHERE a = 2999")


def test_many_small_updates_by_turns(both: Both) -> None:
    t = both.table("a int, n int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (0, 0), (1, 0), (2, 0)")
    for i in range(6):
        t.on(SIDES[i % 2], f"UPDATE {{t}} SET n = n + 1 WHERE a = {i % 3}")
    t.holds((0, 2), (1, 2), (2, 2))


def test_a_statement_that_changes_nothing(both: Both) -> None:
    t = both.table("a int", by=ACIDSQL)
    for side in SIDES:
        t.on(side, "DELETE FROM {t} WHERE a = 1", "UPDATE {t} SET a = 2 WHERE a = 1").holds()
    t.hive("INSERT INTO {t} VALUES (1)")
    for side in SIDES:
        t.on(
            side,
            "UPDATE {t} SET a = 2 WHERE a = 7",
            "DELETE FROM {t} WHERE a = 7",
            "INSERT INTO {t} SELECT a FROM {t} WHERE a = 7",
        )
    t.holds((1,))
    assert both.ask(HIVE, f"SHOW LOCKS DATABASE {both.database}") == []


def test_two_tables_in_one_statement(both: Both) -> None:
    a, b = both.table("id int, v string", by=HIVE), both.table("id int, v string", by=ACIDSQL)
    a.hive("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    b.acid(f"INSERT INTO {{t}} SELECT id, upper(v) FROM {a.name} WHERE id < 3")
    b.hive(f"INSERT INTO {{t}} SELECT x.id + 10, y.v FROM {a.name} x JOIN {b.name} y ON x.id = y.id")
    a.acid(f"DELETE FROM {{t}} WHERE id IN (SELECT id FROM {b.name})").holds((3, "three"))
    b.hive("UPDATE {t} SET v = 'h' WHERE id > 10")
    b.acid(f"UPDATE {{t}} SET v = (SELECT max(v) FROM {a.name}) WHERE id = 1")
    b.holds((1, "three"), (2, "TWO"), (11, "h"), (12, "h"))
    both.answer_alike(f"SELECT x.v, y.v FROM {a.name} x LEFT JOIN {b.name} y ON x.id = y.id + 2")


@pytest.mark.usefixtures("compactor")
@pytest.mark.parametrize("by", SIDES)
def test_both_delete_from_what_spark_had_in_memory(both: Both, by: str) -> None:
    """Several files are written of it: Hive looks for the delete events of a file by the number of that file."""
    t = both.table("id bigint, v string", by=HIVE)
    rows = pa.table({"id": range(600_000), "v": [str(n) for n in range(600_000)]})  # too many for the driver
    both.acid.insert(both.acid.spark.createDataFrame(rows), t.name)
    [(writers,)] = both.ask(ACIDSQL, f"SELECT count(DISTINCT ROW__ID.bucketId) FROM {t.name}")
    assert int(writers) > 1
    both.run(by, f"DELETE FROM {t.name} WHERE id % 3 = 0")
    both.run(ACIDSQL, f"UPDATE {t.name} SET v = 'new' WHERE id % 100 = 1")
    counts = f"SELECT count(*), count(DISTINCT id), min(id), sum(id), max(v) FROM {t.name}"
    found = both.answer_alike(counts)
    assert [float(value) for value in found[0][:3]] == [400_000, 400_000, 1]
    both.run(by, f"ALTER TABLE {t.name} COMPACT 'major'{' AND WAIT' if by == ACIDSQL else ''}")
    assert both.answer_alike(counts) == found
