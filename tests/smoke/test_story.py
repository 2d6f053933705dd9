"""One table of each kind through every kind of statement: what ``.ci/run`` tries on the oldest and the newest PySpark.

It needs no more than pytest beside what ``pip install .`` brings. Details are tested elsewhere; this looks for what
breaks with another version of Spark: plans, expressions, the write job, the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession

import acidsql
from acidsql.session import AcidSession
from acidsql.streaming import Written

pytestmark = pytest.mark.usefixtures("compiled")

EMP = "CREATE TABLE emp (id int, name string, salary int) STORED AS ORC TBLPROPERTIES('transactional'='true')"


def rows(acid: AcidSession, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in acid.sql(query).collect()), key=repr)


def counts(acid: AcidSession, statement: str) -> tuple[int, ...]:
    """Affected, updated, deleted and inserted rows."""
    [row] = acid.sql(statement).collect()
    return tuple(row)


@pytest.fixture
def emp(acid: AcidSession) -> AcidSession:
    acid.sql(EMP)
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 5000), (2, 'Bob', 5500), (3, 'Cid', 4000)")
    return acid


@pytest.fixture(params=[20_000, 0], ids=["by the driver", "by a job"])
def written(request: pytest.FixtureRequest, spark: SparkSession, warehouse: Path) -> Iterator[AcidSession]:
    """Sessions whose statements are written in either way."""
    settings = {"acidsql.write.driver.rows": str(request.param)}
    with acidsql.connect(spark, warehouse=warehouse, settings=settings) as session:
        yield session


@pytest.mark.parametrize(
    "form",
    ["", "PARTITIONED BY (p string)", "CLUSTERED BY (id) INTO 2 BUCKETS"],
    ids=["plain", "partitioned", "buckets"],
)
def test_rows_are_inserted_updated_deleted_and_merged(written: AcidSession, form: str) -> None:
    acid = written
    columns = "id int, name string, d decimal(10,2), at timestamp, tags array<string>"
    acid.sql(f"CREATE TRANSACTIONAL TABLE t ({columns}{'' if 'PART' in form else ', p string'}) {form} STORED AS ORC")
    values = ", ".join(
        f"({i}, 'n{i}', {i}.25, timestamp '2024-02-29 12:00:00.123456', array('a', NULL), 'p{i % 2}')" for i in range(6)
    )
    assert counts(acid, f"INSERT INTO t VALUES {values}") == (6, 0, 0, 6)
    assert counts(acid, "UPDATE t SET name = upper(name), d = d * 2 WHERE id IN (1, 2)") == (2, 2, 0, 0)
    assert counts(acid, "DELETE FROM t WHERE id = (SELECT max(id) FROM t)") == (1, 0, 1, 0)
    merge = (
        "MERGE INTO t USING (SELECT id + 4 AS id, 'new' AS name FROM range(3)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET name = s.name"
        " WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, 'p9')"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE"
    )
    assert counts(acid, merge) == (4, 1, 1, 2)
    found = rows(acid, "SELECT id, name, d, p, ROW__ID.writeId FROM t")
    assert [(i, n, None if d is None else str(d), p, w) for i, n, d, p, w in found] == [
        (1, "N1", "2.50", "p1", 2),
        (2, "N2", "4.50", "p0", 2),
        (3, "n3", "3.25", "p1", 1),
        (4, "new", "4.25", "p0", 4),
        (5, "new", None, "p9", 4),
        (6, "new", None, "p9", 4),
    ]
    assert rows(acid, "SELECT DISTINCT at, tags FROM t WHERE p <> 'p9'")[0][1] == ["a", None]
    acid.sql("INSERT OVERWRITE t SELECT id, name, d, at, tags, p FROM t WHERE id < 3")
    assert rows(acid, "SELECT id FROM t WHERE p <> 'p9'") == [(1,), (2,)]  # a partition without new rows is kept


def test_queries_join_views_and_spark_tables_in_one_snapshot(emp: AcidSession, spark: SparkSession) -> None:
    spark.createDataFrame([(1, "x"), (3, "y")], "id int, tag string").createOrReplaceTempView("tags")
    emp.sql("CREATE VIEW rich AS SELECT id, salary FROM emp WHERE salary >= 5000")
    query = "WITH w AS (SELECT * FROM rich) SELECT w.id, tag FROM w LEFT JOIN tags USING (id)"
    assert rows(emp, query) == [(1, "x"), (2, None)]
    before = emp.table("emp")
    emp.sql("DELETE FROM emp WHERE id = 1")
    assert before.count() == 3
    assert emp.table("emp").filter("salary > 4500").count() == 1
    assert [row.id for row in emp.sql("SELECT id FROM emp VERSION AS OF 1 ORDER BY id").collect()] == [1, 2, 3]
    assert emp.sql("SELECT name FROM emp WHERE id = :id", id=2).collect()[0].name == "Bob"


def test_tables_are_compacted_altered_and_shown(emp: AcidSession, warehouse: Path) -> None:
    emp.sql("UPDATE emp SET salary = 1 WHERE id = 1")
    emp.sql("ALTER TABLE emp ADD COLUMNS (note string)")
    emp.sql("INSERT INTO emp VALUES (4, 'Dan', 1, 'new')")
    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    emp.sql("VACUUM emp")
    assert [path.name[:5] for path in (warehouse / "emp").iterdir() if path.is_dir()] == ["base_"]
    assert rows(emp, "SELECT id, note FROM emp") == [(1, None), (2, None), (3, None), (4, "new")]
    emp.sql("CREATE TABLE copy TBLPROPERTIES('transactional'='true') AS SELECT id, name FROM emp")
    assert {name for _, name, *_ in rows(emp, "SHOW TABLES")} == {"copy", "emp"}
    assert emp.sql("SHOW COMPACTIONS").count() == 1
    assert "salary" in {row[0] for row in emp.sql("DESCRIBE FORMATTED emp").collect()}
    assert emp.sql("EXPLAIN UPDATE emp SET salary = 2").collect()
    assert emp.sql("EXPLAIN SELECT * FROM emp").collect()


def test_errors_name_their_place_and_leave_nothing(emp: AcidSession) -> None:
    with pytest.raises(acidsql.AcidError, match="line 1:16"):
        emp.sql("UPDATE emp SET nope = 1")
    with pytest.raises(AnalysisException):
        emp.sql("SELECT nope FROM emp").collect()
    assert emp.sql("SHOW LOCKS").collect() == []


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
def test_what_is_pushed_down_into_files_finds_its_rows(written: AcidSession) -> None:
    """As over more than 4 MB: smaller files are read whole."""
    acid = written
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, name string, d decimal(10,2)) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t SELECT id, 'n' || id, id / 4, id % 3 FROM range(0, 100, 1, 1)")
    for condition in (
        "id = 5",
        "name = 'n5'",
        "d = 1.25",
        "id > 4 AND id < 6",
        "name IN ('n5', 'x')",
        "name LIKE 'n5'",
    ):
        assert rows(acid, f"SELECT id, p FROM t WHERE {condition}") == [(5, 2)], condition
    assert counts(acid, "UPDATE t SET name = 'new' WHERE id = 5") == (1, 1, 0, 0)
    assert counts(acid, "DELETE FROM t WHERE name = 'n6'") == (1, 0, 1, 0)
    merge = "MERGE INTO t USING (SELECT 7 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert counts(acid, merge) == (1, 0, 1, 0)
    assert rows(acid, "SELECT id, name FROM t WHERE id BETWEEN 4 AND 8") == [(4, "n4"), (5, "new"), (8, "n8")]


def test_a_condition_behind_a_window_is_none_for_partitions(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, k string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 2), (2, 'a', 3), (3, 'b', 2)")
    number = "row_number() OVER (PARTITION BY k ORDER BY id DESC)"
    assert rows(acid, f"SELECT id FROM (SELECT *, {number} AS n FROM t) WHERE p = 2 AND n = 1") == [(3,)]
    try:
        found = rows(acid, f"SELECT id FROM t QUALIFY {number} = 1 AND p = 2")
    except (acidsql.AcidError, PySparkException):
        assert acid.spark.version < "4.3", "it has QUALIFY"
    else:
        assert found == [(3,)]


def test_subqueries_answer_as_over_tables_of_sparks(emp: AcidSession, spark: SparkSession) -> None:
    emp.sql("CREATE TRANSACTIONAL TABLE boss (id int)")
    emp.sql("INSERT INTO boss VALUES (1), (NULL)")
    emp.sql("UPDATE emp SET salary = 4500 WHERE salary = (SELECT min(salary) FROM emp)")
    member = "(SELECT name, id IN (SELECT id FROM boss) AS is_boss, salary FROM emp)"
    assert rows(emp, f"SELECT name FROM {member} WHERE NOT is_boss") == []
    assert rows(emp, f"SELECT name, salary FROM {member} WHERE is_boss") == [("Ann", 5000)]
    assert counts(emp, "DELETE FROM emp WHERE id NOT IN (SELECT id FROM boss)") == (0, 0, 0, 0)
    assert counts(emp, "DELETE FROM emp WHERE EXISTS (SELECT 1 FROM boss b WHERE b.id = emp.id)") == (1, 0, 1, 0)
    assert rows(emp, "SELECT name, salary FROM emp") == [("Bob", 5500), ("Cid", 4500)]


def test_changes_are_streamed(emp: AcidSession, tmp_path: Path) -> None:
    emp.sql("CREATE TRANSACTIONAL TABLE log (id int, name string, kind string)")
    stream = emp.read_stream("emp", keys=["id"]).selectExpr("id", "name", "_change_type AS kind")
    for _ in range(2):
        emp.write_stream(
            stream, "log", checkpoint=str(tmp_path / "c"), trigger={"availableNow": True}
        ).awaitTermination()
        emp.sql("UPDATE emp SET name = upper(name) WHERE id = 1")
    told = [(1, "ANN", "update_postimage"), (1, "Ann", "insert"), (1, "Ann", "update_preimage"), (2, "Bob", "insert")]
    assert rows(emp, "SELECT * FROM log") == [*told, (3, "Cid", "insert")]


def test_workers_change_rows_by_their_ids(emp: AcidSession) -> None:
    with emp.mutation("emp") as mutation:
        tasks = mutation.tasks(2)

        def work(number: int, part: Iterable[Row]) -> Iterable[Written]:
            with tasks[number].open() as worker:
                for row in part:
                    if row.id == 1:
                        worker.delete(row["ROW__ID"])
                    else:
                        worker.update(row["ROW__ID"], {**row.asDict(), "name": row.name.upper()})
            yield worker.written

        written = mutation.sorted(mutation.rows()).rdd.mapPartitionsWithIndex(work).collect()
        assert mutation.commit(written).first()[:4] == (3, 2, 1, 0)
    assert rows(emp, "SELECT name FROM emp") == [("BOB",), ("CID",)]
