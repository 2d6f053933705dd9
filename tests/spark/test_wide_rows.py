"""Rows of long texts and lists: the driver fetches no more bytes than it should, however few the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.plan import fetch, write
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting as conf
from tests.spark.answers import rows

MIB = 1 << 20


@dataclass
class Seen:
    """What was fetched in a statement, and whether a job wrote."""

    bytes: int = 0
    jobs: int = 0
    plans: list[str] = field(default_factory=list)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """With a bound of a megabyte for all tasks together."""
    found = Seen()
    fetched, by_job = fetch.fetched, write.write_by_job

    def counted(frame: DataFrame) -> pa.Table:
        rows = fetched(frame)
        found.bytes += rows.nbytes
        found.plans.append(frame._jdf.queryExecution().optimizedPlan().toString())
        return rows

    def job(*arguments: object, **options: object) -> object:
        found.jobs += 1
        return by_job(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fetch, "fetched", counted)
    monkeypatch.setattr(write, "write_by_job", job)
    monkeypatch.setattr(fetch, "_TEXTS", MIB)
    monkeypatch.setattr(fetch, "_LEAST", MIB // 16)
    return found


WIDE = {
    "string": ("repeat(CAST(id % 10 AS string), 20000)", "length({c})"),
    "binary": ("CAST(repeat(CAST(id % 10 AS string), 20000) AS binary)", "length({c})"),
    "varchar(30000)": ("CAST(repeat(CAST(id % 10 AS string), 20000) AS varchar(30000))", "length({c})"),
    "array<int>": ("sequence(0, 5000 + CAST(id % 3 AS int))", "size({c})"),
    "array<string>": ("array_repeat('abcdefghij', 2000)", "size({c})"),
    "map<int,string>": ("map(1, repeat('x', 20000), 2, NULL)", "length({c}[1])"),
    "struct<a:int,b:struct<c:string>>": (
        "named_struct('a', 1, 'b', named_struct('c', repeat('y', 20000)))",
        "length({c}.b.c)",
    ),
}


@pytest.mark.parametrize("type", WIDE)
def test_are_written_by_a_job(acid: AcidSession, seen: Seen, type: str) -> None:
    value, size = WIDE[type]
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id bigint, v {type}, n int)")
    acid.sql(f"INSERT INTO t SELECT id, {value}, 1 FROM range(1000)")
    assert seen.jobs == 1
    assert seen.bytes < 3 * MIB
    seen.bytes = 0
    acid.sql(f"UPDATE t SET v = (SELECT {value} FROM range(7, 8)), n = 2 WHERE id % 2 = 0")
    assert seen.jobs == 2
    assert seen.bytes < 3 * MIB
    query = f"SELECT count(*), count(DISTINCT id), min({size}), max({size}), sum(n) FROM t".replace("{c}", "v")
    expected = f"SELECT {size} FROM (SELECT {value} AS v FROM range({{n}}))".replace("{c}", "v")
    lengths = [r[0] for n in (1, 2, 3) for r in acid.sql(expected.replace("{n}", str(n))).collect()]
    lengths += [r[0] for r in acid.sql(expected.replace("{n}", "7, 8")).collect()]
    assert rows(acid, query) == [(1000, 1000, min(lengths), max(lengths), 1500)]


def test_a_few_of_them_are_written_by_the_driver(acid: AcidSession, seen: Seen) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string, w array<string>)")
    acid.sql("INSERT INTO t SELECT id, repeat('x', 20000), array('a', NULL, repeat('y', 5000)) FROM range(10)")
    acid.sql("UPDATE t SET v = concat(v, '!') WHERE id < 8")
    assert seen.jobs == 0
    assert rows(acid, "SELECT sum(length(v)), sum(length(w[2])), count(w[1]) FROM t") == [(200_008, 50_000, 0)]


def test_many_narrow_ones_are_written_by_the_driver(acid: AcidSession, seen: Seen) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS string) FROM range(10000)")
    acid.sql("UPDATE t SET v = NULL WHERE id % 2 = 0")
    acid.sql("DELETE FROM t WHERE id % 5 = 0")
    assert seen.jobs == 0
    assert rows(acid, "SELECT count(*), count(v) FROM t") == [(8000, 4000)]


def test_a_wide_one_after_many_narrow_ones_tells_that_there_is_more(acid: AcidSession, seen: Seen) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    acid.sql("INSERT INTO t SELECT id, if(id = 4999, repeat('x', 20000), 'n') FROM range(0, 5000, 1, 1)")
    assert seen.jobs == 1
    assert rows(acid, "SELECT count(*), sum(length(v)) FROM t") == [(5000, 24_999)]


@pytest.mark.parametrize("most", [1000, 1_000_000], ids=["a share each", "one task"])
def test_of_a_merge(acid: AcidSession, seen: Seen, most: int) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {most}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    acid.sql("INSERT INTO t SELECT id, 'old' FROM range(500)")
    counts = acid.sql(
        "MERGE INTO t USING (SELECT id, repeat('x', 20000) AS v FROM range(250, 750)) s ON t.id = s.id"
        " WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    ).first()
    assert counts is not None
    assert counts.num_affected_rows == 500
    assert seen.jobs > 0
    assert seen.bytes < 5 * MIB
    query = "SELECT count(*), count(DISTINCT id), sum(length(v)) FROM t"
    assert rows(acid, query) == [(625, 625, 250 * 3 + 375 * 20_000)]


@pytest.mark.parametrize("rest", ["", " WHEN MATCHED THEN UPDATE SET v = 'new'"], ids=["inserts", "updates, too"])
def test_that_a_merge_makes_of_narrow_ones(acid: AcidSession, seen: Seen, rest: str) -> None:
    """The source is fetched; what is inserted is not."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    acid.sql("INSERT INTO t VALUES (1, 'old'), (2, 'old'), (5000, 'old')")
    counts = acid.sql(
        f"MERGE INTO t USING (SELECT id FROM range(3000)) s ON t.id = s.id{rest}"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, repeat('x', 5000))"
    ).first()
    assert counts is not None
    assert counts.num_inserted_rows == 2998
    assert seen.jobs == 1
    assert seen.bytes < 3 * MIB
    query = "SELECT count(*), count(DISTINCT id), sum(length(v)), count_if(v = 'new') FROM t"
    assert rows(acid, query) == [(3001, 3001, 2998 * 5_000 + 9, 2 if rest else 0)]


