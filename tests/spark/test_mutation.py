"""Mutations: workers change rows by their ids, in one transaction, which is held against the table at its commit."""

from __future__ import annotations

import datetime as dt
import gc
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql import functions as F

import acidsql
from acidsql.commands.transaction.held import HeldTransactions
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import (
    AcidError,
    AnalysisError,
    ConstraintViolation,
    InvalidValue,
    NotTransactional,
    StorageError,
    TableNotFound,
    TransactionError,
    UnsupportedError,
)
from acidsql.session import AcidSession
from acidsql.streaming import BadValue, Mutation, MutationTask, MutationWorker, NoSuchRow, OutOfOrder, Written
from tests.spark.hive_tables import register

pytestmark = pytest.mark.spark


def rows(acid: AcidSession, text: str) -> list[tuple[Any, ...]]:
    """An answer in its own order."""
    return [tuple(row) for row in acid.sql(text).collect()]


def nothing_is_left(acid: AcidSession, warehouse: Path) -> None:
    assert rows(acid, "SHOW TRANSACTIONS") == []
    assert rows(acid, "SHOW LOCKS") == []
    assert list(warehouse.rglob("_tmp_*")) == []


def ids(mutation: Mutation) -> dict[Any, Row]:
    """The rows of a mutation by their first column."""
    return {row[0]: row for row in mutation.rows().collect()}


def alone(mutation: Mutation, change: Callable[[MutationWorker], object]) -> tuple[int, ...]:
    """The counts of a mutation with one worker, in this process."""
    [task] = mutation.tasks(1)
    with task.open() as worker:
        change(worker)
    return tuple(mutation.commit([worker.written]).collect()[0])


@pytest.mark.parametrize("count", [3, 5, 700, 1365, 2048])
def test_tasks_share_the_statements_of_a_transaction(emp: AcidSession, count: int) -> None:
    """However many there are, none writes as the statement of another one."""
    with emp.mutation("emp", buffer_rows=1) as mutation:
        known = ids(mutation)
        written = []
        for number, task in enumerate(mutation.tasks(count)):
            with task.open() as worker:
                for n in (1, 2, 3) if number < 2 else ():
                    if number == 0:
                        worker.insert((n + 9, None, None))
                    else:
                        worker.update(known[n].ROW__ID, (n, "new", None))
            written.append(worker.written)
        mutation.commit(written)
    assert rows(emp, "SELECT id, name FROM emp ORDER BY id") == [
        (1, "new"),
        (2, "new"),
        (3, "new"),
        (4, "di"),
        (10, None),
        (11, None),
        (12, None),
    ]


@pytest.fixture
def emp(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string, pay decimal(8,2))")
    acid.sql("INSERT INTO emp VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'cy', 30), (4, 'di', 40)")
    return acid


def test_rows_are_inserted_updated_and_deleted_in_one_transaction(emp: AcidSession, warehouse: Path) -> None:
    with emp.mutation("emp") as mutation:
        found = ids(mutation)

        def change(worker: MutationWorker) -> None:
            worker.update(found[2]["ROW__ID"], {**found[2].asDict(), "pay": Decimal("21.5")})
            worker.delete(found[3]["ROW__ID"])
            worker.insert((5, "ed", Decimal(50)))
            worker.insert({"ID": 6, "name": None, "pay": None})

        assert rows(emp, "SELECT count(*) FROM emp") == [(4,)]
        assert alone(mutation, change) == (4, 1, 1, 2)
    expected = [
        (1, "ann", Decimal("10.00")),
        (2, "bob", Decimal("21.50")),
        (4, "di", Decimal("40.00")),
        (5, "ed", Decimal("50.00")),
        (6, None, None),
    ]
    assert rows(emp, "SELECT * FROM emp ORDER BY id") == expected
    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    assert rows(emp, "SELECT * FROM emp ORDER BY id") == expected
    assert rows(emp, "SELECT count(DISTINCT ROW__ID) FROM emp") == [(5,)]
    nothing_is_left(emp, warehouse)


