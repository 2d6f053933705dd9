"""UPDATE, DELETE and INSERT change exactly the rows that Spark selects with the same condition from its own table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.oracle import shop
from tests.oracle.answers import Answer, Refusal, Rows, ask
from tests.oracle.choice import first_quick
from tests.oracle.drawing import Change, changes, typed_queries
from tests.oracle.judging import for_each, many
from tests.oracle.twins import Twins

pytestmark = pytest.mark.spark

ROWS = [tuple(row) for row in shop.TABLES["a.t"][2]]
FEW = 3


@pytest.fixture(scope="module")
def twins(empty_twins: Twins) -> Twins:
    shop.fill(empty_twins)
    empty_twins.acid.sql("CREATE TRANSACTIONAL TABLE a.sink (id int, v string)")
    return empty_twins


def table(twins: Twins, name: str = "a.t") -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in twins.acid.sql(f"SELECT * FROM {name}").collect()), key=repr)


def restore(twins: Twins) -> None:
    """All rows of ``a.t`` as they were: each of its partitions gets some."""
    twins.overwrite("a.t", ROWS)


def judged(twins: Twins, statement: str, selected: Answer, after: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement: it does what the selection says, or both are refused alike and nothing changed."""
    told = f"{statement}\nSpark's selection: {selected}"
    answer = ask(twins.acid.sql, statement)
    left = table(twins)
    if left != sorted(ROWS, key=repr):
        restore(twins)
    if isinstance(selected, Refusal) or isinstance(answer, Refusal):
        assert answer == selected, f"{told}\nacidsql: {answer}"
        assert left == sorted(ROWS, key=repr), f"{told}\nrefused, and yet it changed rows"
        return
    assert left == sorted(after, key=repr), told
    assert answer.rows[0][0] == len(selected.rows), f"{told}\nacidsql: {answer}"


def check_delete(twins: Twins, change: Change) -> None:
    twins.use(change.database)
    where = f"FROM {change.target} WHERE {change.condition}"
    selected = ask(twins.plain.sql, f"SELECT id {where}")
    gone = {row[0] for row in selected.rows} if isinstance(selected, Rows) else set()
    judged(twins, f"DELETE {where}", selected, [row for row in ROWS if row[0] not in gone])


def check_update(twins: Twins, change: Change) -> None:
    twins.use(change.database)
    name = change.target.split(" AS ")[-1]
    selected = ask(
        twins.plain.sql, f"SELECT {name}.id, {change.v}, {change.n} FROM {change.target} WHERE {change.condition}"
    )
    new = {row[0]: row[1:] for row in selected.rows} if isinstance(selected, Rows) else {}
    after = [(row[0], *new.get(row[0], row[1:3]), row[3]) for row in ROWS]
    text = f"UPDATE {change.target} SET v = {change.v}, n = {change.n} WHERE {change.condition}"
    judged(twins, text, selected, after)


def check_insert(twins: Twins, drawn: tuple[str, str]) -> None:
    database, query = drawn
    twins.use(database)
    selected = ask(twins.plain.sql, query)
    answer = ask(twins.acid.sql, f"INSERT OVERWRITE TABLE a.sink {query}")
    if isinstance(selected, Refusal) or isinstance(answer, Refusal):
        assert answer == selected, f"{query}\nacidsql: {answer}\nSpark:   {selected}"
        return
    assert table(twins, "a.sink") == list(selected.rows), query


CONDITIONS = [
    "EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)",
    "NOT EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)",
    "EXISTS (SELECT 1 FROM b.u WHERE b.u.id = a.t.id)",
    "EXISTS (SELECT 1 FROM a.u WHERE a.u.t.id = a.t.id)",
    "EXISTS (SELECT 1 FROM b.a AS t WHERE t.id = a.t.id)",
    "a.t.id IN (SELECT b.t.id FROM b.t WHERE b.t.p = a.t.p)",
    "t.id NOT IN (SELECT id FROM b.t WHERE b.t.p = 1)",
    "id = (SELECT max(b.t.id) - 8 FROM b.t WHERE b.t.p = a.t.p)",
    "id < (SELECT count(*) FROM a.t WHERE a.t.p = 1)",
    "spark_catalog.a.t.p = 2 AND v = 'x'",
    "p IN (SELECT max(p) FROM b.t) AND p > 0",
    "EXISTS (SELECT 1 FROM a.u WHERE (SELECT max(k) FROM (SELECT t.v AS k)) = v)",  # fails inside of Spark
    "nothing = 1",
    "b.t.id = 1",
]
"""Conditions over ``a.t`` without an alias."""


def change(condition: str, v: str = "v", n: str = "n") -> Change:
    return Change("default", "a.t", condition, v, n)


@pytest.mark.parametrize("condition", first_quick(CONDITIONS, 4))
def test_delete_removes_what_spark_selects(twins: Twins, condition: str) -> None:
    check_delete(twins, change(condition))


@pytest.mark.parametrize(
    ("condition", "v", "n"),
    first_quick(
        [
            ("true", "(SELECT max(b.t.v) FROM b.t WHERE b.t.id = a.t.id)", "a.t.n + 1"),
            ("a.t.p = 1", "concat(t.v, '+')", "(SELECT count(*) FROM b.t WHERE b.t.id < a.t.id AND t.p = a.t.p)"),
            ("EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)", "upper(a.t.v)", "(SELECT max(t.id) FROM a.u)"),
            ("id IN (SELECT t.id FROM a.u)", "v", "a.t.id"),
        ]
    ),
)
def test_update_sets_what_spark_selects(twins: Twins, condition: str, v: str, n: str) -> None:
    check_update(twins, change(condition, v, f"CAST({n} AS int)"))


def test_a_random_delete_removes_what_spark_selects(twins: Twins) -> None:
    for_each(changes(), FEW, lambda drawn: check_delete(twins, drawn))


def test_a_random_update_sets_what_spark_selects(twins: Twins) -> None:
    for_each(changes(), FEW, lambda drawn: check_update(twins, drawn))


def test_an_insert_of_a_random_query_writes_what_spark_selects(twins: Twins) -> None:
    for_each(typed_queries(), FEW, lambda drawn: check_insert(twins, drawn))


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", ["delete", "update"])
def test_many_random_changes_do_what_spark_selects(twins: Twins, kind: str) -> None:
    check = check_delete if kind == "delete" else check_update
    for_each(changes(), many(), lambda drawn: check(twins, drawn))


@pytest.mark.long
@pytest.mark.timeout(0)
def test_inserts_of_many_random_queries_write_what_spark_selects(twins: Twins) -> None:
    for_each(typed_queries(), many(), lambda drawn: check_insert(twins, drawn))
