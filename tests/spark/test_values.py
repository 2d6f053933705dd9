"""Values of every type come back as they went in, whoever writes them: the driver, or one Spark job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyorc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.format.values import CONVERTERS
from acidsql.session import AcidSession
from tests.oracle.spark_conf import settings
from tests.spark.hive_rules import check_table

WRITERS = pytest.mark.parametrize("writer", ["driver", "job"])


def switch(acid: AcidSession, writer: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {'20000' if writer == 'driver' else '0'}")


@pytest.fixture(params=[("UTC", "UTC"), ("UTC", "America/New_York"), ("Europe/Warsaw", "America/New_York")], ids=repr)
def zones(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """The JVM's time zone and the session's."""
    jvm_zone, session_zone = request.param
    assert spark._jvm is not None
    java: Any = spark._jvm.java.util.TimeZone
    java.setDefault(java.getTimeZone(jvm_zone))
    spark.conf.set("spark.sql.session.timeZone", session_zone)
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    java.setDefault(java.getTimeZone("UTC"))


def rows(acid: AcidSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in acid.sql(text).collect()]


def files(table: Path) -> list[Path]:
    return sorted(table.glob("delta_*/bucket_*"))


# --- char and varchar ------------------------------------------------------------------------------------------------

NESTED = "a array<char(4)>, m map<char(3),varchar(2)>, s struct<x:char(2),y:array<struct<z:char(3)>>>"


@WRITERS
def test_char_is_padded_at_every_depth(acid: AcidSession, warehouse: Path, writer: str) -> None:
    switch(acid, writer)
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, {NESTED})")
    acid.sql(
        "INSERT INTO t SELECT * FROM VALUES (1, array('a', NULL, 'żółć'), map('k', 'vw'), named_struct('x', 'q', 'y',"
        " array(named_struct('z', '😀'), NULL))), (2, NULL, NULL, NULL), (3, array(), map(), named_struct('x',"
        " CAST(NULL AS string), 'y', CAST(NULL AS array<struct<z:string>>))), (4, array('b      '), map('l  ', 'v   '),"
        " NULL)"
    )
    acid.sql("UPDATE t SET id = id + 10 WHERE id < 4")
    found = {r[0]: r[1:] for r in rows(acid, "SELECT id, a, m, to_json(s) FROM t")}
    assert found == {
        11: (["a   ", None, "żółć"], {"k  ": "vw"}, '{"x":"q ","y":[{"z":"😀  "},null]}'),
        12: (None, None, None),
        13: ([], {}, "{}"),
        4: (["b   "], {"l  ": "v "}, None),
    }
    stored = [row for f in files(warehouse / "t") for _, _, _, _, _, row in pyorc.Reader(f.open("rb"))]
    assert sorted(r[0] for r in stored) == [1, 2, 3, 4, 11, 12, 13]
    check_table(warehouse / "t")


@WRITERS
@pytest.mark.parametrize(
    ("value", "column"),
    [
        ("array('abcde')", "a"),
        ("map('abcd', 'v')", "m"),
        ("map('k', 'abc')", "m"),
        ("named_struct('x', 'abc', 'y', array())", "s"),
        ("named_struct('x', 'a', 'y', array(named_struct('z', 'abcd')))", "s"),
    ],
)
def test_a_text_that_is_too_long_is_refused_at_every_depth(
    acid: AcidSession, warehouse: Path, writer: str, value: str, column: str
) -> None:
    switch(acid, writer)
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, {NESTED})")
    with pytest.raises((AcidError, PySparkException), match=f"Value of column {column} exceeds the length"):
        acid.sql(f"INSERT INTO t (id, {column}) SELECT id, {value} FROM range(2)")
    assert files(warehouse / "t") == []


def test_a_default_is_stored_as_any_other_value(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (id int, c char(4) DEFAULT 'ab', v varchar(2) DEFAULT concat('ab', ' '),"
        " l varchar(2) DEFAULT 'abc', n int DEFAULT 1 + 0 NOT NULL)"
    )
    acid.sql("INSERT INTO t (id, l) VALUES (1, 'l')")
    acid.sql("INSERT INTO t VALUES (2, DEFAULT, DEFAULT, 'l', DEFAULT)")
    assert sorted(rows(acid, "SELECT * FROM t")) == [(1, "ab  ", "ab", "l", 1), (2, "ab  ", "ab", "l", 1)]
    with pytest.raises((AcidError, PySparkException), match="exceeds the length of its type"):
        acid.sql("INSERT INTO t (id) VALUES (3)")


def test_a_default_in_values_is_never_the_users_text(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql(
        r"CREATE TRANSACTIONAL TABLE t (id int, s string DEFAULT '$' '{spark.app.name}', b string DEFAULT 'a\\b',"
        " q string DEFAULT \"q\", d date DEFAULT '2020-01-01', n decimal(5,1) DEFAULT 1)"
    )
    default = ("${spark.app.name}", "a\\b", "q", date(2020, 1, 1), Decimal("1.0"))
    acid.sql("INSERT INTO t (id) VALUES (1)")
    for name in (None, "spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers"):
        with settings(spark, {name: "true"} if name is not None else {}):
            acid.sql("INSERT INTO t VALUES (2, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT)")
            acid.sql(
                "WITH c AS (SELECT 3 AS id) INSERT INTO t VALUES (3, default, DEFAULT, DEFAULT,"
                " DEFAULT, DEFAULT), (4, DEFAULT, :b, DEFAULT, date '2020-01-01', 1)",
                b="a\\b",
            )
    assert sorted(rows(acid, "SELECT * FROM t")) == sorted([(1, *default), *[(i, *default) for i in (2, 3, 4)] * 3])


def test_lengths_are_written_to_the_files_schema(acid: AcidSession, warehouse: Path) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, {NESTED})")
    acid.sql("INSERT INTO t (id) VALUES (1)")
    [file] = files(warehouse / "t")
    assert "array<char(4)>" in str(pyorc.Reader(file.open("rb")).schema)
    assert "map<char(3),varchar(2)>" in str(pyorc.Reader(file.open("rb")).schema)


# --- timestamp with local time zone ----------------------------------------------------------------------------------

INSTANTS = [
    "2024-03-10 02:30:00",
    "2024-07-01 12:34:56.789",
    "2024-11-03 05:30:00.000001",
    "2024-11-03 06:30:00",
    "1969-12-31 23:59:58.5",
    "1900-01-01 00:00:00",
    "1899-12-31 23:59:59.999999",
    "1600-02-29 00:00:00",
    "1582-10-16 12:00:00",
    "1582-10-03 12:00:00",
    "0001-01-02 00:00:00",
    "9999-12-30 23:59:59.999999",
]


@WRITERS
@pytest.mark.usefixtures("zones")
def test_an_instant_is_the_same_everywhere(
    acid: AcidSession, spark: SparkSession, warehouse: Path, writer: str
) -> None:
    switch(acid, writer)
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (id int, i timestamp with local time zone, w timestamp,"
        " a array<timestamp with local time zone>, s struct<x:timestamp with local time zone,y:timestamp>)"
    )
    values = ", ".join(f"({n}, timestamp '{t}Z')" for n, t in enumerate(INSTANTS))
    source = f"(VALUES {values}, (99, NULL)) AS v(n, t)" + (" WHERE rand() >= 0" if writer == "job" else "")
    acid.sql(f"INSERT INTO t SELECT n, t, t, array(t, NULL), named_struct('x', t, 'y', t) FROM {source}")
    acid.sql("UPDATE t SET id = id + 100")
    expected = {
        r[0] + 100: tuple(r[1:]) for r in spark.sql(f"SELECT n, unix_micros(t), string(t) FROM {source}").collect()
    }
    found = rows(acid, "SELECT id, unix_micros(i), unix_micros(a[0]), unix_micros(s.x), string(w), string(s.y) FROM t")
    assert {r[0]: r[1] for r in found} == {n: micros for n, (micros, _) in expected.items()}
    assert all(r[1] == r[2] == r[3] and r[4] == r[5] for r in found)
    assert {r[0]: r[4] for r in found} == {n: text for n, (_, text) in expected.items()}
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    again = rows(acid, "SELECT id, unix_micros(i), string(w) FROM t")
    assert {r[0]: r[1:] for r in again} == expected


@WRITERS
def test_instants_are_stored_as_orcs_instants(acid: AcidSession, warehouse: Path, writer: str) -> None:
    switch(acid, writer)
    acid.sql("CREATE TRANSACTIONAL TABLE t (i timestamp with local time zone)")
    acid.sql("INSERT INTO t SELECT timestamp '2024-07-01 00:00:00.5Z' FROM range(1)")
    [file] = files(warehouse / "t")
    reader = pyorc.Reader(file.open("rb"), converters=CONVERTERS)
    assert "i:timestamp with local time zone" in str(reader.schema)
    assert [row for *_, row in reader] == [((1719792000, 500_000_000),)]
    assert rows(acid, "SELECT count(*) FROM t WHERE i = timestamp '2024-07-01 00:00:00.5Z'") == [(1,)]


# --- extremes --------------------------------------------------------------------------------------------------------

PRIMITIVES = (
    "ti tinyint, si smallint, i int, bi bigint, f float, d double, de decimal(38,18), s string, vc varchar(9), ch"
    " char(3), bo boolean, bin binary, dt date, ts timestamp"
)
VALUES = [
    "-128Y, -32768S, -2147483648, -9223372036854775808L, float('-Infinity'), double('-Infinity'),"
    " -99999999999999999999.999999999999999999BD, '', '', '', false, X'', date '0001-01-01',"
    " timestamp '0001-01-01 00:00:00'",
    "127Y, 32767S, 2147483647, 9223372036854775807L, float('Infinity'), double('Infinity'),"
    " 99999999999999999999.999999999999999999BD, '😀𝄞\\u0000\\n\\t\\'', '😀😀😀😀😀😀😀😀😀', '😀', true,"
    " X'00ff80', date '9999-12-31', timestamp '9999-12-31 23:59:59.999999'",
    "0Y, 0S, 0, 0L, float('NaN'), double('NaN'), 0BD, ' ', ' ', ' ', NULL, X'00', date '1582-10-15',"
    " timestamp '1582-10-15 00:00:00'",
    "0Y, 0S, 0, 0L, float('-0.0'), double('-0.0'), 0.000000000000000001BD, 'x ', 'x ', 'x ', NULL, NULL,"
    " date '1582-10-04', timestamp '1582-10-04 23:59:59.999999'",
    "0Y, 0S, 0, 0L, float('1.4E-45'), double('4.9E-324'), -0.000000000000000001BD, NULL, NULL, NULL, NULL, NULL,"
    " date '1969-12-31', timestamp '1969-12-31 23:59:58.999999'",
    "1Y, 1S, 1, 1L, float('3.4028235E38'), double('1.7976931348623157E308'), 1BD, 'NULL', 'null', 'nul', true,"
    " X'4e554c4c', date '2024-02-29', timestamp '2024-02-29 12:00:00.1'",
    ", ".join(["NULL"] * 14),
]
SHOWN = (
    "ti, si, i, bi, hex(CAST(f AS string)), string(f), string(d), 1 / nullif(d, 1) AS sign, de, s, vc, ch, bo,"
    " hex(bin), string(dt), string(ts)"
)


@WRITERS
def test_extremes_come_back(acid: AcidSession, spark: SparkSession, warehouse: Path, writer: str) -> None:
    switch(acid, writer)
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, {PRIMITIVES})")
    texts = ", ".join(f"({n}, {v})" for n, v in enumerate(VALUES))
    names = [c.split()[0] for c in PRIMITIVES.split(", ")]
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        source = f"SELECT * FROM VALUES {texts} AS v(id, {', '.join(names)})" + (
            " WHERE rand() >= 0" if writer == "job" else ""
        )
        acid.sql(f"INSERT INTO t {source}")
        shown = SHOWN.replace("vc, ch", "vc, rpad(ch, 3, ' ')")
        expected = sorted(repr(tuple(r)) for r in spark.sql(f"SELECT id, {shown} FROM ({source})").collect())
        assert sorted(map(repr, rows(acid, f"SELECT id, {SHOWN} FROM t"))) == expected
        acid.sql("UPDATE t SET id = id")
        assert sorted(map(repr, rows(acid, f"SELECT id, {SHOWN} FROM t"))) == expected
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    check_table(warehouse / "t")


@WRITERS
def test_nothing_in_nested_types_comes_back_as_the_same_nothing(
    acid: AcidSession, spark: SparkSession, warehouse: Path, writer: str
) -> None:
    switch(acid, writer)
    nested = (
        "a array<array<int>>, m map<string,map<int,string>>,"
        " s struct<x:int,y:struct<z:string,w:array<struct<v:date>>>>, l array<struct<x:int,y:map<string,double>>>"
    )
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, {nested})")
    some = [
        "array(), map(), named_struct('x', NULL, 'y', NULL), array()",
        "array(NULL), map('k', NULL), named_struct('x', NULL, 'y', named_struct('z', NULL, 'w', NULL)), array(NULL)",
        "array(array(), array(NULL), array(1)), map('', map(), 'k', map(1, NULL)), named_struct('x', 1, 'y',"
        " named_struct('z', '', 'w', array(NULL, named_struct('v', NULL), named_struct('v', date '1500-01-01')))),"
        " array(named_struct('x', NULL, 'y', NULL), named_struct('x', 1, 'y', map()), named_struct('x', 2, 'y',"
        " map('m', NULL, 'n', double('NaN'))))",
        "NULL, NULL, NULL, NULL",
    ]
    for n, values in enumerate(some):
        acid.sql(f"INSERT INTO t SELECT {n}, {values} FROM range(1)")
    acid.sql("UPDATE t SET id = id + 10")
    found = {r[0]: r[1:] for r in rows(acid, "SELECT id, a, m, s, l FROM t")}
    assert repr(found[10]) == "([], {}, Row(x=None, y=None), [])"
    assert repr(found[11]) == "([None], {'k': None}, Row(x=None, y=Row(z=None, w=None)), [None])"
    assert repr(found[12]) == (
        "([[], [None], [1]], {'': {}, 'k': {1: None}}, Row(x=1, y=Row(z='', w=[None, Row(v=None),"
        " Row(v=datetime.date(1500, 1, 1))])), [Row(x=None, y=None), Row(x=1, y={}),"
        " Row(x=2, y={'m': None, 'n': nan})])"
    )
    assert found[13] == (None, None, None, None)
    check_table(warehouse / "t")


@WRITERS
def test_a_text_of_ten_megabytes_comes_back(acid: AcidSession, warehouse: Path, writer: str) -> None:
    switch(acid, writer)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s string, b binary, a array<string>)")
    acid.sql(
        "INSERT INTO t SELECT CAST(id AS int), repeat(concat('żółć', id), 1200000),"
        " encode(repeat(string(id), 10000000), 'UTF-8'), array(repeat('x', 10000000), NULL) FROM range(2)"
    )
    acid.sql("UPDATE t SET id = id + 10 WHERE id = 1")
    assert sorted(rows(acid, "SELECT id, octet_length(s), md5(s), md5(b), md5(a[0]) FROM t")) == sorted(
        rows(
            acid,
            "SELECT CAST(id * 11 AS int), 10800000, md5(repeat(concat('żółć', id), 1200000)),"
            " md5(encode(repeat(string(id), 10000000), 'UTF-8')), md5(repeat('x', 10000000)) FROM range(2)",
        )
    )
    check_table(warehouse / "t")


MAPS = {
    "map<date,int>": "map(date '2020-01-01', 1, date '2020-01-02', 2)",
    "array<map<date,int>>": "array(map(date '2020-01-01', 1, date '2020-01-02', 2))",
    "map<int,map<date,date>>": "map(1, map(date '2020-01-01', date '2021-01-01', date '2020-01-02', NULL))",
    "struct<m:map<date,date>>": "named_struct('m', map(date '2020-01-01', date '2021-01-01', date '2020-01-02', NULL))",
    "map<timestamp,date>": "map(timestamp '2020-01-01', date '2020-01-01', timestamp '2020-01-02', NULL)",
    "map<decimal(4,1),int>": "map(1.5, 1, 2.5, 2)",
    "map<string,date>": "map('a', date '2020-01-01', 'b', date '2020-01-02')",
    "map<char(2),date>": "map('a', date '2020-01-01', 'b', date '2020-01-02')",
    "map<boolean,double>": "map(true, 1.0D, false, double('NaN'))",
    "map<double,int>": "map(double('NaN'), 1, 0.5D, 2)",
    "map<binary,int>": "map(X'01', 1, X'02', 2)",
}


@pytest.mark.parametrize("type", MAPS)
def test_every_entry_of_a_map_comes_back(acid: AcidSession, type: str) -> None:
    """Spark's ORC writer keeps one entry of a map with dates in its keys."""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, m {type})")
    acid.sql(f"INSERT INTO t VALUES (0, {MAPS[type]})")
    [(_, wanted)] = rows(acid, "SELECT * FROM t")
    switch(acid, "job")
    acid.sql(f"INSERT INTO t SELECT CAST(id AS int), {MAPS[type]} FROM range(1, 3)")
    acid.sql("UPDATE t SET id = id + 10")
    acid.sql(
        "MERGE INTO t USING (SELECT 10 AS id UNION ALL SELECT 11) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 20"
    )
    found = acid.sql("SELECT id, m FROM t").collect()
    assert sorted(r.id for r in found) == [12, 20, 20]
    assert [repr(sorted(r.m.items(), key=repr) if isinstance(r.m, dict) else r.m) for r in found] == [
        repr(sorted(wanted.items(), key=repr) if isinstance(wanted, dict) else wanted)
    ] * 3


