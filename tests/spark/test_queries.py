"""Queries: the user's own text reaches Spark, over one snapshot of every ACID table in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

import acidsql
from acidsql.commands.resolve.context import StatementContext
from acidsql.errors import TableNotFound, TransactionError
from acidsql.session import AcidSession
from tests.spark.answers import end_released, nothing_is_open


@pytest.fixture
def shop(acid: AcidSession, spark: SparkSession) -> AcidSession:
    acid.sql("CREATE DATABASE hr")
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string, salary int, dept int)")
    acid.sql("CREATE TRANSACTIONAL TABLE hr.dept (id int, title string)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 5000, 10), (2, 'Bob', NULL, 10), (3, 'Cid', 4000, 20)").collect()
    acid.sql("INSERT INTO hr.dept VALUES (10, 'Sales'), (20, 'Ops')").collect()
    spark.createDataFrame([(1, "x"), (2, "y")], "id int, tag string").createOrReplaceTempView("tags")
    return acid


def answer(acid: AcidSession, query: str, /, **parameters: object) -> list[tuple[object, ...]]:
    return sorted(tuple(r) for r in acid.sql(query, **parameters).collect())


# what the text says, and the same over Spark's own views of the same rows
SAME_AS_SPARK = [
    "SELECT nvl(salary, 0), name FROM emp",
    "SELECT 1L, salary + 1L FROM emp",
    "SELECT id FROM emp WHERE salary <=> NULL",
    r"SELECT id, name RLIKE r'\w+' FROM emp",
    "SELECT timestamp '2024-02-29 12:00:00', date '1970-01-01' FROM emp",
    "SELECT /* emp */ id -- FROM emp\nFROM emp",
    "SELECT '$$', \"$${x}\", `id` AS `a b` FROM emp",
    # a correlated aggregate over no table: Spark reads the table once more, for the values that it depends on
    "SELECT * FROM emp WHERE id = (SELECT max(k) - 9 FROM (SELECT emp.dept AS k))",
    "SELECT id, (SELECT min(k) FROM (SELECT salary + dept AS k)) FROM emp WHERE name > 'A'",
    "SELECT id FROM emp WHERE EXISTS (SELECT k FROM (SELECT emp.dept AS k) GROUP BY k HAVING k > 10)",
    "SELECT e.id, l.n FROM emp e, LATERAL (SELECT count(k) AS n FROM (SELECT e.salary AS k)) l WHERE e.dept < 20",
    "SELECT * FROM emp",
    "SELECT emp.* FROM emp",
    "SELECT e.name, emp2.name FROM emp e JOIN emp emp2 ON e.dept = emp2.dept",
    "SELECT emp.id FROM emp WHERE emp.id IN (SELECT max(id) FROM emp)",
    "SELECT id, (SELECT count(*) FROM emp o WHERE o.dept = emp.dept) FROM emp",
    "WITH emp AS (SELECT 7 AS id) SELECT * FROM emp",
    "WITH e AS (SELECT * FROM emp), f AS (SELECT * FROM e) SELECT count(*) FROM f",
    "SELECT dept, sum(salary) AS s FROM emp GROUP BY dept HAVING count(*) > 1 ORDER BY s",
    "SELECT id, row_number() OVER (PARTITION BY dept ORDER BY id) FROM emp",
    "SELECT id FROM emp UNION ALL SELECT id FROM tags",
    "SELECT name, tag FROM emp LEFT JOIN tags USING (id)",
    "SELECT transform(array(id, 2), x -> x + 1) FROM emp",
    "SELECT EXTRACT(day FROM date '2024-02-29') FROM emp",
    "FROM emp SELECT id WHERE id > 1",
    "SELECT * FROM emp LATERAL VIEW explode(array(1, 2)) t AS n",
    "SELECT count(DISTINCT dept), max(name) FROM emp",
    "SELECT * FROM (SELECT id, name FROM emp) x WHERE id < 3",
    "SELECT * FROM VALUES (1), (2) AS v(a)",
    "SELECT CASE WHEN salary > 4500 THEN 'a' ELSE 'b' END FROM emp",
    "SELECT if(salary IS NULL, 'none', name) x FROM emp",
    "SELECT id FROM emp WHERE name = 'Ann;' OR name LIKE '%n'",
    "SELECT id, (SELECT count(*) FROM emp o WHERE o.dept = emp.dept AND o.id = 1) FROM emp WHERE emp.id < 3",
    "SELECT id FROM emp WHERE id = 1 AND EXISTS (SELECT 1 FROM emp o WHERE o.dept = emp.dept AND o.id > 1)",
    "SELECT a.id FROM emp a LEFT JOIN emp b ON a.id = b.id AND b.id = 2 WHERE a.name IN ('Ann', 'Bob')",
    "SELECT max(id) FROM emp WHERE id > 1 AND salary IS NULL GROUP BY dept",
    "WITH e AS (SELECT * FROM emp WHERE id = 2) SELECT a.name FROM e a JOIN e b ON a.id = b.id",
]


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("text", SAME_AS_SPARK)
def test_a_query_answers_as_plain_spark_does(shop: AcidSession, spark: SparkSession, text: str) -> None:
    rows = [tuple(r) for r in shop.table("emp").collect()]
    ours = shop.sql(text)
    found = sorted(map(repr, ours.collect()))
    spark.createDataFrame(rows, "id int, name string, salary int, dept int").createOrReplaceTempView("emp")
    try:
        theirs = spark.sql(text)
        assert ours.columns == theirs.columns
        assert [f.dataType for f in ours.schema] == [f.dataType for f in theirs.schema]
        assert found == sorted(map(repr, theirs.collect()))
    finally:
        spark.catalog.dropTempView("emp")


@pytest.mark.usefixtures("search")
def test_tables_of_several_databases_views_and_subqueries_mix(shop: AcidSession) -> None:
    assert answer(
        shop,
        """SELECT emp.name, d.title, tags.tag FROM emp JOIN hr.dept d ON emp.dept = d.id
           LEFT JOIN tags ON tags.id = emp.id
           WHERE d.id IN (SELECT id FROM hr.dept WHERE title = 'Sales')""",
    ) == [("Ann", "Sales", "x"), ("Bob", "Sales", "y")]
    assert answer(shop, "SELECT hr.dept.title FROM hr.dept WHERE hr.dept.id = 10") == [("Sales",)]
    shop.sql("USE hr")
    assert answer(shop, "SELECT title FROM dept, default.emp WHERE dept.id = emp.dept AND name = 'Cid'") == [("Ops",)]


def test_named_parameters_reach_every_kind_of_statement(shop: AcidSession) -> None:
    assert answer(shop, "SELECT :text, :self", text="a", self="b") == [("a", "b")]
    assert answer(shop, "SELECT name FROM emp WHERE id = :id", id=2) == [("Bob",)]
    shop.sql("INSERT INTO emp VALUES (:id, :name, 1, 1)", id=9, name="O'Hara")
    shop.sql("UPDATE emp SET salary = :s WHERE name = :name", s=77, name="O'Hara")
    assert answer(shop, "SELECT salary FROM emp WHERE id = 9") == [(77,)]
    assert shop.sql("DELETE FROM emp WHERE id = :id", id=9).collect()[0].num_deleted_rows == 1


@pytest.mark.usefixtures("search")
def test_row_id_is_a_struct_that_a_star_does_not_show(shop: AcidSession) -> None:
    frame = shop.sql("SELECT ROW__ID, * FROM emp")
    assert frame.columns == ["ROW__ID", "id", "name", "salary", "dept"]
    assert frame.schema["ROW__ID"].dataType.simpleString() == "struct<writeId:bigint,bucketId:int,rowId:bigint>"
    assert answer(shop, "SELECT id FROM emp WHERE ROW__ID.rowId = 1") == [(2,)]
    joined = shop.sql(
        "SELECT a.ROW__ID, *, b.* FROM emp a JOIN emp b ON a.ROW__ID = b.ROW__ID WHERE a.row__id.writeid = 1"
    )
    assert joined.columns == ["ROW__ID", *["id", "name", "salary", "dept"] * 3]
    assert joined.count() == 3
    assert shop.sql("SELECT * FROM (SELECT ROW__ID r, * FROM emp) x").columns == ["r", "id", "name", "salary", "dept"]
    assert shop.sql("SELECT count(*) FROM emp WHERE ROW__ID IS NOT NULL").collect()[0][0] == 3


def test_a_statement_sees_one_snapshot_however_late_it_is_read(shop: AcidSession) -> None:
    before = shop.sql("SELECT a.id FROM emp a JOIN emp b ON a.id = b.id")
    table = shop.table("emp")
    shop.sql("DELETE FROM emp WHERE id = 1")
    shop.sql("INSERT OVERWRITE emp VALUES (8, 'New', 1, 1)")
    assert sorted(r[0] for r in before.collect()) == [1, 2, 3]
    assert before.count() == table.count() == 3
    assert answer(shop, "SELECT id FROM emp") == [(8,)]


@pytest.mark.parametrize("text", ["SELECT * FROM emp", "SELECT id, name FROM emp WHERE id IN (SELECT id FROM emp)"])
@pytest.mark.parametrize(
    "derive",
    [
        lambda frame: frame.filter("id > 1").select("name"),
        lambda frame: frame.filter("id > 1").select("name").rdd,
        lambda frame: frame.filter("id > 1").select("name").rdd.map(lambda row: row),
    ],
    ids=["frame", "RDD", "RDD of an RDD"],
)
@pytest.mark.usefixtures("search")
def test_a_read_is_pinned_until_its_frame_is_garbage(
    shop: AcidSession, text: str, derive: Callable[[Any], Any]
) -> None:
    frame = shop.sql(text)
    assert len(shop.sql("SHOW TRANSACTIONS").collect()) == 1
    assert shop.sql("SHOW LOCKS").collect() == []
    derived = derive(frame)
    del frame
    end_released(shop)
    assert len(shop.sql("SHOW TRANSACTIONS").collect()) == 1
    assert derived.count() == 2
    del derived
    end_released(shop)
    nothing_is_open(shop)


@pytest.mark.parametrize("ends", ["aborted", "timed out and forgotten"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM emp",
        "TABLE emp",
        "INSERT INTO theirs SELECT id FROM emp",
        "CREATE OR REPLACE TEMPORARY VIEW kept AS TABLE emp",
    ],
)
def test_a_read_whose_transaction_was_ended_before_all_files_were_listed_is_an_error(
    shop: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, ends: str, text: str
) -> None:
    """As of a process that was suspended: the cleaner may have removed what its snapshot needs."""
    real = StatementContext.table_snapshot

    def suspended(*args: Any, **kwargs: Any) -> Any:
        shop.metastore.abort_txns([t.id for t in shop.metastore.show_txns()])
        if ends != "aborted":
            [later] = shop.metastore.open_txns(user="olga", host="far")
            shop.metastore.commit_txn(later)
            shop.metastore.clean_empty_aborted_txns()
        return real(*args, **kwargs)

    spark.sql("CREATE TABLE theirs (id int) USING parquet")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(StatementContext, "table_snapshot", suspended)
            with pytest.raises(TransactionError):
                shop.sql(text)
        assert spark.table("theirs").count() == 0
        assert shop.table("emp").count() == 3
    finally:
        spark.sql("DROP TABLE theirs")


def test_in_a_database_that_spark_does_not_have_no_table_of_another_one_is_meant(
    shop: AcidSession, spark: SparkSession
) -> None:
    spark.sql("CREATE TABLE theirs USING parquet AS SELECT 5 AS id")
    shop.sql("CREATE DATABASE d3")
    shop.sql("CREATE TRANSACTIONAL TABLE d3.mine AS SELECT 1 AS id")
    try:
        shop.sql("USE d3")
        for text in (
            "SELECT * FROM theirs",
            "SELECT * FROM mine JOIN theirs USING (id)",
            "INSERT INTO mine SELECT id FROM theirs",
            "DELETE FROM mine WHERE id NOT IN (SELECT id FROM theirs)",
            "MERGE INTO mine USING theirs ON mine.id = theirs.id WHEN NOT MATCHED THEN INSERT *",
            "EXPLAIN SELECT * FROM theirs",
        ):
            with pytest.raises(TableNotFound, match=r"d3\.theirs"):
                shop.sql(text)
        with pytest.raises(TableNotFound):
            shop.table("theirs")
        assert answer(shop, "SELECT mine.id, t.id, tag, current_database() FROM mine, default.theirs t, tags") == [
            (1, 5, "x", "d3"),
            (1, 5, "y", "d3"),
        ]
        assert answer(shop, "WITH theirs AS (SELECT id FROM mine) SELECT * FROM theirs") == [(1,)]
        shop.sql("DROP DATABASE d3 CASCADE")
        assert answer(shop, "SELECT *, current_database() FROM theirs") == [(5, "default")]
    finally:
        shop.sql("USE default")
        spark.sql("DROP TABLE theirs")


class SlowListener:
    """A listener of Spark's that takes its time over each query that has ended."""

    def __getattr__(self, name: str) -> Callable[[object], None]:
        if not name.startswith("on"):
            raise AttributeError(name)
        return lambda event: time.sleep(0.3) if name == "onOtherEvent" else None

    class Java:
        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)