@pytest.mark.parametrize(
    "source",
    [
        " UNION ALL ".join([f"SELECT id, {WIDE['string'][0]} AS v FROM range(100)"] * 10),
        f"SELECT id, {WIDE['string'][0]} AS v FROM range(0, 1000, 1, 40)",
        f"SELECT /*+ REPARTITION(40) */ id, {WIDE['string'][0]} AS v FROM range(1000)",
        f"SELECT id, {WIDE['string'][0]} AS v FROM range(1000) DISTRIBUTE BY id",
        f"SELECT id, {WIDE['string'][0]} AS v FROM range(1000) ORDER BY id",
    ],
    ids=["a union", "many tasks", "a hint", "distributed", "sorted"],
)
def test_of_many_tasks(acid: AcidSession, seen: Seen, source: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    acid.sql(f"INSERT INTO t {source}")
    assert (seen.jobs, seen.bytes < 5 * MIB) == (1, True)
    assert rows(acid, "SELECT count(*), sum(length(v)) FROM t") == [(1000, 20_000_000)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.files.maxPartitionBytes", "4k"),
        ("spark.sql.files.openCostInBytes", "1g"),
        ("spark.sql.files.minPartitionNum", "80"),
        ("spark.sql.leafNodeDefaultParallelism", "80"),
    ],
)
def test_of_as_many_tasks_as_the_session_makes_of_a_scan(
    acid: AcidSession, seen: Seen, setting: str, value: str
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE s (id bigint, v string)")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    values = "sha2(CAST(id AS string), 512)"  # files do not make them smaller than they are
    for number in range(8):
        acid.sql(f"INSERT INTO s SELECT id, {values} FROM range({number * 1000}, {number * 1000 + 1000})")
    with conf(acid.spark, setting, value):
        tasks = acid.table("s").rdd.getNumPartitions()
        estimated = fetch._tasks(acid._env.sessions.own, acid.table("s"))
    assert tasks <= estimated
    if setting.startswith("spark.sql.files.max") or setting.startswith("spark.sql.files.open"):
        assert 5 < estimated < 3 * tasks


def test_what_the_user_calls_if_is_not_used(spark: SparkSession, tmp_path: Path) -> None:
    """Texts of acidsql's own mean what Spark's functions do, whatever functions the session has."""
    session = spark.newSession()
    for name in ("if", "octet_length", "coalesce", "monotonically_increasing_id"):
        session.udf.register(name, lambda *_: "boom", "string")
    with acidsql.connect(session, warehouse=tmp_path) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string, w array<string>)")
        acid.sql(
            "MERGE INTO t USING (SELECT id, CAST(id AS string) v, array('a') w FROM range(3)) s ON t.id = s.id"
            " WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.w)"
        )
        acid.sql("UPDATE t SET v = concat(v, '!') WHERE id > 0")
        assert rows(acid, "SELECT id, v, w[0] FROM t ORDER BY id") == [(0, "0", "a"), (1, "1!", "a"), (2, "2!", "a")]


