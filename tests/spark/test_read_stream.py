"""The changes of a table as a streaming DataFrame: each change in one batch, across restarts, limits and writers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import DataFrame, Row

from acidsql.errors import AnalysisError, InvalidValue, TableNotFound, UnsupportedError
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.hive_files import write_orc
from tests.spark.hive_tables import register

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
Batches = list[list[Row]]


def run(
    frame: DataFrame, checkpoint: Path, *, failing: Callable[[int], bool] = lambda number: False, **trigger: Any
) -> Batches:
    """The batches of a run that ends with what is there."""
    seen: Batches = []

    def keep(batch: DataFrame, number: int) -> None:
        if failing(number):
            raise RuntimeError("the consumer failed")
        seen.append(batch.collect())

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(**(trigger or {"availableNow": True})).start()
    query.awaitTermination()
    return seen


def values(batches: Batches) -> list[Counter[tuple[Any, ...]]]:
    """Of each batch the changes without their times."""
    return [Counter(tuple(row)[:-1] for row in batch) for batch in batches]


@pytest.fixture
def emp(acid: AcidSession) -> AcidSession:
    acid.sql(f"CREATE TABLE emp (id int, name string) {ACID}")
    acid.sql("INSERT INTO emp VALUES (1, 'Ada'), (2, 'Bob')")
    return acid


def test_a_new_query_begins_with_the_rows_that_are_there_and_goes_on_with_changes(
    emp: AcidSession, tmp_path: Path
) -> None:
    stream = emp.read_stream("emp", keys=["id"])
    assert stream.isStreaming
    assert values(run(stream, tmp_path / "c")) == [Counter([(1, "Ada", "insert", 1), (2, "Bob", "insert", 1)])]
    assert run(stream, tmp_path / "c") == []

    emp.sql("UPDATE emp SET name = 'Eve' WHERE id = 2")
    emp.sql("DELETE FROM emp WHERE id = 1")
    assert values(run(stream, tmp_path / "c")) == [
        Counter(
            [(2, "Bob", "update_preimage", 2), (2, "Eve", "update_postimage", 2), (1, "Ada", "delete", 3)],
        )
    ]
    nothing_is_open(emp)


def test_a_query_from_a_write_id_on_begins_with_its_changes(emp: AcidSession, tmp_path: Path) -> None:
    emp.sql("INSERT INTO emp VALUES (3, 'Cyd')")
    told = values(run(emp.read_stream("emp", first=2), tmp_path / "c"))
    assert told == [Counter([(3, "Cyd", "insert", 2)])]


def test_a_query_over_what_will_come_remembers_where_it_began(emp: AcidSession, tmp_path: Path) -> None:
    assert values(run(emp.read_stream("emp", first=emp.newest_version("emp") + 1), tmp_path / "c")) == [Counter()]
    emp.sql("INSERT INTO emp VALUES (3, 'Cyd')")
    later = emp.read_stream("emp", first=emp.newest_version("emp") + 1)
    assert values(run(later, tmp_path / "c")) == [Counter([(3, "Cyd", "insert", 2)])]


def test_batches_have_as_many_write_ids_as_the_limit_says(emp: AcidSession, tmp_path: Path) -> None:
    for i in range(3, 8):
        emp.sql(f"INSERT INTO emp VALUES ({i}, 'n')")
    told = run(emp.read_stream("emp", first=1, max_versions=2), tmp_path / "c")
    assert [sorted({row._commit_version for row in batch}) for batch in told] == [[1, 2], [3, 4], [5, 6]]


def test_batches_read_as_many_bytes_as_the_limit_says(emp: AcidSession, tmp_path: Path) -> None:
    for i in range(3, 7):
        emp.sql(f"INSERT INTO emp VALUES ({i}, 'n')")
    size = max(p.stat().st_size for p in Path(emp.warehouse, "emp").glob("delta_*/bucket_*"))
    told = run(emp.read_stream("emp", first=1, max_bytes=2 * size), tmp_path / "c")
    assert [sorted({row._commit_version for row in batch}) for batch in told] == [[1, 2], [3, 4], [5]]
    told = run(emp.read_stream("emp", first=1, max_bytes=1), tmp_path / "d")
    assert [sorted({row._commit_version for row in batch}) for batch in told] == [[1], [2], [3], [4], [5]]


def test_a_trigger_that_runs_once_takes_all(emp: AcidSession, tmp_path: Path) -> None:
    emp.sql("INSERT INTO emp VALUES (3, 'Cyd')")
    told = run(emp.read_stream("emp", first=1, max_versions=1), tmp_path / "c", once=True)
    assert [len(batch) for batch in told] == [3]


def test_a_batch_whose_consumer_failed_is_told_again_after_a_restart(emp: AcidSession, tmp_path: Path) -> None:
    stream = emp.read_stream("emp", first=1, max_versions=1)
    emp.sql("UPDATE emp SET name = upper(name)")
    with pytest.raises(StreamingQueryException, match="the consumer failed"):
        run(stream, tmp_path / "c", failing=lambda number: number == 1)
    emp.sql("DELETE FROM emp")
    again = run(emp.read_stream("emp", first=1, max_versions=1), tmp_path / "c")
    assert [sorted({row._commit_version for row in batch}) for batch in again] == [[2], [3]]
    assert Counter(row._change_type for row in again[0]) == Counter(insert=2, delete=2)


def test_the_first_rows_are_told_again_as_they_were(emp: AcidSession, tmp_path: Path) -> None:
    stream = emp.read_stream("emp")
    with pytest.raises(StreamingQueryException):
        run(stream, tmp_path / "c", failing=lambda number: True)
    emp.sql("UPDATE emp SET name = upper(name)")
    told = values(run(stream, tmp_path / "c"))
    assert told[0] == Counter([(1, "Ada", "insert", 1), (2, "Bob", "insert", 1)])
    assert set(told[1]) == {
        (1, "ADA", "insert", 2),
        (2, "BOB", "insert", 2),
        (1, "Ada", "delete", 2),
        (2, "Bob", "delete", 2),
    }


@pytest.mark.parametrize("kind", ["major", "minor"])
def test_the_first_rows_are_told_again_from_changes_that_were_kept(emp: AcidSession, tmp_path: Path, kind: str) -> None:
    """A base has replaced the rows of that write id; the files that it was made of are still there."""
    emp.sql("ALTER TABLE emp SET TBLPROPERTIES ('acidsql.changes.retention' = '7d')")
    emp.sql("INSERT INTO emp VALUES (3, NULL), (3, NULL), (4, 'Dee')")
    emp.sql("DELETE FROM emp WHERE id = 4")
    version = emp.newest_version("emp")
    with pytest.raises(StreamingQueryException):
        run(emp.read_stream("emp"), tmp_path / "c", failing=lambda number: True)
    emp.sql("UPDATE emp SET name = upper(name) WHERE id < 3")
    emp.sql(f"ALTER TABLE emp COMPACT '{kind}' AND WAIT")
    emp.compactor.run_once()
    told = values(run(emp.read_stream("emp"), tmp_path / "c"))
    names = [(1, "Ada"), (2, "Bob"), (3, None), (3, None)]
    assert told[0] == Counter((*row, "insert", version) for row in names)
    assert sum(told[1].values()) == 4


@pytest.mark.parametrize("later", ["", "INSERT INTO old VALUES (100, 0.0)"])
def test_the_first_rows_are_told_again_of_a_table_with_files_from_before(
    acid: AcidSession, tmp_path: Path, later: str
) -> None:
    """Rows of original files have no write id; and one of them is a zero with a sign."""
    write_orc(tmp_path / "old" / "000000_0", "struct<id:int,v:double>", [(number, -0.0) for number in range(4)])
    register(acid, tmp_path / "old", [("id", "int"), ("v", "double")], name="old")
    acid.sql("ALTER TABLE old SET TBLPROPERTIES ('acidsql.changes.retention' = '7d')")
    if later:
        acid.sql(later)
    acid.sql("DELETE FROM old WHERE id = 3")
    with pytest.raises(StreamingQueryException):
        run(acid.read_stream("old"), tmp_path / "c", failing=lambda number: True)
    acid.sql("DELETE FROM old WHERE id = 1")
    acid.sql("ALTER TABLE old COMPACT 'major' AND WAIT")
    acid.compactor.run_once()
    first, second = run(acid.read_stream("old"), tmp_path / "c")
    expected = [(0, "-0.0"), (1, "-0.0"), (2, "-0.0")] + ([(100, "0.0")] if later else [])
    assert sorted((row.id, str(row.v)) for row in first) == expected
    assert [(row.id, row._change_type) for row in second] == [(1, "delete")]


def test_a_query_over_a_table_without_rows_whose_first_batch_failed_goes_on(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE new (id int) TBLPROPERTIES ('acidsql.changes.retention' = '7d')")
    with pytest.raises(StreamingQueryException):
        run(acid.read_stream("new"), tmp_path / "c", failing=lambda number: True)
    acid.sql("INSERT INTO new VALUES (1)")
    acid.sql("INSERT INTO new VALUES (2)")
    acid.sql("ALTER TABLE new COMPACT 'major' AND WAIT")
    acid.compactor.run_once()
    told = run(acid.read_stream("new"), tmp_path / "c")
    assert [[row.id for row in sorted(batch)] for batch in told] == [[], [1, 2]]


def test_changes_that_were_removed_end_the_query_with_an_error(emp: AcidSession, tmp_path: Path) -> None:
    run(emp.read_stream("emp"), tmp_path / "c")
    emp.sql("UPDATE emp SET name = upper(name)")
    emp.sql("DELETE FROM emp WHERE id = 1")
    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    emp.compactor.run_once()
    with pytest.raises(StreamingQueryException, match="are not all there"):
        run(emp.read_stream("emp"), tmp_path / "c")


def test_a_query_goes_on_whose_first_changes_are_gone(emp: AcidSession, tmp_path: Path) -> None:
    emp.sql("DELETE FROM emp WHERE id = 1")
    run(emp.read_stream("emp", first=1), tmp_path / "c")
    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    emp.compactor.run_once()
    emp.sql("INSERT INTO emp VALUES (3, 'Cyd')")
    assert values(run(emp.read_stream("emp", first=1), tmp_path / "c")) == [Counter([(3, "Cyd", "insert", 3)])]
    with pytest.raises(StreamingQueryException, match="are not all there"):
        run(emp.read_stream("emp", first=1), tmp_path / "new")


def test_a_table_that_was_made_anew_ends_the_query_with_an_error(emp: AcidSession, tmp_path: Path) -> None:
    run(emp.read_stream("emp"), tmp_path / "c")
    emp.sql("DROP TABLE emp")
    with pytest.raises(TableNotFound):
        emp.read_stream("emp")
    time.sleep(1.1)  # tables are known by the second in which they were made
    emp.sql(f"CREATE TABLE emp (id int, name string) {ACID}")
    emp.sql("INSERT INTO emp VALUES (9, 'new')")
    emp.sql("INSERT INTO emp VALUES (9, 'new')")
    with pytest.raises(StreamingQueryException, match="made anew"):
        run(emp.read_stream("emp"), tmp_path / "c")


def test_a_table_that_has_taken_the_name_of_another_one_ends_the_query(emp: AcidSession, tmp_path: Path) -> None:
    """Also where both were made in the same second, and where the first batch is run again."""
    emp.sql("CREATE TRANSACTIONAL TABLE other (id int, name string)")
    made = emp.metastore.get_table("default", "emp").created_at
    emp.metastore.alter_table(replace(emp.metastore.get_table("default", "other"), created_at=made))
    with pytest.raises(StreamingQueryException, match="consumer"):
        run(emp.read_stream("emp"), tmp_path / "failed", failing=lambda number: True)
    run(emp.read_stream("emp"), tmp_path / "done")
    emp.sql("ALTER TABLE emp RENAME TO old")
    emp.sql("ALTER TABLE other RENAME TO emp")
    for number in (1, 2):
        emp.sql(f"INSERT INTO emp VALUES ({number}, 'x')")
    for checkpoint in ("failed", "done"):
        with pytest.raises(StreamingQueryException, match="another table"):
            run(emp.read_stream("emp"), tmp_path / checkpoint)
    emp.sql("ALTER TABLE emp RENAME TO other")
    emp.sql("ALTER TABLE old RENAME TO emp")
    assert [len(batch) for batch in run(emp.read_stream("emp"), tmp_path / "failed") if batch] == [2]


def test_columns_that_were_added_end_the_query_which_goes_on_when_started_again(
    emp: AcidSession, tmp_path: Path
) -> None:
    stream = emp.read_stream("emp")
    run(stream, tmp_path / "c")
    emp.sql("ALTER TABLE emp ADD COLUMNS (age int)")
    emp.sql("INSERT INTO emp VALUES (3, 'Cyd', 30)")
    with pytest.raises(StreamingQueryException, match="were changed since"):
        run(stream, tmp_path / "c")
    assert values(run(emp.read_stream("emp"), tmp_path / "c")) == [Counter([(3, "Cyd", 30, "insert", 3)])]


def test_a_stream_is_aggregated_with_a_state(emp: AcidSession, tmp_path: Path) -> None:
    counts = emp.read_stream("emp", first=1, max_versions=1).groupBy("_change_type").count()

    def newest() -> dict[str, int]:
        query = (
            counts.writeStream.format("memory").queryName("kinds").outputMode("complete")
            .option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        return {row[0]: row[1] for row in emp.spark.table("kinds").collect()}

    assert newest() == {"insert": 2}
    emp.sql("INSERT INTO emp VALUES (3, 'Cyd'), (4, 'Dan')")
    emp.sql("DELETE FROM emp WHERE id = 3")
    assert newest() == {"insert": 4, "delete": 1}


def test_a_stream_goes_into_another_table_exactly_once(emp: AcidSession, tmp_path: Path) -> None:
    emp.sql(f"CREATE TABLE log (id int, name string, kind string, version bigint) {ACID}")
    stream = emp.read_stream("emp", first=1, max_versions=1)
    chosen = stream.selectExpr("id", "name", "_change_type AS kind", "_commit_version AS version")
    for _ in range(2):
        query = emp.write_stream(chosen, "log", checkpoint=str(tmp_path / "c"), trigger={"availableNow": True})
        query.awaitTermination()
        emp.sql("UPDATE emp SET name = concat(name, '+') WHERE id = 1")
    told = sorted(tuple(row) for row in emp.table("log").collect())
    assert told == [(1, "Ada", "delete", 2), (1, "Ada", "insert", 1), (1, "Ada+", "insert", 2), (2, "Bob", "insert", 1)]


def test_two_queries_over_one_stream_and_a_join_with_itself_see_all(emp: AcidSession, tmp_path: Path) -> None:
    stream = emp.read_stream("emp", first=1)
    both = stream.select("id").union(stream.select("id"))
    assert values(run(both.withColumn("t", both.id), tmp_path / "a")) == [Counter({(1,): 2, (2,): 2})]
    assert values(run(stream, tmp_path / "b")) == [Counter([(1, "Ada", "insert", 1), (2, "Bob", "insert", 1)])]


def test_a_run_ends_with_what_was_there_whatever_the_consumer_sets(emp: AcidSession, tmp_path: Path) -> None:
    seen = []

    def consume(batch: DataFrame, number: int) -> None:
        batch.sparkSession.sparkContext.setJobGroup("mine", "")
        seen.append(batch.count())
        emp.sql(f"INSERT INTO emp VALUES ({number + 10}, 'n')")

    stream = emp.read_stream("emp", first=1, max_versions=1)
    writer = stream.writeStream.foreachBatch(consume).option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert seen == [2]


def test_a_running_query_sees_what_is_written_beside_it(emp: AcidSession, tmp_path: Path) -> None:
    seen: Batches = []
    query = (
        emp.read_stream("emp").writeStream.foreachBatch(lambda batch, number: seen.append(batch.collect()))
        .option("checkpointLocation", str(tmp_path / "c")).trigger(processingTime="100 milliseconds").start()
    )  # fmt: skip
    try:
        for i in range(3, 6):
            emp.sql(f"INSERT INTO emp VALUES ({i}, 'n')")
            emp.sql("ALTER TABLE emp COMPACT 'minor' AND WAIT")
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(row.id for batch in seen for row in batch) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"first": 0}, InvalidValue),
        ({"first": 9}, InvalidValue),
        ({"first": True}, InvalidValue),
        ({"max_versions": 0}, InvalidValue),
        ({"max_bytes": "1"}, InvalidValue),
        ({"keys": "id"}, InvalidValue),
        ({"keys": ["nope"]}, AnalysisError),
    ],
)
def test_what_cannot_be_followed_is_refused_at_once(
    emp: AcidSession, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        emp.read_stream("emp", **options)
    nothing_is_open(emp)


def test_an_insert_only_table_is_refused(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TABLE o (id int) STORED AS ORC"
        " TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
    )
    with pytest.raises(UnsupportedError):
        acid.read_stream("o")


def test_a_query_in_another_zone_than_the_session_is_refused(emp: AcidSession, tmp_path: Path) -> None:
    """Spark keeps the zone of a query's start; the times of a batch would be read in today's."""
    seen: Batches = []
    writer = emp.read_stream("emp").writeStream.foreachBatch(lambda batch, _: seen.append(batch.collect()))
    always = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(processingTime="0 seconds")
    query = always.start()
    try:
        query.processAllAvailable()
        emp.sql("SET TIME ZONE 'America/New_York'")
        emp.sql("INSERT INTO emp VALUES (3, 'Cyd')")
        with pytest.raises(StreamingQueryException, match="time zone UTC"):
            query.processAllAvailable()
    finally:
        query.stop()
        emp.sql("SET TIME ZONE 'UTC'")
    assert [len(batch) for batch in seen] == [2]