def test_a_read_that_has_ended_is_not_listed_though_a_listener_is_still_told_of_it(
    shop: AcidSession, spark: SparkSession
) -> None:
    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)
    java, bus = context._jvm.java, context._jsc.sc().listenerBus()
    listener = java.util.ArrayList()
    listener.add(SlowListener())
    # Spark finds the listener that is to go by its identity; each call with the Python object would make a new one
    types = context._gateway.new_array(java.lang.Class, 1)
    types[0] = java.lang.Class.forName("org.apache.spark.scheduler.SparkListenerInterface")
    remove = bus.getClass().getMethod("removeListener", types)
    bus.getClass().getMethod("addToSharedQueue", types).invoke(bus, listener.toArray())
    try:
        assert shop.table("emp").count() == 3  # no thread serves its rows
        assert shop.sql("SHOW TRANSACTIONS").collect() == []
    finally:
        remove.invoke(bus, listener.toArray())
    assert bus.waitUntilEmpty(10_000) is None


def test_a_temporary_view_keeps_its_snapshot(shop: AcidSession) -> None:
    shop.sql("CREATE OR REPLACE TEMPORARY VIEW rich AS SELECT name FROM emp WHERE salary > 4500")
    shop.sql("UPDATE emp SET salary = 9000")
    assert answer(shop, "SELECT * FROM rich") == [("Ann",)]
    shop.spark.catalog.dropTempView("rich")


