"""CREATE TABLE: buckets, insert-only tables, constraints, LIKE, columns of a query, and what is refused."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.commands.dml.columns import columns_of
from acidsql.errors import AcidError, AnalysisError, UnsupportedError
from acidsql.metastore.model import Column, Table
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.tree import tree

GOLDEN = Path(__file__).parents[1] / "golden" / "data"
ACID = "TBLPROPERTIES ('transactional'='true')"


def table(acid: AcidSession, name: str) -> Table:
    return acid.metastore.get_table("default", name)


def declaration(found: Table) -> tuple[object, ...]:
    """All that a table made LIKE another has from it."""
    kept = {k: v for k, v in found.parameters.items() if k != "transient_lastDdlTime"}
    buckets = found.bucket_columns, found.num_buckets
    return found.columns, found.partition_keys, buckets, found.checks, found.comment, kept


def nothing_left(acid: AcidSession, warehouse: Path, run: Callable[[], object]) -> AcidError | PySparkException:
    def files() -> list[str]:
        return [f for f in tree(warehouse) if not f.startswith("acidsql.db")]

    before, tables = files(), acid.metastore.list_tables("default")
    error: AcidError | PySparkException | None = None
    try:
        run()
    except (AcidError, PySparkException) as e:
        error = e
    assert error is not None
    nothing_is_open(acid)
    assert files() == before
    assert acid.metastore.list_tables("default") == tables
    return error


# --- buckets ---------------------------------------------------------------------------------------------------------


def test_a_bucketed_table_is_registered_and_shown(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TABLE t (a int, b string, c double) PARTITIONED BY (p int) CLUSTERED BY (B, a) INTO 4096 BUCKETS"
        f" STORED AS ORC {ACID}"
    )
    made = table(acid, "t")
    assert (made.bucket_columns, made.num_buckets) == (("b", "a"), 4096)
    assert made.parameters["bucketing_version"] == "2"
    [[text]] = acid.sql("SHOW CREATE TABLE t").collect()
    acid.sql("DROP TABLE t")
    acid.sql(text)
    assert declaration(table(acid, "t")) == declaration(made)


@pytest.mark.parametrize(
    ("clause", "code", "marked", "message"),
    [
        ("(a int) CLUSTERED BY (nope) INTO 2 BUCKETS", 10002, "nope", "Invalid column reference nope"),
        (
            "(a int) PARTITIONED BY (p int) CLUSTERED BY (p) INTO 2 BUCKETS",
            10002,
            "p) INTO",
            "Invalid column reference p",
        ),
        ("(a int) CLUSTERED BY (a, A) INTO 2 BUCKETS", 40000, "A)", "named twice"),
        ("(a int) CLUSTERED BY (a) INTO 0 BUCKETS", 10037, "t (", "bigger than zero"),
        ("(a int) CLUSTERED BY (a) INTO 4097 BUCKETS", 10037, "t (", "at most 4096"),
        ("(a int) CLUSTERED BY (a) SORTED BY (a) INTO 2 BUCKETS", 40000, "t (", "since it is sorted"),
        (
            "(a timestamp with local time zone) CLUSTERED BY (a) INTO 2 BUCKETS",
            None,
            "a) INTO",
            "cannot be bucketed by a",
        ),
        ("(a int) TBLPROPERTIES ('bucketing_version'='3')", 40000, "t (", "Unknown value for bucketing_version: 3"),
    ],
)
def test_buckets_that_are_refused(
    acid: AcidSession, warehouse: Path, clause: str, code: int | None, marked: str, message: str
) -> None:
    statement = f"CREATE TRANSACTIONAL TABLE t {clause}"
    error = nothing_left(acid, warehouse, lambda: acid.sql(statement))
    assert isinstance(error, AcidError)
    assert (error.code, error.line, error.column) == (code, 1, statement.index(marked) + 1)
    assert message in error.message


@pytest.mark.parametrize("name", ["bk1_decimal", "bk2_char"])
def test_a_bucketed_table_that_hive_wrote_is_taken_in(acid: AcidSession, tmp_path: Path, name: str) -> None:
    meta = json.loads((GOLDEN / name / "01_insert" / "meta.json").read_text())
    shutil.copytree(GOLDEN / name / "01_insert" / "data", tmp_path / "taken")
    acid.sql(re.sub(r"LOCATION\s+'[^']*'", f"LOCATION '{tmp_path / 'taken'}'", meta["ddl"]))
    made = table(acid, name)
    assert (made.bucket_columns, made.num_buckets) == (("k",), 4)
    assert made.parameters["bucketing_version"] == name[2]
    assert acid.sql(f"SELECT count(*), count(DISTINCT ROW__ID) FROM {name}").collect()[0] == (260, 260)


# --- insert-only and other properties --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["transactional_properties", "TRANSACTIONAL_PROPERTIES"])
@pytest.mark.parametrize("value", ["insert_only", "INSERT_ONLY"])
def test_an_insert_only_table(acid: AcidSession, name: str, value: str) -> None:
    acid.sql(f"CREATE TABLE t (a int) STORED AS ORC TBLPROPERTIES ('Transactional'='TRUE', '{name}'='{value}')")
    made = table(acid, "t")
    assert made.is_insert_only
    assert {k: v for k, v in made.parameters.items() if k.lower().startswith("transactional")} == {
        "transactional": "true",
        "transactional_properties": "insert_only",
    }


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE t (a int) TBLPROPERTIES ('transactional'='yes')", "may only have value 'true'"),
        ("CREATE TRANSACTIONAL TABLE t (a int) TBLPROPERTIES ('transactional'='false')", "and transactional=false"),
        (
            "CREATE TRANSACTIONAL TABLE t (a int) TBLPROPERTIES ('transactional_properties'='split_update')",
            "Unknown value for transactional_properties: split_update",
        ),
        (f"CREATE EXTERNAL TABLE t (a int) STORED AS ORC {ACID}", "it's an external table"),
        ("CREATE TRANSACTIONAL TABLE t (a int) TBLPROPERTIES ('external'='TRUE')", "it's an external table"),
        ("CREATE TRANSACTIONAL TABLE t (a int) STORED AS PARQUET", "ACID compliant format"),
        (
            "CREATE TRANSACTIONAL TABLE t (a int) STORED AS PARQUET"
            " TBLPROPERTIES ('transactional_properties'='insert_only')",
            "Insert-only tables are written as ORC, not as PARQUET",
        ),
        ("CREATE TRANSACTIONAL TABLE t PARTITIONED BY (p int)", "has no columns"),
        ("CREATE TRANSACTIONAL TABLE t (a int) PARTITIONED BY (p array<int>)", "cannot be of type array<int>"),
    ],
)
def test_kinds_of_tables_that_are_refused(acid: AcidSession, warehouse: Path, statement: str, message: str) -> None:
    error = nothing_left(acid, warehouse, lambda: acid.sql(statement))
    assert isinstance(error, AcidError)
    assert message in error.message
    assert error.line == 1


def test_a_directory_with_original_files_is_taken_in(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT CAST(id AS int) AS a FROM range(3)").coalesce(1).write.orc(str(tmp_path / "plain"))
    [part] = (tmp_path / "plain").glob("part-*")
    (tmp_path / "taken").mkdir()
    shutil.copy(part, tmp_path / "taken" / "000001_0")
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (a int) LOCATION '{tmp_path / 'taken'}'")
    found = acid.sql("SELECT ROW__ID, a FROM t ORDER BY a").collect()
    assert [(r[0].writeId, r[0].bucketId, r[0].rowId, r[1]) for r in found] == [
        (0, (1 << 29) + (1 << 16), n, n) for n in range(3)
    ]
    acid.sql("INSERT INTO t VALUES (7)")
    assert acid.sql("SELECT ROW__ID.writeId FROM t WHERE a = 7").collect()[0][0] == 1


def test_a_directory_with_files_that_are_not_orc_is_refused(acid: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "000000_0").write_text("1,2\n")
    statement = f"CREATE TRANSACTIONAL TABLE t (a int) LOCATION '{tmp_path / 'taken'}'"
    assert "is not a complete ORC file" in str(nothing_left(acid, warehouse, lambda: acid.sql(statement)))


# --- constraints -----------------------------------------------------------------------------------------------------


def test_constraints_are_kept_with_the_table(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (a int NOT NULL CHECK (a > 0 AND t.a < b), b int DEFAULT 1 + 1, c string"
        " DEFAULT concat('x', 'y'), d timestamp DEFAULT current_timestamp(),"
        " CONSTRAINT short CHECK (length(c) < 4 OR c IN ('CHECK (a)')), CHECK (b IS NOT NULL))"
    )
    made = table(acid, "t")
    assert made.checks == ("a > 0 AND t.a < b", "length(c) < 4 OR c IN ('CHECK (a)')", "b IS NOT NULL")
    assert [(c.name, c.not_null, c.default) for c in made.columns] == [
        ("a", True, None),
        ("b", False, "1 + 1"),
        ("c", False, "concat('x', 'y')"),
        ("d", False, "current_timestamp()"),
    ]
    [[text]] = acid.sql("SHOW CREATE TABLE t").collect()
    acid.sql("DROP TABLE t")
    acid.sql(text)
    assert declaration(table(acid, "t")) == declaration(made)
    acid.sql("ALTER TABLE t ADD COLUMNS (e int)")
    assert table(acid, "t").checks == made.checks


@pytest.mark.parametrize(
    ("column", "marked", "message"),
    [
        ("a int CHECK (a + 1)", "a + 1", "not a value of type int"),
        ("a int CHECK (a IN (SELECT 1))", "a IN", "cannot have a subquery"),
        ("a int CHECK (EXISTS (FROM other SELECT a))", "EXISTS", "cannot have a subquery"),
        ("a int CHECK (a > (VALUES (1)))", "a > ", "cannot have a subquery"),
        ("a int CHECK (rand() < a)", "rand", "must be deterministic"),
        ("a int DEFAULT (SELECT 1)", "(SELECT", "cannot have a subquery"),
        ("a int DEFAULT count(1)", "count", "cannot have a subquery, aggregate"),
        ("a bigint DEFAULT row_number() OVER (ORDER BY 1)", "row_number", "cannot have a subquery, aggregate"),
    ],
)
def test_constraints_that_are_refused(
    acid: AcidSession, warehouse: Path, column: str, marked: str, message: str
) -> None:
    statement = f"CREATE TRANSACTIONAL TABLE t ({column})"
    error = nothing_left(acid, warehouse, lambda: acid.sql(statement))
    assert isinstance(error, AnalysisError)
    assert (error.code, error.line, error.column) == (10326, 1, statement.index(marked) + 1)
    assert message in error.message


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("(a int, CHECK (nope > 1))", "nope"),
        ("(a int, CHECK (max(a) > 1))", "WHERE"),
        ("(a int, CHECK (rank() OVER (ORDER BY a) > 1))", "WHERE"),
        ("(a int, CHECK (p > 1)) PARTITIONED BY (p int)", "`p`"),
        ("(a int DEFAULT b, b int)", "`b`"),
        ("(a int DEFAULT 'many')", "many"),
    ],
)
def test_what_spark_does_not_understand_is_refused_in_its_words(
    acid: AcidSession, warehouse: Path, columns: str, message: str
) -> None:
    error = nothing_left(acid, warehouse, lambda: acid.sql(f"CREATE TRANSACTIONAL TABLE t {columns}"))
    assert isinstance(error, PySparkException)
    assert message in str(error)


# --- LIKE ------------------------------------------------------------------------------------------------------------


def test_a_table_like_an_acid_table_has_all_but_its_rows(acid: AcidSession, warehouse: Path) -> None:
    acid.sql(
        "CREATE TABLE s (a int NOT NULL COMMENT 'k', b string DEFAULT 'x', CHECK (a > 0)) COMMENT 'people'"
        " PARTITIONED BY (p date) CLUSTERED BY (a) INTO 3 BUCKETS STORED AS ORC"
        " TBLPROPERTIES ('transactional'='true', 'bucketing_version'='1', 'orc.compress'='SNAPPY', 'numRows'='7')"
    )
    acid.sql("CREATE TABLE t LIKE s")
    acid.sql("CREATE TABLE IF NOT EXISTS t LIKE s")
    expected = declaration(table(acid, "s"))
    kept = expected[-1]
    assert isinstance(kept, dict)
    del kept["numRows"]
    assert declaration(table(acid, "t")) == expected
    assert table(acid, "t").location == str(warehouse / "t")
    assert acid.sql("SELECT * FROM t").collect() == []
    acid.sql("CREATE TABLE u LIKE s TBLPROPERTIES ('orc.compress'='ZLIB', 'transactional_properties'='insert_only')")
    made = table(acid, "u")
    assert made.is_insert_only
    assert (made.parameters["orc.compress"], made.parameters["bucketing_version"]) == ("ZLIB", "1")
    acid.sql("CREATE TABLE v LIKE u")
    assert table(acid, "v").is_insert_only


def test_a_table_like_one_of_sparks(acid: AcidSession, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE plain (a int, b varchar(3), p int) USING parquet PARTITIONED BY (p)")
    try:
        acid.sql("CREATE TRANSACTIONAL TABLE t LIKE plain")
        acid.sql("CREATE TABLE theirs LIKE plain")
        made = table(acid, "t")
        assert [(c.name, c.type) for c in made.columns] == [("a", "int"), ("b", "varchar(3)")]
        assert [c.name for c in made.partition_keys] == ["p"]
        assert (made.is_full_acid, made.bucket_columns) == (True, ())
        assert acid.metastore.find_table("default", "theirs") is None
    finally:
        spark.sql("DROP TABLE plain")
        spark.sql("DROP TABLE IF EXISTS theirs")


def test_a_table_like_a_view(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE s (a int, b string)")
    acid.sql("CREATE VIEW v AS SELECT b, count(*) AS n FROM s GROUP BY b")
    acid.sql("CREATE TRANSACTIONAL TABLE t LIKE v")
    assert [(c.name, c.type) for c in table(acid, "t").columns] == [("b", "string"), ("n", "bigint")]
    assert table(acid, "t").is_full_acid


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("CREATE TRANSACTIONAL TABLE t LIKE nope", 10001, "default.nope"),
        ("CREATE EXTERNAL TABLE t LIKE s", 40000, "external"),
        ("CREATE TABLE t LIKE s STORED AS PARQUET", 40000, "ACID compliant"),
    ],
)
def test_likenesses_that_are_refused(
    acid: AcidSession, warehouse: Path, statement: str, code: int, message: str
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE s (a int)")
    error = nothing_left(acid, warehouse, lambda: acid.sql(statement))
    assert isinstance(error, AcidError)
    assert error.code == code
    assert message in error.message


# --- columns of a query ----------------------------------------------------------------------------------------------


def test_columns_of_a_query_have_hives_types(spark: SparkSession) -> None:
    schema = spark.sql(
        "SELECT true AS A, 1Y AS b, 1S AS c, 1 AS d, 1L AS e, float(1) AS f, 1D AS g, 1.5BD AS h, 'x' AS i, X'00' AS j,"
        " date '2024-01-01' AS k, timestamp '2024-01-01' AS l, timestamp_ntz '2024-01-01' AS m, array(timestamp_ntz"
        " '2024-01-01') AS n, map('a', named_struct('x y', 1, 'Z', array(1L))) AS o"
    ).schema
    assert [(c.name, c.type) for c in columns_of(schema)] == [
        ("a", "boolean"),
        ("b", "tinyint"),
        ("c", "smallint"),
        ("d", "int"),
        ("e", "bigint"),
        ("f", "float"),
        ("g", "double"),
        ("h", "decimal(2,1)"),
        ("i", "string"),
        ("j", "binary"),
        ("k", "date"),
        ("l", "timestamp"),
        ("m", "timestamp"),
        ("n", "array<timestamp>"),
        ("o", "map<string,struct<x y:int,Z:array<bigint>>>"),
    ]


def test_columns_of_a_query_keep_lengths_and_comments(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE s (a char(3), b varchar(4), c array<struct<x:char(2)>>)")
    assert columns_of(acid.table("s").schema) == (
        Column("a", "char(3)"),
        Column("b", "varchar(4)"),
        Column("c", "array<struct<x:char(2)>>"),
    )


@pytest.mark.parametrize(
    ("query", "error", "code", "message"),
    [
        ("SELECT 1 AS a, 2 AS A", AnalysisError, 10036, "Duplicate column name: a"),
        ("SELECT 1 AS ROW__ID", AnalysisError, 40000, "reserved"),
        ("SELECT 1 AS __ACID_k0", AnalysisError, 40000, "reserved"),
        ("SELECT 1 AS a, NULL AS b", AnalysisError, 10305, "near field: b"),
        ("SELECT array(NULL) AS b", AnalysisError, 10305, "near field: b"),
        ("SELECT interval '1' day AS c", UnsupportedError, None, "Column c is of type interval day"),
    ],
)
def test_columns_of_a_query_that_are_none(
    spark: SparkSession, query: str, error: type[AcidError], code: int | None, message: str
) -> None:
    with pytest.raises(error) as caught:
        columns_of(spark.sql(query).schema)
    assert caught.value.code == code
    assert message in caught.value.message


# --- types that Hive cannot read -------------------------------------------------------------------------------------


def test_hive_cannot_read_local_timestamps_and_the_log_says_so(
    acid: AcidSession, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "acidsql"):
        acid.sql("CREATE TRANSACTIONAL TABLE t (a timestamp, b array<timestamp with local time zone>)")
    [record] = caplog.records
    assert record.getMessage().startswith("Column b is of type array<timestamp with local time zone>: Hive 4.0.1")
