"""MERGE: what it does to rows and directories, by Hive's and Delta's rules, and what it refuses."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import (
    AcidError,
    AnalysisError,
    CardinalityViolation,
    ColumnNotFound,
    ConstraintViolation,
    InvalidValue,
    NotTransactional,
    WriteConflict,
)
from acidsql.plan.staging import Staging
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.answers import nothing_is_open, rows
from tests.spark.hive_rules import check_table

Rows = list[tuple[object, ...]]


@pytest.fixture(params=["20000", "0"], ids=["driver", "job"])
def shop(acid: AcidSession, request: pytest.FixtureRequest) -> AcidSession:
    acid.sql(f"SET acidsql.write.driver.rows = {request.param}")
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string, salary int)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 100), (2, 'Bob', 200), (3, 'Cat', 300)")
    return acid


def _rows(acid: AcidSession, query: str = "SELECT * FROM emp ORDER BY 1, 2, 3") -> Rows:
    return [tuple(r) for r in acid.sql(query).collect()]


def _counts(acid: AcidSession, text: str, **parameters: object) -> tuple[object, ...]:
    [row] = acid.sql(text, **parameters).collect()
    return tuple(row)


def _directories(warehouse: Path, table: str = "emp") -> list[str]:
    return sorted(p.name for p in (warehouse / table).iterdir())


def _nothing_is_left(acid: AcidSession, warehouse: Path, before: list[str]) -> None:
    assert _directories(warehouse) == before
    nothing_is_open(acid)


# --- clauses ---------------------------------------------------------------------------------------------------------


def test_update_delete_and_insert_in_one_statement(shop: AcidSession, warehouse: Path) -> None:
    counts = _counts(
        shop,
        """MERGE INTO emp AS t USING (VALUES (1, 'x'), (2, 'y'), (9, 'z')) AS s(id, name) ON t.id = s.id
           WHEN MATCHED AND s.name = 'x' THEN DELETE
           WHEN MATCHED THEN UPDATE SET name = s.name, salary = t.salary + 1
           WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, NULL)""",
    )
    assert counts == (3, 1, 1, 1)
    assert _rows(shop) == [(2, "y", 201), (3, "Cat", 300), (9, "z", None)]
    check_table(warehouse / "emp")


def test_each_branch_has_directories_of_its_own(shop: AcidSession, warehouse: Path) -> None:
    """As Hive numbers them: rows that are inserted stand under a later statement than changes."""
    shop.sql(
        "MERGE INTO emp t USING (VALUES (1), (9)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET salary = 0"
        " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert _directories(warehouse) == [
        "delete_delta_0000002_0000002_0000",
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0000",
        "delta_0000002_0000002_0001",
    ]


def test_a_merge_that_changes_nothing_leaves_no_directory(shop: AcidSession, warehouse: Path) -> None:
    before = _directories(warehouse)
    counts = _counts(shop, "MERGE INTO emp t USING (VALUES (7)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert counts == (0, 0, 0, 0)
    _nothing_is_left(shop, warehouse, before)


def test_the_first_clause_that_fits_is_taken(shop: AcidSession) -> None:
    shop.sql(
        """MERGE INTO emp t USING emp s ON t.id = s.id
           WHEN MATCHED AND t.id < 3 THEN UPDATE SET name = 'first'
           WHEN MATCHED AND t.id < 2 THEN DELETE
           WHEN MATCHED AND NULL THEN DELETE
           WHEN MATCHED THEN UPDATE SET name = 'last'"""
    )
    assert [r[1] for r in _rows(shop)] == ["first", "first", "last"]


def test_rows_that_no_clause_is_about_stay(shop: AcidSession) -> None:
    counts = _counts(
        shop,
        "MERGE INTO emp t USING (VALUES (1, 5), (8, 5), (9, 6)) s(id, n) ON t.id = s.id"
        " WHEN MATCHED AND s.n > 5 THEN DELETE"
        " WHEN NOT MATCHED AND s.n > 5 THEN INSERT (id, name) VALUES (s.id, 'new')",
    )
    assert counts == (1, 0, 0, 1)
    assert _rows(shop) == [(1, "Ann", 100), (2, "Bob", 200), (3, "Cat", 300), (9, "new", None)]


def test_null_keys_match_nothing(shop: AcidSession) -> None:
    shop.sql("INSERT INTO emp VALUES (NULL, 'none', 0)")
    counts = _counts(
        shop,
        "MERGE INTO emp t USING (VALUES (CAST(NULL AS int), 'n')) s(id, name) ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)",
    )
    assert counts == (1, 0, 0, 1)
    assert sorted(r[1] for r in _rows(shop) if r[0] is None) == ["n", "none"]


def test_stars_go_by_name(shop: AcidSession) -> None:
    shop.sql(
        "MERGE INTO emp t USING (SELECT 'Zoe' AS name, 7 AS extra, CAST(2 AS bigint) AS salary, stack(2, 2, 9) AS id) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert _rows(shop) == [(1, "Ann", 100), (2, "Zoe", 2), (3, "Cat", 300), (9, "Zoe", 2)]


def test_defaults(shop: AcidSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE d (id int, state string DEFAULT 'new', n int DEFAULT 7)")
    shop.sql("INSERT INTO d VALUES (1, 'old', 1)")
    shop.sql(
        "MERGE INTO d t USING (VALUES (1), (2)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET state = DEFAULT"
        " WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, DEFAULT)"
    )
    assert _rows(shop, "SELECT * FROM d ORDER BY id") == [(1, "new", 1), (2, "new", 7)]


def test_rows_without_a_partner_in_the_source(shop: AcidSession) -> None:
    counts = _counts(
        shop,
        """MERGE INTO emp t USING (VALUES (2)) s(id) ON t.id = s.id
           WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET name = t.name || '!'
           WHEN NOT MATCHED BY SOURCE THEN DELETE""",
    )
    assert counts == (2, 1, 1, 0)
    assert _rows(shop) == [(1, "Ann!", 100), (2, "Bob", 200)]


def test_an_empty_source(shop: AcidSession) -> None:
    empty = "(SELECT 1 AS id WHERE false) s ON t.id = s.id"
    assert _counts(
        shop, f"MERGE INTO emp t USING {empty} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ) == (0, 0, 0, 0)
    assert _counts(shop, f"MERGE INTO emp t USING {empty} WHEN NOT MATCHED BY SOURCE THEN DELETE") == (3, 0, 3, 0)


def test_an_empty_target(shop: AcidSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE e (id int, name string, salary int)")
    counts = _counts(
        shop, "MERGE INTO e USING emp ON e.id = emp.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    assert counts == (3, 0, 0, 3)
    assert _rows(shop, "SELECT * FROM e ORDER BY id") == _rows(shop)


# --- sources ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "using",
    [
        "(SELECT id + 1 AS id, name FROM emp WHERE id IN (SELECT max(id) FROM emp)) s",
        "changes s",
        "changes AS s",
        "default.changes s",
        "(VALUES (4, 'Cat')) AS s(id, name)",
        "VALUES (4, 'Cat') AS s(id, name)",
        "(WITH c AS (SELECT 4 AS id, 'Cat' AS name) SELECT * FROM c) s",
        "spark_view s",
    ],
)
def test_forms_of_a_source(shop: AcidSession, spark: SparkSession, using: str) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE changes (id int, name string)")
    shop.sql("INSERT INTO changes VALUES (4, 'Cat')")
    spark.sql("SELECT 4 AS id, 'Cat' AS name").createOrReplaceTempView("spark_view")
    text = (
        f"MERGE INTO emp USING {using} ON emp.id = s.id WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    assert _counts(shop, text) == (1, 0, 0, 1)
    assert _rows(shop)[-1] == (4, "Cat", None)


def test_a_source_without_an_alias_and_names_with_their_database(shop: AcidSession) -> None:
    shop.sql("CREATE DATABASE other")
    shop.sql("CREATE TRANSACTIONAL TABLE other.changes (id int, name string)")
    shop.sql("INSERT INTO other.changes VALUES (1, 'A'), (4, 'D')")
    shop.sql(
        """MERGE INTO default.emp USING other.changes ON default.emp.id = other.changes.id
           WHEN MATCHED THEN UPDATE SET name = concat(changes.name, default.emp.name)
           WHEN NOT MATCHED THEN INSERT VALUES (other.changes.id, changes.name, 0)"""
    )
    assert [r[:2] for r in _rows(shop)] == [(1, "AAnn"), (2, "Bob"), (3, "Cat"), (4, "D")]


def test_a_with_clause_before_merge(shop: AcidSession) -> None:
    shop.sql("WITH gone AS (SELECT 2 AS id) MERGE INTO emp t USING gone ON t.id = gone.id WHEN MATCHED THEN DELETE")
    assert [r[0] for r in _rows(shop)] == [1, 3]


def test_a_with_clause_is_seen_by_conditions_and_values(shop: AcidSession) -> None:
    shop.sql(
        "WITH gone AS (SELECT 2 AS id), top AS (SELECT max(salary) AS m FROM emp)"
        " MERGE INTO emp t USING (WITH one AS (SELECT 1 AS id) SELECT * FROM one UNION ALL SELECT * FROM gone) s"
        " ON t.id = s.id WHEN MATCHED AND t.id IN (SELECT id FROM gone) THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET salary = (SELECT m + 1 FROM top)"
    )
    assert _rows(shop) == [(1, "Ann", 301), (3, "Cat", 300)]


def test_a_table_merged_into_itself_is_read_as_it_was(shop: AcidSession) -> None:
    shop.sql(
        "MERGE INTO emp t USING (SELECT id - 1 AS id, salary FROM emp) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET salary = s.salary"
        " WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (s.id, s.salary)"
    )
    assert [(r[0], r[2]) for r in _rows(shop)] == [(0, 100), (1, 200), (2, 300), (3, 300)]


def test_keys_of_another_type(shop: AcidSession) -> None:
    shop.sql(
        "MERGE INTO emp t USING (VALUES ('1'), ('x')) s(id) ON CAST(t.id AS string) = s.id WHEN MATCHED THEN DELETE"
    )
    shop.sql("MERGE INTO emp t USING (VALUES (2L)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE")
    shop.sql("MERGE INTO emp t USING (VALUES (3.0D)) s(id) ON s.id = t.id WHEN MATCHED THEN UPDATE SET name = 'd'")
    assert _rows(shop) == [(3, "d", 300)]


@pytest.mark.parametrize("least", ["0001-01-01", "-0044-03-15"])
def test_many_days_beyond_the_calendar_of_python(shop: AcidSession, spark: SparkSession, least: str) -> None:
    """Of more than 500 keys the least and the greatest bound what is read."""
    days = "SELECT date_add(DATE'2020-01-01', CAST(id AS int)) AS day, id FROM range(600)"
    days += f" UNION ALL VALUES (DATE'{least}', 1000L), (date_add(DATE'9999-12-31', 1), 1001L)"
    shop.sql("CREATE TRANSACTIONAL TABLE days (day date, id bigint)")
    shop.sql(f"INSERT INTO days {days}")
    merge = f"MERGE INTO days t USING ({days}) s ON t.day = s.day WHEN MATCHED THEN UPDATE SET id = -s.id"
    assert _counts(shop, merge)[0] == 602
    expected = sorted(-r.id for r in spark.sql(f"SELECT id FROM ({days})").collect())
    assert sorted(r.id for r in shop.sql("SELECT id FROM days").collect()) == expected


@pytest.mark.parametrize(
    "value",
    [
        "if(id = 2, NULL, named_struct('a', 1))",
        "array(if(id = 2, NULL, named_struct('a', 1)))",
        "map('k', if(id = 2, NULL, named_struct('a', named_struct('b', 1))))",
        "if(id = 2, NULL, array(1, 2))",
    ],
)
def test_a_source_with_structs_that_are_null_of_fields_that_are_not(shop: AcidSession, value: str) -> None:
    """Arrow has no such values."""
    source = f"(SELECT CAST(id AS int) AS id, {value} AS v FROM range(2, 5)) s"
    merge = f"MERGE INTO emp t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = to_json(struct(s.v))"
    expected = shop.sql(f"SELECT id, to_json(struct(v)) FROM {source} WHERE id < 4 ORDER BY id").collect()
    assert _counts(shop, merge)[0] == 2
    assert _rows(shop, "SELECT id, name FROM emp WHERE id > 1 ORDER BY id") == [tuple(r) for r in expected]


def test_char_keys_match_across_lengths(shop: AcidSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE c (k char(5), n int)")
    shop.sql("INSERT INTO c VALUES ('a', 1), ('b', 2)")
    shop.sql("CREATE TRANSACTIONAL TABLE d (k char(3))")
    shop.sql("INSERT INTO d VALUES ('a')")
    assert _counts(shop, "MERGE INTO c USING d ON c.k = d.k WHEN MATCHED THEN UPDATE SET n = 9")[0] == 1
    assert (
        _counts(
            shop, "MERGE INTO c USING (VALUES ('b')) s(k) ON c.k = rpad(s.k, 5, ' ') WHEN MATCHED THEN UPDATE SET n = 8"
        )[0]
        == 1
    )
    assert _rows(shop, "SELECT * FROM c ORDER BY k") == [("a    ", 9), ("b    ", 8)]


def test_subqueries_and_parameters_in_clauses(shop: AcidSession) -> None:
    shop.sql(
        "MERGE INTO emp t USING (VALUES (1), (9)) s(id) ON t.id = s.id"
        " WHEN MATCHED AND (SELECT count(*) FROM emp) = 3 THEN UPDATE SET salary = :n"
        " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, :name)",
        n=5,
        name="it's",
    )
    assert _rows(shop) == [(1, "Ann", 5), (2, "Bob", 200), (3, "Cat", 300), (9, "it's", None)]


# --- names -----------------------------------------------------------------------------------------------------------

WHEN_MATCHED = ("", "WHEN MATCHED THEN UPDATE SET salary = s.bonus ")


@pytest.mark.parametrize("matched", WHEN_MATCHED, ids=["alone", "beside MATCHED"])
@pytest.mark.parametrize("numbers", ["1", "1, 9"], ids=["all match", "one does not"])
@pytest.mark.parametrize(
    "clause",
    [
        "WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (s.id, t.salary)",
        "WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (s.id, salary)",
        "WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (s.id, coalesce(salary, 5))",
        "WHEN NOT MATCHED AND salary IS NULL THEN INSERT (id) VALUES (s.id)",
        "WHEN NOT MATCHED AND t.ROW__ID IS NULL THEN INSERT (id) VALUES (s.id)",
        "WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (9, (SELECT max(x) FROM VALUES (1) v(x) WHERE x > salary))",
        "WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (s.id, IDENTIFIER('t.salary'))",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET salary = IDENTIFIER('s.bonus')",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET salary = s.bonus",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET salary = bonus",
        "WHEN NOT MATCHED BY SOURCE AND bonus IS NULL THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET salary = (SELECT max(x) FROM VALUES (1) v(x) WHERE x > s.bonus)",
    ],
)
def test_a_clause_without_a_partner_names_its_own_side_alone(
    shop: AcidSession, warehouse: Path, clause: str, numbers: str, matched: str
) -> None:
    """Whatever the source's size, and whether it has rows without a partner."""
    before = _directories(warehouse)
    source = f"(SELECT explode(array({numbers})) AS id, 7 AS bonus)"
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        shop.sql(f"MERGE INTO emp t USING {source} s ON t.id = s.id {matched}{clause}")
    _nothing_is_left(shop, warehouse, before)