@pytest.mark.parametrize(
    "value",
    [
        "if(id = 1, NULL, parse_json('[1,2]'))",
        "array(parse_json('1'), NULL)",
        "array(NULL, named_struct('a', NULL, 'b', 'x'))",
        "map('a', array(NULL, NULL))",
        "array(array(), array(NULL))",
    ],
)
def test_values_that_cannot_be_fetched_in_the_source_of_a_merge(acid: AcidSession, value: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    acid.sql(
        f"MERGE INTO t USING (SELECT id, {value} AS v FROM range(3)) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, to_json(s.v))"
    )
    expected = [tuple(r) for r in acid.spark.sql(f"SELECT id, to_json({value}) FROM range(3) ORDER BY id").collect()]
    assert rows(acid, "SELECT * FROM t ORDER BY id") == expected


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("offset", [3, 2**31 - 1])
def test_a_source_that_skips_rows(acid: AcidSession, offset: int, ansi: str) -> None:
    """Spark adds an OFFSET and a limit above it, as ints: none may be put there."""
    source = f"SELECT * FROM (SELECT id, 'x' AS v FROM range(5) ORDER BY id) OFFSET {offset}"
    with conf(acid.spark, "spark.sql.ansi.enabled", ansi):
        expected = [tuple(row) for row in acid.spark.sql(source).collect()]
        acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
        acid.sql(f"MERGE INTO t USING ({source}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
        assert rows(acid, "SELECT * FROM t ORDER BY id") == expected
        acid.sql(f"INSERT INTO t {source}")
        acid.sql(f"UPDATE t SET v = 'y' WHERE id IN (SELECT id FROM ({source}))")
        assert rows(acid, "SELECT * FROM t ORDER BY id") == sorted([(i, "y") for i, _ in expected] * 2)


def test_the_driver_may_be_allowed_as_many_rows_as_there_can_be(acid: AcidSession) -> None:
    acid.sql("SET acidsql.write.driver.rows = 2147483647")
    acid.sql("SET acidsql.write.driver.bytes = 1000gb")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint)")
    acid.sql("INSERT INTO t SELECT id FROM range(10)")
    acid.sql(
        "MERGE INTO t USING (SELECT id FROM range(5, 15)) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id)"
    )
    assert rows(acid, "SELECT count(*), max(id) FROM t") == [(15, 14)]


@pytest.fixture
def little_for_the_driver(spark: SparkSession) -> Iterator[None]:
    """Spark ends a job that hands over more than a megabyte."""
    conf: Any = spark.sparkContext._jsc.sc().conf()  # type: ignore[attr-defined]
    conf.set("spark.driver.maxResultSize", "1m")
    yield
    conf.remove("spark.driver.maxResultSize")


@pytest.mark.usefixtures("little_for_the_driver")
@pytest.mark.parametrize("text", ["'x'", "sha2(CAST(id AS string), 512)", "repeat(CAST(id AS string), 500)"])
def test_spark_lets_the_driver_have_little(acid: AcidSession, text: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v string)")
    source = f"SELECT id, {text} AS v FROM range(19000)"
    acid.sql(f"INSERT INTO t {source}")
    acid.sql("UPDATE t SET v = concat(v, 'y')")
    acid.sql(
        f"MERGE INTO t USING (SELECT id + 9000 AS id, v FROM ({source})) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    assert acid.sql("DELETE FROM t WHERE id % 2 = 0").collect()[0].num_deleted_rows == 14000
    assert rows(acid, "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t") == [(14000, 14000, 1, 27999)]


@pytest.mark.usefixtures("little_for_the_driver")
def test_what_only_the_driver_writes_is_more_than_spark_lets_it_have(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v timestamp with local time zone)")
    with pytest.raises(AcidError, match=r"spark\.driver\.maxResultSize"):
        acid.sql("INSERT INTO t SELECT id, timestamp_seconds(id) FROM range(200000)")
    assert rows(acid, "SHOW TRANSACTIONS") == []
