"""Files that surely hold no row of use are not read: those whose least and greatest values conditions rule out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.plan import scan, search
from acidsql.session import AcidSession
from tests.spark.answers import rows

COLUMNS = ["a tinyint", "b int", "c bigint", "s string"]
ROWS: list[list[tuple[Any, ...]]] = [
    [(1, 10, 100, "x"), (2, 20, 200, "y")],
    [(3, None, 300, None), (4, -40, None, "z")],
    [(None, None, None, None)],
    [(-128, -(1 << 31), -(1 << 63), ""), (127, (1 << 31) - 1, (1 << 63) - 1, "é")],
    [(5, 50, 0, "5")],
    [(0, 0, 1 << 40, "0"), (0, 1, 1 << 40, "0")],
]
"""The rows of each delta."""


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if value == -(1 << 63):
        return "(-9223372036854775807L - 1L)"
    return f"'{value}'" if isinstance(value, str) else str(value)


def values(some: list[tuple[Any, ...]]) -> str:
    return ", ".join(f"({', '.join(map(literal, row))})" for row in some)


@pytest.fixture
def t(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> AcidSession:
    """A table ``t`` of a delta for each of :data:`ROWS`, and a view ``same`` of the same rows of Spark's own."""
    monkeypatch.setattr(search, "MIN_BYTES", 0)
    acid.sql(f"CREATE TRANSACTIONAL TABLE t ({', '.join(COLUMNS)})")
    for some in ROWS:
        acid.sql(f"INSERT INTO t VALUES {values(some)}")
    every = [row for some in ROWS for row in some]
    schema = ", ".join(COLUMNS)
    acid.spark.createDataFrame(every, schema).createOrReplaceTempView("same")
    return acid


def files(t: AcidSession, condition: str) -> int:
    """How many files a query with a condition reads."""
    return len(t.sql(f"SELECT * FROM t WHERE {condition}").inputFiles())


def expected(t: AcidSession, condition: str) -> list[tuple[Any, ...]]:
    """What Spark answers over its own rows."""
    return sorted((tuple(r) for r in t.spark.sql(f"SELECT * FROM same WHERE {condition}").collect()), key=repr)


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("b = 10", 2),  # the widest file may hold anything
        ("b = 10 AND c < 0", 1),
        ("50 = b", 2),
        ("c >= 1099511627777", 1),
        ("c > 1099511627775 AND a = 0", 2),
        ("a < -100", 1),
        ("a IN (1, 5)", 3),
        ("a IN (1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)", 3),
        ("a = 2 OR a = 4", 3),
        ("a <=> 4", 2),
        ("a = 300", 0),  # Spark knows
        ("c = 300 AND s IS NULL", 2),
        ("a = 1 OR s = 'z'", 6),
        ("NOT (a = 1)", 6),
        ("s = 'x'", 6),
        ("a + 1 = 2", 6),
        ("a IS NULL", 6),
    ],
)
def test_conditions_leave_out_files(t: AcidSession, condition: str, count: int) -> None:
    # the delta of NULLs alone has no range
    is_open = 1 if count not in (0, 6) else 0
    assert files(t, condition) == count + is_open
    assert rows(t, f"SELECT * FROM t WHERE {condition}") == expected(t, condition)


NUMBERS = st.sampled_from([0, 1, 2, 4, 5, 10, -40, -128, 127, 128, 300, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1])
TERMS = st.one_of(
    st.builds(
        lambda column, op, value, turned: f"{value}L {op} {column}" if turned else f"{column} {op} {value}",
        st.sampled_from("abc"),
        st.sampled_from(["=", "<", "<=", ">", ">=", "<=>", "<>"]),
        NUMBERS,
        st.booleans(),
    ),
    st.builds(
        lambda column, found, null: f"{column} IN ({', '.join(map(str, found))}{', NULL' if null else ''})",
        st.sampled_from("abc"),
        st.lists(NUMBERS, min_size=1, max_size=14),
        st.booleans(),
    ),
    st.sampled_from(
        ["s = 'x'", "a IS NULL", "b IS NOT NULL", "a = b", "a < c", "NULL", "a = NULL", "CAST(a AS int) = 5"]
    ),
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
).filter(lambda condition: condition != "NULL")  # which alone is no boolean to Spark


def test_no_row_is_left_out(t: AcidSession) -> None:
    @settings(max_examples=60, deadline=None, database=None)
    @given(CONDITIONS)
    def check(condition: str) -> None:
        assert rows(t, f"SELECT * FROM t WHERE {condition}") == expected(t, condition), condition

    check()


