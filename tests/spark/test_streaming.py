"""Streaming connections: rows are there at the commit, all of them, and else none."""

from __future__ import annotations

import datetime as dt
import gc
import json
import threading
import weakref
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError, AnalysisError, ConstraintViolation, InvalidValue, TableNotFound, TransactionError
from acidsql.session import AcidSession
from acidsql.streaming import BadValue, Delimited, Json
from tests.spark.answers import rows

pytestmark = pytest.mark.spark


def nothing_is_left(acid: AcidSession, warehouse: Path) -> None:
    assert rows(acid, "SHOW TRANSACTIONS") == []
    assert rows(acid, "SHOW LOCKS") == []
    assert list(warehouse.rglob("_tmp_*")) == []


def test_rows_are_there_at_the_commit(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    with acid.streaming("t") as stream:
        stream.begin()
        assert stream.write([{"id": 1, "V": "a"}, {"id": 2}]) == 2
        stream.write([(3, "c")])
        assert rows(acid, "SELECT * FROM t") == []
        stream.commit()
        assert rows(acid, "SELECT * FROM t") == [(1, "a"), (2, None), (3, "c")]
        stream.begin()
        stream.write({"id": 4})
        stream.abort()
        stream.begin()
        stream.commit()
        stream.begin()
        stream.write({"id": 5})
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,), (3,)]
    done = stream.statistics
    assert (done.committed, done.aborted, done.rows) == (2, 2, 3)
    nothing_is_left(acid, warehouse)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("buffer_rows", [1, 1000])