@pytest.mark.parametrize("matched", WHEN_MATCHED, ids=["alone", "beside MATCHED"])
@pytest.mark.parametrize("extra", ["", "WITH w AS (SELECT 'x' AS y) "], ids=["", "WITH"])
def test_a_name_alone_is_that_of_the_only_side(shop: AcidSession, matched: str, extra: str) -> None:
    source = "(SELECT 1 AS id, 'Zoe' AS name, 7 AS bonus UNION ALL SELECT 9, 'Zed', 8)"
    one = "(SELECT count(*) FROM w WHERE bonus > 0)" if extra else "(SELECT max(x) FROM VALUES (1) v(x))"
    shop.sql(
        f"{extra}MERGE INTO emp t USING {source} s ON t.id = s.id {matched}"
        "WHEN NOT MATCHED AND bonus > 7 AND length(name) = 3"
        f" THEN INSERT (id, name, salary) VALUES (id, concat(name, '!'), bonus + {one})"
        " WHEN NOT MATCHED BY SOURCE AND id = 2 THEN UPDATE SET name = upper(name), salary = salary + id"
    )
    first = 7 if matched else 100
    assert _rows(shop) == [(1, "Ann", first), (2, "BOB", 202), (3, "Cat", 300), (9, "Zed!", 9)]


