"""Partitions are named by Hive's texts of their keys; ``char`` values compare as in Hive, without their padding."""

from __future__ import annotations

import pytest
from pyspark.errors import NumberFormatException

from acidsql.errors import AcidError, AnalysisError, ConstraintViolation
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_partitions_are_named_as_hive_names_them(acid: AcidSession, driver_rows: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (d decimal(20,2), c char(3), f float)")
    acid.sql(
        "INSERT INTO t VALUES (1, 1.5BD, 'a', 1), (2, 100BD, 'abc', 0.1), (3, 0BD, '', 1e20), (4, NULL, NULL, NULL)"
    )
    acid.sql("INSERT INTO t PARTITION (d=1.50, c='a', f='1') VALUES (5)")
    assert [r[0] for r in acid.sql("SHOW PARTITIONS t").collect()] == [
        "d=0/c=   /f=1.0E20",
        "d=1.5/c=a  /f=1.0",
        "d=100/c=abc/f=0.1",
        "/".join(f"{key}=__HIVE_DEFAULT_PARTITION__" for key in "dcf"),
    ]
    assert sorted(r[0] for r in acid.sql("SELECT id FROM t WHERE d = 1.5").collect()) == [1, 5]
    assert [str(r[0]) for r in acid.sql("SELECT DISTINCT d FROM t WHERE d > 0 ORDER BY d").collect()] == [
        "1.50",
        "100.00",
    ]


@pytest.mark.parametrize("column", ["data", "key"])
@pytest.mark.parametrize(
    "condition", ["= 'ab'", "= 'ab  '", "IN ('y', 'ab')", "= CAST('ab' AS char(4))", "= :p", "< 'b'"]
)
def test_char_values_compare_without_their_padding(acid: AcidSession, column: str, condition: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, data char(4)) PARTITIONED BY (key char(4))")
    acid.sql("INSERT INTO t VALUES (1, 'ab', 'ab'), (2, 'x', 'x')")
    given = {"p": "ab"} if ":p" in condition else {}
    found = acid.sql(f"SELECT id, {column} FROM t WHERE {column} {condition}", **given).collect()
    assert [tuple(r) for r in found] == [(1, "ab  ")]
    assert acid.sql(f"UPDATE t SET id = 7 WHERE {column} {condition}", **given).collect()[0][0] == 1
    assert acid.sql(f"DELETE FROM t WHERE {column} {condition}", **given).collect()[0][0] == 1
    assert [tuple(r) for r in acid.table("t").collect()] == [(2, "x   ", "x   ")]


@pytest.mark.parametrize(
    "condition",
    [
        "k NOT LIKE 'a'",
        "k <> s AND s = 'a'",
        "NOT (k <=> s) AND s = 'a'",
        "k NOT BETWEEN 'a' AND 'b'",
        "k BETWEEN 'a' AND 'b'",
        "nullif(k, 'a') IS NOT NULL",
        "k LIKE 'a%'",
        "k = 'a'",
        "k IN ('a', s)",
        "length(k) = 5 AND k < 'b'",
    ],
)
def test_conditions_on_char_keys_choose_partitions_as_they_choose_rows(acid: AcidSession, condition: str) -> None:
    """What Spark's optimiser has made of a condition was padded once more, for the choice of partitions alone."""
    values = "(1, 'a', 'a'), (2, 'a', 'b'), (3, 'a', 'a\t'), (4, 'b', 'abcde'), (5, 'a', NULL)"
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s string) PARTITIONED BY (k char(5))")
    acid.sql("CREATE TRANSACTIONAL TABLE plain (id int, s string, k char(5))")
    for table in ("t", "plain"):
        acid.sql(f"INSERT INTO {table} VALUES {values}")
    expected = rows(acid, f"SELECT id FROM plain WHERE {condition}")
    assert rows(acid, f"SELECT id FROM t WHERE {condition}") == expected
    assert acid.sql(f"DELETE FROM t WHERE {condition}").collect()[0].num_deleted_rows == len(expected)
    assert rows(acid, f"SELECT id FROM t WHERE {condition}") == []


@pytest.mark.parametrize("type", ["string", "varchar(8)"])
def test_a_char_that_becomes_a_string_has_no_padding_whoever_wrote_it(acid: AcidSession, type: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, c char(5), s struct<x:char(3)>)")
    for number, driver_rows in ((1, 20000), (2, 0), (3, 20000), (4, 0)):
        acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
        acid.sql(f"INSERT INTO t SELECT {number}, 'ab', named_struct('x', 'y')")
        if number > 2:
            acid.sql(f"UPDATE t SET id = id + 10 WHERE id IN ({number}, {number - 2})")
    assert rows(acid, "SELECT id FROM t WHERE c = 'ab'") == [(11,), (12,), (13,), (14,)]
    acid.sql(f"ALTER TABLE t CHANGE c c {type}")
    acid.sql("ALTER TABLE t CHANGE s s struct<x:string>")
    expected = [(n, "ab", "y") for n in (11, 12, 13, 14)]
    assert rows(acid, "SELECT id, c, s.x FROM t WHERE c = 'ab'") == expected
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT id, c, s.x FROM t WHERE c = 'ab'") == expected


