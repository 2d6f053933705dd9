"""Views of the metastore over ACID tables."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import SparkSession

from acidsql.errors import AcidError, AlreadyExists, AnalysisError, TableNotFound, UnsupportedError
from acidsql.metastore.model import Column
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.answers import nothing_is_open, outcome, rows


@pytest.fixture(autouse=True)
def emp(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name char(3), salary decimal(10,2)) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO emp PARTITION (p) VALUES (1, 'Ann', 10, 1), (2, 'Bob', 20, 2)")


class TestCreateView:
    def test_reads_the_rows_of_the_moment_of_the_query(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v AS SELECT id, salary * 2 AS twice FROM emp WHERE p = 1")
        assert rows(acid, "SELECT id, CAST(twice AS int) FROM v") == [(1, 20)]
        acid.sql("UPDATE emp SET salary = 50 WHERE id = 1")
        assert rows(acid, "SELECT id, CAST(twice AS int) FROM v") == [(1, 100)]
        assert rows(acid, "SELECT v.id FROM v JOIN emp ON v.id = emp.id") == [(1,)]

    def test_keeps_names_types_and_comments(self, acid: AcidSession) -> None:
        acid.sql(
            "CREATE VIEW v (`No`, who COMMENT 'a name') COMMENT 'some' TBLPROPERTIES ('a'='b')"
            " AS SELECT id, name FROM emp"
        )
        view = acid.metastore.get_table("default", "v")
        assert view.table_type == "VIRTUAL_VIEW"
        assert view.columns == (Column("no", "int"), Column("who", "char(3)", "a name"))
        assert (view.comment, view.parameters["a"]) == ("some", "b")
        assert view.view_original == "SELECT id, name FROM emp"
        assert (
            view.view_text == "SELECT `id` AS `no`, `name` AS `who` FROM (\nSELECT id, name FROM `default`.`emp`\n) `v`"
        )

    def test_means_the_same_tables_in_every_database(self, acid: AcidSession) -> None:
        acid.sql("CREATE DATABASE hr")
        acid.sql("USE hr")
        acid.sql("CREATE TRANSACTIONAL TABLE emp (id int)")
        acid.sql("INSERT INTO emp VALUES (100)")
        acid.sql(
            "CREATE VIEW v AS WITH c AS (SELECT id FROM emp) SELECT c.id, e.name FROM c LEFT JOIN default.emp e ON true"
        )
        expected = [(100, "Ann"), (100, "Bob")]
        assert rows(acid, "SELECT * FROM v") == expected
        acid.sql("USE default")
        assert rows(acid, "SELECT * FROM hr.v") == expected

    def test_means_the_table_that_identifier_named(self, acid: AcidSession) -> None:
        acid.sql("CREATE DATABASE hr")
        acid.sql("CREATE TRANSACTIONAL TABLE hr.emp (id int)")
        acid.sql("CREATE VIEW hr.v AS SELECT id FROM IDENTIFIER('em' || 'p')")
        acid.sql("CREATE VIEW hr.w AS WITH emp AS (SELECT 7 AS id) SELECT id FROM IDENTIFIER('emp')")
        acid.sql("USE hr")
        assert (rows(acid, "SELECT * FROM v"), rows(acid, "SELECT * FROM w")) == ([(1,), (2,)], [(7,)])

    def test_keeps_the_values_of_the_sessions_variables(self, acid: AcidSession, spark: SparkSession) -> None:
        with setting(spark, "my.variable.with.a.long.name", "s"):
            acid.sql("CREATE VIEW v AS SELECT '${my.variable.with.a.long.name}' AS s, id FROM emp WHERE id = 1")
        assert rows(acid, "SELECT * FROM v") == [("s", 1)]

    def test_a_star_does_not_grow_with_its_table(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v AS SELECT *, 7 AS seven FROM emp WHERE id = 1")
        acid.sql("ALTER TABLE emp ADD COLUMNS (more int)")
        assert acid.sql("SELECT * FROM v").columns == ["id", "name", "salary", "p", "seven"]
        assert [r[-1] for r in rows(acid, "SELECT * FROM v")] == [7]

    def test_over_views(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v AS SELECT id FROM emp")
        acid.sql("CREATE VIEW w AS SELECT max(id) AS top FROM v")
        assert rows(acid, "SELECT * FROM w") == [(2,)]
        assert rows(acid, "SELECT id FROM emp WHERE id = (SELECT top FROM w)") == [(2,)]

    def test_is_replaced(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v AS SELECT id FROM emp")
        with pytest.raises(AlreadyExists, match="line 1:13"):
            acid.sql("CREATE VIEW v AS SELECT name FROM emp")
        acid.sql("CREATE VIEW IF NOT EXISTS v AS SELECT name FROM emp")
        assert rows(acid, "SELECT * FROM v") == [(1,), (2,)]
        acid.sql("CREATE OR REPLACE VIEW v AS SELECT name FROM emp")
        assert rows(acid, "SELECT * FROM v") == [("Ann",), ("Bob",)]

    def test_two_columns_of_one_name_get_names_in_the_view(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v (a, b) AS SELECT e.id, f.id FROM emp e JOIN emp f ON e.id = f.id - 1")
        assert rows(acid, "SELECT a, b FROM v") == [(1, 2)]

    def test_of_no_acid_table_is_sparks(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW only_spark AS SELECT 1 AS one")
        try:
            assert acid.metastore.find_table("default", "only_spark") is None
            assert rows(acid, "SELECT * FROM only_spark") == [(1,)]
        finally:
            acid.sql("DROP VIEW only_spark")
        assert not acid.spark.catalog.tableExists("only_spark")

    def test_of_no_acid_table_in_a_database_that_spark_does_not_have_is_ours(self, acid: AcidSession) -> None:
        acid.sql("CREATE DATABASE hr")
        acid.sql("CREATE VIEW hr.v AS SELECT 1 AS one")
        assert rows(acid, "SELECT * FROM hr.v") == [(1,)]


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "error", "match"),
        [
            ("CREATE VIEW v AS SELECT nope FROM emp", SparkAnalysisException, "nope"),
            ("CREATE VIEW v (a) AS SELECT id, name FROM emp", AnalysisError, "10089"),
            ("CREATE VIEW v (a, A) AS SELECT id, name FROM emp", AnalysisError, "10036"),
            ("CREATE VIEW v AS SELECT id, id FROM emp", AnalysisError, "10036"),
            ("CREATE VIEW emp AS SELECT id FROM emp", AlreadyExists, "10218"),
            ("CREATE OR REPLACE VIEW emp AS SELECT id FROM emp", AlreadyExists, "not a view"),
            ("CREATE VIEW nowhere.v AS SELECT id FROM emp", AnalysisError, "10072"),
            ("CREATE VIEW v AS SELECT NULL AS nothing, id FROM emp", UnsupportedError, "nothing"),
            ("CREATE VIEW v AS SELECT ROW__ID, id FROM emp", AnalysisError, "reserved"),
            ("CREATE VIEW v AS SELECT id FROM emp, mine", AnalysisError, "temporary view of this session"),
            ("CREATE VIEW v AS SELECT id FROM emp, IDENTIFIER('mine')", AnalysisError, "temporary view of this"),
            ("CREATE VIEW v AS SELECT twice(id) AS id FROM emp", AnalysisError, "twice: it is a temporary function"),
            ("CREATE VIEW v AS SELECT id FROM emp WHERE id = mine_too", AnalysisError, "a session variable"),
            ("CREATE VIEW v AS SELECT id FROM emp WHERE id = :id", AnalysisError, "cannot have parameters"),
            (
                "CREATE VIEW v TBLPROPERTIES ('transactional'='true') AS SELECT id FROM emp",
                AnalysisError,
                "cannot be trans",
            ),
        ],
    )
    def test_and_nothing_is_registered(self, acid: AcidSession, text: str, error: type[Exception], match: str) -> None:
        acid.spark.sql("CREATE OR REPLACE TEMP VIEW mine AS SELECT 1 AS one")
        acid.spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION twice(n int) RETURNS int RETURN 2 * n")
        acid.spark.sql("DECLARE OR REPLACE VARIABLE mine_too INT DEFAULT 1")
        try:
            with pytest.raises(error, match=match):
                acid.sql(text, id=1)
        finally:
            acid.spark.catalog.dropTempView("mine")
            acid.spark.sql("DROP TEMPORARY FUNCTION twice")
            acid.spark.sql("DROP TEMPORARY VARIABLE mine_too")
        assert acid.metastore.list_tables("default") == ["emp"]
        nothing_is_open(acid)

    def test_a_cycle(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW a AS SELECT id FROM emp")
        acid.sql("CREATE VIEW b AS SELECT id FROM a")
        acid.sql("CREATE VIEW c AS SELECT id FROM b")
        for query, cycle in (("c", "a -> default.c -> default.b -> default.a"), ("a", "a -> default.a")):
            with pytest.raises(AnalysisError, match=f"Recursive view default.a .*{cycle}"):
                acid.sql(f"CREATE OR REPLACE VIEW a AS SELECT id FROM {query}")
        assert rows(acid, "SELECT * FROM c") == [(1,), (2,)]

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("UPDATE v SET id = 1", 10402),
            ("DELETE FROM v", 10402),
            ("INSERT INTO v VALUES (1)", 10090),
            ("INSERT OVERWRITE TABLE v SELECT 1", 10090),
            ("ANALYZE TABLE v COMPUTE STATISTICS", 10091),
            ("DROP TABLE v", 40000),
            ("DROP TABLE IF EXISTS v", 40000),
        ],
    )
    def test_a_statement_on_a_view(self, acid: AcidSession, text: str, code: int) -> None:
        acid.sql("CREATE VIEW v AS SELECT id FROM emp")
        with pytest.raises(AnalysisError) as caught:
            acid.sql(text)
        assert caught.value.code == code
        assert caught.value.line == 1
        assert rows(acid, "SELECT * FROM v") == [(1,), (2,)]


class TestAViewWhoseTableIsGone:
    def test_names_the_table_and_itself(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v AS SELECT id FROM emp")
        acid.sql("CREATE VIEW w AS SELECT id FROM v")
        acid.sql("DROP TABLE emp")
        with pytest.raises(TableNotFound, match=r"Table not found default\.emp in definition of view default\.v"):
            acid.sql("SELECT * FROM v")
        with pytest.raises(TableNotFound, match=r"default\.emp"):
            acid.sql("SELECT * FROM w")
        acid.sql("CREATE TRANSACTIONAL TABLE emp (id int)")
        assert rows(acid, "SELECT * FROM w") == []


class TestDropView:
    def test_forgets_it(self, acid: AcidSession) -> None:
        acid.sql("CREATE VIEW v AS SELECT id FROM emp")
        acid.sql("DROP VIEW v")
        assert acid.metastore.list_tables("default") == ["emp"]
        acid.sql("DROP VIEW v")
        acid.sql("SET hive.exec.drop.ignorenonexistent = false")
        with pytest.raises(TableNotFound, match=r"\[Error 10001\].*line 1:11"):
            acid.sql("DROP VIEW v")
        acid.sql("DROP VIEW IF EXISTS v")

    def test_of_a_table_is_refused(self, acid: AcidSession) -> None:
        with pytest.raises(AnalysisError, match="Cannot drop a base table with DROP VIEW"):
            acid.sql("DROP VIEW emp")

    def test_of_a_temporary_view_is_sparks(self, acid: AcidSession) -> None:
        acid.sql("CREATE TEMPORARY VIEW mine AS SELECT id FROM emp")
        acid.sql("DROP VIEW mine")
        assert not acid.spark.catalog.tableExists("mine")

    def test_goes_with_its_database(self, acid: AcidSession) -> None:
        acid.sql("CREATE DATABASE hr")
        acid.sql("CREATE VIEW hr.v AS SELECT id FROM default.emp")
        with pytest.raises(AnalysisError):
            acid.sql("DROP DATABASE hr")
        acid.sql("DROP DATABASE hr CASCADE")
        assert rows(acid, "SELECT id FROM emp") == [(1,), (2,)]


def test_a_view_may_have_row_ids(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE numbered (id int)")
    acid.sql("INSERT INTO numbered VALUES (1), (2)")
    acid.sql("CREATE VIEW ids AS SELECT id, ROW__ID AS r FROM numbered")
    acid.sql("CREATE VIEW over_ids AS SELECT r.rowId AS n, id FROM ids")
    assert rows(acid, "SELECT * FROM over_ids") == [(0, 1), (1, 2)]
    assert rows(acid, "SELECT i.* FROM ids i JOIN numbered n ON i.id = n.id WHERE n.id = 2")[0][0] == 2
    acid.sql("DELETE FROM numbered WHERE ROW__ID IN (SELECT r FROM ids WHERE id = 1)")
    assert rows(acid, "SELECT id FROM ids") == [(2,)]


SETTINGS = {
    "spark.sql.ansi.enabled": ("false", "SELECT id, CAST(w AS int) AS n, id / (id - 1) AS z FROM {}"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true", 'SELECT id, "w" AS q FROM {}'),
    "spark.sql.parser.escapedStringLiterals": ("true", r"SELECT id, '\d' AS e, w RLIKE '\\w' AS r FROM {}"),
    "spark.sql.caseSensitive": ("true", "SELECT ID, W FROM {} WHERE w IS NOT NULL"),
    "spark.sql.mapKeyDedupPolicy": ("LAST_WIN", "SELECT id, CAST(map(id, 1, id, 2) AS string) AS m FROM {}"),
    "spark.sql.legacy.sizeOfNull": ("false", "SELECT id, size(CAST(NULL AS array<int>)) AS s FROM {}"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", "SELECT id, typeof(timestamp '2020-01-01 00:00:00') AS t FROM {}"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_view_is_read_under_the_settings_of_its_creation(acid: AcidSession, spark: SparkSession, name: str) -> None:
    """As Spark reads its own views: of the same rows, created and read under two settings each."""
    value, text = SETTINGS[name]
    acid.sql("CREATE TRANSACTIONAL TABLE mine (id int, w string, at timestamp)")
    acid.sql("INSERT INTO mine VALUES (1, 'x', timestamp '2020-07-01 12:00:00'), (2, '7', NULL)")
    spark.sql("CREATE TABLE theirs (id int, w string, at timestamp) USING parquet")
    spark.sql("INSERT INTO theirs VALUES (1, 'x', timestamp '2020-07-01 12:00:00'), (2, '7', NULL)")

    def create(view: str) -> list[object]:
        return [
            outcome(lambda: acid.sql(f"CREATE VIEW {view} AS {text.format('mine')}")),
            outcome(lambda: spark.sql(f"CREATE VIEW spark_{view} AS {text.format('theirs')}")),
        ]

    def read(view: str) -> list[object]:
        return [
            outcome(lambda: rows(acid, f"SELECT * FROM {view}")),
            outcome(lambda: sorted(map(tuple, spark.sql(f"SELECT * FROM spark_{view}").collect()), key=repr)),
        ]

    try:
        found = [create("before"), read("before")]
        with setting(spark, name, value):
            found += [create("under"), read("before"), read("under")]
        found += [read("under"), read("before")]
        with setting(spark, name, value), setting(spark, "spark.sql.legacy.useCurrentConfigsForView", "true"):
            found += [read("before"), read("under")]
    finally:
        for one in ("before", "under"):
            spark.sql(f"DROP VIEW IF EXISTS spark_{one}")
        spark.sql("DROP TABLE theirs")
    for ours, theirs in found:
        assert ours == theirs
    assert any(ours != "refused" for ours, _ in found)


def test_the_settings_of_a_view_are_not_shown(acid: AcidSession) -> None:
    acid.sql("CREATE VIEW v TBLPROPERTIES ('a'='b') AS SELECT id FROM emp")
    assert "spark.sql.ansi.enabled" in acid.metastore.get_table("default", "v").view_settings
    for text in ("SHOW CREATE TABLE v", "SHOW TBLPROPERTIES v", "DESCRIBE FORMATTED v"):
        shown = str(acid.sql(text).collect())
        assert "view.sqlConfig" not in shown


def test_a_view_shows_the_wall_clocks_of_its_table_in_every_zone(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE clock (at timestamp)")
    acid.sql("INSERT INTO clock VALUES (timestamp '2020-07-01 12:00:00')")
    for zone in ("Asia/Tokyo", "UTC", "America/New_York"):
        with setting(spark, "spark.sql.session.timeZone", zone):
            acid.sql("CREATE OR REPLACE VIEW v AS SELECT CAST(at AS string) AS a, hour(at) AS h FROM clock")
        for reader in ("UTC", "Asia/Tokyo"):
            with setting(spark, "spark.sql.session.timeZone", reader):
                assert rows(acid, "SELECT * FROM v WHERE h = 12") == [("2020-07-01 12:00:00", 12)]


def test_a_view_shows_the_current_rows_of_sparks_tables(acid: AcidSession, spark: SparkSession) -> None:
    """Whether it is read in the session of its creation or under other settings."""
    spark.sql("CREATE TABLE theirs (id int, w string) USING parquet")
    try:
        spark.sql("INSERT INTO theirs VALUES (1, 'x')")
        acid.sql("CREATE VIEW v AS SELECT emp.id, w FROM emp JOIN theirs ON emp.id = theirs.id")
        for ansi in ("true", "false"):
            with setting(spark, "spark.sql.ansi.enabled", ansi):
                assert rows(acid, "SELECT * FROM v") == [(1, "x")]
                spark.sql("INSERT INTO theirs (id, w) VALUES (2, 'y')")
                assert rows(acid, "SELECT * FROM v") == [(1, "x"), (2, "y")]
                spark.sql("INSERT OVERWRITE theirs (id, w) VALUES (2, 'z')")
                assert rows(acid, "SELECT * FROM v") == [(2, "z")]
                spark.sql("DROP TABLE theirs")
                spark.sql("CREATE TABLE theirs (w string, id int) USING parquet")
                spark.sql("INSERT INTO theirs VALUES ('x', 1)")
                assert rows(acid, "SELECT * FROM v") == [(1, "x")]
    finally:
        spark.sql("DROP TABLE IF EXISTS theirs")


def test_a_view_calls_the_functions_of_the_database_of_its_creation(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE DATABASE d2")
    spark.sql("CREATE DATABASE IF NOT EXISTS d2")
    try:
        for number, name in enumerate(("default.f", "d2.f")):
            spark.sql(f"CREATE FUNCTION {name}(x int) RETURNS int RETURN x + {number}")
        for database in ("d2", "default"):
            acid.sql(f"USE {database}")
            acid.sql(f"CREATE OR REPLACE VIEW default.v_{database} AS SELECT f(id) AS x FROM default.emp")
        for database in ("d2", "default"):
            acid.sql(f"USE {database}")
            assert rows(acid, "SELECT * FROM default.v_d2") == [(2,), (3,)]
            assert rows(acid, "SELECT * FROM default.v_default") == [(1,), (2,)]
    finally:
        acid.sql("USE default")
        spark.sql("DROP FUNCTION IF EXISTS default.f")
        spark.sql("DROP DATABASE d2 CASCADE")


def test_a_view_does_not_see_the_temporary_functions_of_its_readers(acid: AcidSession, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE theirs USING parquet AS SELECT id FROM VALUES (1), (2) v(id)")
    try:
        for kind in ("FUNCTION", "TEMPORARY FUNCTION"):
            by = 10 if kind == "FUNCTION" else 1000
            spark.sql(f"CREATE {kind} times(x int) RETURNS int RETURN x * {by}")
            spark.sql(f"CREATE {kind} upto(x int) RETURNS TABLE (n int) RETURN SELECT x * {by}")
            if kind == "FUNCTION":
                text = "AS SELECT id, times(id) AS t, u.n FROM {}, LATERAL upto(id) u"
                acid.sql(f"CREATE VIEW mine {text.format('emp')}")
                acid.sql("CREATE VIEW over_mine AS SELECT * FROM mine WHERE times(id) = t")
                spark.sql(f"CREATE VIEW spark_view {text.format('theirs')}")
            expected = [(1, 10, 10), (2, 20, 20)]
            assert sorted(map(tuple, spark.sql("SELECT * FROM spark_view").collect())) == expected
            assert rows(acid, "SELECT * FROM mine") == rows(acid, "SELECT * FROM over_mine") == expected
        acid.sql("DELETE FROM emp WHERE id * 1000 IN (SELECT t FROM mine)")
        assert rows(acid, "SELECT times(id) FROM emp") == [(1000,), (2000,)]
    finally:
        for name in ("times", "upto"):
            spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
            spark.sql(f"DROP FUNCTION IF EXISTS {name}")
        spark.sql("DROP VIEW IF EXISTS spark_view")
        spark.sql("DROP TABLE theirs")


def test_a_view_does_not_see_the_variables_of_its_readers(acid: AcidSession, spark: SparkSession) -> None:
    """A column that its table has lost is an error, as in a view of Spark's."""
    acid.sql("CREATE VIEW v AS SELECT id FROM emp WHERE salary > 15")
    acid.sql("ALTER TABLE emp RENAME COLUMN salary TO pay")
    spark.sql("DECLARE VARIABLE salary INT DEFAULT 9000")
    try:
        with pytest.raises(AcidError, match="UNRESOLVED_COLUMN"):
            acid.sql("DELETE FROM emp WHERE id IN (SELECT id FROM v)")
        acid.sql("ALTER TABLE emp RENAME COLUMN pay TO salary")
        assert rows(acid, "SELECT * FROM v WHERE id < salary") == rows(acid, "SELECT id FROM emp WHERE salary > 15")
    finally:
        spark.sql("DROP TEMPORARY VARIABLE salary")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER VIEW v RENAME TO w",
        "ALTER VIEW v SET TBLPROPERTIES ('a' = 'b')",
        "REFRESH TABLE v",
        "COMMENT ON TABLE v IS 'x'",
        "CACHE TABLE v",
    ],
)
def test_what_is_not_supported_for_views_says_so(acid: AcidSession, text: str) -> None:
    acid.sql("CREATE VIEW v AS SELECT id FROM emp")
    with pytest.raises(UnsupportedError, match="not supported for views of the metastore: v is one"):
        acid.sql(text)