# --- texts that are none ---------------------------------------------------------------------------------------------

LATIN = "CAST(X'46fcdf' AS string)"


@WRITERS
def test_a_text_that_is_not_utf8_is_kept_as_it_is(acid: AcidSession, writer: str) -> None:
    switch(acid, writer)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s string, a array<string>)")
    acid.sql(
        f"INSERT INTO t VALUES (1, {LATIN}, array({LATIN})), (2, 'b', NULL), (3, '\N{REPLACEMENT CHARACTER}', NULL)"
    )
    acid.sql(f"INSERT INTO t SELECT CAST(id AS int), {LATIN}, array('x', {LATIN}) FROM range(4, 6)")
    acid.sql("UPDATE t SET a = array('x') WHERE id = 1")
    acid.sql(f"UPDATE t SET s = {LATIN} WHERE id = 2")
    source = f"(SELECT id + 4 AS id, {LATIN} AS s FROM range(2))"
    acid.sql(
        f"MERGE INTO t USING {source} x ON t.id = x.id WHEN MATCHED THEN UPDATE SET a = array(x.s)"
        " WHEN NOT MATCHED THEN INSERT (id, s) VALUES (x.id, x.s)"
    )
    source = f"(SELECT 9 AS id, {LATIN} AS s)"
    acid.sql(f"MERGE INTO t USING {source} x ON t.s = x.s AND t.id > 5 WHEN NOT MATCHED THEN INSERT (s) VALUES (x.s)")
    none = [("46FCDF", None), ("46FCDF", None), ("EFBFBD", None)]
    wanted = sorted([*none, ("46FCDF", "78"), ("46FCDF", "46FCDF"), ("46FCDF", "46FCDF")], key=repr)
    for compaction in ("", "major"):
        if compaction:
            acid.sql(f"ALTER TABLE t COMPACT '{compaction}' AND WAIT")
        assert sorted(rows(acid, "SELECT hex(s), hex(a[0]) FROM t"), key=repr) == wanted