def test_functions_and_windows_in_queries_of_a_clause_of_one_side(shop: AcidSession) -> None:
    shop.spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION next_one(k int) RETURN k + 1")
    ranks = "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY x) AS r FROM VALUES (1), (2) v(x))"
    shop.sql(
        "MERGE INTO emp t USING (SELECT 9 AS id, 7 AS bonus) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        f" WHEN NOT MATCHED THEN INSERT (id, name, salary) VALUES (next_one(id), IDENTIFIER('bonus'), ({ranks}))"
        f" WHEN NOT MATCHED BY SOURCE AND next_one(id) = 3 THEN UPDATE SET salary = next_one(salary) + ({ranks})"
    )
    assert _rows(shop) == [(1, "Ann", 100), (2, "Bob", 203), (3, "Cat", 300), (10, "7", 2)]


@pytest.mark.parametrize("number", ["1", "9"], ids=["match", "no match"])
def test_a_source_that_is_called_like_the_database_of_the_target(shop: AcidSession, number: str) -> None:
    """Spark takes ``s.b.c`` for the column ``c`` of a table ``s.b`` where it sees one; NOT MATCHED does not see it."""
    shop.sql("CREATE DATABASE s")
    shop.sql("CREATE TRANSACTIONAL TABLE s.b (id int, c int)")
    shop.sql("INSERT INTO s.b VALUES (1, 1)")
    shop.sql(
        f"MERGE INTO s.b USING (SELECT {number} AS id, named_struct('c', 99) AS b) s ON s.b.id = s.id"
        " WHEN MATCHED THEN UPDATE SET c = 5 WHEN NOT MATCHED AND s.b.c > 1 THEN INSERT VALUES (s.id, s.b.c)"
    )
    assert _rows(shop, "SELECT * FROM s.b ORDER BY id") == ([(1, 5)] if number == "1" else [(1, 1), (9, 99)])


