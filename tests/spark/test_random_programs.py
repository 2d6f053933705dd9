"""Random programs of INSERT, UPDATE and DELETE give the rows that DuckDB gives, and files that Hive's rules accept."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql.session import AcidSession
from tests.spark.hive_rules import check_table

IDS = st.integers(0, 6)
VALUES = st.one_of(st.none(), st.sampled_from(["a", "b", "", "it''s", "żółć 😀", "x" * 30]))
KEYS = st.one_of(st.none(), st.integers(0, 2))
CONDITIONS = st.sampled_from(
    [
        "",
        " WHERE id = 1",
        " WHERE id > 2 AND k IS NOT NULL",
        " WHERE v LIKE 'a%' OR v IS NULL",
        " WHERE k = 1",
        " WHERE k IN (0, 2) AND id < 5",
        " WHERE k IS NULL",
        " WHERE id IN (SELECT max(id) FROM {t})",
        " WHERE EXISTS (SELECT 1 FROM {t} o WHERE o.k = 1)",
        " WHERE false",
    ]
)


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


ROWS = st.lists(st.tuples(IDS, VALUES, KEYS), min_size=1, max_size=4)
INSERTS = ROWS.map(lambda rows: "INSERT INTO {t} VALUES " + ", ".join(f"({', '.join(map(_sql, r))})" for r in rows))
SELECTS = CONDITIONS.map(lambda c: "INSERT INTO {t} SELECT id + 1, v || '+', k FROM {t}" + c)
UPDATES = st.tuples(st.sampled_from(["v = 'u'", "id = id + 1", "v = v || '!', id = 0", "v = NULL"]), CONDITIONS).map(
    lambda u: f"UPDATE {{t}} SET {u[0]}{u[1]}"
)
DELETES = CONDITIONS.map(lambda c: "DELETE FROM {t}" + c)
PROGRAMS = st.lists(st.one_of(INSERTS, SELECTS, UPDATES, DELETES), min_size=2, max_size=7)

_numbers = itertools.count()


def _kept(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr(tuple(r)) for r in rows)


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("driver_rows", ["20000", "1"], ids=["driver", "job"])
@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
def test_a_random_program_gives_the_rows_of_the_oracle(
    acid: AcidSession, warehouse: Path, partitioned: bool, driver_rows: str
) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")

    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
    @given(PROGRAMS)
    def run(program: list[str]) -> None:
        table = f"r{next(_numbers)}"
        columns = "id int, v string) PARTITIONED BY (k int)" if partitioned else "id int, v string, k int)"
        acid.sql(f"CREATE TRANSACTIONAL TABLE {table} ({columns}")
        oracle = duckdb.connect()
        oracle.sql(f"CREATE TABLE {table} (id int, v varchar, k int)")
        for text in program:
            statement = text.format(t=table)
            oracle.execute(statement)
            acid.sql(statement)
            expected = oracle.sql(f"SELECT * FROM {table}").fetchall()
            assert _kept(list(map(tuple, acid.table(table).collect()))) == _kept(expected), program
        identities = [
            (tuple(r[0]), r[1])
            for r in acid.sql(f"SELECT ROW__ID, {'k' if partitioned else '0'} FROM {table}").collect()
        ]
        assert len(set(identities)) == len(identities)
        check_table(warehouse / table)
        acid.sql(f"DROP TABLE {table}")

    run()