def test_a_source_that_ends_the_transaction_it_is_read_for(
    acid: AcidSession, warehouse: Path, fails: bool, buffer_rows: int
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.streaming("t", buffer_rows=buffer_rows) as stream:

        def source() -> Iterator[tuple[int]]:
            yield (1,)
            stream.write([(2,)])
            stream.commit()
            stream.begin()
            yield (3,)
            if fails:
                raise ZeroDivisionError

        stream.begin()
        with pytest.raises(ZeroDivisionError if fails else TransactionError):
            stream.write(source())
        stream.write([(4,)])  # in the transaction that the source began
        stream.commit()
    assert rows(acid, "SELECT id FROM t") == [(2,), (4,)]
    nothing_is_left(acid, warehouse)


def test_a_connection_that_is_used_out_of_turn(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    stream = acid.streaming("t")
    for call in (stream.commit, stream.abort, lambda: stream.write([])):
        with pytest.raises(TransactionError, match="No transaction is open"):
            call()
    stream.begin()
    with pytest.raises(TransactionError, match="open already"):
        stream.begin()
    stream.close()
    stream.close()
    with pytest.raises(TransactionError, match="closed"):
        stream.begin()


def test_values_are_those_that_insert_stores(acid: AcidSession, spark: SparkSession) -> None:
    columns = (
        "a tinyint, b bigint, c double, d decimal(7,2), e string, f varchar(3), g char(4), h date, i timestamp,"
        " j boolean, k binary, l array<int>, m map<string,date>, n struct<x:int,y:timestamp>"
    )
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 5)
    values: list[tuple[Any, ...]] = [
        (1, 2**40, 1.5, Decimal("1.25"), "ä", "abc", "ab", dt.date(1500, 2, 28), moment, True, b"\x00", [1, None],
         {"a": dt.date(2024, 2, 29)}, {"x": 1, "y": moment}),
        (None,) * 14,
        (-128, -1, float("nan"), Decimal("-99999.99"), "", "", "", dt.date(9999, 12, 31), dt.datetime(1582, 10, 4),
         False, b"", [], {}, {"x": None, "y": None}),
    ]  # fmt: skip
    for name in ("t", "expected"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} ({columns}) PARTITIONED BY (p int, q string)")
    keyed = [(*row, key, text) for row, (key, text) in zip(values, [(1, "x"), (None, None), (2, "")], strict=True)]
    schema = acid.sql("SELECT * FROM expected").schema
    acid.insert(spark.createDataFrame(keyed, schema), "expected")
    with acid.streaming("t") as stream:
        stream.begin()
        stream.write(keyed)
        stream.commit()
        stream.begin()
        stream.write(spark.createDataFrame(keyed, schema))
        stream.commit()
    once = rows(acid, "SELECT * FROM expected")
    assert list(map(repr, rows(acid, "SELECT * FROM t"))) == sorted(map(repr, once * 2))
    assert rows(acid, "SHOW PARTITIONS t") == rows(acid, "SHOW PARTITIONS expected")
    acid.sql("UPDATE t SET a = 7 WHERE p = 1")
    assert rows(acid, "SELECT count(*), max(a) FROM t WHERE p = 1") == [(2, 7)]


@pytest.mark.parametrize("type", ["int", "string"])
def test_a_key_that_is_not_null(acid: AcidSession, type: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p {type} NOT NULL)")
    with pytest.raises(ConstraintViolation):
        acid.sql("INSERT INTO t VALUES (1, NULL)")
    with acid.streaming("t", dynamic=True) as stream:
        stream.begin()
        with pytest.raises(BadValue, match="NOT NULL"):
            stream.write([(1, None)])
        stream.commit()
    with acid.mutation("t") as mutation:
        [task] = mutation.tasks(1)
        with task.open() as worker, pytest.raises(BadValue, match="NOT NULL"):
            worker.insert((1, None))
    assert acid.table("t").count() == 0


def test_a_batch_that_others_have_ended_is_opened_anew(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.streaming("t", batch=5) as stream:
        stream.begin()
        stream.write([(1,)])
        stream.commit()
        opened = [row.txnid for row in acid.sql("SHOW TRANSACTIONS").collect() if row.txnid.isdigit()]
        assert len(opened) == 4
        acid.sql(f"ABORT TRANSACTIONS {' '.join(opened)}")
        stream.begin()
        stream.write([(2,)])
        stream.commit()
    assert sorted(row.id for row in acid.table("t").collect()) == [1, 2]


def test_defaults_and_not_null(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int NOT NULL, v string DEFAULT concat('a', 'b'), w int DEFAULT 7)")
    with acid.streaming("t", records=Json()) as stream:
        stream.begin()
        stream.write(['{"id": 1}', '{"id": 2, "w": null}', '{"id": 3, "v": "x"}'])
        with pytest.raises(BadValue, match="NOT NULL"):
            stream.write('{"v": "x"}')
        stream.commit()
    assert rows(acid, "SELECT * FROM t") == [(1, "ab", 7), (2, "ab", None), (3, "x", 7)]


def test_a_partition_that_is_given(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (day date, h int)")
    for partition in ({"day": dt.date(2024, 2, 29), "H": 7}, {"day": dt.date(2024, 2, 29)}, {"h": None}):
        with acid.streaming("t", partition=partition) as stream:
            stream.begin()
            missing = {"day": dt.date(2024, 3, 1), "h": 8}
            given = {name.lower() for name in partition}
            stream.write({"id": 1, **{k: v for k, v in missing.items() if k not in given}})
            stream.commit()
    assert rows(acid, "SHOW PARTITIONS t") == [
        ("day=2024-02-29/h=7",),
        ("day=2024-02-29/h=8",),
        ("day=2024-03-01/h=__HIVE_DEFAULT_PARTITION__",),
    ]
    with acid.streaming("t", partition={"nope": 1}) as stream, pytest.raises(AnalysisError, match="nope"):
        stream.begin()
    with acid.streaming("t", partition={"h": "x"}) as stream, pytest.raises(BadValue):
        stream.begin()


def test_bad_records_are_an_error(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v varchar(3))")
    with acid.streaming("t", records=Delimited()) as stream:
        stream.begin()
        with pytest.raises(BadValue, match=r"Column v: 'abcd'.*too long"):
            stream.write(["1,a", "2,abcd", "x,b"])
        stream.write(["3,c"])
        stream.commit()
    assert rows(acid, "SELECT * FROM t") == [(3, "c")]


CONSTRAINED = (
    "CREATE TABLE t (id int NOT NULL, v varchar(3), at timestamp, CHECK (v <> 'no'), CHECK (id > 0 AND id < 9))"
    " PARTITIONED BY (p int) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
)
MIXED = ["1,a,1", "x,b,1", "2,abcd,1", "3,no,1", r"\N,c,1", "0,d,1", "9,e,1", "5,f,2", "6"]
"""Lines of which the first is good, and the last but one."""


def test_bad_records_are_skipped(acid: AcidSession) -> None:
    acid.sql(CONSTRAINED)
    reader = Delimited(columns=["id", "v", "p"])
    with acid.streaming("t", records=reader, bad_records="skip") as stream:
        stream.begin()
        assert stream.write(MIXED) == 2
        stream.commit()
        stream.begin()
        assert stream.write(MIXED[1:3]) == 0
        stream.commit()
        assert (stream.statistics.rows, stream.statistics.bad) == (2, 9)
    assert rows(acid, "SELECT * FROM t") == [(1, "a", None, 1), (5, "f", None, 2)]


@pytest.mark.parametrize("policy", ["error", "skip"])
@pytest.mark.parametrize("bad", ["a\0b", "x" * 300, None])
def test_keys_that_no_directory_can_be_named_after_are_bad(acid: AcidSession, policy: str, bad: str | None) -> None:
    acid.sql("CREATE TABLE t (id int) PARTITIONED BY (p string) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    record = {"id": 2, "p": bad} if bad is not None else {"id": 2}
    with acid.streaming("t", bad_records=policy) as stream:
        stream.begin()
        stream.write([{"id": 1, "p": "ok"}])
        if policy == "error":
            with pytest.raises(BadValue, match="Partition key p"):
                stream.write([{"id": 3, "p": "ok"}, record])
        else:
            assert stream.write([{"id": 3, "p": "ok"}, record]) == 1
        stream.commit()
    assert rows(acid, "SELECT id FROM t") == ([(1,), (3,)] if policy == "skip" else [(1,)])
    if bad is not None:
        with acid.streaming("t", partition={"p": bad}) as stream, pytest.raises(BadValue, match="Partition key p"):
            stream.begin()


def test_bad_records_do_not_keep_others_in_memory(acid: AcidSession, tmp_path: Path) -> None:
    class Record(dict[str, Any]):
        """What a weak reference can be made to."""

    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    kept = list[weakref.ref[Record]]()
    with acid.streaming("t", bad_records=str(tmp_path / "bad"), buffer_rows=10) as stream:
        stream.begin()
        for _ in range(3):
            records = [Record(id=i) for i in range(20)] + [Record(id="x")]
            kept += map(weakref.ref, records)
            assert stream.write(records) == 20
        del records
        gc.collect()
        assert not [one for one in kept if one() is not None]
        stream.commit()
    [found] = (tmp_path / "bad").glob("*.json")
    assert [json.loads(line)["record"] for line in found.read_text().splitlines()] == [{"id": "x"}] * 3


def test_bad_records_are_kept(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql(CONSTRAINED)
    reader, kept = Delimited(columns=["id", "v", "p"]), tmp_path / "bad"
    with acid.streaming("t", records=reader, bad_records=str(kept)) as stream:
        stream.begin()
        stream.write(MIXED)
        stream.abort()
        assert list(kept.glob("*")) == []
        stream.begin()
        stream.write(MIXED)
        assert list(kept.glob("*")) == []
        stream.commit()
    [found] = kept.glob("bad_records_*.json")
    lines = [json.loads(line) for line in found.read_text().splitlines()]
    assert [line["record"] for line in lines] == [line for i, line in enumerate(MIXED) if i not in (0, 7)]
    problems = ["'x' is no int", "Column v", "CHECK", "NOT NULL", "CHECK", "CHECK", "1 fields"]
    assert all(problem in line["error"] for problem, line in zip(problems, lines, strict=True)), lines
    assert rows(acid, "SELECT id FROM t") == [(1,), (5,)]


def test_checks_see_what_the_user_sees(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TABLE t (c char(4), at timestamp, s struct<at:timestamp>, CHECK (c = 'ab  '),"
        " CHECK (hour(at) = 12), CHECK (hour(s.at) = 13))"
        " PARTITIONED BY (p date) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    )
    good = {
        "c": "ab",
        "at": dt.datetime(2024, 2, 29, 12),
        "s": {"at": dt.datetime(2024, 2, 29, 13)},
        "p": dt.date(2024, 2, 29),
    }
    worse: list[dict[str, Any]] = [
        {"c": "a"},
        {"at": dt.datetime(2024, 2, 29, 13)},
        {"s": {"at": dt.datetime(2024, 2, 29, 12)}},
    ]
    with acid.streaming("t") as stream:
        stream.begin()
        for change in worse:
            with pytest.raises(BadValue, match="CHECK"):
                stream.write(good | change)
        stream.write([good, good | {"c": None}])
        stream.commit()
    assert len(rows(acid, "SELECT * FROM t")) == 2


@pytest.mark.parametrize("version", ["1", "2"])
def test_bucketed_tables(acid: AcidSession, spark: SparkSession, version: str) -> None:
    columns = "a int, b string, c timestamp, d decimal(10,2), e char(5), f date, g struct<x:int>"
    for name in ("t", "expected"):
        acid.sql(
            f"CREATE TABLE {name} ({columns}) CLUSTERED BY (a, b, c, d, e, f, g) INTO 5 BUCKETS STORED AS ORC"
            f" TBLPROPERTIES ('transactional'='true', 'bucketing_version'='{version}')"
        )
    noon = dt.datetime(2024, 3, 31, 2, 30)
    values = [
        (i, f"b{i}", noon - dt.timedelta(days=400 * i), Decimal(i), f"e{i}", dt.date(1500 + i, 1, 1), {"x": i})
        for i in range(40)
    ]
    with acid.streaming("t") as stream:
        stream.begin()
        stream.write(values)
        stream.commit()
    frame = spark.createDataFrame(values, acid.sql("SELECT * FROM expected").schema)
    acid.insert(frame, "expected")
    file = "regexp_extract(input_file_name(), 'bucket_([0-9]+)', 1)"
    query = f"SELECT a, (ROW__ID.bucketId >> 16) & 4095 AS b, {file} IS NOT NULL FROM"
    assert rows(acid, f"{query} t") == rows(acid, f"{query} expected")
    assert len({b for _, b, _ in rows(acid, f"{query} t")}) == 5


def test_instants(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (id int, at timestamp with local time zone,"
        " l array<struct<at:timestamp with local time zone>>)"
    )
    moment = dt.datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    with acid.streaming("t") as stream:
        stream.begin()
        stream.write([(1, moment, [{"at": moment}]), (2, None, None)])
        stream.write(pa.table({"id": [3], "at": pa.array([moment], pa.timestamp("us", "Asia/Tokyo"))}))
        with pytest.raises(BadValue, match="Column at"):
            stream.write(pa.table({"id": [4], "at": [17]}))
        stream.commit()
    acid.sql("SET TIME ZONE 'UTC'")
    text = "2024-02-29 10:00:00.000005"
    expected = [(1, text, text), (2, None, None), (3, text, None)]
    assert rows(acid, "SELECT id, CAST(at AS string), CAST(l[0].at AS string) FROM t") == expected


MOMENTS = [
    (year - 1970) * 31_557_600_000_000 + part * 5_259_600_000_000
    for year in (1583, 1850, 1890, 1918, 1920, 1939, 1950, 1969, 2023, 2036, 2038, 2040, 2086, 2100, 2438, 9998, 12_345)
    for part in range(6)
]
"""In microseconds since 1970: two months between those of a year."""


@pytest.mark.parametrize(
    "zone", ["America/New_York", "Europe/Amsterdam", "Australia/Lord_Howe", "Africa/Casablanca", "PST"]
)
def test_moments_of_all_years_are_those_that_insert_stores(acid: AcidSession, spark: SparkSession, zone: str) -> None:
    """Arrow knows no rules of zones after 2037, Python no years after 9999; both have other clocks before 1970."""
    acid.sql(f"SET TIME ZONE '{zone}'")
    frame = spark.createDataFrame(list(enumerate(MOMENTS)), "id int, m bigint")
    frame = frame.selectExpr("id", "timestamp_micros(m) AS v", "if(id % 11 = 0, timestamp_micros(m), NULL) AS p")
    utc = [dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=m) for m in MOMENTS[:-6]]
    for name in ("inserted", "streamed", "records"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int, v timestamp) PARTITIONED BY (p timestamp)")
    acid.insert(frame, "inserted")
    for name, source in (("streamed", frame), ("records", [(i, m, None) for i, m in enumerate(utc)])):
        with acid.streaming(name) as stream:
            stream.begin()
            stream.write(source)
            stream.commit()
    found = {
        n: rows(acid, f"SELECT id, CAST(v AS string), CAST(p AS string) FROM {n}") for n in ("inserted", "streamed")
    }
    assert found["streamed"] == found["inserted"]
    assert len(found["inserted"]) == len(MOMENTS)
    records = rows(acid, "SELECT id, CAST(v AS string) FROM records")
    assert records == [row[:2] for row in found["inserted"] if row[0] < len(utc)]


def test_days_after_the_year_9999_as_keys(acid: AcidSession, spark: SparkSession) -> None:
    days = spark.range(4).selectExpr("1 AS v", "date_add(DATE'9999-12-30', CAST(id AS int)) AS p")
    for name in ("inserted", "streamed"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (v int) PARTITIONED BY (p date)")
    acid.insert(days, "inserted")
    with acid.streaming("streamed") as stream:
        stream.begin()
        stream.write(days)
        stream.commit()
    assert rows(acid, "SHOW PARTITIONS streamed") == rows(acid, "SHOW PARTITIONS inserted")
    assert len(rows(acid, "SHOW PARTITIONS inserted")) == 4


def test_defaults_of_times_are_wall_clocks_of_the_session(acid: AcidSession) -> None:
    acid.sql("SET TIME ZONE 'Asia/Tokyo'")
    try:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, at timestamp DEFAULT TIMESTAMP'2024-02-29 12:00:00')")
        with acid.streaming("t") as stream:
            stream.begin()
            stream.write({"id": 1})
            stream.commit()
        acid.sql("INSERT INTO t (id) VALUES (2)")
        assert {at for _, at in rows(acid, "SELECT id, CAST(at AS string) FROM t")} == {"2024-02-29 12:00:00"}
    finally:
        acid.sql("SET TIME ZONE 'UTC'")


def test_a_batch_of_transactions(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.streaming("t", batch=3) as stream:
        for i in range(4):
            stream.begin()
            stream.write([(i,)])
            if i == 2:
                acid.sql("INSERT INTO t VALUES (-1)")
                stream.abort()
                acid.sql("INSERT OVERWRITE t VALUES (10)")
            else:
                stream.commit()
        assert len(rows(acid, "SHOW TRANSACTIONS")) == 2
    assert rows(acid, "SELECT * FROM t") == [(10,), (3,)]
    nothing_is_left(acid, warehouse)


def test_rows_that_come_after_others_have_replaced_the_table(acid: AcidSession) -> None:
    """The transactions of a batch are older than the base; their write ids must not be."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.streaming("t", batch=5) as stream:
        for i in range(4):
            stream.begin()
            stream.write([(i,)])
            stream.commit()
            acid.sql(f"INSERT OVERWRITE t VALUES ({i + 100})")
            acid.sql(f"UPDATE t SET id = id + 100 WHERE id = {i + 100}")
        stream.begin()
        stream.write([(5,)])
        stream.commit()
    assert rows(acid, "SELECT * FROM t") == [(203,), (5,)]


@pytest.mark.parametrize(
    "arguments",
    [{"batch": 0}, {"batch": True}, {"buffer_rows": -1}, {"buffer_bytes": "1m"}, {"bad_records": ""}],
)
def test_arguments_that_are_none(acid: AcidSession, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        acid.streaming("t", **arguments)


def test_keys_that_records_may_not_have(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    with acid.streaming("t", dynamic=False) as stream, pytest.raises(AnalysisError, match="p has no value"):
        stream.begin()
    assert rows(acid, "SHOW TRANSACTIONS") == []


@pytest.mark.parametrize("limit", [{"buffer_bytes": 1000}, {"buffer_rows": 250}])
def test_a_large_transaction_is_written_in_parts(acid: AcidSession, limit: dict[str, int]) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.streaming("t", **limit) as stream:
        stream.begin()
        for start in range(0, 1000, 100):
            stream.write(pa.table({"ID": list(range(start, start + 100))}))
        assert rows(acid, "SELECT count(*) FROM t") == [(0,)]
        stream.commit()
    assert rows(acid, "SELECT count(*), count(DISTINCT id), count(DISTINCT ROW__ID) FROM t") == [(1000, 1000, 1000)]
    assert acid.sql("DELETE FROM t WHERE id % 2 = 0").collect()[0].num_deleted_rows == 500
    assert rows(acid, "SELECT count(*), sum(id % 2) FROM t") == [(500, 500)]


def test_the_table_is_changed_between_transactions(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.streaming("t") as stream:
        stream.begin()
        stream.write([(1,)])
        stream.commit()
        acid.sql("ALTER TABLE t ADD COLUMNS (v string)")
        stream.begin()
        stream.write([(2, "x")])
        stream.commit()
        acid.sql("INSERT OVERWRITE t VALUES (3, 'y')")
        stream.begin()
        stream.write([(4, "z")])
        stream.commit()
        assert rows(acid, "SELECT * FROM t") == [(3, "y"), (4, "z")]
        acid.sql("DROP TABLE t")
        with pytest.raises(TableNotFound):
            stream.begin()
        assert rows(acid, "SHOW TRANSACTIONS") == []


def test_a_transaction_that_others_have_ended(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.streaming("t") as stream:
        stream.begin()
        stream.write([(1,)])
        [(txn, *_)] = rows(acid, "SHOW TRANSACTIONS")
        acid.sql(f"ABORT TRANSACTIONS {txn}")
        with pytest.raises(TransactionError):
            stream.commit()
        stream.begin()
        stream.write([(2,)])
        stream.commit()
    assert rows(acid, "SELECT id FROM t") == [(2,)]
    nothing_is_left(acid, warehouse)


def test_several_connections_at_once(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            with acid.streaming("t") as stream:
                for i in range(10):
                    stream.begin()
                    stream.write([(number * 100 + i, i % 3)])
                    stream.commit()
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rows(acid, "SELECT count(*), count(DISTINCT id) FROM t") == [(40, 40)]


def test_keys_of_all_types_have_the_texts_of_insert(acid: AcidSession, spark: SparkSession) -> None:
    keys: dict[str, list[Any]] = {
        "double": [0.0, -0.0, float("nan"), float("nan"), 1e300, 0.1],
        "float": [0.5, -0.0, 0.0],
        "decimal(10,3)": [Decimal("1.500"), Decimal("0"), Decimal("-2.25")],
        "timestamp": [
            dt.datetime(2024, 2, 29, 12),
            dt.datetime(1500, 1, 1, 0, 0, 0, 5),
            dt.datetime(2024, 3, 31, 2, 30),
        ],
        "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        "char(4)": ["a", "ab  ", ""],
        "string": ["a/b", "x=1", "é", " ", "__HIVE_DEFAULT_PARTITION__", "%41"],
        "boolean": [True, False],
        "bigint": [-(2**63), 2**63 - 1],
    }
    for number, (type, values) in enumerate(keys.items()):
        for name in ("t", "expected"):
            acid.sql(f"CREATE TRANSACTIONAL TABLE {name}{number} (id int) PARTITIONED BY (p {type})")
        listed = [(i, value) for i, value in enumerate([*values, None])]
        schema = acid.sql(f"SELECT * FROM expected{number}").schema
        acid.insert(spark.createDataFrame(listed, schema), f"expected{number}")
        with acid.streaming(f"t{number}") as stream:
            stream.begin()
            stream.write(listed)
            stream.commit()
        assert rows(acid, f"SHOW PARTITIONS t{number}") == rows(acid, f"SHOW PARTITIONS expected{number}"), type
        assert repr(rows(acid, f"SELECT * FROM t{number}")) == repr(rows(acid, f"SELECT * FROM expected{number}")), type


def test_the_table_is_that_of_the_beginning_whatever_database_is_used(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("CREATE DATABASE other")
    acid.sql("CREATE TRANSACTIONAL TABLE other.t (id int)")
    sink = acid.sink("t")
    with acid.streaming("t") as stream:
        acid.sql("USE other")
        stream.begin()
        stream.write([(1,)])
        stream.commit()
    sink(acid.spark.sql("SELECT 2 AS id"), 0)
    acid.sql("USE default")
    assert rows(acid, "SELECT * FROM other.t") == []
    assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]


def test_a_session_that_is_closed_closes_its_connections(spark: SparkSession, tmp_path: Path) -> None:
    with acidsql.connect(spark, warehouse=tmp_path / "w") as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        stream = acid.streaming("t", batch=2)
        stream.begin()
        stream.write([(1,)])
    with pytest.raises(TransactionError, match="closed"):
        stream.commit()
    with acidsql.connect(spark, warehouse=tmp_path / "w") as acid:
        assert rows(acid, "SELECT * FROM t") == []
        nothing_is_left(acid, tmp_path / "w")


def test_a_connection_that_is_garbage_ends_its_transactions(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    stream = acid.streaming("t", batch=3, buffer_rows=1)
    stream.begin()
    stream.write([(1,)])
    assert len(rows(acid, "SHOW TRANSACTIONS")) == 3
    del stream
    gc.collect()
    acid._env.heartbeats.end_released()
    assert [row[1] for row in rows(acid, "SHOW TRANSACTIONS")] in ([], ["ABORTED"])
    acid.compactor.run_once()
    nothing_is_left(acid, warehouse)
    assert rows(acid, "SELECT * FROM t") == []
    acid.sql("INSERT OVERWRITE t VALUES (2)")
    assert rows(acid, "SELECT * FROM t") == [(2,)]


def test_a_table_that_is_not_there(acid: AcidSession) -> None:
    with acid.streaming("nope") as stream, pytest.raises(AcidError, match="nope"):
        stream.begin()
    assert rows(acid, "SHOW TRANSACTIONS") == []
