"""FROM … INSERT … INSERT …: every INSERT sees the same rows of the source, at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from acidsql.errors import TableNotFound, UnsupportedError
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.answers import nothing_is_open, rows
from tests.spark.tree import tree

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE src (id int, ts timestamp)")
    acid.sql("INSERT INTO src SELECT id, timestamp_seconds(id) FROM range(20)")
    acid.sql("CREATE TRANSACTIONAL TABLE low (id int, v timestamp)")
    acid.sql("CREATE TRANSACTIONAL TABLE high (id int, v timestamp)")
    return acid


INTO_TWO = " INSERT INTO low SELECT id, ts WHERE {low} INSERT INTO high SELECT id, ts WHERE {high}"


SOURCES = [
    "FROM (SELECT *, rand() AS r FROM src) s",
    "FROM (SELECT *, hash(uuid()) % 2 AS r FROM src) s",
    "FROM (SELECT *, 1 AS r FROM src LIMIT 5) s",
    "FROM (SELECT *, 1 AS r FROM src ORDER BY id OFFSET 15) s",
    "FROM (SELECT *, 1 AS r FROM src TABLESAMPLE (50 PERCENT)) s",
    "FROM src JOIN (SELECT id AS i, rand() AS r FROM src) o ON id = i",
    "FROM (SELECT *, 1 AS r FROM src WHERE id IN (SELECT id FROM src LIMIT 3)) s",
    "WITH s AS (SELECT *, rand() AS r FROM src) FROM s",
    "WITH a AS (SELECT *, rand() AS r FROM src), b AS (SELECT * FROM a UNION ALL SELECT * FROM a) FROM b",
    "FROM src LATERAL VIEW explode(array(rand())) e AS r",
    "FROM noise",
    "FROM files",
]


@pytest.fixture
def elsewhere(shop: AcidSession, spark: SparkSession, tmp_path: Path) -> AcidSession:
    """Rows of Spark's own: a view that is random, and files."""
    spark.range(20).selectExpr("int(id) AS id", "timestamp_seconds(id) AS ts", "rand() AS r").createTempView("noise")
    spark.table("noise").write.parquet(str(tmp_path / "files"))
    spark.read.parquet(str(tmp_path / "files")).createTempView("files")
    return shop


@pytest.mark.parametrize("source", SOURCES)
def test_each_row_of_a_source_goes_to_one_of_two_inserts(elsewhere: AcidSession, source: str) -> None:
    """Also where the source gives other rows each time it is read. Spark need not keep any after that."""

    def kept() -> int:
        return int(elsewhere.spark.sparkContext._jsc.getPersistentRDDs().size())  # type: ignore[union-attr]

    before = kept()
    elsewhere.sql(source + INTO_TWO.format(low="r < 0.5", high="r >= 0.5"))
    found = [r[0] for r in rows(elsewhere, "SELECT id FROM low UNION ALL SELECT id FROM high")]
    times = 2 if "UNION ALL" in source else 1
    limits = {"LIMIT 5": 5, "LIMIT 3": 3, "OFFSET": 5}
    [count] = [n for text, n in limits.items() if text in source] or [20]
    if "TABLESAMPLE" not in source:
        assert len(found) == count * times
    assert all(found.count(n) == times for n in found)
    nothing_is_open(elsewhere)
    assert kept() == before


def test_explain_tells_that_a_source_is_evaluated_once(shop: AcidSession) -> None:
    def told(source: str) -> bool:
        plan = shop.sql(f"EXPLAIN FROM {source} INSERT INTO low SELECT id, ts INSERT INTO high SELECT id, ts").collect()
        return "evaluated once for all INSERTs" in "\n".join(r[0] for r in plan)

    assert told("(SELECT * FROM src LIMIT 3) s")
    assert not told("(SELECT * FROM src WHERE id > 3) s")


