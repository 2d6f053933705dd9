"""Values are stored, found and compared as what they are, whatever Spark would make of their text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader

from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.oracle.choice import first_quick
from tests.oracle.spark_conf import setting
from tests.oracle.twins import table_of
from tests.spark.answers import rows

pytestmark = pytest.mark.spark

TINY = Decimal("0.0000000001")


def driver_and_job(acid: AcidSession, written_by: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {20000 if written_by == 'driver' else 0}")


@pytest.mark.parametrize("day", ["0001-01-01", "1582-10-10", "2011-12-30", "9999-12-31"])
@pytest.mark.usefixtures("in_samoa")
def test_a_day_that_is_given_is_that_day(acid: AcidSession, day: str) -> None:
    """Spark takes a Python date as one of Java's old calendar, in the JVM's zone."""
    given = date.fromisoformat(day)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, d string)")
    acid.sql("INSERT INTO t VALUES (1, CAST(:d AS string)), (2, CAST(element_at(:l, 1) AS string))", d=given, l=[given])
    acid.update("t", {"d": given}, "id = 1")
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (k date)")
    acid.sql("INSERT INTO p PARTITION (k = :d) VALUES (1)", d=given)
    acid.sql("INSERT INTO p VALUES (2, :d)", d=given)
    assert rows(acid, "SELECT * FROM t") == [(1, day), (2, day)]
    assert rows(acid, "SELECT id, CAST(k AS string) FROM p WHERE k = :d", d=given) == [(1, day), (2, day)]
    assert rows(acid, "VALUES (CAST(:d AS string))", d=given) == [(day,)]


@pytest.mark.parametrize("clock", ["0001-01-01 00:00:00", "1582-10-10 12:00:00", "1969-12-31 23:59:59.000005"])
@pytest.mark.usefixtures("in_samoa")
def test_a_moment_that_is_given_is_that_moment(acid: AcidSession, clock: str) -> None:
    there = datetime.fromisoformat(clock)
    for given in (there.replace(tzinfo=timezone.utc), there.replace(tzinfo=timezone(timedelta(hours=1)))):
        shift = given.utcoffset() or timedelta()
        [(found,)] = rows(acid, f"SELECT CAST(:t + INTERVAL {shift.seconds} SECONDS AS string)", t=given)
        assert found == clock
    [(days,)] = rows(acid, "SELECT datediff(:t, DATE'1500-01-01')", t=datetime(1500, 1, 1, 12))
    assert days == 0


# --- partition keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written_by", ["driver", "job"])
def test_all_spellings_of_the_default_partition_are_one_partition(acid: AcidSession, written_by: str) -> None:
    """NULL, the empty string and the default partition's name: one directory, in which no file may replace another."""
    driver_and_job(acid, written_by)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t VALUES (1, NULL), (2, '__HIVE_DEFAULT_PARTITION__'), (3, ''), (4, 'x')")
    assert rows(acid, "SELECT id, p FROM t") == [(1, None), (2, None), (3, None), (4, "x")]
    acid.sql("INSERT OVERWRITE t VALUES (5, ''), (6, '__HIVE_DEFAULT_PARTITION__'), (7, NULL)")
    assert rows(acid, "SELECT id, p FROM t") == [(4, "x"), (5, None), (6, None), (7, None)]


@pytest.mark.parametrize("ansi", first_quick(["false", "true"]))
@pytest.mark.parametrize("written_by", first_quick(["driver", "job"]))
def test_small_decimal_keys_are_keys_of_their_own(
    acid: AcidSession, spark: SparkSession, ansi: str, written_by: str
) -> None:
    driver_and_job(acid, written_by)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p decimal(20,10))")
    with setting(spark, "spark.sql.ansi.enabled", ansi):
        acid.sql("INSERT INTO t VALUES (1, 0.0000000001), (2, 0), (3, 1.5)")
        acid.sql("INSERT INTO t PARTITION (p = 0.0000000010) VALUES (4)")
        acid.sql("INSERT INTO t PARTITION (p = 0.0000000001) VALUES (5)")
        expected = [(1, TINY), (2, Decimal(0)), (3, Decimal("1.5")), (4, TINY * 10), (5, TINY)]
        assert rows(acid, "SELECT id, p FROM t") == expected
        assert rows(acid, "SELECT id FROM t WHERE p = 0.0000000001") == [(1,), (5,)]
        assert len(rows(acid, "SHOW PARTITIONS t")) == 4
    assert rows(acid, "SELECT id, p FROM t") == expected