def test_workers_are_tasks_of_spark(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t SELECT id, 'old', id % 3 FROM range(3000)")
    acid.sql("UPDATE t SET v = 'older' WHERE k % 5 = 0")
    with acid.mutation("t", buffer_rows=100) as mutation:
        tasks = mutation.tasks(3)

        def work(number: int, part: Iterable[Row]) -> Iterable[Written]:
            with tasks[number].open() as worker:
                for row in part:
                    if row.k % 2:
                        worker.delete(row["ROW__ID"], row.asDict())
                    else:
                        worker.update(row["ROW__ID"], (row.k, "new", row.p))
                for i in range(10):
                    worker.insert((10_000 + 10 * number + i, "more", number % 2 + 2))
            yield worker.written

        changed = mutation.sorted(mutation.rows().where("k % 4 < 2"))
        written = changed.rdd.mapPartitionsWithIndex(work).collect()
        assert tuple(mutation.commit(written).collect()[0]) == (1530, 750, 750, 30)
    old = {k: ("older" if k % 5 == 0 else "old", k % 3) for k in range(3000) if k % 4 > 1}
    new = {k: ("new", k % 3) for k in range(0, 3000, 4)}
    more = {10_000 + 10 * n + i: ("more", n % 2 + 2) for n in range(3) for i in range(10)}
    expected = sorted((k, *rest) for k, rest in {**old, **new, **more}.items())
    assert rows(acid, "SELECT k, v, p FROM t ORDER BY k") == expected
    assert rows(acid, "SHOW PARTITIONS t") == [("p=0",), ("p=1",), ("p=2",), ("p=3",)]
    acid.sql("ALTER TABLE t PARTITION (p = 2) COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT k, v, p FROM t ORDER BY k") == expected
    nothing_is_left(acid, warehouse)


WORKER = """
import pickle, sys
task, changes = pickle.load(sys.stdin.buffer)
with task.open() as worker:
    for name, *given in changes:
        getattr(worker, name)(*given)
context = sys.modules.get("pyspark.core.context")
assert context is None or context.SparkContext._active_spark_context is None
sys.stdout.buffer.write(pickle.dumps(worker.written))
"""


def elsewhere(task: MutationTask, changes: list[tuple[Any, ...]]) -> Written:
    """A worker in a process of its own, that has neither Spark nor the store."""
    given = pickle.dumps((task, changes))
    done = subprocess.run([sys.executable, "-c", WORKER], input=given, capture_output=True, check=True, timeout=120)
    written: Written = pickle.loads(done.stdout)
    return written


def test_workers_are_other_processes(emp: AcidSession, warehouse: Path) -> None:
    with emp.mutation("emp") as mutation:
        found = {k: tuple(row["ROW__ID"]) for k, row in ids(mutation).items()}
        one, two = mutation.tasks(2)
        first = elsewhere(one, [("delete", found[1]), ("insert", (7, "gil", Decimal(1)))])
        second = elsewhere(two, [("update", found[4], (4, "dora", Decimal(41))), ("insert", (8, "hal", Decimal(2)))])
        mutation.commit([second, first])
    assert rows(emp, "SELECT id, name FROM emp ORDER BY id") == [
        (2, "bob"), (3, "cy"), (4, "dora"), (7, "gil"), (8, "hal")
    ]  # fmt: skip
    nothing_is_left(emp, warehouse)


class TestOfRowsThatAreNotThere:
    def refused(self, acid: AcidSession, change: Callable[[MutationWorker, dict[Any, Row]], object]) -> None:
        before = rows(acid, "SELECT *, ROW__ID FROM emp ORDER BY id")
        with acid.mutation("emp") as mutation:
            found = ids(mutation)
            with pytest.raises(NoSuchRow):
                alone(mutation, lambda worker: change(worker, found))
        assert rows(acid, "SELECT *, ROW__ID FROM emp ORDER BY id") == before

    def test_one_that_never_was(self, emp: AcidSession, warehouse: Path) -> None:
        self.refused(emp, lambda worker, _: worker.delete((1, 536870912, 99)))
        self.refused(emp, lambda worker, _: worker.update((77, 536870912, 0), (1, "x", None)))
        nothing_is_left(emp, warehouse)

    def test_one_that_was_changed_since_it_was_read(self, emp: AcidSession, warehouse: Path) -> None:
        stale = emp.sql("SELECT id, ROW__ID FROM emp").collect()
        emp.sql("UPDATE emp SET pay = 0 WHERE id = 1")
        [one] = [row["ROW__ID"] for row in stale if row.id == 1]
        self.refused(emp, lambda worker, _: worker.update(one, (1, "x", None)))
        nothing_is_left(emp, warehouse)

    def test_one_that_two_workers_name(self, emp: AcidSession, warehouse: Path) -> None:
        with emp.mutation("emp") as mutation:
            [row] = [row["ROW__ID"] for row in mutation.rows().where("id = 2").collect()]
            written = []
            for task in mutation.tasks(2):
                with task.open() as worker:
                    worker.delete(row)
                written.append(worker.written)
            with pytest.raises(NoSuchRow, match=r"Of 2 row ids .* 1 name"):
                mutation.commit(written)
        assert rows(emp, "SELECT count(*) FROM emp") == [(4,)]
        nothing_is_left(emp, warehouse)


def test_an_insert_beside_it_is_not_seen_and_stays(emp: AcidSession, warehouse: Path) -> None:
    """INSERT does not wait for the lock of an UPDATE; what it commits is not the mutation's, nor counted."""
    with acidsql.connect(emp.spark, warehouse=str(warehouse)) as other, emp.mutation("emp") as mutation:
        found = ids(mutation)
        other.sql("INSERT INTO emp VALUES (9, 'ike', 90)")
        assert mutation.rows().count() == 4
        assert alone(mutation, lambda worker: worker.delete(found[1]["ROW__ID"])) == (1, 0, 1, 0)
    assert rows(emp, "SELECT id FROM emp ORDER BY id") == [(2,), (3,), (4,), (9,)]
    nothing_is_left(emp, warehouse)


def test_an_update_waits_for_it(emp: AcidSession, warehouse: Path) -> None:
    settings = {"hive.lock.numretries": 1, "hive.lock.sleep.between.retries": "100ms"}
    with acidsql.connect(emp.spark, warehouse=str(warehouse), settings=settings) as other:
        with emp.mutation("emp"), pytest.raises(AcidError, match=r"(?i)lock"):
            other.sql("UPDATE emp SET pay = 1 WHERE id = 1")
        other.sql("UPDATE emp SET pay = 1 WHERE id = 1")
    nothing_is_left(emp, warehouse)


class TestTheOrder:
    def test_is_that_of_the_files(self, acid: AcidSession, warehouse: Path) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE t (k int) PARTITIONED BY (p string)")
        acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b')")
        with acid.mutation("t") as mutation:
            found = {k: row["ROW__ID"] for k, row in ids(mutation).items()}
            [task] = mutation.tasks(1)
            with task.open() as worker:
                worker.delete(found[2], {"p": "a"})
                for row in (found[1], found[2]):
                    with pytest.raises(OutOfOrder):
                        worker.delete(row, {"P": "a"})
                worker.delete(found[3], {"p": "b"})
                with pytest.raises(OutOfOrder):
                    worker.update(found[1], (1, "a"))
            mutation.commit([worker.written])
        assert rows(acid, "SELECT k FROM t") == [(1,)]
        nothing_is_left(acid, warehouse)

    def test_holds_from_one_file_that_is_written_to_the_next(self, acid: AcidSession) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE t (k int)")
        acid.sql("INSERT INTO t SELECT id FROM range(10)")
        with acid.mutation("t", buffer_rows=2) as mutation:
            found = [row["ROW__ID"] for row in mutation.rows().orderBy("ROW__ID").collect()]
            [task] = mutation.tasks(1)
            with task.open() as worker:
                for row in found[:5]:
                    worker.delete(row)
                with pytest.raises(OutOfOrder):
                    worker.delete(found[1])
            mutation.commit([worker.written])
        assert rows(acid, "SELECT count(*) FROM t") == [(5,)]


class TestRecords:
    @pytest.mark.parametrize(
        ("record", "message"),
        [
            ((1, "x"), "values"),
            ({"id": 1, "name": "x"}, "Column pay has no value"),
            ({"id": 1, "name": "x", "pay": 1, "q": 1}, "no column q"),
            (("1", "x", 1), "Column id"),
            ((1 << 31, "x", 1), "Column id"),
            ((1, "x", Decimal("12345678")), "Column pay"),
            ((None, "x", 1), "NOT NULL"),
            (5, "no record"),
        ],
    )
    def test_that_cannot_be_stored_are_refused_and_the_worker_goes_on(
        self, acid: AcidSession, warehouse: Path, record: Any, message: str
    ) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE emp (id int NOT NULL, name string, pay decimal(8,2))")
        acid.sql("INSERT INTO emp VALUES (1, 'a', 1)")
        with acid.mutation("emp") as mutation:
            [row] = mutation.rows().collect()
            [task] = mutation.tasks(1)
            with task.open() as worker:
                for change in (worker.insert, lambda r: worker.update(row["ROW__ID"], r)):
                    with pytest.raises(BadValue, match=message):
                        change(record)
                worker.update(row["ROW__ID"], (1, "b", 2))
            mutation.commit([worker.written])
        assert rows(acid, "SELECT * FROM emp") == [(1, "b", Decimal("2.00"))]
        nothing_is_left(acid, warehouse)

    @pytest.mark.parametrize(
        "given", [None, 5, "abc", (1, 2), (1, 2, "3"), (1, 2, True), {"writeId": 1}, (1, 1 << 31, 0), (1 << 63, 1, 0)]
    )
    def test_row_ids_that_are_none(self, emp: AcidSession, given: Any) -> None:
        with emp.mutation("emp") as mutation:
            [task] = mutation.tasks(1)
            worker = task.open()
            with pytest.raises(BadValue, match="is no ROW__ID"):
                worker.delete(given)
            worker.discard()

    def test_of_all_types_come_back_as_they_were(self, acid: AcidSession, warehouse: Path) -> None:
        """In a zone whose clocks were put forward, which Python's process is not in."""
        acid.sql("SET TIME ZONE 'America/New_York'")
        acid.sql(
            "CREATE TRANSACTIONAL TABLE t (k int, a tinyint, b smallint, c bigint, d float, e double, f decimal(38,18),"
            " g date, h timestamp, i string, j char(5), l varchar(5), m boolean, n binary, o array<timestamp>,"
            " p map<string, date>, q struct<x: int, y: array<string>>)"
        )
        acid.sql(
            "INSERT INTO t VALUES (1, 127, -32768, 9223372036854775807, float('nan'), -0.0D, 0.000000000000000001,"
            " DATE'0001-01-01', TIMESTAMP'1500-03-01 12:34:56.789', '', 'ab', 'cd ', true, X'00ff',"
            " array(TIMESTAMP'2024-11-03 01:30:00', NULL), map('d', DATE'1582-10-04'),"
            " named_struct('x', 1, 'y', array('z', NULL))),"
            " (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        )
        text = "SELECT * EXCEPT (k), to_json(struct(*)) AS j FROM t ORDER BY k"
        before = [str(row) for row in rows(acid, text)]
        with acid.mutation("t") as mutation:
            found = ids(mutation)
            [task] = mutation.tasks(1)
            with task.open() as worker:
                for k in (1, 2):
                    worker.update(found[k]["ROW__ID"], found[k].asDict(recursive=True))
            mutation.commit([worker.written])
        assert [str(row) for row in rows(acid, text)] == before
        nothing_is_left(acid, warehouse)


class TestPartitions:
    def test_are_found_by_the_values_of_their_keys(self, acid: AcidSession, warehouse: Path) -> None:
        keys = "a decimal(5,2), b char(3), c date, d double, e boolean"
        acid.sql(f"CREATE TRANSACTIONAL TABLE t (k int) PARTITIONED BY ({keys})")
        acid.sql("INSERT INTO t VALUES (1, 1.50, 'x', DATE'2024-02-29', 0.1D, true), (2, NULL, '', NULL, NULL, NULL)")
        with acid.mutation("t") as mutation:
            found = ids(mutation)
            [task] = mutation.tasks(1)
            with task.open() as worker:
                for k in sorted(found, key=lambda k: found[k]["ROW__ID"]):
                    worker.update(found[k]["ROW__ID"], {**found[k].asDict(), "k": k + 10})
                    worker.insert({**found[k].asDict(), "k": k + 20})
                with pytest.raises(BadValue, match="no partition for"):
                    worker.insert((3, Decimal("1.25"), "x", dt.date(2024, 2, 29), 0.1, True))
                with pytest.raises(BadValue, match="has no partition"):
                    worker.delete((1, 536870912, 0), {**found[1].asDict(), "e": False})
            mutation.commit([worker.written])
        assert len(rows(acid, "SHOW PARTITIONS t")) == 2
        answer = rows(acid, "SELECT k, a, b, c, d, e FROM t ORDER BY k")
        assert [row[0] for row in answer] == [11, 12, 21, 22]
        assert answer[0][1:] == answer[2][1:] == (Decimal("1.50"), "x  ", dt.date(2024, 2, 29), 0.1, True)
        nothing_is_left(acid, warehouse)

    def test_are_made_on_the_way_where_their_text_is_plain(self, acid: AcidSession, warehouse: Path) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE t (k int) PARTITIONED BY (a bigint, b string, c date, d boolean)")
        values = [
            (1, -5, "a/b=c %", dt.date(999, 1, 2), True),
            (2, None, "", None, False),
            (3, 0, "é", dt.date(2024, 2, 29), None),
        ]
        with acid.mutation("t") as mutation:
            assert alone(mutation, lambda worker: [worker.insert(v) for v in values]) == (3, 0, 0, 3)
        stored = [(k, a, b or None, c, d) for k, a, b, c, d in values]
        assert rows(acid, "SELECT * FROM t ORDER BY k") == stored
        names = rows(acid, "SHOW PARTITIONS t")
        acid.sql("INSERT INTO t SELECT * FROM t")
        assert rows(acid, "SHOW PARTITIONS t") == names
        nothing_is_left(acid, warehouse)


def test_buckets_are_told_and_checked(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int, v string) CLUSTERED BY (v) INTO 4 BUCKETS")
    acid.sql("INSERT INTO t SELECT id, concat('v', id) FROM range(50)")
    with acid.mutation("t") as mutation:
        new = acid.spark.range(50, 100).selectExpr("CAST(id AS int) AS k", "concat('v', id) AS v")
        assert mutation.bucketed(new.toDF("k", "v").withColumn("c0", F.lit(1)), "b").columns == ["k", "v", "c0", "b"]
        found = mutation.bucketed(new, "number").collect()
        [task] = mutation.tasks(1)
        with task.open() as worker:
            for row in found:
                worker.insert((row.k, row.v), bucket=row.number)
            with pytest.raises(BadValue, match="bucket"):
                worker.insert((1, "x"))
            with pytest.raises(BadValue, match="no bucket 4"):
                worker.insert((1, "x"), bucket=4)
        mutation.commit([worker.written])
    acid.sql("CREATE TRANSACTIONAL TABLE u (k int, v string) CLUSTERED BY (v) INTO 4 BUCKETS")
    acid.sql("INSERT INTO u SELECT * FROM t")
    where = "SELECT k, shiftright(ROW__ID.bucketId, 16) & 4095 FROM {} ORDER BY k"
    assert rows(acid, where.format("t")) == rows(acid, where.format("u"))
    with acid.mutation("t") as mutation:
        row = ids(mutation)[7]
        with pytest.raises(InvalidValue, match="buckets that are not theirs"):
            alone(mutation, lambda worker: worker.update(row["ROW__ID"], (7, "another")))
    with acid.mutation("t") as mutation, pytest.raises(InvalidValue, match="buckets that are not theirs"):
        alone(mutation, lambda worker: [worker.insert((1, "x"), bucket=b) for b in range(4)])
    assert rows(acid, "SELECT count(*), max(v) FROM t") == [(100, "v99")]
    nothing_is_left(acid, warehouse)


@pytest.mark.parametrize("type", ["timestamp", "date", "decimal(10,3)", "char(4)", "double", "array<timestamp>"])
def test_buckets_are_those_of_insert_in_any_zone(acid: AcidSession, warehouse: Path, type: str) -> None:
    acid.sql("SET TIME ZONE 'America/New_York'")  # the clocks that are passed over in March are stored all the same
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (k int, v {type}) CLUSTERED BY (v) INTO 8 BUCKETS")
    value = {
        "timestamp": "timestamp_seconds(1710054000 + id * 600)",
        "date": "date_add(DATE'1500-02-01', CAST(id AS int))",
        "decimal(10,3)": "CAST(id / 8 AS decimal(10,3))",
        "char(4)": "CAST(id AS string)",
        "double": "CAST(id / 3 AS double)",
        "array<timestamp>": "array(timestamp_seconds(1710054000 + id * 600), NULL)",
    }[type]
    acid.sql("SET TIME ZONE 'UTC'")
    acid.sql(f"INSERT INTO t SELECT id, {value} FROM range(40)")
    acid.sql("SET TIME ZONE 'America/New_York'")
    where = "SELECT k, shiftright(ROW__ID.bucketId, 16) & 4095 FROM t ORDER BY k"
    before = rows(acid, where)
    with acid.mutation("t") as mutation:
        numbered = mutation.bucketed(mutation.rows().drop("ROW__ID"), "b").orderBy("k")
        assert [(row.k, row.b) for row in numbered.select("k", "b").collect()] == before
        found = numbered.collect()

        def change(worker: MutationWorker, part: Iterable[Row]) -> None:
            for row in part:
                worker.delete(row["ROW__ID"])
            for row in found:
                worker.insert((row.k, row.v), bucket=row.b)

        mutation.commit(mutation.run(mutation.rows(), change, tasks=1))
    assert rows(acid, where) == before
    nothing_is_left(acid, warehouse)


def test_conditions_are_held_against_new_rows(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int, at timestamp, CHECK (k > 0 AND hour(at) < 12))")
    acid.sql("SET TIME ZONE 'Asia/Tokyo'")
    acid.sql("INSERT INTO t VALUES (1, TIMESTAMP'2024-01-01 11:00:00')")
    for bad in ((0, None), (2, dt.datetime(2024, 1, 1, 12))):
        with acid.mutation("t") as mutation, pytest.raises(ConstraintViolation, match="CHECK"):
            alone(mutation, lambda worker, bad=bad: worker.insert(bad))
    with acid.mutation("t") as mutation:
        alone(mutation, lambda worker: worker.insert((2, dt.datetime(2024, 1, 1, 11, 59))))
    assert rows(acid, "SELECT k FROM t ORDER BY k") == [(1,), (2,)]
    nothing_is_left(acid, warehouse)


class TestTheClient:
    def test_wants_what_every_task_has_written_once(self, emp: AcidSession, warehouse: Path) -> None:
        def written(tasks: Iterable[MutationTask]) -> list[Written]:
            return [task.open().close() for task in tasks]

        with emp.mutation("emp") as mutation, pytest.raises(TransactionError, match=r"Task 1 of 2 .* nothing"):
            mutation.commit(written(mutation.tasks(2))[:1])
        with emp.mutation("emp") as mutation, pytest.raises(TransactionError, match="Task 0 has handed in twice"):
            mutation.commit(written([*mutation.tasks(2)[:1]]) * 2)
        with emp.mutation("emp") as first:
            other = written(first.tasks(1))
        with emp.mutation("emp") as mutation:
            mutation.tasks(1)
            with pytest.raises(TransactionError, match="not written for this mutation"):
                mutation.commit(other)
        nothing_is_left(emp, warehouse)

    def test_takes_one_of_two_attempts_and_removes_the_other(self, emp: AcidSession, warehouse: Path) -> None:
        with emp.mutation("emp") as mutation:
            [task] = mutation.tasks(1)
            written = []
            for _ in range(3):
                worker = task.open()
                worker.insert((7, "g", None))
                written.append(worker.close())
            assert len(list(warehouse.rglob("_tmp_*"))) == 3
            mutation.commit(written[1:2])
        assert rows(emp, "SELECT id FROM emp WHERE id > 4") == [(7,)]
        nothing_is_left(emp, warehouse)

    def test_is_over_after_its_end(self, emp: AcidSession, warehouse: Path) -> None:
        mutation = emp.mutation("emp")
        [task] = mutation.tasks(1)
        with pytest.raises(TransactionError, match="its tasks already"):
            mutation.tasks(1)
        mutation.abort()
        with pytest.raises(TransactionError, match="over"):
            mutation.commit([])
        mutation.close()
        for call in (mutation.rows, mutation.abort, lambda: mutation.tasks(1)):
            with pytest.raises(TransactionError, match="over"):
                call()
        nothing_is_left(emp, warehouse)
        late = task.open()
        late.insert((9, "late", None))
        late.close()
        assert rows(emp, "SELECT count(*) FROM emp") == [(4,)]
        emp.compactor.run_once()

    @pytest.mark.parametrize("count", [0, -1, 2049, True, 1.5])
    def test_has_a_number_of_tasks(self, emp: AcidSession, count: Any) -> None:
        with emp.mutation("emp") as mutation, pytest.raises(InvalidValue):
            mutation.tasks(count)

    def test_that_is_forgotten_ends(self, emp: AcidSession, warehouse: Path) -> None:
        mutation = emp.mutation("emp")
        assert len(rows(emp, "SHOW LOCKS")) > 0
        del mutation
        gc.collect()
        emp.compactor.run_once()
        nothing_is_left(emp, warehouse)

    def test_ends_with_the_session(self, emp: AcidSession, warehouse: Path) -> None:
        with acidsql.connect(emp.spark, warehouse=str(warehouse)) as other:
            mutation = other.mutation("emp")
            other.close()
            with pytest.raises(TransactionError, match="over"):
                mutation.tasks(1)
        nothing_is_left(emp, warehouse)

    def test_that_waits_for_its_lock_ends_with_the_session(self, emp: AcidSession, warehouse: Path) -> None:
        settings = {"hive.lock.sleep.between.retries": "100ms"}
        other = acidsql.connect(emp.spark, warehouse=str(warehouse), settings=settings)
        with ThreadPoolExecutor(2) as pool:
            with emp.mutation("emp"):
                waiting = pool.submit(other.mutation, "emp")
                while not any("WAITING" in str(row) for row in rows(emp, "SHOW LOCKS")):
                    assert not waiting.done()
                closing = pool.submit(other.close)
            mutation = waiting.result()
            closing.result()
        with pytest.raises(TransactionError, match="over"):
            mutation.tasks(1)
        nothing_is_left(emp, warehouse)

    def test_is_told_what_it_cannot_change(self, acid: AcidSession, warehouse: Path) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE a (k int) TBLPROPERTIES ('transactional_properties' = 'insert_only')")
        acid.sql("CREATE TRANSACTIONAL TABLE b (k timestamp with local time zone)")
        acid.sql("CREATE TRANSACTIONAL TABLE c (k int) PARTITIONED BY (p timestamp)")
        for name, error in (
            ("a", NotTransactional),
            ("b", UnsupportedError),
            ("c", UnsupportedError),
            ("d", TableNotFound),
        ):
            with pytest.raises(error):
                acid.mutation(name)
        with pytest.raises(InvalidValue):
            acid.mutation("a", buffer_rows=0)
        nothing_is_left(acid, warehouse)

    def test_one_whose_transaction_was_aborted_says_so(self, emp: AcidSession, warehouse: Path) -> None:
        with emp.mutation("emp") as mutation:
            [task] = mutation.tasks(1)
            with task.open() as worker:
                worker.insert((9, "x", None))
            emp.sql(f"ABORT TRANSACTIONS {task.txn_id}")
            with pytest.raises(TransactionError, match="abort"):
                mutation.commit([worker.written])
        assert rows(emp, "SELECT count(*) FROM emp") == [(4,)]
        emp.compactor.run_once()
        nothing_is_left(emp, warehouse)


def test_large_rows_are_written_before_there_are_many(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acidsql.streaming.worker._BUFFER_BYTES", 1 << 20)
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int, v array<string>)")
    with acid.mutation("t") as mutation:
        [task] = mutation.tasks(1)
        with task.open() as worker:
            for k in range(10):
                worker.insert((k, ["x" * 300_000, None]))
                assert len(worker._rows) < 4
        mutation.commit([worker.written])
    assert rows(acid, "SELECT count(DISTINCT k), sum(length(v[0])) FROM t") == [(10, 3_000_000)]
    assert rows(acid, "SELECT count(DISTINCT ROW__ID.bucketId) FROM t") == [(3,)]


@pytest.mark.parametrize("condition", ["p = 77", "false", "k > 100", "k = NULL"])
def test_of_no_rows_every_task_is_run_all_the_same(acid: AcidSession, warehouse: Path, condition: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 0), (2, 1)")

    def change(worker: MutationWorker, rows: Iterable[Row]) -> None:
        assert list(rows) == []
        worker.insert((10 + worker.task.number, 0))

    with acid.mutation("t") as mutation:
        written = mutation.run(mutation.rows().where(condition), change, tasks=3)
        assert tuple(mutation.commit(written).collect()[0]) == (3, 0, 0, 3)
    assert rows(acid, "SELECT k FROM t ORDER BY k") == [(1,), (2,), (10,), (11,), (12,)]
    nothing_is_left(acid, warehouse)


def test_a_run_that_failed_is_run_again(emp: AcidSession, warehouse: Path) -> None:
    def generator(worker: MutationWorker, rows: Iterable[Row]) -> Iterator[None]:
        worker.insert((1, "never", None))
        yield

    def failing(worker: MutationWorker, rows: Iterable[Row]) -> None:
        worker.insert((1, "not there", None))
        raise ZeroDivisionError

    def change(worker: MutationWorker, rows: Iterable[Row]) -> None:
        for row in rows:
            worker.delete(row["ROW__ID"])

    with emp.mutation("emp") as mutation:
        for bad, message in ((generator, "is a generator"), (failing, "ZeroDivisionError")):
            with pytest.raises(Exception, match=message):
                mutation.run(mutation.rows(), bad, tasks=2)
        assert tuple(mutation.commit(mutation.run(mutation.rows(), change, tasks=2)).collect()[0]) == (4, 0, 4, 0)
    assert rows(emp, "SELECT * FROM emp") == []
    nothing_is_left(emp, warehouse)


@pytest.mark.parametrize("type", ["double", "float", "decimal(3,1)", "string", "char(3)", "boolean", "date"])
def test_partitions_of_keys_of_all_types_are_taken_in_order(acid: AcidSession, warehouse: Path, type: str) -> None:
    values = {
        "double": ["0.0", "-0.0", "NaN", "Infinity", "0.1", None],
        "decimal(3,1)": ["1.5", "-1.5", "0", None],
        "string": ["", " ", "a", "A", "a ", "ä%=", "01", None],
        "boolean": ["true", "false", None],
        "date": ["2024-02-29", "0001-01-01", "1582-10-10", None],
    }
    texts = values.get(type) or values["double" if type == "float" else "string"]
    listed = ", ".join("NULL" if text is None else f"'{text}'" for text in texts)
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (k bigint, v int) PARTITIONED BY (p {type})")
    one = f"CAST(array({listed})[id % {len(texts)}] AS {type})"
    acid.sql(f"INSERT INTO t SELECT id, 0, {one} FROM range(60)")
    before = rows(acid, "SELECT k, v + 1, CAST(p AS string) FROM t ORDER BY k")

    def change(worker: MutationWorker, rows: Iterable[Row]) -> None:
        for row in rows:
            worker.update(row["ROW__ID"], {**row.asDict(), "v": row.v + 1})

    with acid.mutation("t") as mutation:
        mutation.commit(mutation.run(mutation.rows(), change, tasks=2))
    assert rows(acid, "SELECT k, v, CAST(p AS string) FROM t ORDER BY k") == before
    nothing_is_left(acid, warehouse)


def test_partitions_of_days_that_python_does_not_have_are_passed_over(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int) PARTITIONED BY (p date)")
    acid.sql("INSERT INTO t VALUES (1, DATE'2024-01-01'), (2, CAST('+10000-01-01' AS date)), (3, NULL)")
    with acid.mutation("t") as mutation:
        found = {row.k: row for row in mutation.rows().where("k <> 2").collect()}
        [task] = mutation.tasks(1)
        with task.open() as worker:
            for k in sorted(found, key=lambda k: found[k]["ROW__ID"]):
                worker.update(found[k]["ROW__ID"], (k + 10, found[k].p))
        mutation.commit([worker.written])
    assert rows(acid, "SELECT k, CAST(p AS string) FROM t ORDER BY k") == [
        (2, "+10000-01-01"), (11, "2024-01-01"), (13, None)
    ]  # fmt: skip
    nothing_is_left(acid, warehouse)


def test_partition_keys_are_held_against_what_the_table_says(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int) PARTITIONED BY (p string NOT NULL)")
    with acid.mutation("t") as mutation:
        [task] = mutation.tasks(1)
        with task.open() as worker:
            for value, message in ((None, "NOT NULL"), ("a\0b", "NUL")):
                with pytest.raises(BadValue, match=message):
                    worker.insert((1, value))
            worker.insert((2, "b"))
        mutation.commit([worker.written])
    assert rows(acid, "SELECT * FROM t") == [(2, "b")]
    nothing_is_left(acid, warehouse)


def test_a_table_whose_disk_is_away_is_not_made_anew(emp: AcidSession, warehouse: Path) -> None:
    place = warehouse / "emp"
    with emp.mutation("emp") as mutation:
        [task] = mutation.tasks(1)
        before = task.open()
        place.rename(warehouse / "away")
        before._staging._seen_at -= 2
        before.insert((8, "x", None))
        with pytest.raises(StorageError):
            before.close()
        with pytest.raises(StorageError):
            task.open()
        assert not place.exists()
        (warehouse / "away").rename(place)
    assert rows(emp, "SELECT count(*) FROM emp") == [(4,)]
    nothing_is_left(emp, warehouse)


class TestACommitThatIsInterrupted:
    """Once the store was asked to commit, what is published stays there until the store says that it is aborted."""

    @pytest.mark.parametrize("kind", ["mutation", "stream"])
    def test_after_the_store_has_committed_keeps_its_rows(
        self, emp: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        step = HeldTransactions.step
        is_armed = False

        @contextmanager
        def interrupted(self: HeldTransactions, *args: Any, **kwargs: Any) -> Iterator[None]:
            with step(self, *args, **kwargs):
                yield
            if is_armed:
                raise KeyboardInterrupt

        monkeypatch.setattr(HeldTransactions, "step", interrupted)
        if kind == "mutation":
            with emp.mutation("emp") as mutation:
                [task] = mutation.tasks(1)
                with task.open() as worker:
                    worker.insert((9, "x", None))
                is_armed = True
                with pytest.raises(KeyboardInterrupt):
                    mutation.commit([worker.written])
        else:
            with emp.streaming("emp") as stream:
                stream.begin()
                stream.write([(9, "x", None)])
                is_armed = True
                with pytest.raises(KeyboardInterrupt):
                    stream.commit()
        is_armed = False
        assert rows(emp, "SELECT id FROM emp WHERE id > 4") == [(9,)]
        nothing_is_left(emp, warehouse)

    @pytest.mark.parametrize("kind", ["mutation", "stream"])
    def test_and_whose_abort_is_interrupted_too_has_no_rows(
        self, acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        """What was published is not committed, either, once the writer is garbage."""
        acid.sql("CREATE TRANSACTIONAL TABLE t (k int, CHECK (k > 0))")

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        def write() -> None:
            with monkeypatch.context() as patch:
                if kind == "mutation":
                    mutation = acid.mutation("t")
                    [task] = mutation.tasks(1)
                    with task.open() as worker:
                        worker.insert((-5,))
                    patch.setattr(HeldTransactions, "roll_back", interrupted)
                    mutation.commit([worker.written])
                stream = acid.streaming("t")
                stream.begin()
                stream.write([(7,)])
                patch.setattr(WriteTransaction, "commit", interrupted)
                patch.setattr(HeldTransactions, "roll_back", interrupted)
                stream.commit()

        with pytest.raises(KeyboardInterrupt):
            write()
        gc.collect()
        acid.compactor.run_once()
        acid.compactor.run_once()
        assert rows(acid, "SELECT * FROM t") == []
        nothing_is_left(acid, warehouse)

    def test_one_inside_of_another_is_refused_and_undoes_nothing(self, emp: AcidSession, warehouse: Path) -> None:
        with emp.mutation("emp") as mutation:
            [task] = mutation.tasks(1)
            with task.open() as worker:
                worker.insert((9, "x", None))

            def inside() -> Iterator[Written]:
                mutation.commit([worker.written])
                yield worker.written

            with pytest.raises(TransactionError, match="over"):
                mutation.commit(inside())
        assert rows(emp, "SELECT id FROM emp WHERE id > 4") == [(9,)]
        nothing_is_left(emp, warehouse)


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_are_those_of_a_model(acid: AcidSession, warehouse: Path, seed: int) -> None:
    """Rounds of mutations with several workers, statements and compactions between them."""
    draw = random.Random(seed)
    acid.sql("CREATE TRANSACTIONAL TABLE t (k int, v int) PARTITIONED BY (p int)")
    model: dict[int, tuple[int, int]] = {}
    newest = 0
    for _ in range(5):
        with acid.mutation("t", buffer_rows=draw.choice([1, 3, 1000])) as mutation:
            tasks = mutation.tasks(draw.randint(1, 3))
            files: dict[tuple[int, int], list[Row]] = {}
            for row in mutation.rows().orderBy("ROW__ID").collect():
                files.setdefault((row.p, row["ROW__ID"].bucketId >> 16), []).append(row)
            workers = [task.open() for task in tasks]
            for number, found in enumerate(files.values()):
                worker = workers[number % len(workers)]
                for row in found:
                    if draw.random() < 0.3:
                        worker.delete(row["ROW__ID"], {"p": row.p})
                        del model[row.k]
                    elif draw.random() < 0.5:
                        worker.update(row["ROW__ID"], (row.k, row.v + 1, row.p))
                        model[row.k] = (row.v + 1, row.p)
            for _ in range(draw.randint(0, 8)):
                newest += 1
                model[newest] = (0, draw.randint(0, 2))
                draw.choice(workers).insert((newest, *model[newest]))
            mutation.commit(worker.close() for worker in workers)
        assert rows(acid, "SELECT k, v, p FROM t ORDER BY k") == [(k, *model[k]) for k in sorted(model)]
        if draw.random() < 0.5:
            acid.sql("UPDATE t SET v = v + 10 WHERE k % 3 = 0")
            model = {k: (v + 10 if k % 3 == 0 else v, p) for k, (v, p) in model.items()}
        if draw.random() < 0.5 and (names := rows(acid, "SHOW PARTITIONS t")):
            kind = draw.choice(["major", "minor"])
            acid.sql(f"ALTER TABLE t PARTITION ({draw.choice(names)[0]}) COMPACT '{kind}'")
            acid.compactor.run_once()
    assert rows(acid, "SELECT k, v, p FROM t ORDER BY k") == [(k, *model[k]) for k in sorted(model)]
    nothing_is_left(acid, warehouse)


def test_not_bucketed_tables_have_no_buckets(emp: AcidSession) -> None:
    with emp.mutation("emp") as mutation:
        with pytest.raises((InvalidValue, AnalysisError), match="not bucketed"):
            mutation.bucketed(mutation.rows(), "b")
        [task] = mutation.tasks(1)
        worker = task.open()
        with pytest.raises(BadValue, match="bucket"):
            worker.insert((1, "a", None), bucket=0)
        worker.discard()


@pytest.mark.parametrize("keys", ["", "PARTITIONED BY (p string)"])
def test_values_that_python_would_give_back_as_others_are_refused(
    acid: AcidSession, warehouse: Path, keys: str
) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (k int, x string, a array<struct<b:varchar(9)>>) {keys}")
    more = ", 'p'" if keys else ""
    acid.sql(f"INSERT INTO t SELECT 1, 'é', array(named_struct('b', 'ü')){more}")
    acid.sql(f"INSERT INTO t SELECT 2, CAST(X'61FF' AS string), NULL{more}")
    acid.sql(f"INSERT INTO t SELECT 3, NULL, array(named_struct('b', CAST(X'C3' AS string))){more}")
    columns = "k int, s struct<a:string,b:binary>, m map<string,binary>, t map<int,string>"
    acid.sql(f"CREATE TRANSACTIONAL TABLE b ({columns}) {keys}")
    binary = "named_struct('a', 'x', 'b', X'FF00C3'), map('k', X'FF')"
    for k, text in ((1, "'é'"), (2, "CAST(X'FF' AS string)")):
        acid.sql(f"INSERT INTO b SELECT {k}, {binary}, map(1, {text}){more}")
    with acid.mutation("b") as mutation:
        assert mutation.rows().where("k = 1").collect()[0].s.b == b"\xff\x00\xc3"
        with pytest.raises(PySparkException, match="not valid UTF-8"):
            mutation.rows().where("k = 2").collect()
    for k in (2, 3):
        with acid.mutation("t") as mutation, pytest.raises(PySparkException, match="not valid UTF-8"):
            mutation.rows().where(f"k = {k}").collect()
        acid.sql(f"DELETE FROM t WHERE k = {k}")
    with acid.mutation("t") as mutation:
        assert [(r.k, r.x, r.a[0].b) for r in mutation.rows().collect()] == [(1, "é", "ü")]
    nothing_is_left(acid, warehouse)


def test_nanoseconds_are_not_handed_over(acid: AcidSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    times = pa.array([1_700_000_000_123_456_000, 1_700_000_000_123_456_789], pa.timestamp("ns"))
    orc.write_table(pa.table({"k": pa.array([1, 2], pa.int32()), "at": times}), str(tmp_path / "t" / "000000_0"))
    register(acid, tmp_path / "t", [("k", "int"), ("at", "timestamp")])
    with acid.mutation("t") as mutation, pytest.raises(PySparkException, match="nanoseconds"):
        mutation.rows().collect()
    acid.sql("SET acidsql.timestamp.nanoseconds = truncate")
    with acid.mutation("t") as mutation:
        assert mutation.rows().count() == 2