def test_rows_that_are_numbered_in_the_order_of_reading_are_numbered_once(
    shop: AcidSession, spark: SparkSession
) -> None:
    """Of ties row_number() takes the first that comes: another plan for each INSERT, and another one came first."""
    shop.sql("CREATE TRANSACTIONAL TABLE many (id int, g int, c int)")
    shop.sql("INSERT INTO many SELECT id, id % 50, 0 FROM range(20000)")
    shop.sql("CREATE TRANSACTIONAL TABLE keys (k int)")
    shop.sql("INSERT INTO keys SELECT 19999 - id FROM range(20000)")
    first = "row_number() OVER (PARTITION BY g ORDER BY m.c) AS n"
    source = f"FROM (SELECT m.id, m.g, {first} FROM many m JOIN keys ON m.id = k) q"
    some = "g = 1 AND n <= 5"
    with setting(spark, "spark.sql.autoBroadcastJoinThreshold", "50000"):
        shop.sql(
            f"{source} INSERT INTO low SELECT id, NULL WHERE {some} INSERT INTO high SELECT id, NULL WHERE NOT ({some})"
        )
    found = [r[0] for r in rows(shop, "SELECT id FROM low UNION ALL SELECT id FROM high")]
    assert sorted(found) == list(range(20000))


def test_columns_of_a_source_that_is_read_once_keep_their_names(shop: AcidSession) -> None:
    """Qualifiers of one to three parts, a column that two tables have, and row ids."""
    shop.sql(
        "FROM src s JOIN default.src ON s.id = spark_catalog.default.src.id CROSS JOIN (SELECT rand() AS noise) n"
        " INSERT INTO low SELECT default.src.id, s.ts WHERE spark_catalog.default.src.id < 5 AND s.ROW__ID.rowId < 3"
        " INSERT INTO high SELECT count(*), max(src.ts) WHERE s.id IN (SELECT id FROM src WHERE id > 7)"
        " HAVING max(noise) < 2"
    )
    assert rows(shop, "SELECT id FROM low") == [(0,), (1,), (2,)]
    assert rows(shop, "SELECT id FROM high") == [(12,)]


def test_an_overwrite_reads_its_own_table_before(shop: AcidSession) -> None:
    shop.sql("INSERT INTO low SELECT id, ts FROM src WHERE id < 3")
    shop.sql(
        "FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM low) q"
        " INSERT OVERWRITE TABLE low SELECT id, v WHERE n = 1 INSERT INTO high SELECT id, v WHERE n > 1"
    )
    assert rows(shop, "SELECT id FROM low") == [(0,)]
    assert rows(shop, "SELECT id FROM high") == [(1,), (2,)]


def test_an_error_in_a_source_that_is_read_once_leaves_nothing(shop: AcidSession, warehouse: Path) -> None:
    before = tree(warehouse)
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        shop.sql("FROM (SELECT *, 1 / (id - 7) AS r FROM src LIMIT 50) s" + INTO_TWO.format(low="r < 0", high="r > 0"))
    with pytest.raises(AnalysisException) as caught:
        shop.sql("FROM (SELECT * FROM src LIMIT 5) s\nINSERT INTO low SELECT id, nope INSERT INTO high SELECT id, ts")
    assert "__acid" not in str(caught.value)
    assert tree(warehouse) == before
    nothing_is_open(shop)


def test_a_single_insert_may_have_any_source(shop: AcidSession) -> None:
    shop.sql("FROM (SELECT *, rand() AS r FROM src LIMIT 4) s INSERT INTO low SELECT id, ts WHERE r < 2")
    assert len(rows(shop, "SELECT id FROM low")) == 4


def test_what_an_insert_computes_itself_may_be_random(shop: AcidSession) -> None:
    shop.sql(
        "FROM src INSERT INTO low SELECT id, timestamp_seconds(id + rand())"
        " INSERT INTO high SELECT id, ts ORDER BY id LIMIT 3"
    )
    assert len(rows(shop, "SELECT id FROM low")) == 20
    assert rows(shop, "SELECT id FROM high") == [(0,), (1,), (2,)]