def test_a_temporary_view_of_the_same_name_goes_first(shop: AcidSession, spark: SparkSession) -> None:
    spark.createDataFrame([(42,)], "id int").createOrReplaceTempView("emp")
    try:
        assert answer(shop, "SELECT id FROM emp") == [(42,)]
        assert len(answer(shop, "SELECT id FROM default.emp")) == 3
    finally:
        spark.catalog.dropTempView("emp")


def test_explain_shows_the_plan(shop: AcidSession) -> None:
    plan = shop.sql("EXPLAIN SELECT id FROM emp WHERE id = 1").collect()[0][0]
    assert "Physical Plan" in plan
    assert "orc" in plan.lower()


def test_no_views_stay_behind(shop: AcidSession, spark: SparkSession) -> None:
    shop.sql("SELECT * FROM emp a JOIN emp b USING (id)").collect()
    shop.sql("UPDATE emp SET salary = 1 WHERE id IN (SELECT id FROM hr.dept)").collect()
    assert [r.viewName for r in spark.sql("SHOW VIEWS").collect()] == ["tags"]


def test_threads_share_a_session(shop: AcidSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE counter (n int)")
    shop.sql("INSERT INTO counter VALUES (0)").collect()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                shop.sql("UPDATE counter SET n = n + 1").collect()
        except BaseException as e:
            errors.append(e)
            raise

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert answer(shop, "SELECT n FROM counter") == [(9,)]


def test_sessions_that_share_a_warehouse_lose_no_update(shop: AcidSession, spark: SparkSession) -> None:
    shop.sql("CREATE TRANSACTIONAL TABLE counter (n int)")
    shop.sql("INSERT INTO counter VALUES (0)").collect()

    def work() -> None:
        with acidsql.connect(spark, warehouse=shop.warehouse) as session:
            for _ in range(3):
                session.sql("UPDATE counter SET n = n + 1").collect()

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(work) for _ in range(3)]:
            done.result()
    assert answer(shop, "SELECT n FROM counter") == [(9,)]


