"""Random MERGE statements give the rows that DuckDB gives, and files that Hive's rules accept."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql.errors import CardinalityViolation
from acidsql.session import AcidSession
from tests.spark.hive_rules import check_table

_numbers = itertools.count()


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


IDS = st.one_of(st.none(), st.integers(0, 6))
VALUES = st.one_of(st.none(), st.sampled_from(["a", "b", "", "żółć 😀"]))
KEYS = st.one_of(st.none(), st.integers(0, 2))
ROWS = st.lists(st.tuples(IDS, VALUES, KEYS), min_size=0, max_size=6)
ON = st.sampled_from(
    [
        "t.id = s.id",
        "t.id = s.id AND t.k = s.k",
        "(s.id = t.id) AND t.k = 1",
        "t.k = s.k",
        "t.id = s.id + 1",
        "t.v = s.v",
        "t.id = s.id AND s.k IS NOT NULL",
        "t.id > s.id + 3",
        "false",
    ]
)
TARGET_CONDITIONS = ["t.id > 2", "t.k = 1", "t.v IS NULL", "t.k IS NULL OR t.id = 1"]
SOURCE_CONDITIONS = ["s.id > 2", "s.k = 1", "s.v <> 'a'"]
UPDATES = ["v = 'u'", "v = s.v", "id = t.id + 10, v = s.v || '!'", "id = s.id", "v = t.v || s.v", "v = NULL"]
ORPHAN_UPDATES = ["v = 'o'", "id = t.id + 20", "v = t.v || '?'"]
INSERTS = [
    "INSERT VALUES (s.id, s.v, s.k)",
    "INSERT (k, id) VALUES (s.k, s.id + 1)",
    "INSERT (id, v, k) VALUES (7, s.v || '+', coalesce(s.k, 1))",
]


def _clauses(match: str, conditions: list[str], actions: list[str]) -> st.SearchStrategy[list[str]]:
    """Clauses of one kind, of which only the last may be without a condition."""
    action = st.sampled_from(actions)
    guarded = st.tuples(st.sampled_from(conditions), action).map(lambda c: f"WHEN {match} AND ({c[0]}) THEN {c[1]}")
    last = action.map(lambda a: f"WHEN {match} THEN {a}")
    return st.tuples(st.lists(guarded, max_size=2), st.lists(last, max_size=1)).map(lambda c: c[0] + c[1])


CLAUSES = st.tuples(
    _clauses("MATCHED", TARGET_CONDITIONS + SOURCE_CONDITIONS, [*(f"UPDATE SET {u}" for u in UPDATES), "DELETE"]),
    _clauses("NOT MATCHED", SOURCE_CONDITIONS, INSERTS),
    _clauses(
        "NOT MATCHED BY SOURCE", TARGET_CONDITIONS, [*(f"UPDATE SET {u}" for u in ORPHAN_UPDATES), "DELETE"]
    ).flatmap(lambda c: st.sampled_from([[], c])),
).map(lambda kinds: [*kinds[0], *kinds[1], *kinds[2]])
MERGES = st.tuples(ROWS, ON, CLAUSES).filter(lambda m: bool(m[2]))


def _values(rows: list[tuple[object, ...]]) -> str:
    """The rows as a query that both engines take, also for none."""
    typed = "SELECT CAST({} AS int) AS id, CAST({} AS {}) AS v, CAST({} AS int) AS k"
    if not rows:
        return typed.format("NULL", "NULL", "{text}", "NULL") + " WHERE 1 = 0"
    return " UNION ALL ".join(typed.format(_sql(r[0]), _sql(r[1]), "{text}", _sql(r[2])) for r in rows)


def _kept(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr(tuple(r)) for r in rows)


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
@pytest.mark.parametrize("form", ["plain", "partitioned", "bucketed"])
def test_a_random_merge_gives_the_rows_of_the_oracle(
    acid: AcidSession, warehouse: Path, form: str, driver_rows: str
) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")

    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
    @given(ROWS.filter(bool), st.lists(MERGES, min_size=1, max_size=3))
    def run(rows: list[tuple[object, ...]], merges: list[tuple[list[tuple[object, ...]], str, list[str]]]) -> None:
        table = f"m{next(_numbers)}"
        columns = {
            "plain": "id int, v string, k int)",
            "partitioned": "id int, v string) PARTITIONED BY (k int)",
            "bucketed": "id int, v string, k int) CLUSTERED BY (k) INTO 3 BUCKETS",
        }[form]
        acid.sql(f"CREATE TRANSACTIONAL TABLE {table} ({columns}")
        oracle = duckdb.connect()
        oracle.sql(f"CREATE TABLE {table} (id int, v varchar, k int)")
        filled = f"INSERT INTO {table} VALUES " + ", ".join(f"({', '.join(map(_sql, r))})" for r in rows)
        oracle.execute(filled)
        acid.sql(filled)
        for source, on, clauses in merges:
            text = f"MERGE INTO {table} t USING ({_values(source)}) s ON {on} " + " ".join(clauses)
            _run_both(acid, oracle, table, text, on, _values(source))
        identities = [
            (tuple(r[0]), r[1])
            for r in acid.sql(f"SELECT ROW__ID, {'k' if form == 'partitioned' else '0'} FROM {table}").collect()
        ]
        assert len(set(identities)) == len(identities)
        check_table(warehouse / table)
        acid.sql(f"DROP TABLE {table}")

    run()


def _run_both(
    acid: AcidSession, oracle: duckdb.DuckDBPyConnection, table: str, text: str, on: str, source: str
) -> None:
    """A target row with several partners is an error for us, where it can be changed at all; DuckDB takes any."""
    pairs = (
        f"SELECT 1 FROM {table} t JOIN ({source.format(text='varchar')}) s ON {on} GROUP BY t.rowid HAVING count(*) > 1"
    )
    ours = text.format(text="string")
    before = _kept(oracle.sql(f"SELECT * FROM {table}").fetchall())
    if "WHEN MATCHED" in text and oracle.sql(pairs).fetchall():
        with pytest.raises(CardinalityViolation):
            acid.sql(ours)
        assert _kept(list(map(tuple, acid.table(table).collect()))) == before, text
        return
    counts = acid.sql(ours).collect()[0]
    affected = oracle.execute(text.format(text="varchar")).fetchall()[0][0]
    after = oracle.sql(f"SELECT * FROM {table}").fetchall()
    assert _kept(list(map(tuple, acid.table(table).collect()))) == _kept(after), text
    assert counts[0] == affected, text
    assert counts[0] == sum(counts[1:]), text