@pytest.mark.parametrize("ansi", first_quick(["false", "true"]))
def test_a_static_key_that_does_not_fit_is_refused(acid: AcidSession, spark: SparkSession, ansi: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t PARTITION (p = NULL) VALUES (100)")
    acid.sql("INSERT INTO t PARTITION (p = 10) VALUES (1)")
    accepted = []
    with setting(spark, "spark.sql.ansi.enabled", ansi):
        for value in ("'1O'", "3000000000", "'2024-01-01'", "1e20"):
            for verb in ("INSERT OVERWRITE TABLE", "INSERT INTO"):
                text = f"{verb} t PARTITION (p = {value}) VALUES (2)"
                with suppress(AcidError, PySparkException):
                    acid.sql(text)
                    accepted.append(text)
    assert accepted == []
    assert rows(acid, "SELECT id, p FROM t") == [(1, 10), (100, None)]


ODD = [
    "a",
    "A",
    " a",
    "a ",
    ".",
    "..",
    "../x",
    "a=b/c=d",
    "%2F",
    "\u00e9",
    "e\u0301",
    "\n",
    "x" * 200,
    "{a}",
    "[b]",
    "*",
]
ODD += ["?", "\\", "a,b", "~", "\U0001f600", "_x", "-0.0", "#", "+", "&", "a%", "${env:HOME}", "it's", '"', "${a", ":p"]


@pytest.mark.parametrize("written_by", first_quick(["driver", "job"]))
def test_odd_texts_are_keys_like_others(acid: AcidSession, spark: SparkSession, written_by: str) -> None:
    driver_and_job(acid, written_by)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.insert(table_of(spark, "id int, p string", list(enumerate(ODD))), "t")
    assert rows(acid, "SELECT id, p FROM t") == sorted(enumerate(ODD), key=repr)
    for number, value in list(enumerate(ODD))[::4]:
        found = acid.sql("SELECT id FROM t WHERE p = :p", p=value).collect()
        assert [tuple(r) for r in found] == [(number,)]


def test_odd_names_of_keys_are_names_like_others(acid: AcidSession) -> None:
    for number, key in enumerate(("a/b", "a:b", "a b", "a%41", "a=b", "\u00e4")):
        acid.sql(f"CREATE TRANSACTIONAL TABLE t{number} (id int) PARTITIONED BY (`{key}` string)")
        for written_by in ("driver", "job"):
            driver_and_job(acid, written_by)
            acid.sql(f"INSERT INTO t{number} VALUES (1, 'x'), (2, 'y/z')")
        assert rows(acid, f"SELECT id, `{key}` FROM t{number}") == [(1, "x"), (1, "x"), (2, "y/z"), (2, "y/z")]


# --- texts that Spark's parser would change --------------------------------------------------------------------------


LIKE_SQL = [
    "${spark.app.name}",
    "${env:HOME}",
    "${system:user.name}",
    "${x}",
    "a\\b",
    "it's",
    '"',
    "\\'",
    "$$",
    ":p",
    "?",
]
LIKE_SQL += ["a\\nb", "\\", "%"]


@pytest.mark.parametrize("escaped", ["true", "false"])
def test_merge_finds_rows_by_texts_that_look_like_sql(acid: AcidSession, spark: SparkSession, escaped: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p string)")
    columns = "id int, v string, p string"
    with setting(spark, "spark.sql.parser.escapedStringLiterals", escaped):
        acid.insert(table_of(spark, columns, [(1, "old", value) for value in LIKE_SQL]), "t")
        source = [(n, value, value) for value in LIKE_SQL for n in (1, 2)]
        merge = acid.merge("t", table_of(spark, columns, source))
        merge = merge.on("t.p = source.p AND t.id = source.id").when_matched_update({"v": "source.v"})
        merge.when_not_matched_insert_all().execute()
        assert rows(acid, "SELECT * FROM t") == sorted(source, key=repr)


@pytest.mark.parametrize("escaped", ["false", "true"])
@pytest.mark.parametrize(
    "value", first_quick(["${env:HOME}", "it's", *sorted({*LIKE_SQL} - {"${env:HOME}", "it's"})], 2)
)
def test_a_parameter_is_what_the_caller_bound(acid: AcidSession, spark: SparkSession, value: str, escaped: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p string)")
    with setting(spark, "spark.sql.parser.escapedStringLiterals", escaped):
        acid.sql("INSERT INTO t PARTITION (p = :p) VALUES (1, :p)", p=value)
        acid.sql("INSERT INTO t VALUES (2, 'x', :p)", p=value)
        acid.sql("UPDATE t SET v = :p WHERE p = :p AND id = 2", p=value)
        found = acid.sql("SELECT id, v, p, :p FROM t WHERE p = :p AND v = :p", p=value)
        assert sorted(tuple(r) for r in found.collect()) == [(1, value, value, value), (2, value, value, value)]
        assert acid.sql("DELETE FROM t WHERE p = :p", p=value).collect()[0].num_deleted_rows == 2


# --- what is evaluated once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    first_quick(
        [
            "SELECT p FROM (SELECT explode(sequence(1, 20)) AS p) ORDER BY rand() LIMIT 1",
            "SELECT CAST(unix_micros(current_timestamp()) % 20 + 1 AS int) AS p",
            "SELECT CAST(rand() * 20 + 1 AS int) AS p FROM range(1)",
        ]
    ),
)
def test_merge_sees_one_time_and_one_chance(acid: AcidSession, source: str) -> None:
    acid.sql("SET acidsql.write.driver.rows = 5")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t SELECT id, 'old', p FROM (SELECT explode(sequence(1, 20)) AS p), (SELECT 1 AS id)")
    for _ in range(3):
        acid.sql(
            f"MERGE INTO t USING ({source}) s ON t.p = s.p WHEN MATCHED THEN UPDATE SET v = 'new'"
            " WHEN NOT MATCHED THEN INSERT VALUES (-1, 'inserted', s.p)"
        )
    assert rows(acid, "SELECT * FROM t WHERE id = -1") == []