@pytest.mark.parametrize("source", ["src", "(SELECT id, now() AS ts FROM src LIMIT 20)"])
def test_all_inserts_have_one_current_time(shop: AcidSession, source: str) -> None:
    """Or a row from between two times would be neither in the past nor in the future."""
    past = "greatest(ts, current_timestamp())"
    shop.sql(f"FROM {source} s INSERT INTO low SELECT id, {past} INSERT INTO high SELECT id, now()")
    assert len(rows(shop, "SELECT DISTINCT v FROM (SELECT * FROM low UNION ALL SELECT * FROM high)")) == 1


def test_each_row_goes_to_the_inserts_whose_condition_it_meets(shop: AcidSession) -> None:
    shop.sql("WITH s AS (SELECT * FROM src) FROM s" + INTO_TWO.format(low="id < 7", high="id >= 7"))
    assert rows(shop, "SELECT id FROM low") == [(i,) for i in range(7)]
    assert len(rows(shop, "SELECT id FROM high")) == 13


def test_a_natural_join_has_its_key_in_the_columns_of_both_sides(elsewhere: AcidSession) -> None:
    """Nothing in the text names the key."""
    elsewhere.sql(
        "FROM noise a NATURAL FULL JOIN (SELECT id, ts AS v FROM src WHERE id < 3) b"
        " INSERT INTO low BY NAME SELECT b.* WHERE v IS NOT NULL"
        " INSERT INTO high SELECT int(get_json_object(to_json(struct(a.*)), '$.id')), v"
    )
    assert rows(elsewhere, "SELECT id FROM low") == [(0,), (1,), (2,)]
    assert sorted(r[0] for r in rows(elsewhere, "SELECT id FROM high")) == list(range(20))


def test_a_source_that_fails_is_not_kept(elsewhere: AcidSession) -> None:
    before = elsewhere.spark.sparkContext._jsc.getPersistentRDDs().size()  # type: ignore[union-attr]
    failing = "FROM (SELECT id, ts, 1 / (id - 17) AS r FROM noise) s"
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        elsewhere.sql(failing + INTO_TWO.format(low="r < 0", high="r >= 0"))
    assert elsewhere.spark.sparkContext._jsc.getPersistentRDDs().size() == before  # type: ignore[union-attr]
    nothing_is_open(elsewhere)


@pytest.mark.parametrize("clause", ["", "WITH c AS (SELECT id, id % 2 AS odd FROM src) "])
def test_inserts_into_tables_of_sparks_are_run_by_spark(shop: AcidSession, spark: SparkSession, clause: str) -> None:
    """Over one snapshot of the ACID tables in it, as a single INSERT is; also where it is explained."""
    source = "FROM c" if clause else "FROM (SELECT id, id % 2 AS odd FROM src)"
    legs = "INSERT INTO even SELECT id WHERE odd = 0 INSERT INTO uneven SELECT id WHERE odd = 1 AND id < :n"
    text = f"{clause}{source} {legs}"
    try:
        for name in ("even", "uneven"):
            spark.sql(f"CREATE TABLE {name} (id int) USING parquet")
        shop.sql(text, n=10)
        assert [len(spark.table(name).collect()) for name in ("even", "uneven")] == [10, 5]
        assert "even" in rows(shop, f"EXPLAIN {text}", n=10)[0][0]
        assert [len(spark.table(name).collect()) for name in ("even", "uneven")] == [10, 5]
        with pytest.raises(UnsupportedError, match="into tables of Spark's and into ACID tables"):
            shop.sql(
                f"{source} INSERT INTO low SELECT id, null WHERE odd = 0 {legs}".replace("FROM c", "FROM src"), n=1
            )
        assert rows(shop, "SELECT * FROM low") == []
        with pytest.raises(TableNotFound):
            shop.sql(f"{source} INSERT INTO nowhere SELECT id {legs}", n=1)
        nothing_is_open(shop)
    finally:
        for name in ("even", "uneven"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
