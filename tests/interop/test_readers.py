"""What both have written reads the same in all ways that Hive reads; what acidsql wrote keeps the rules of Hive 3.1."""

from __future__ import annotations

import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.conftest import OpenHive
from tests.interop.test_types import ROWS, WIDE
from tests.spark.hive_rules import check_table

MODES = {
    "no fetch task": ["hive.fetch.task.conversion=none"],
    "not vectorised": ["hive.vectorized.execution.enabled=false"],
    "not vectorised, no fetch task": ["hive.vectorized.execution.enabled=false", "hive.fetch.task.conversion=none"],
    "no split of small files": ["hive.exec.orc.split.strategy=ETL"],
    "one split a directory": ["hive.exec.orc.split.strategy=BI"],
    "no predicate pushdown": ["hive.optimize.index.filter=false", "hive.optimize.ppd=false"],
}


def _written_by_turns(both: Both, columns: str, keys: str, inserts: list[str]) -> SharedTable:
    t = both.table(columns, keys, by=ACIDSQL)
    for i, insert in enumerate(inserts):
        both.run(SIDES[i % 2], t.text(insert))
    for i in range(4):
        both.acid.sql(f"SET acidsql.write.driver.rows = {0 if i == 1 else 20000}")
        both.run(SIDES[i % 2], t.text(f"UPDATE {{t}} SET x = x + 1 WHERE id % 2 = {i // 2}"))
    for side in SIDES:
        both.run(side, t.text(f"DELETE FROM {{t}} WHERE id = {3 + SIDES.index(side)}"))
    t.agree()
    return t


@pytest.mark.parametrize("kind", ["wide", "partitioned", "large"])
def test_hives_ways_to_read(both: Both, open_hive: OpenHive, kind: str) -> None:
    if kind == "wide":
        t = _written_by_turns(both, WIDE, "", [f"INSERT INTO {{t}} {row}" for row in ROWS])
    elif kind == "partitioned":
        inserts = [
            f"INSERT INTO {{t}} VALUES ({i}, 0, 1, 'a'), ({i + 10}, 0, 2, 'b c'), ({i + 20}, 0, NULL, NULL)"
            for i in range(6)
        ]
        t = _written_by_turns(both, "id int, x int", "p int, q string", inserts)
    else:
        source = "SELECT id, 0, repeat('abc', 20) FROM range(40000)"
        t = both.table("id bigint, x int, v string", by=ACIDSQL)
        both.acid.sql("SET acidsql.write.driver.rows = 0")
        both.run(ACIDSQL, t.text(f"INSERT INTO {{t}} {source}"))
        both.run(ACIDSQL, t.text("DELETE FROM {t} WHERE id % 3 = 0"))
        both.run(HIVE, t.text("UPDATE {t} SET x = 1 WHERE id % 5 = 1"))
        both.run(ACIDSQL, t.text("UPDATE {t} SET x = 2 WHERE id % 7 = 1"))
        t.agree()
    expected = t.read(ACIDSQL)
    conditions = ["id = 1", "id BETWEEN 5 AND 15", "x > 1"]
    answers = [t.answer_alike(f"SELECT id, x FROM {{t}} WHERE {c}") for c in conditions]
    for mode, settings in MODES.items():
        reader = open_hive()
        for setting in settings:
            reader.run(f"SET {setting}")
        other = Both(reader, both.acid, both.database, both.tally)
        there = SharedTable(other, t.name, t.columns, t.keys)
        assert there.differences(there.read(HIVE), expected) == [], mode
        assert [there.answer_alike(f"SELECT id, x FROM {{t}} WHERE {c}") for c in conditions] == answers, mode


def test_directories_of_acidsqls_keep_the_rules_of_hive_31(both: Both) -> None:
    """Its statements on a table that Hive reads after each; the strict reader then looks at the files themselves."""
    for keys in ("", "p int"):
        t = both.table("id int, x int" + ("" if keys else ", p int"), keys, by=ACIDSQL)
        t.acid("INSERT INTO {t} VALUES (1, 1, 1), (2, 2, 1), (3, 3, 2)", "UPDATE {t} SET x = 9 WHERE id < 3")
        both.acid.sql("SET acidsql.write.driver.rows = 0")
        t.acid(
            "INSERT INTO {t} SELECT id + 10, x, p FROM {t}",
            "UPDATE {t} SET x = 8 WHERE id > 10",
            "DELETE FROM {t} WHERE id = 2",
        )
        both.acid.sql("SET acidsql.write.driver.rows = 20000")
        t.acid("INSERT OVERWRITE TABLE {t} SELECT id, x, p FROM {t}", "DELETE FROM {t} WHERE id > 12")
        assert check_table(t.directory) > 10
