"""Statements that fail in Hive's own tests: TestTxnCommands, TestTxnCommands2, TestTxnExIm, and ``clientnegative``.

Those of :mod:`tests.spark.test_errors_of_hive` and of the modules of the statements are not here again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError, UnsupportedError
from acidsql.session import AcidSession
from tests.spark.answers import rows
from tests.spark.refusals import assert_nothing_left

TRANSACTIONAL = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("negative")


@pytest.fixture(scope="module")
def acidtbl(spark: SparkSession, home: Path) -> Iterator[AcidSession]:
    """The tables of TxnCommandsBaseForTests, an insert-only one, and a view."""
    with acidsql.connect(spark, warehouse=home) as acid:
        acid.sql(f"CREATE TABLE acidtbl (a int, b int) CLUSTERED BY (a) INTO 2 BUCKETS {TRANSACTIONAL}")
        acid.sql("INSERT INTO acidtbl VALUES (2, 1), (4, 3), (5, 6), (7, 8)")
        acid.sql(f"CREATE TABLE acidtblpart (a int, b int) PARTITIONED BY (p string) {TRANSACTIONAL}")
        acid.sql("INSERT INTO acidtblpart VALUES (1, 1, 'p1'), (4, 4, 'p2')")
        acid.sql("CREATE TABLE nonacidpart (a int, b int, p string) USING orc PARTITIONED BY (p)")
        acid.sql("CREATE TABLE nonacid (a int, b int) USING orc")
        acid.sql("INSERT INTO nonacid VALUES (2, 2), (2, 44), (5, 5), (11, 11)")
        insert_only = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
        acid.sql(f"CREATE TABLE mm (a int, b int) STORED AS ORC {insert_only}")
        acid.sql("CREATE VIEW v AS SELECT a FROM acidtbl")
        yield acid
        for table in ("nonacid", "nonacidpart"):
            spark.sql(f"DROP TABLE {table}")


BUCKETS = "CREATE TABLE x (a int, b varchar(128)) CLUSTERED BY (b) INTO 2 BUCKETS"
# Hive's case; the statement; Hive's code and SQLSTATE; a piece of the message
REFUSED = [
    (
        "exchangePartitionShouldNotWorkForTransactionalTables: the target",
        "ALTER TABLE acidtblpart EXCHANGE PARTITION (p = 'p3') WITH TABLE nonacidpart",
        (10236, "42000"),
        "Exchange partition is not allowed with transactional tables",
    ),
    (
        "exchangePartitionShouldNotWorkForTransactionalTables: the source",
        "ALTER TABLE nonacidpart EXCHANGE PARTITION (p = 'p1') WITH TABLE acidtblpart",
        (10236, "42000"),
        "INSERT OVERWRITE TABLE … PARTITION moves",
    ),
    (
        "exchange_neg_table_missing",
        "ALTER TABLE acidtblpart EXCHANGE PARTITION (p = 'p1') WITH TABLE nope",
        (10001, "42S02"),
        "default.nope",
    ),
    (
        "testFailureOnAlteringTransactionalProperties",
        "ALTER TABLE acidtbl SET TBLPROPERTIES ('transactional_properties'='insert_only')",
        (40013, "08S01"),
        "'transactional_properties' cannot be altered after the table is created",
    ),
    (
        "mm_convert",
        "ALTER TABLE mm UNSET TBLPROPERTIES ('transactional_properties', 'transactional')",
        (40013, "08S01"),
        "default.mm",
    ),
    ("mm_update", "UPDATE mm SET b = 1", (10414, "42000"), "table mm that is insert-only"),
    ("mm_delete", "DELETE FROM mm WHERE a = 1", (10414, "42000"), "table mm that is insert-only"),
    ("delete_non_acid_table", "DELETE FROM nonacid WHERE a = 1", (10297, "42000"), "table nonacid that is not"),
    ("update_no_such_table", "UPDATE no_such_table SET b = 1", (10001, "42S02"), "default.no_such_table"),
    ("compact_non_acid_table", "ALTER TABLE nonacid COMPACT 'minor'", (10286, "42000"), "default.nonacid"),
    ("create_not_acid", f"{BUCKETS} {TRANSACTIONAL.replace('ORC', 'AVRO')}", (40000, "08S01"), "default.x"),
    (
        "create_external_acid",
        f"{BUCKETS.replace('CREATE', 'CREATE EXTERNAL')} {TRANSACTIONAL}",
        (40000, "08S01"),
        "default.x cannot be declared transactional because it's an external table",
    ),
    (
        "insert_sorted, update_sorted, delete_sorted",
        f"{BUCKETS.replace('(b) INTO', '(b) SORTED BY (a) INTO')} {TRANSACTIONAL}",
        (40000, "08S01"),
        "default.x cannot support full ACID functionality since it is sorted",
    ),
    ("insert_view_failure", "INSERT INTO v VALUES (1)", (10090, "42000"), "A view cannot be used as target"),
    ("update of a view", "UPDATE v SET a = 1", (10402, "42000"), "in a view"),
    ("delete of a view", "DELETE FROM v", (10402, "42000"), "in a view"),
    ("truncate of a view", "TRUNCATE TABLE v", (10146, "42000"), "non-managed table v"),
    ("dbtxnmgr_notablelock", "LOCK TABLE acidtbl SHARED", (10271, "42000"), "LOCK TABLE is not supported"),
    ("dbtxnmgr_notableunlock", "UNLOCK TABLE acidtbl", (10271, "42000"), "UNLOCK TABLE is not supported"),
    ("dbtxnmgr_nodblock", "LOCK DATABASE default SHARED", (10271, "42000"), "LOCK DATABASE is not supported"),
    ("testErrors: COMMIT without a transaction", "COMMIT", (20008, "42000"), "Operation COMMIT is not allowed"),
    ("testErrors: ROLLBACK without a transaction", "ROLLBACK", (20008, "42000"), "Operation ROLLBACK is not allowed"),
    (
        "a table of Spark's under an ACID table's name",
        "CREATE TABLE acidtbl (z int)",
        (40000, "08S01"),
        "acidtbl already",
    ),
    ("… by AS", "CREATE TABLE acidtbl USING orc AS SELECT 1 AS z", (40000, "08S01"), "acidtbl already"),
    ("… under a view's", "CREATE TABLE v (z int)", (40000, "08S01"), "default.v already"),
]


@pytest.mark.parametrize(("text", "code", "piece"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_hive_refuses_it_and_so_does_acidsql(
    acidtbl: AcidSession, home: Path, text: str, code: tuple[int, str], piece: str
) -> None:
    error = assert_nothing_left(acidtbl, home, lambda: acidtbl.sql(text).collect())
    assert isinstance(error, AcidError)
    assert (error.code, error.sqlstate) == code, str(error)
    assert piece in str(error)
    assert error.line == 1
    assert "^" in str(error)


# Hive carries these out, or Spark would answer that it cannot read them: the error says what to do instead
INSTEAD = [
    ("testExport", "EXPORT TABLE acidtbl TO '/out'", "EXPORT TABLE is not supported", 'acid.table("t").write.orc'),
    ("testExportPart", "EXPORT TABLE acidtblpart PARTITION (p = 'p1') TO '/out'", "EXPORT TABLE", "write.orc"),
    ("testImport", "IMPORT TABLE imported FROM '/in'", "IMPORT is not supported", "LOAD DATA INPATH"),
    ("testImportNoTarget", "IMPORT FROM '/in'", "IMPORT is not supported", "LOAD DATA INPATH"),
    (
        "exchangePartition of other tables",
        "ALTER TABLE nonacidpart EXCHANGE PARTITION (p = 'p1') WITH TABLE nonacidpart",
        "Spark has no EXCHANGE PARTITION",
        "",
    ),
    ("testConcatenate of another table", "ALTER TABLE nonacid CONCATENATE", "only for ACID tables", "INSERT OVERWRITE"),
    ("mm_truncate_cols", "TRUNCATE TABLE mm COLUMNS (a)", "TRUNCATE TABLE … COLUMNS", "mm is an ACID table"),
]


@pytest.mark.parametrize(("text", "piece", "hint"), [i[1:] for i in INSTEAD], ids=[i[0] for i in INSTEAD])
def test_what_is_not_there_says_what_to_do_instead(
    acidtbl: AcidSession, home: Path, text: str, piece: str, hint: str
) -> None:
    error = assert_nothing_left(acidtbl, home, lambda: acidtbl.sql(text).collect())
    assert isinstance(error, UnsupportedError)
    assert piece in error.message
    assert hint in (error.hint or "")
    assert error.sqlstate == "0A000"


@pytest.mark.parametrize(("table", "key"), [("acidtbl", ""), ("acidtblpart", ", 'p1'")])
def test_merge_cardinality_violation_also_where_the_clauses_differ(
    acidtbl: AcidSession, home: Path, table: str, key: str
) -> None:
    """Two rows of the source match the row with a = 2: which clause would take them does not matter."""
    if key:
        acidtbl.sql("INSERT INTO acidtblpart VALUES (2, 2, 'p1')")
    text = (
        f"MERGE INTO {table} AS t USING nonacid s ON t.a = s.a WHEN MATCHED AND s.a < 5 THEN DELETE"
        f" WHEN MATCHED AND s.a < 3 THEN UPDATE SET b = 0 WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b{key})"
    )
    before = rows(acidtbl, f"SELECT * FROM {table}")
    error = assert_nothing_left(acidtbl, home, lambda: acidtbl.sql(text))
    assert isinstance(error, AcidError)
    assert (error.code, error.sqlstate) == (2, "08S01")
    assert rows(acidtbl, f"SELECT * FROM {table}") == before


def test_a_table_of_sparks_is_left_alone_where_an_acid_table_has_the_name(acidtbl: AcidSession) -> None:
    acidtbl.sql("CREATE TABLE IF NOT EXISTS acidtbl (z int)")
    assert not acidtbl.spark.catalog.tableExists("default.acidtbl")
    assert acidtbl.table("acidtbl").columns == ["a", "b"]


def test_a_property_may_be_empty(acidtbl: AcidSession) -> None:
    """testEmptyInTblproperties (HIVE-17391)."""
    properties = "TBLPROPERTIES ('serialization.null.format'='', 'transactional'='true')"
    acidtbl.sql(f"CREATE TABLE empty (a int, b int) STORED AS ORC {properties}")
    acidtbl.sql("INSERT INTO empty (a, b) VALUES (1, 7), (3, 7)")
    acidtbl.sql("UPDATE empty SET b = -2 WHERE a = 1")
    assert rows(acidtbl, "SELECT * FROM empty") == [(1, -2), (3, 7)]
    assert acidtbl.metastore.get_table("default", "empty").parameters["serialization.null.format"] == ""
    acidtbl.sql("DROP TABLE empty")