@pytest.mark.parametrize("value", ["array()", "map()", "named_struct('a', 1, 'a', 2)", "interval '1' month"])
def test_a_source_of_types_that_arrow_lacks_is_merged(acid: AcidSession, value: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, n int)")
    acid.sql("INSERT INTO t VALUES (1, 1)")
    acid.sql(
        f"MERGE INTO t USING (SELECT explode(array(1, 2)) AS id, {value} AS x) s ON t.id = s.id WHEN MATCHED THEN"
        " UPDATE SET n = if(s.x IS NULL, 0, 5) WHEN NOT MATCHED THEN INSERT VALUES (s.id, 7)"
    )
    assert rows(acid, "SELECT * FROM t ORDER BY id") == [(1, 5), (2, 7)]


def test_a_default_does_not_see_the_functions_that_the_user_has_registered(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    with acidsql.connect(session, warehouse=tmp_path) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE d (id int, u string DEFAULT upper('abc'), n int DEFAULT abs(-5))")
        session.udf.register("upper", lambda text: "theirs", "string")
        session.udf.register("abs", lambda number: 999, "int")
        acid.sql("INSERT INTO d (id) VALUES (1)")
        acid.sql("INSERT INTO d VALUES (2, DEFAULT, DEFAULT), (3, 'x', 1)")
        acid.sql("UPDATE d SET u = DEFAULT, n = DEFAULT WHERE id = 3")
        acid.sql(
            "MERGE INTO d USING (SELECT 4 AS id UNION ALL SELECT 5) s ON d.id = s.id"
            " WHEN NOT MATCHED AND s.id = 4 THEN INSERT VALUES (s.id, DEFAULT, DEFAULT)"
            " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )
        acid.sql("MERGE INTO d USING (SELECT 5 AS id) s ON d.id = s.id WHEN MATCHED THEN UPDATE SET u = DEFAULT")
        assert sorted(rows(acid, "SELECT * FROM d")) == [(n, "ABC", 5) for n in range(1, 6)]