def test_names_of_one_side_that_differ_by_case_alone(shop: AcidSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE c (id int, s struct<kk:int>)")
    shop.sql("INSERT INTO c VALUES (1, named_struct('kk', 1))")
    with setting(shop.spark, "spark.sql.caseSensitive", "true"), pytest.raises(AnalysisException, match="UNRESOLVED"):
        shop.sql(
            "MERGE INTO c t USING (SELECT 2 AS id, 3 AS KK) S ON t.id = S.id WHEN MATCHED THEN DELETE"
            " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.kk)"
        )


def test_a_column_of_the_target_that_is_called_like_the_source(shop: AcidSession) -> None:
    """``s.x`` is a field of that column then, where the source has no ``x``."""
    shop.sql("CREATE TRANSACTIONAL TABLE c (id int, s struct<x:int>)")
    shop.sql("INSERT INTO c VALUES (1, named_struct('x', 1))")
    text = "MERGE INTO c t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED "
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        shop.sql(text + "THEN INSERT VALUES (s.id, named_struct('x', s.x))")
    shop.sql(text + "THEN INSERT VALUES (s.id, named_struct('x', s.id))")
    assert _rows(shop, "SELECT id, s.x FROM c ORDER BY id") == [(1, 1), (2, 2)]


@pytest.mark.parametrize("value", ["max(bonus)", "row_number() OVER (ORDER BY bonus)", "explode(array(bonus))"])
def test_values_of_several_rows_in_a_clause_of_one_side(shop: AcidSession, warehouse: Path, value: str) -> None:
    before = _directories(warehouse)
    with pytest.raises(Exception, match=r"MISSING_GROUP_BY|MISSING_AGGREGATION|Window functions|GENERATOR|generator"):
        shop.sql(
            "MERGE INTO emp t USING (SELECT 9 AS id, 7 AS bonus) s ON t.id = s.id WHEN MATCHED THEN DELETE"
            f" WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (id, {value})"
        )
    _nothing_is_left(shop, warehouse, before)


# --- cardinality -----------------------------------------------------------------------------------------------------

TWICE = "MERGE INTO emp t USING (VALUES (1, 'a'), (1, 'b'), (2, 'c')) s(id, name) ON t.id = s.id "


@pytest.mark.parametrize(
    "clauses",
    [
        "WHEN MATCHED THEN UPDATE SET name = s.name",
        "WHEN MATCHED THEN DELETE",
        "WHEN MATCHED AND s.name = 'a' THEN DELETE",
        "WHEN MATCHED AND s.name = 'c' THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    ],
)
def test_a_row_with_two_partners_is_an_error_before_anything_is_written(
    shop: AcidSession, warehouse: Path, clauses: str
) -> None:
    before = _directories(warehouse)
    with pytest.raises(CardinalityViolation, match=r'\{"writeid":1,"bucketid":536870912,"rowid":0\}'):
        shop.sql(TWICE + clauses)
    _nothing_is_left(shop, warehouse, before)


def test_without_the_check_only_two_changes_of_a_row_are_an_error(shop: AcidSession) -> None:
    shop.sql("SET hive.merge.cardinality.check = false")
    with pytest.raises(CardinalityViolation):
        shop.sql(TWICE + "WHEN MATCHED THEN DELETE")
    assert _counts(shop, TWICE + "WHEN MATCHED AND s.name <> 'b' THEN UPDATE SET name = s.name")[0] == 2
    assert [r[1] for r in _rows(shop)] == ["a", "c", "Cat"]


@pytest.mark.parametrize("driver_rows", ["20000", "3", "0"])
def test_without_the_check_pairs_that_no_clause_is_about_count_for_nothing(shop: AcidSession, driver_rows: str) -> None:
    """Whether the driver writes, a job after the source was fetched, or a job alone."""
    shop.sql("SET hive.merge.cardinality.check = false")
    shop.sql("CREATE TRANSACTIONAL TABLE t (id int, g int, v string)")
    shop.sql("INSERT INTO t SELECT CAST(id AS int), CAST(id % 2 AS int), 'old' FROM range(20)")
    shop.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    text = (
        "MERGE INTO t USING (VALUES (0, 'a'), (0, 'b'), (7, 'z')) s(g, v) ON t.g = s.g"
        " WHEN MATCHED AND s.v = 'a' THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (99, s.g, s.v)"
    )
    assert _counts(shop, text) == (11, 10, 0, 1)
    assert _rows(shop, "SELECT v, count(*) FROM t GROUP BY v ORDER BY v") == [("a", 10), ("old", 10), ("z", 1)]


def test_two_equal_rows_of_the_source_without_a_partner_are_both_inserted(shop: AcidSession) -> None:
    text = (
        "MERGE INTO emp t USING (VALUES (7), (7)) s(id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert _counts(shop, text) == (2, 0, 0, 2)


# --- partitioned and bucketed targets --------------------------------------------------------------------------------


@pytest.fixture
def sales(shop: AcidSession) -> AcidSession:
    shop.sql("CREATE TRANSACTIONAL TABLE sales (id int, n int) PARTITIONED BY (day date, region string)")
    shop.sql(
        "INSERT INTO sales VALUES (1, 1, date'2024-01-01', 'eu'), (2, 2, date'2024-01-01', 'us'),"
        " (3, 3, date'2024-01-02', 'eu'), (4, 4, NULL, 'eu')"
    )
    return shop


def test_a_partitioned_target(sales: AcidSession, warehouse: Path) -> None:
    counts = _counts(
        sales,
        """MERGE INTO sales t USING (VALUES (1, 10, date'2024-01-01', 'eu'), (3, 30, date'2024-01-02', 'eu'),
                                            (5, 50, date'2024-01-03', 'x/y z'), (6, 60, NULL, '')) s(id, n, day, region)
           ON t.id = s.id AND t.day = s.day AND t.region = s.region
           WHEN MATCHED AND s.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n
           WHEN NOT MATCHED THEN INSERT *""",
    )
    assert counts == (4, 1, 1, 2)
    found = _rows(sales, "SELECT id, n, CAST(day AS string), region FROM sales ORDER BY id")
    assert found == [
        (1, 10, "2024-01-01", "eu"),
        (2, 2, "2024-01-01", "us"),
        (4, 4, None, "eu"),
        (5, 50, "2024-01-03", "x/y z"),
        (6, 60, None, None),
    ]
    assert ("day=2024-01-03/region=x%2Fy z",) in _rows(sales, "SHOW PARTITIONS sales")
    check_table(warehouse / "sales")


def test_keys_of_the_source_leave_partitions_out(sales: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from acidsql.commands.resolve import reads

    seen: list[int] = []
    original = reads.snapshot_frame

    def counted(spark: object, snapshot: object, *arguments: object, **options: object) -> object:
        seen.append(len(snapshot.partitions))  # type: ignore[attr-defined]
        return original(spark, snapshot, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(reads, "snapshot_frame", counted)
    sales.sql("SET acidsql.write.driver.rows = 100")
    source = "(VALUES (3, date'2024-01-02')) s(id, day) ON t.id = s.id AND s.day = t.day"
    assert _counts(sales, f"MERGE INTO sales t USING {source} WHEN MATCHED THEN DELETE")[0] == 1
    assert _counts(sales, f"MERGE INTO sales t USING {source} WHEN NOT MATCHED BY SOURCE THEN DELETE")[0] == 3
    sales.sql("MERGE INTO sales t USING (VALUES (9)) s(id) ON t.id = s.id AND t.region = 'us' WHEN MATCHED THEN DELETE")
    assert seen == [1, 4, 1]


def test_update_by_star_does_not_move_a_row_to_another_partition(sales: AcidSession) -> None:
    source = "(SELECT id, n + 1 AS n, day, 'eu' AS region FROM sales WHERE id IN ({})) s ON t.id = s.id"
    with pytest.raises(ConstraintViolation, match="would change day, region"):
        sales.sql(f"MERGE INTO sales t USING {source.format('1, 2')} WHEN MATCHED THEN UPDATE SET *")
    assert _counts(sales, f"MERGE INTO sales t USING {source.format('1, 4')} WHEN MATCHED THEN UPDATE SET *")[0] == 2


def test_a_bucketed_target(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE b (id int, name string) CLUSTERED BY (id) INTO 4 BUCKETS")
    shop.sql("INSERT INTO b VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    counts = _counts(
        shop,
        "MERGE INTO b t USING (VALUES (2, 'B'), (3, 'C'), (8, 'H')) s(id, name) ON t.id = s.id"
        " WHEN MATCHED AND s.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )
    assert counts == (3, 1, 1, 1)
    assert _rows(shop, "SELECT * FROM b ORDER BY id") == [(1, "a"), (2, "B"), (8, "H")]
    check_table(warehouse / "b")
    with pytest.raises(AnalysisError, match="bucketing columns") as error:
        shop.sql("MERGE INTO b t USING (VALUES (1)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 5")
    assert error.value.code == 10302


@pytest.mark.parametrize("driver_rows", ["20000", "0"])
def test_clauses_may_name_row_ids(shop: AcidSession, driver_rows: str) -> None:
    shop.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    ids = dict(_rows(shop, "SELECT id, ROW__ID.rowId FROM emp"))
    shop.sql(
        "MERGE INTO emp t USING (SELECT id, ROW__ID AS rid FROM emp UNION ALL SELECT 9, NULL) s ON t.ROW__ID = s.rid"
        " WHEN MATCHED AND t.ROW__ID.rowId = 0 AND t.row__id.writeId > 0 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET salary = 100 + t.ROW__ID.rowId, name = string(s.rid.rowId)"
        " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    expected = [(id, str(n), 100 + n) for id, n in sorted(ids.items()) if n > 0]
    assert _rows(shop, "SELECT * FROM emp ORDER BY id") == [*expected, (9, None, None)]


# --- schema evolution ------------------------------------------------------------------------------------------------


def test_schema_evolution_adds_the_columns_of_the_source(shop: AcidSession) -> None:
    source = "(VALUES (1, 'A', 5.5D), (9, 'Z', 6.5D)) s(id, name, bonus)"
    text = f"USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    with pytest.raises(AnalysisError, match="salary"):
        shop.sql(f"MERGE INTO emp t {text}")
    shop.sql(f"MERGE WITH SCHEMA EVOLUTION INTO emp t {text}")
    assert _rows(shop, "SELECT * FROM emp ORDER BY id") == [
        (1, "A", 100, 5.5),
        (2, "Bob", 200, None),
        (3, "Cat", 300, None),
        (9, "Z", None, 6.5),
    ]
    assert [c.type for c in shop.metastore.get_table("default", "emp").columns] == ["int", "string", "int", "double"]
    source = "(SELECT 1 AS id, NULL AS NAME, 7 AS salary, 1.5D AS bonus, true AS old)"
    shop.sql(f"MERGE WITH SCHEMA EVOLUTION INTO emp t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    assert _rows(shop, "SELECT * FROM emp WHERE id = 1") == [(1, None, 7, 1.5, True)]


@pytest.mark.parametrize("evolution", ["", "WITH SCHEMA EVOLUTION"])
@pytest.mark.parametrize("action", ["MATCHED THEN UPDATE SET *", "NOT MATCHED THEN INSERT *"])
@pytest.mark.parametrize("twice", ["id", "name"])
def test_a_star_over_a_source_with_two_columns_of_a_name(
    shop: AcidSession, evolution: str, action: str, twice: str
) -> None:
    source = f"(SELECT 1 AS k, 1 AS id, 'A' AS name, 5 AS salary, {'1' if twice == 'id' else chr(39) * 2} AS {twice})"
    before = _rows(shop, "SELECT * FROM emp ORDER BY id")
    with pytest.raises(AnalysisError, match=f"several columns {twice}"):
        shop.sql(f"MERGE {evolution} INTO emp t USING {source} s ON t.id = s.k WHEN {action}")
    assert _rows(shop, "SELECT * FROM emp ORDER BY id") == before


# --- errors ----------------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, type[AcidError], int | None, str]] = [
    (
        "MERGE INTO emp t USING emp s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1",
        ColumnNotFound,
        10408,
        "1:74",
    ),
    (
        "MERGE INTO emp t USING emp s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'a', NAME = 'b'",
        AnalysisError,
        40000,
        "1:86",
    ),
    (
        "MERGE INTO emp t USING emp s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1, 'x')",
        AnalysisError,
        10044,
        "1:45",
    ),
    (
        "MERGE INTO emp t USING emp s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, zzz) VALUES (1, 2)",
        AnalysisError,
        40000,
        "1:79",
    ),
    (
        "MERGE INTO emp t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        AnalysisError,
        40000,
        "1:58",
    ),
    ("MERGE INTO plain t USING emp s ON t.id = s.id WHEN MATCHED THEN DELETE", NotTransactional, 10297, "1:12"),
    (
        "MERGE INTO emp t USING emp s ON t.id = s.id WHEN MATCHED THEN UPDATE SET salary = array(s.salary)",
        AnalysisError,
        40000,
        "1:83",
    ),
]


@pytest.mark.parametrize(("text", "kind", "code", "place"), WRONG, ids=[w[0][16:90] for w in WRONG])
def test_a_wrong_merge_says_where_and_leaves_nothing(
    shop: AcidSession, spark: SparkSession, warehouse: Path, text: str, kind: type[AcidError], code: int, place: str
) -> None:
    spark.range(1).createOrReplaceTempView("plain")
    before = _directories(warehouse)
    with pytest.raises(kind) as error:
        shop.sql(text)
    assert error.value.code == code
    assert f"{error.value.line}:{error.value.column}" == place, str(error.value)
    _nothing_is_left(shop, warehouse, before)


def test_an_error_of_sparks_leaves_nothing(shop: AcidSession, warehouse: Path) -> None:
    before = _directories(warehouse)
    for condition in ("t.nope = s.id", "id = 1", "t.id = s.id AND 1 / 0 = t.id"):
        with pytest.raises(Exception, match=r"nope|AMBIGUOUS|DIVIDE_BY_ZERO"):
            shop.sql(f"MERGE INTO emp t USING emp s ON {condition} WHEN MATCHED THEN DELETE")
    _nothing_is_left(shop, warehouse, before)


def test_constraints_hold(shop: AcidSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE k (id int NOT NULL, n int CHECK (n > 0), CHECK (id <> n))")
    shop.sql("INSERT INTO k VALUES (1, 5), (2, NULL)")
    for clause in (
        "MATCHED THEN UPDATE SET n = -1",
        "MATCHED THEN UPDATE SET id = NULL",
        "NOT MATCHED THEN INSERT VALUES (NULL, 1)",
        "NOT MATCHED THEN INSERT VALUES (3, 3)",
    ):
        with pytest.raises(ConstraintViolation):
            shop.sql(f"MERGE INTO k t USING (VALUES (1), (9)) s(id) ON t.id = s.id WHEN {clause}")
    shop.sql("MERGE INTO k t USING (VALUES (1), (9)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 6")
    assert _rows(shop, "SELECT * FROM k ORDER BY id") == [(1, 6), (2, None)]


def test_explain_tells_the_join_and_writes_nothing(shop: AcidSession, warehouse: Path) -> None:
    before = _directories(warehouse)
    text = (
        "MERGE INTO emp t USING (VALUES (1, 'a')) s(id, name) ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
    )
    plan = "\n".join(
        r[0] for r in shop.sql(f"EXPLAIN {text} WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)").collect()
    )
    for piece in ("MERGE", "default.emp", "EXCL_WRITE", "delta_0000001_0000001_0000", "Join"):
        assert piece in plan, plan
    _nothing_is_left(shop, warehouse, before)


# --- builders --------------------------------------------------------------------------------------------------------


def test_the_builder_does_what_the_statement_does(shop: AcidSession, spark: SparkSession) -> None:
    changes = spark.sql("SELECT * FROM VALUES (1, 'Ann', 5), (2, 'gone', 0), (8, 'New', 6) AS c(id, name, salary)")
    counts = (
        shop.merge("emp", changes)
        .on("emp.id = source.id")
        .when_matched_delete("source.name = :word")
        .when_matched_update({"salary": "source.salary", "name": "concat(emp.name, '+')"})
        .when_not_matched_insert({"id": "source.id", "name": "'x'", "salary": 77})
        .when_not_matched_by_source_update({"name": None})
        .execute(word="gone")
        .collect()[0]
    )
    assert tuple(counts) == (4, 2, 1, 1)
    assert _rows(shop) == [(1, "Ann+", 5), (3, None, 300), (8, "x", 77)]


def test_the_builder_with_stars_and_names(shop: AcidSession) -> None:
    (
        shop.merge(
            "emp", "(SELECT 3 AS id, 'C' AS name, 1 AS salary UNION ALL SELECT 4, 'D', 2)", alias="t", source_alias="s"
        )
        .on("t.id = s.id")
        .when_matched_update_all("s.salary < 5")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete("t.id = 1")
        .execute()
    )
    assert _rows(shop) == [(2, "Bob", 200), (3, "C", 1), (4, "D", 2)]


def test_rows_that_are_no_frame_are_refused(shop: AcidSession, spark: SparkSession) -> None:
    """As where the table is given first."""
    with pytest.raises(InvalidValue, match="The rows are to be a DataFrame, not str"):
        shop.insert("emp", spark.sql("SELECT 1, 'a', 2"))  # type: ignore[arg-type]
    assert len(_rows(shop)) == 3


def test_update_delete_and_insert_without_text(shop: AcidSession, spark: SparkSession) -> None:
    assert shop.update("emp", {"salary": "salary * 2", "name": "'O''Neil'"}, "id = :id", id=1).collect()[0][0] == 1
    assert shop.update("emp", {"salary": 9}, "id = 2").collect()[0][1] == 1
    assert shop.delete("emp", "id = 3").collect()[0][2] == 1
    rows = spark.sql("SELECT 5 AS salary, 7 AS id")
    assert shop.insert(rows, "emp", by_name=True).collect()[0][3] == 1
    assert _rows(shop) == [(1, "O'Neil", 200), (2, "Bob", 9), (7, None, 5)]
    shop.insert(spark.sql("SELECT 1, 'a', 2"), "emp", overwrite=True)
    assert _rows(shop) == [(1, "a", 2)]
    shop.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (day date)")
    shop.insert(spark.range(2).selectExpr("CAST(id AS int)"), "p", partition={"day": datetime.date(2024, 2, 29)})
    assert _rows(shop, "SELECT id, CAST(day AS string) FROM p ORDER BY id") == [(0, "2024-02-29"), (1, "2024-02-29")]


def test_a_builder_that_is_not_whole(shop: AcidSession, spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    with pytest.raises(InvalidValue, match="condition"):
        shop.merge("emp", "emp").when_matched_delete().execute()
    with pytest.raises(InvalidValue, match="clause"):
        shop.merge("emp", "emp").on("true").execute()
    with pytest.raises(InvalidValue, match="cannot be used as a SQL value"):
        shop.update("emp", {"salary": F.lit(1)})  # type: ignore[dict-item]
    with pytest.raises(InvalidValue, match="No column"):
        shop.update("emp", {})


@pytest.mark.parametrize(
    "source", ["(SELECT * FROM (a {} ) AS x)", "(SELECT x.* FROM (a {}) AS x JOIN a y ON y.k = x.k)", "v"]
)
@pytest.mark.parametrize("join", ["NATURAL JOIN b", "JOIN b USING (k)", "FULL JOIN b USING (k)"])
def test_a_source_joins_by_common_names(acid: AcidSession, join: str, source: str) -> None:
    """Spark hides the keys of the sides of such a join, as acidsql hides ROW__ID."""
    acid.sql("CREATE TRANSACTIONAL TABLE a (k int, x int)")
    acid.sql("CREATE TRANSACTIONAL TABLE b (k int, y int)")
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int, z int)")
    acid.sql("INSERT INTO a VALUES (1, 10), (2, 20)")
    acid.sql("INSERT INTO b VALUES (2, 200), (1, 100)")
    acid.sql("INSERT INTO t VALUES (1, 0), (3, 0)")
    acid.sql(f"CREATE VIEW v AS SELECT * FROM (a {join}) AS x")
    for row_id in ("", " AND t.ROW__ID.rowId >= 0"):
        acid.sql(
            f"MERGE INTO t USING {source.format(join)} s ON t.k = s.k{row_id}"
            " WHEN MATCHED THEN UPDATE SET z = s.x + s.y WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.y)"
        )
    assert rows(acid, "SELECT * FROM t") == [(1, 110), (2, 220), (3, 0)]


def test_the_window_of_a_time_is_refused(acid: AcidSession) -> None:
    """Spark leaves rows without a time out: a matched row would count as one without a match."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, w string, at timestamp)")
    acid.sql("INSERT INTO t VALUES (1, 'old', NULL), (2, 'old', timestamp '2020-01-01 00:00:00')")
    for call in (
        "window(at, '10 minutes').start",
        "Session_Window(at, '5 minutes').end",
        "WINDOW (at, '2 days', '1 day').start",
    ):
        source = "(SELECT 1 AS k, CAST(NULL AS timestamp) AS at2)"
        of_source = call.replace("at,", "at2,")
        for text in (
            f"UPDATE t SET w = string({call})",
            f"UPDATE t SET w = 'new' WHERE {call} IS NULL",
            f"DELETE FROM t WHERE {call} IS NULL",
            f"MERGE INTO t USING {source} s ON t.id = s.k WHEN MATCHED THEN UPDATE SET w = string({of_source})",
            f"MERGE INTO t USING {source} s ON false WHEN NOT MATCHED THEN INSERT (w) VALUES (string({of_source}))",
            f"MERGE INTO t USING {source} s ON t.id = s.k AND {of_source} IS NULL WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises(AnalysisError, match="not allowed here"):
                acid.sql(text)
    acid.sql("UPDATE t SET w = (SELECT max(string(window(at, '10 minutes').start)) FROM t x WHERE x.id = t.id)")
    assert rows(acid, "SELECT id, w FROM t") == [(1, None), (2, "2020-01-01 00:00:00")]
    nothing_is_open(acid)


@pytest.mark.parametrize(
    "clauses",
    [
        "WHEN MATCHED AND row_number() OVER (ORDER BY t.id) = 1 THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET salary = sum(s.salary) OVER (PARTITION BY t.name)",
        "WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (s.id, row_number() OVER (ORDER BY s.id))",
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND rank() OVER (ORDER BY s.id) < 2 THEN INSERT *",
    ],
)
def test_window_functions_in_clauses_are_refused(shop: AcidSession, warehouse: Path, clauses: str) -> None:
    """Of a clause's rows, of the pairs or of the source? Hive and Spark differ, and so would driver and job."""
    before = _directories(warehouse)
    source = "(SELECT id + 1 AS id, name, salary, row_number() OVER (ORDER BY id) AS n FROM emp)"
    with pytest.raises(AnalysisError, match=r"not allowed in the clauses of MERGE"):
        shop.sql(f"MERGE INTO emp t USING {source} s ON t.id = s.id {clauses}")
    _nothing_is_left(shop, warehouse, before)
    shop.sql(f"MERGE INTO emp t USING {source} s ON t.id = s.id WHEN MATCHED AND s.n = 1 THEN DELETE")
    assert [r[0] for r in _rows(shop)] == [1, 3]


def test_a_window_in_set_is_over_the_rows_of_where(shop: AcidSession) -> None:
    """As in Hive, which reads them with SELECT … WHERE."""
    shop.sql("UPDATE emp SET salary = row_number() OVER (ORDER BY id DESC) WHERE id > 1")
    assert _rows(shop) == [(1, "Ann", 100), (2, "Bob", 2), (3, "Cat", 1)]
    for where in ("row_number() OVER (ORDER BY id) = 1", "id IN (1, 2) AND count(*) OVER () > 0"):
        with pytest.raises(Exception, match="window functions inside WHERE"):
            shop.sql(f"DELETE FROM emp WHERE {where}")
    nothing_is_open(shop)


def test_an_insert_by_name_takes_each_column_once(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b int)")
    for query in ("SELECT 1 AS a, 2 AS a", "SELECT 1 AS a, 2 AS A", "SELECT * FROM VALUES (1, 2, 3) v(a, b, A)"):
        for kind in ("INTO t", "OVERWRITE TABLE t"):
            with pytest.raises(AnalysisError, match="more than once"):
                acid.sql(f"INSERT {kind} BY NAME {query}")
    assert rows(acid, "SELECT * FROM t") == []
    nothing_is_open(acid)


@pytest.mark.parametrize("keys", ["", " PARTITIONED BY (p int)"], ids=["plain", "partitioned"])
def test_where_the_first_commit_wins_two_merges_insert_a_key_once(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    """Under hive.txn.xlock.mergeinsert: the other one runs whole before the first publishes."""
    text = "MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.k, 1)"
    settings = {"hive.txn.xlock.write": "false", "hive.txn.xlock.mergeinsert": "true"}
    with (
        acidsql.connect(spark, warehouse=warehouse, settings=settings) as one,
        acidsql.connect(spark, warehouse=warehouse, settings=settings) as other,
    ):
        one.sql(f"CREATE TRANSACTIONAL TABLE t (k int{'' if keys else ', p int'}){keys}")
        publish, others = Staging.publish, iter([lambda: other.sql(text)])

        def later(self: Staging, *arguments: object) -> None:
            for run in others:
                run()
            publish(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(Staging, "publish", later)
        with pytest.raises(WriteConflict):
            one.sql(text)
        assert rows(one, "SELECT * FROM t") == [(1, 1)]
        nothing_is_open(one)


@pytest.mark.parametrize("clause", ["", " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'none'"])
@pytest.mark.parametrize(
    "keys", ["(1, 'x'), (CAST(NULL AS int), 'y'), (9, 'z')", "(1, 'x'), (9, 'z')", "(CAST(NULL AS int), 'y')"]
)
@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (p int)"])
def test_null_may_equal_null(acid: AcidSession, clause: str, keys: str, partition: str) -> None:
    """Rows whose key is NULL are not pruned away with <=>."""
    columns = "k int, v string" if not partition else "v string"
    acid.sql(f"CREATE TRANSACTIONAL TABLE n ({columns}) {partition.replace('p int', 'k int')}")
    given = [(1, "a"), (2, "b"), (None, "c")]
    acid.insert(acid.spark.createDataFrame(given, "k int, v string"), "n", by_name=True)
    source = dict(acid.spark.sql(f"SELECT * FROM VALUES {keys}").collect())
    acid.sql(
        f"MERGE INTO n USING (SELECT * FROM VALUES {keys} AS s(k, v)) s ON n.k <=> s.k"
        f" WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v){clause}"
    )
    expected = {k: source.get(k, "none" if clause else v) for k, v in given} | source
    assert sorted(map(repr, expected.items())) == sorted(repr((r.k, r.v)) for r in acid.table("n").collect())