def test_changes_by_key_find_their_rows(t: AcidSession) -> None:
    """Also those that earlier ones have moved to other files, and of files in which all rows are deleted."""
    t.sql("UPDATE t SET b = 11 WHERE a = 1")
    t.sql("UPDATE t SET a = 9, c = -5 WHERE a = 1")
    t.sql("DELETE FROM t WHERE b = 50")
    t.sql("MERGE INTO t USING (SELECT 2Y AS a) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET c = t.c + 1")
    assert rows(t, "SELECT * FROM t WHERE a = 1") == []
    assert rows(t, "SELECT * FROM t WHERE a = 9") == [(9, 11, -5, "x")]
    assert rows(t, "SELECT c FROM t WHERE a = 2") == [(201,)]
    assert rows(t, "SELECT * FROM t WHERE a = 5") == []
    assert rows(t, "SELECT count(*), count(a), sum(b) FROM t") == [(9, 8, 11 + 20 - 40 - 1 + 0 + 1)]


def test_columns_that_changed(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MIN_BYTES", 0)
    monkeypatch.setattr(scan, "FEWEST", 1)
    acid.sql("CREATE TRANSACTIONAL TABLE t (s struct<x:int,y:map<int,int>>, a int, b int)")
    acid.sql("INSERT INTO t SELECT named_struct('x', 1, 'y', map(2, 3)), 10, 20")
    acid.sql("INSERT INTO t SELECT named_struct('x', 7, 'y', map(8, 9)), 70, 80")
    acid.sql("ALTER TABLE t ADD COLUMNS (d int)")
    acid.sql("ALTER TABLE t CHANGE a a bigint")
    acid.sql("INSERT INTO t SELECT named_struct('x', 5, 'y', map(2, 3)), 10000000000, 50, 5")
    assert len(acid.sql("SELECT * FROM t WHERE a = 10").inputFiles()) == 1
    assert rows(acid, "SELECT a, b, d FROM t WHERE a = 10") == [(10, 20, None)]
    assert rows(acid, "SELECT a, b, d FROM t WHERE a > 70") == [(10_000_000_000, 50, 5)]
    assert rows(acid, "SELECT b FROM t WHERE d IS NULL AND b >= 80") == [(80,)]
    assert rows(acid, "SELECT b FROM t WHERE d <=> NULL AND s.x = 1") == [(20,)]
    acid.sql("ALTER TABLE t CHANGE b c int")
    assert rows(acid, "SELECT c FROM t WHERE c < 50") == [(20,)]
    acid.sql("ALTER TABLE t CHANGE c b int")
    acid.sql("SET hive.metastore.disallow.incompatible.col.type.changes=false")
    acid.sql("ALTER TABLE t CHANGE a a int")
    seen = acid.spark.createDataFrame([tuple(r) for r in acid.sql("SELECT a, b FROM t").collect()], "a int, b int")
    for condition in ("a = 10", "a < 0", "a > 100", "a = 1410065408", "a IS NULL OR a > 70"):
        found = sorted((tuple(r) for r in seen.where(condition).collect()), key=repr)
        assert rows(acid, f"SELECT a, b FROM t WHERE {condition}") == found, condition


def test_places_and_buckets(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MIN_BYTES", 0)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int) PARTITIONED BY (p string) CLUSTERED BY (id) INTO 2 BUCKETS")
    for i in range(4):
        acid.sql(f"INSERT INTO t VALUES ({10 * i}, {i}, 'x'), ({10 * i + 1}, {i}, 'x'), ({10 * i}, {i}, 'y=z')")
    for i in range(4):
        assert rows(acid, f"SELECT p, v FROM t WHERE id = {10 * i}") == [("x", i), ("y=z", i)]
    [done] = acid.sql("UPDATE t SET v = 100 WHERE id = 20").collect()
    assert done.num_updated_rows == 2
    assert rows(acid, "SELECT p, v FROM t WHERE id >= 20 AND v >= 3") == [
        *(("x", 100), ("x", 3), ("x", 3)),
        *(("y=z", 100), ("y=z", 3)),
    ]


def test_conditions_are_looked_for_where_there_are_many_small_files(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    for i in range(search.MIN_FILES - 1):
        acid.sql(f"INSERT INTO t VALUES ({i}, {i})")
    assert len(acid.sql("SELECT v FROM t WHERE id = 5").inputFiles()) == search.MIN_FILES - 1
    acid.sql("INSERT INTO t VALUES (5, 50)")
    found = acid.sql("SELECT v FROM t WHERE id = 5")
    assert len(found.inputFiles()) == 2
    assert sorted(r.v for r in found.collect()) == [5, 50]
