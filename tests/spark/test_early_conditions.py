"""Conditions that fail for no value are asked before the ids of deleted rows are looked up, all others afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from acidsql.plan import search
from acidsql.session import AcidSession
from tests.spark.answers import rows

EARLY = [
    ("id % 3 = 1", 3),
    ("pmod(k, 3) = 1", 3),
    ("id BETWEEN 3 AND 6", 3),
    ("id > 7L", 2),
    ("k + 0 > 7 AND id > 7", 2),
    ("s IN ('2', '4', '6')", 3),
    ("s LIKE '1%'", 1),
    ("NOT (s = '1' OR k IS NULL)", 7),
    ("d < DATE'2020-01-05'", 3),
    ("id <=> 5", 0),
    ("ID = 6 AND S >= '5'", 1),
]
LATE = [
    ("CAST(s AS int) = 4", 1),
    ("8 / k = 2", 1),
    ("k % (id - 5) = 1 AND id > 8", 1),
    ("k + 2147483638 > 2147483646", 1),
    ("id = 6 AND assert_true(id <> 5) IS NULL", 1),
]


@pytest.fixture
def t(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> AcidSession:
    """Ids from 1 to 9 but for the 5, for which some of the conditions fail."""
    monkeypatch.setattr(search, "MIN_BYTES", 0)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, k int, s string, d date)")
    acid.sql(
        "INSERT INTO t SELECT id, if(id = 5, 2147483647, CAST(id AS int)), if(id = 5, 'x', CAST(id AS string)),"
        " date_add(DATE'2020-01-01', CAST(id AS int)) FROM range(1, 10)"
    )
    acid.sql("DELETE FROM t WHERE id = 5")
    return acid


def order(t: AcidSession, condition: str) -> list[str]:
    """What the optimised plan asks a row one after the other: what the user asks, and whether it is deleted."""
    node = t.sql(f"SELECT id FROM t WHERE {condition}")._jdf.queryExecution().optimizedPlan()
    filters = []
    while not node.children().isEmpty():
        if node.nodeName() == "Filter":
            filters.append(node.condition())
        node = node.children().head()
    asked: list[str] = []
    for part in (part for found in reversed(filters) for part in conjuncts(found)):
        known = [("scalar-subquery", "deleted"), ("alive", ""), ("SPARK_PARTITION_ID", ""), ("isnotnull(row", "")]
        kind = next((name for word, name in known if word in part), "user")
        if kind and asked[-1:] != [kind]:
            asked.append(kind)
    return asked


def conjuncts(condition: Any) -> list[str]:
    """The parts of an AND, from left to right."""
    if condition.nodeName() == "And":
        return conjuncts(condition.left()) + conjuncts(condition.right())
    return [condition.toString()]


@pytest.mark.parametrize(("condition", "count"), EARLY)
def test_one_that_cannot_fail_is_asked_first(t: AcidSession, condition: str, count: int) -> None:
    assert rows(t, f"SELECT count(*) FROM t WHERE {condition}") == [(count,)]
    assert order(t, condition)[:2] == ["user", "deleted"]


@pytest.mark.parametrize(("condition", "count"), LATE)
def test_one_that_may_fail_never_meets_deleted_rows(t: AcidSession, condition: str, count: int) -> None:
    assert rows(t, f"SELECT count(*) FROM t WHERE {condition}") == [(count,)]
    assert order(t, condition)[-1] == "user"


def test_without_deleted_rows_it_is_asked_once(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MIN_BYTES", 0)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, k int)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS int) FROM range(10)")
    assert order(acid, "id % 3 = 1") == ["user"]


def test_hundreds_of_conditions(acid: AcidSession) -> None:
    """They were as many filters above each other: Java's stack is not as deep."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2), (1500, 3), (1600, 9)")
    many = " AND ".join(f"p <> {i + 5}" for i in range(500))
    assert sorted(rows(acid, f"SELECT a FROM t WHERE {many}")) == [(1,), (2,), (1500,)]
    few = " AND ".join(f"a <> {i + 1400}" for i in range(300))
    assert sorted(rows(acid, f"SELECT a FROM t WHERE {few}")) == [(1,), (2,)]
    acid.sql(f"DELETE FROM t WHERE {few} AND p <> 1")
    assert sorted(rows(acid, "SELECT a FROM t")) == [(1,), (1500,), (1600,)]