@pytest.fixture
def changing(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A view of one number from 1 to 20, another one whenever it is read."""
    reads = tmp_path / "reads"
    reads.write_text("x")

    class Reader(DataSourceReader):
        def read(self, partition: object) -> Iterator[tuple[int]]:
            reads.write_text(f"{reads.read_text()}x")
            yield (len(reads.read_text()) % 20 + 1,)

    class Changing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "changing"

        def schema(self) -> str:
            return "p int"

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Changing)
    spark.read.format("changing").load().createOrReplaceTempView("changing")
    assert len({spark.table("changing").collect()[0][0] for _ in range(3)}) > 1
    yield "changing"
    spark.catalog.dropTempView("changing")


@pytest.mark.parametrize("most", [5, 0])
def test_merge_reads_its_source_once(acid: AcidSession, changing: str, most: int) -> None:
    """Of a source that others change, as files or tables elsewhere, two reads are two sources: what the one has pruned
    by, the other would not find."""
    acid.sql(f"SET acidsql.write.driver.rows = {most}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t SELECT 1, 'old', p FROM (SELECT explode(sequence(1, 20)) AS p)")
    for number in range(3):
        answer = acid.sql(
            f"MERGE INTO t USING {changing} s ON t.p = s.p WHEN MATCHED THEN UPDATE SET v = 'new {number}', id = s.p"
            " WHEN NOT MATCHED THEN INSERT VALUES (-1, 'inserted', s.p)"
        ).collect()[0]
        assert (answer.num_updated_rows, answer.num_inserted_rows) == (1, 0)
        [(id, p)] = rows(acid, f"SELECT id, p FROM t WHERE v = 'new {number}'")
        assert id == p


@pytest.mark.parametrize("written_by", first_quick(["driver", "job"]))
def test_merge_compares_by_the_collation_of_its_condition(acid: AcidSession, written_by: str) -> None:
    driver_and_job(acid, written_by)
    acid.sql("CREATE TRANSACTIONAL TABLE t (name string, v int)")
    acid.sql("INSERT INTO t VALUES ('Ann', 1)")
    acid.sql(
        "MERGE INTO t USING (SELECT 'ANN' COLLATE UTF8_LCASE AS name, 2 AS v) s ON t.name COLLATE UTF8_LCASE = s.name"
        " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.name, s.v)"
    )
    assert rows(acid, "SELECT * FROM t") == [("Ann", 2)]


def test_a_property_moves_no_directory(acid: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    victim, stolen = tmp_path / "victim", tmp_path / "stolen"
    victim.mkdir()
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (id int)"
        f""" TBLPROPERTIES ('acidsql.move.x' = '["{victim}", "{stolen}"]', 'acidsql.move.y' = 'no json')"""
    )
    acid.sql("INSERT INTO t VALUES (1)")
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    acid.sql("DROP TABLE t")
    assert victim.exists()
    assert not stolen.exists()


@pytest.mark.parametrize("name", ["../escape", "/tmp/escape", "..", "a/../../escape"])
def test_a_database_stays_inside_the_warehouse(acid: AcidSession, warehouse: Path, name: str) -> None:
    try:
        acid.sql(f"CREATE DATABASE `{name}`")
    except (AcidError, PySparkException):
        return
    location = Path(acid.metastore.get_database(name).location.removeprefix("file:")).resolve()
    assert location.parent == warehouse.resolve()


# --- collations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_on_driver", [20000, 0])
def test_a_fetched_source_keeps_its_collations(acid: AcidSession, spark: SparkSession, rows_on_driver: int) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {rows_on_driver}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, k string, c int)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 0)")
    spark.sql("SELECT 1 AS id, 'A' COLLATE UTF8_LCASE AS k").createOrReplaceTempView("collated")
    acid.sql(
        "MERGE INTO t USING collated AS s ON t.id = s.id AND s.k = 'a'"
        " WHEN MATCHED THEN UPDATE SET c = 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.k, 9)"
    )
    assert rows(acid, "SELECT * FROM t") == [(1, "a", 1)]


# --- structs ---------------------------------------------------------------------------------------------------------

SWAPPED = "named_struct('b', 20, 'a', 10)"
RIGHT = (10, 20)


@pytest.fixture
def structs(acid: AcidSession) -> AcidSession:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (id int, s struct<a: int, b: int>, l array<struct<a: int, b: int>>,"
        " m map<string, struct<a: int, b: int>>, n struct<x: struct<a: int, b: string>>)"
    )
    return acid


def values(acid: AcidSession) -> tuple[Any, ...]:
    [row] = acid.sql("SELECT * FROM t").collect()
    return (tuple(row.s), [tuple(r) for r in row.l], {k: tuple(v) for k, v in row.m.items()}, tuple(row.n.x))


SOURCE = (
    f"SELECT 1 AS id, {SWAPPED} AS s, array({SWAPPED}) AS l, map('k', {SWAPPED}) AS m,"
    " named_struct('X', named_struct('B', 'text', 'A', 10)) AS n"
)
STORED = (RIGHT, [RIGHT], {"k": RIGHT}, (10, "text"))


def test_insert_by_name_takes_fields_by_name(structs: AcidSession) -> None:
    structs.sql(f"INSERT INTO t BY NAME {SOURCE}")
    assert values(structs) == STORED


@pytest.mark.parametrize(
    "clause",
    [
        "UPDATE SET *",
        "UPDATE SET s = z.s, l = z.l, m = z.m, n = z.n",
        "INSERT *",
        "INSERT (id, s, l, m, n) VALUES (1, z.s, z.l, z.m, z.n)",
    ],
)
def test_merge_takes_fields_by_name(structs: AcidSession, clause: str) -> None:
    matched = "WHEN MATCHED" if clause.startswith("UPDATE") else "WHEN NOT MATCHED"
    if matched == "WHEN MATCHED":
        structs.sql("INSERT INTO t (id) VALUES (1)")
    structs.sql(f"MERGE INTO t USING ({SOURCE}) z ON t.id = z.id {matched} THEN {clause}")
    assert values(structs) == STORED


def test_update_takes_fields_by_name_and_insert_by_position(structs: AcidSession) -> None:
    structs.sql("INSERT INTO t (id, s) VALUES (1, named_struct('x', 1, 'y', 2))")
    assert rows(structs, "SELECT s.a, s.b FROM t") == [(1, 2)]
    structs.sql(f"UPDATE t SET s = {SWAPPED}, n = named_struct('x', named_struct('b', 'text', 'a', 10))")
    assert rows(structs, "SELECT s.a, s.b, n.x.a, n.x.b FROM t") == [(10, 20, 10, "text")]
    structs.sql("UPDATE t SET s = struct(7, 8)")
    assert rows(structs, "SELECT s.a, s.b FROM t") == [(7, 8)]
    for other in ("named_struct('x', 1, 'y', 2)", "named_struct('a', 1, 'c', 2)", "named_struct('a', 1)"):
        with pytest.raises(AcidError, match="Cannot store STRUCT"):
            structs.sql(f"UPDATE t SET s = {other}")
    structs.sql("UPDATE t SET s = NULL")
    assert rows(structs, "SELECT s, l FROM t") == [(None, None)]


# --- values of Python's ----------------------------------------------------------------------------------------------


def test_a_partition_of_insert_is_a_value(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string, day date)")
    frame = spark.sql("SELECT 1 AS id")
    acid.insert(frame, "t", partition={"p": "2024-01-01", "day": "2024-01-01"})
    acid.insert(frame, "t", partition={"p": "it's a 'b'", "day": date(2024, 2, 29)})
    assert rows(acid, "SELECT p, day FROM t") == [
        ("it's a 'b'", date(2024, 2, 29)),
        ("2024-01-01", date(2024, 1, 1)),
    ]


@pytest.mark.parametrize("day", ["+10000-01-01", "-0044-03-15", "2024-02-29"])
def test_days_that_python_does_not_have_are_stored(acid: AcidSession, day: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, d date, ts timestamp)")
    acid.sql(f"INSERT INTO t VALUES (1, date'{day}', timestamp'{day} 10:11:12.5')")
    acid.sql(f"INSERT INTO t SELECT 2, date'{day}', timestamp'{day} 10:11:12.5' FROM range(1)")
    [one, other] = rows(acid, "SELECT id, CAST(d AS string), CAST(ts AS string) FROM t")
    assert one[1:] == other[1:] == (day, f"{day} 10:11:12.5")
