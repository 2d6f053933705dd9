"""What is current is so for a whole statement, in however many plans it runs: its time, its zone, its database."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession, functions

import acidsql
from acidsql.errors import ConstraintViolation, UnsupportedError
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.answers import rows


@pytest.fixture(params=["driver", "job"])
def acid(acid: AcidSession, request: pytest.FixtureRequest) -> AcidSession:
    acid.sql(f"SET acidsql.write.driver.rows = {20000 if request.param == 'driver' else 0}")
    return acid


@pytest.fixture(autouse=True)
def zone(spark: SparkSession) -> Iterator[None]:
    with setting(spark, "spark.sql.session.timeZone", "Asia/Kathmandu"):
        yield


def test_merge_closes_a_version_at_the_moment_at_which_the_next_one_begins(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE h (id int, since timestamp, until timestamp, told timestamp)")
    acid.sql("INSERT INTO h VALUES (1, timestamp '2020-01-01 00:00:00', NULL, NULL)")
    acid.sql(
        "MERGE INTO h USING (SELECT 1 AS id, 'close' AS what, now() AS t UNION ALL SELECT 2, 'new', now()) s"
        " ON h.id = s.id AND s.what = 'close' AND s.t = current_timestamp()"
        " WHEN MATCHED THEN UPDATE SET until = current_timestamp(), told = s.t"
        " WHEN NOT MATCHED AND s.t = current_timestamp() THEN INSERT (id, since, told) VALUES (s.id, now(), s.t)"
    )
    assert rows(acid, "SELECT id, since = told, until = told FROM h ORDER BY id") == [(1, False, True), (2, True, None)]
    assert rows(acid, "SELECT count(DISTINCT told) FROM h") == [(1,)]


def test_a_default_is_at_the_time_of_the_statement(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE d (id int, a timestamp, b timestamp DEFAULT current_timestamp())")
    acid.sql("INSERT INTO d (id, a) SELECT 1, current_timestamp()")
    acid.sql("INSERT INTO d (id, a) VALUES (2, current_timestamp())")
    acid.sql("INSERT INTO d VALUES (3, now(), DEFAULT), (4, NULL, NULL), (5, NULL, NULL)")
    acid.sql("UPDATE d SET a = current_timestamp(), b = DEFAULT WHERE id = 4")
    acid.sql(
        "MERGE INTO d USING (SELECT id FROM VALUES (5), (6) v(id)) s ON d.id = s.id WHEN MATCHED THEN UPDATE SET"
        " a = current_timestamp(), b = DEFAULT WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, current_timestamp())"
    )
    acid.sql("FROM VALUES (7), (8) v(id) INSERT INTO d (id, a) SELECT id, now() INSERT INTO d (id) SELECT id + 10")
    assert rows(acid, "SELECT id FROM d WHERE NOT a <=> b") == [(17,), (18,)]
    assert rows(acid, "SELECT count(DISTINCT b) FROM d WHERE id IN (7, 8, 17, 18)") == [(1,)]


def test_all_that_spark_knows_of_the_current_time_is_that_of_one_moment(acid: AcidSession, spark: SparkSession) -> None:
    columns = {
        "t": "current_timestamp()",
        "d": "current_date()",
        "l": "localtimestamp()",
        "n": "now()",
        "z": "current_timezone()",
        "u": "unix_timestamp()",
    }
    kinds = {"t": "timestamp", "d": "date", "l": "timestamp", "n": "timestamp", "z": "string", "u": "bigint"}
    acid.sql(f"CREATE TRANSACTIONAL TABLE k (id int, {', '.join(f'{c} {kinds[c]}' for c in columns)})")
    values = ", ".join(columns.values())
    source = f"SELECT id, {', '.join(f'{e} AS {c}' for c, e in columns.items())} FROM VALUES (1), (2) v(id)"
    acid.sql(f"INSERT INTO k SELECT 1, {values}")
    before = rows(acid, "SELECT t FROM k")[0][0]
    acid.sql(
        f"MERGE INTO k USING ({source}) s ON k.id = s.id AND s.l = localtimestamp() AND s.d = current_date()"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{c} = {e}' for c, e in columns.items())}"
        f" WHEN NOT MATCHED THEN INSERT VALUES (s.id, {values})"
    )
    made = rows(acid, "SELECT id, t, d, l, n, z, u FROM k")
    assert [r[0] for r in made] == [1, 2]
    assert len({r[1:] for r in made}) == 1
    assert made[0][1] > before
    assert rows(
        acid,
        "SELECT DISTINCT d = to_date(t), l = t, n = t, z, u = unix_timestamp(t) FROM k WHERE abs(unix_seconds(t) -"
        " unix_seconds(now())) < 600",
    ) == [(True, True, True, "Asia/Kathmandu", True)]
    if spark.version >= "4.1":
        found = acid.sql(
            "SELECT current_time(3) AS c, CAST(localtimestamp() AS string) AS l, k.id FROM k WHERE id = 1"
        ).selectExpr("CAST(c AS string) AS c", "l")
        [(time, stamp)] = [tuple(r) for r in found.collect()]
        assert stamp[11:].startswith(time[:12])


def test_the_current_database_is_the_users_wherever_a_plan_runs(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE DATABASE d2")
    spark.sql("CREATE DATABASE IF NOT EXISTS d2")
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (id int, s string, c string DEFAULT current_database()) PARTITIONED BY (p string)"
    )
    acid.sql("INSERT INTO t VALUES (1, 'default', NULL, 'default'), (2, 'd2', NULL, 'd2'), (3, 'x', NULL, 'x')")
    acid.sql("CREATE VIEW v AS SELECT id FROM t WHERE s = current_database()")
    try:
        acid.sql("USE d2")
        assert rows(acid, "SELECT id FROM default.v") == [(2,)]
        acid.sql("UPDATE default.t SET c = current_catalog() || current_schema() WHERE s = current_database()")
        acid.sql("DELETE FROM default.t WHERE id IN (SELECT 5 - id FROM default.t WHERE p = current_database())")
        acid.sql(
            "MERGE INTO default.t USING (SELECT 4 AS id, current_database() AS d) s"
            " ON t.s = s.d AND t.s = current_database()"
            " WHEN MATCHED THEN UPDATE SET s = current_database() || '!'"
            " WHEN NOT MATCHED THEN INSERT (id, p) VALUES (9, 'z')"
        )
        acid.sql("INSERT INTO default.t (id, s, p) SELECT 5, current_database(), current_database()")
        acid.sql("INSERT INTO default.t PARTITION (p = current_database()) SELECT 6, 's', 'c'")
        acid.sql("DELETE FROM default.t WHERE id = 6 AND p = 'd2'")
        found = rows(acid, "SELECT * FROM default.t ORDER BY id")
        assert found == [
            (1, "default", None, "default"),
            (2, "d2!", "spark_catalogd2", "d2"),
            (5, "d2", "d2", "d2"),
        ]
    finally:
        acid.sql("USE default")
        spark.sql("DROP DATABASE d2")


def test_checks_see_what_is_current_and_timestamps_as_the_user_does(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE c (id int, t timestamp DEFAULT now(), d date DEFAULT current_date(),"
        " CHECK (t <= current_timestamp()), CHECK (t >= now() - INTERVAL 1 HOUR), CHECK (d = current_date()),"
        " CHECK (to_date(t) = d OR id = 4), CHECK (current_timezone() = 'Asia/Kathmandu'), CHECK (t = now() OR id = 2))"
    )
    acid.sql("INSERT INTO c (id) VALUES (1)")
    acid.sql("INSERT INTO c VALUES (3, DEFAULT, DEFAULT), (2, now() - INTERVAL 1 SECOND, current_date())")
    acid.sql("MERGE INTO c USING (SELECT 4 AS id) s ON c.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
    acid.sql("UPDATE c SET t = now() WHERE id = 3")
    for text in (
        "INSERT INTO c VALUES (2, now() + INTERVAL 1 SECOND, current_date())",
        "INSERT INTO c VALUES (2, now() - INTERVAL 2 HOUR, current_date())",
        "UPDATE c SET d = current_date() + 1",
        "MERGE INTO c USING (SELECT 2 AS id) s ON c.id = s.id WHEN MATCHED THEN UPDATE SET t = now() + INTERVAL 1 DAY",
    ):
        with pytest.raises(ConstraintViolation):
            acid.sql(text)
    assert rows(acid, "SELECT id FROM c") == [(1,), (2,), (3,), (4,)]


def test_a_function_over_arrow_that_would_see_other_wall_clocks_is_refused(
    acid: AcidSession, spark: SparkSession
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE f (id int, t timestamp)")
    acid.sql("INSERT INTO f VALUES (17, timestamp '2020-07-01 23:30:00')")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    session.udf.register("same", functions.arrow_udf(lambda times: times, "timestamp"))
    session.udf.register("plain", functions.udf(lambda time: time, "timestamp", useArrow=False))
    other = acidsql.connect(session, warehouse=acid.warehouse)
    for text in (
        "INSERT INTO f SELECT 1, same(t) FROM f",
        "UPDATE f SET t = same(t)",
        "DELETE FROM f WHERE hour(same(t)) = 23",
        "MERGE INTO f USING f s ON same(f.t) = s.t WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(UnsupportedError, match="Asia/Kathmandu"):
            other.sql(text)
    assert rows(other, "SELECT hour(t) FROM f WHERE same(t) = t") == [(23,)]
    with setting(session, "spark.sql.session.timeZone", "UTC"):
        assert other.sql("UPDATE f SET id = 2 WHERE same(t) = t").collect()[0].num_updated_rows == 1
    assert other.sql("DELETE FROM f WHERE plain(t) = t").collect()[0].num_deleted_rows == 1
    other.close()


def test_the_values_of_static_partitions_are_of_the_same_time(acid: AcidSession) -> None:
    """Each was evaluated at a time of its own: at midnight the row was in the partition of another day."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (at timestamp) PARTITIONED BY (p timestamp)")
    at = "(p = current_timestamp()) SELECT current_timestamp()"
    acid.sql(f"INSERT INTO t PARTITION {at}")
    later = "INSERT OVERWRITE TABLE t PARTITION (p = now() + INTERVAL 1 DAY) SELECT now()"
    acid.sql(f"FROM (SELECT 1) s INSERT INTO t PARTITION {at} {later}")
    found = acid.sql("SELECT at, p FROM t ORDER BY p").collect()
    assert [row.p - row.at for row in found] == [dt.timedelta(0), dt.timedelta(0), dt.timedelta(days=1)]
    assert found[1].at == found[2].at