@pytest.mark.parametrize("values", [("toolong", "x"), ("a", "toolong")])
def test_a_static_key_that_is_too_long_is_refused_as_a_dynamic_one_is(
    acid: AcidSession, values: tuple[str, str]
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (x int) PARTITIONED BY (c char(4), v varchar(3))")
    spec = "c = '{}', v = '{}'".format(*values)
    with pytest.raises(ConstraintViolation, match="exceeds the length of its type"):
        acid.sql(f"INSERT INTO t PARTITION ({spec}) VALUES (1)")
    for text in (
        "ALTER TABLE t ADD PARTITION ({})",
        "ALTER TABLE t DROP PARTITION ({})",
        "TRUNCATE TABLE t PARTITION ({})",
    ):
        with pytest.raises(AnalysisError, match="cannot be converted to type"):
            acid.sql(text.format(spec))
    assert acid.sql("SHOW PARTITIONS t").collect() == []
    nothing_is_open(acid)


@pytest.mark.parametrize("value", ["k = 1.6, d = 1.5", "k = 1.6D, d = 1.5", "k = true, d = 1.5", "k = 1, d = 1.54"])
def test_a_partition_is_not_named_by_a_value_near_its_own(acid: AcidSession, value: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (x int) PARTITIONED BY (k int, d decimal(5,1))")
    acid.sql("INSERT INTO t VALUES (1, 1, 1.5)")
    for text in ("ALTER TABLE t DROP PARTITION ({})", "TRUNCATE TABLE t PARTITION ({})"):
        with pytest.raises(AnalysisError, match="cannot be converted to type") as refused:
            acid.sql(text.format(value))
        assert refused.value.code == 10248
    if "1.54" not in value:  # INSERT rounds a decimal, as Spark's own does
        with pytest.raises(NumberFormatException, match="CAST_INVALID_INPUT"):
            acid.sql(f"INSERT OVERWRITE t PARTITION ({value}) VALUES (2)")
    assert [tuple(r)[:2] for r in acid.table("t").collect()] == [(1, 1)]
    acid.sql("TRUNCATE TABLE t PARTITION (k = '1', d = 1.50)")
    assert acid.table("t").collect() == []
    nothing_is_open(acid)


def test_blanks_beyond_the_length_of_a_static_key_are_cut(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (x int) PARTITIONED BY (c char(4), v varchar(3))")
    acid.sql("INSERT INTO t PARTITION (c = 'a     ', v = 'abc  ') VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2, 'a', 'abc')")
    acid.sql("ALTER TABLE t ADD IF NOT EXISTS PARTITION (c = 'a', v = 'abc ')")
    assert [r[0] for r in acid.sql("SHOW PARTITIONS t").collect()] == ["c=a   /v=abc"]
    assert acid.sql("SELECT count(*) FROM t WHERE c = 'a' AND v = 'abc'").collect()[0][0] == 2


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_a_partition_with_a_nul_is_refused(acid: AcidSession, driver_rows: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    with pytest.raises(AcidError):
        acid.sql("INSERT INTO t SELECT id, concat('a', chr(0), 'b') FROM range(3)")
    assert rows(acid, "SELECT * FROM t") == rows(acid, "SHOW PARTITIONS t") == []
    nothing_is_open(acid)


@pytest.mark.parametrize("type", ["string", "varchar(9)", "char(9)"])
def test_a_partition_key_that_is_no_utf8_is_refused(acid: AcidSession, type: str) -> None:
    """No directory has such a name: it would be another key that is stored."""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (k {type})")
    key = "CAST(X'61FF' AS string)"
    for text in (f"SELECT 1, {key}", f"SELECT id, {key} FROM range(100000)", f"VALUES (1, {key})"):
        with pytest.raises(AcidError, match="not valid UTF-8"):
            acid.sql(f"INSERT INTO t {text}")
    rows = acid.spark.sql(f"SELECT 1 AS id, {key} AS k, 1 AS at")
    with pytest.raises(Exception, match="does not fit into k"):
        acid.sink("t", mode="merge", keys=["k"])(rows.drop("at"), 0)
    with pytest.raises(AcidError, match="does not fit into k"):
        acid.apply_changes("t", rows, keys=["k"], sequence_by="at", except_columns=["at"])
    acid.sql("INSERT INTO t VALUES (1, 'é'), (2, NULL)")
    assert acid.table("t").count() == 2