def test_a_script_runs_statement_by_statement(shop: AcidSession) -> None:
    script = """-- a comment; with a semicolon
        INSERT INTO emp VALUES (${id}, 'a;b', 1, 1);
        SELECT name FROM emp WHERE id = ${hivevar:id};
    """
    results = list(shop.script(script, {"id": "77"}))
    assert [r.count() for r in results] == [1, 1]
    assert results[1].collect()[0][0] == "a;b"


OVER_ROW_IDS = [
    "SELECT r.rowId FROM (SELECT ROW__ID r FROM {t} UNION SELECT NULL) EXCEPT SELECT ROW__ID.rowId FROM {t}",
    "SELECT r.rowId FROM (SELECT ROW__ID r FROM {t} UNION SELECT NULL) INTERSECT SELECT ROW__ID.rowId FROM {t}",
    "SELECT r.rowId FROM (SELECT ROW__ID r FROM {t} UNION ALL SELECT NULL) EXCEPT SELECT ROW__ID.rowId FROM {t}",
    "SELECT ROW__ID.rowId FROM {t} EXCEPT SELECT ROW__ID.rowId FROM {t} WHERE id = 1",
    "SELECT r.rowId FROM (SELECT DISTINCT ROW__ID r FROM {t}) a LEFT ANTI JOIN {t} b ON a.r.rowId <=> b.ROW__ID.rowId",
    "SELECT a.id FROM {t} a LEFT JOIN {t} b ON a.ROW__ID.rowId = b.ROW__ID.rowId + 1 WHERE b.ROW__ID IS NULL",
    "SELECT a.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id + 1 WHERE b.ROW__ID.rowId IS NULL",
    "SELECT count(*) FROM {t} a WHERE a.ROW__ID.rowId NOT IN (SELECT b.ROW__ID.rowId FROM {t} b WHERE b.id > 1)",
    "SELECT count(*) FROM {t} a FULL JOIN {t} b ON a.id = b.id + 2 WHERE a.ROW__ID IS NULL OR b.ROW__ID.rowId IS NULL",
    "SELECT max(ROW__ID.rowId), coalesce(max(ROW__ID.rowId), -1) FROM {t} WHERE id > 100",
]


@pytest.mark.parametrize("query", OVER_ROW_IDS)
def test_row_ids_are_values_like_others(shop: AcidSession, spark: SparkSession, query: str) -> None:
    shop.sql("DELETE FROM emp WHERE id = 2")
    schema = "id int, ROW__ID struct<writeId:bigint,bucketId:int,rowId:bigint>"
    rows = [tuple(r) for r in shop.sql("SELECT id, ROW__ID FROM emp").collect()]
    spark.createDataFrame(rows, schema).createOrReplaceTempView("emp_copy")
    expected = sorted((tuple(r) for r in spark.sql(query.format(t="emp_copy")).collect()), key=repr)
    assert sorted((tuple(r) for r in shop.sql(query.format(t="emp")).collect()), key=repr) == expected
