"""MERGE in the situations of Hive's TestTxnCommands and TestTxnCommands2; the rows are Hive's (tests/HIVE_CASES.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.hive_cases import check_unique, make, nonacid, rows
from tests.spark.hive_files import Row
from tests.spark.hive_rules import check_table

TARGET = [(2, 1), (4, 3), (5, 6), (7, 8)]
ODD: list[Row] = [(5, 5), (11, 11)]
FOUR: list[Row] = [(2, 2), (4, 44), (5, 5), (11, 11)]
INSERT = "WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b)"

CASES = {
    "an ON clause with an expression": (
        ODD,
        "MERGE INTO acidtbl USING nonacid s ON acidtbl.a = s.a AND acidtbl.b + 1 = s.b + 1"
        f" WHEN MATCHED THEN UPDATE SET b = s.b {INSERT}",
        [(2, 1), (4, 3), (5, 5), (5, 6), (7, 8), (11, 11)],
    ),
    "clauses with conditions": (
        [(2, 2), (5, 5), (8, 8), (11, 11)],
        "MERGE INTO acidtbl t USING nonacid s ON t.a = s.a WHEN MATCHED AND t.b BETWEEN 1 AND 3 THEN UPDATE SET b = s.b"
        " WHEN NOT MATCHED AND s.b >= 8 THEN INSERT VALUES (s.a, s.b)",
        [(2, 2), (4, 3), (5, 6), (7, 8), (8, 8), (11, 11)],
    ),
    "update and insert": (
        FOUR,
        f"MERGE INTO acidtbl USING nonacid s ON acidtbl.a = s.a WHEN MATCHED THEN UPDATE SET b = s.b {INSERT}",
        [(2, 2), (4, 44), (5, 5), (7, 8), (11, 11)],
    ),
    "delete and insert": (
        FOUR,
        f"MERGE INTO acidtbl USING nonacid s ON acidtbl.a = s.a WHEN MATCHED THEN DELETE {INSERT}",
        [(7, 8), (11, 11)],
    ),
    "update before delete": (
        FOUR,
        "MERGE INTO acidtbl AS t USING nonacid s ON t.a = s.a WHEN MATCHED AND s.a < 3 THEN UPDATE SET b = 0"
        f" WHEN MATCHED AND t.a > 3 AND t.a < 5 THEN DELETE {INSERT}",
        [(2, 0), (5, 6), (7, 8), (11, 11)],
    ),
    "without insert": (
        FOUR,
        "MERGE INTO acidtbl AS t USING nonacid s ON t.a = s.a WHEN MATCHED AND s.a < 3 THEN UPDATE SET b = 0"
        " WHEN MATCHED AND t.a > 3 AND t.a < 5 THEN DELETE",
        [(2, 0), (5, 6), (7, 8)],
    ),
    "delete before update": (
        FOUR,
        "MERGE INTO acidtbl AS t USING nonacid s ON t.a = s.a WHEN MATCHED AND s.a < 5 THEN DELETE"
        f" WHEN MATCHED AND s.a < 3 THEN UPDATE SET b = 0 {INSERT}",
        [(5, 6), (7, 8), (11, 11)],
    ),
    "a target with an alias": (
        FOUR,
        "MERGE INTO acidtbl AS target USING nonacid source ON target.a = source.a WHEN MATCHED THEN UPDATE SET b = 0"
        " WHEN NOT MATCHED THEN INSERT VALUES (source.a, source.b)",
        [(2, 0), (4, 0), (5, 0), (7, 8), (11, 11)],
    ),
    "a source of values": (
        [],
        "MERGE INTO acidtbl AS t USING (SELECT * FROM (VALUES (2, 2), (4, 44), (5, 5), (11, 11)) AS F(a, b)) s"
        f" ON t.a = s.a WHEN MATCHED AND s.a < 5 THEN DELETE WHEN MATCHED AND s.a < 3 THEN UPDATE SET b = 0 {INSERT}",
        [(5, 6), (7, 8), (11, 11)],
    ),
}


@pytest.mark.parametrize("check", ["true", "false"], ids=["cardinality checked", "unchecked"])
def test_rows_after_a_merge(acid: AcidSession, warehouse: Path, check: str) -> None:
    acid.sql(f"SET hive.merge.cardinality.check = {check}")
    make(acid, "acidtbl")
    found = {}
    for name, (source, statement, _) in CASES.items():
        acid.sql("INSERT OVERWRITE acidtbl VALUES " + ", ".join(map(str, TARGET)))
        if source:
            nonacid(acid, source)
        acid.sql(statement)
        found[name] = sorted(tuple(r) for r in acid.table("acidtbl").collect())
        check_unique(acid, "acidtbl")
    assert found == {name: expected for name, (_, _, expected) in CASES.items()}
    check_table(warehouse / "acidtbl")


SCD = [(1, 5, 0), (1, 7, 1), (1, 18, 0), (2, 6, 1), (3, 8, 1)]
"""The current row of key 1 is closed and a new one inserted, key 3 is new."""


@pytest.mark.parametrize(
    "statement",
    [
        """MERGE INTO target t USING (
             SELECT curMatch.*, CASE WHEN split.op IS NULL OR split.op = 0 THEN 0 ELSE 1 END `o/p\\n`
             FROM (SELECT s.*, CASE WHEN t.cur IS NULL THEN 0 ELSE 1 END m FROM source s
                   LEFT OUTER JOIN (SELECT * FROM target WHERE target.cur = 1) t ON s.key = t.key) curMatch
             LEFT OUTER JOIN split ON curMatch.m = 1) s
           ON t.key = s.key AND t.cur = 1 AND s.`o/p\\n` = 1
           WHEN MATCHED THEN UPDATE SET cur = 0 WHEN NOT MATCHED THEN INSERT VALUES (s.key, s.data, 1)""",
        """MERGE INTO target t USING (
             SELECT source.*, 0 c FROM source UNION ALL
             SELECT source.*, 1 c FROM source INNER JOIN target ON source.key = target.key WHERE target.cur = 1) s
           ON t.key = s.key AND t.cur = s.c AND t.cur = 1
           WHEN MATCHED THEN UPDATE SET cur = 0 WHEN NOT MATCHED THEN INSERT VALUES (s.key, s.data, 1)""",
    ],
    ids=["each row doubled by a join", "union"],
)
def test_slowly_changing_dimension_of_type_2(acid: AcidSession, statement: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE target (key int, data int, cur int) CLUSTERED BY (key) INTO 2 BUCKETS")
    acid.sql("INSERT INTO target VALUES (1, 5, 1), (2, 6, 1), (1, 18, 0)")
    nonacid(acid, [(1, 7), (3, 8)], "key, data", "source")
    nonacid(acid, [(0,), (1,)], "op", "split")
    acid.sql(statement)
    assert sorted(tuple(r) for r in acid.table("target").collect()) == sorted(SCD)


def test_names_that_have_to_be_quoted(acid: AcidSession, warehouse: Path) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE `aci/d_u/ami` (i int, `d?*de e` decimal(5,2), vc varchar(128))"
        " CLUSTERED BY (i) INTO 2 BUCKETS"
    )
    acid.sql("INSERT INTO `aci/d_u/ami` VALUES (-1, 2.5, 'x'), (3, 1.5, 'y'), (7, 0.5, 'z')")
    acid.sql(
        "CREATE TEMPORARY VIEW `src/name` AS SELECT CAST(x AS int) AS `g/h`, CAST(y AS decimal(5,2)) AS j, k"
        " FROM VALUES (-1, 2, 'a'), (3, 2, 'b'), (7, 2, 'c'), (4, 9.25, 'new') AS t(x, y, k)"
    )
    acid.sql(
        "MERGE INTO `aci/d_u/ami` AS `d/8` USING `src/name` AS `a/b` ON i = `g/h`"
        "\nWHEN MATCHED AND `g/h` > 5 THEN DELETE"
        "\nWHEN MATCHED AND `g/h` < 0 THEN UPDATE SET vc = '∆∋', `d?*de e` = `d?*de e` * j + 1"
        "\nWHEN NOT MATCHED AND j <> 0 THEN INSERT VALUES (`a/b`.`g/h`, `a/b`.j, `a/b`.k)"
    )
    found = [(r[0], str(r[1]), r[2]) for r in acid.table("`aci/d_u/ami`").collect()]
    assert sorted(found) == [(-1, "6.00", "∆∋"), (3, "1.50", "y"), (4, "9.25", "new")]
    acid.sql(
        "MERGE INTO `aci/d_u/ami` AS `d/8` USING `src/name` AS `a/b` ON i = `g/h` WHEN MATCHED AND i > 5 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET vc = 'blah' WHEN NOT MATCHED THEN INSERT VALUES (`a/b`.`g/h`, `a/b`.j, 'c\\t')"
    )
    assert rows(acid, "SELECT i, vc FROM `aci/d_u/ami`") == [(-1, "blah"), (3, "blah"), (4, "blah"), (7, "c\t")]
    check_table(warehouse / "aci-47-d_u-47-ami")


def test_values_with_case_and_conversions(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE merge_test (c1 integer, c2 integer, c3 integer) CLUSTERED BY (c1) INTO 2 BUCKETS"
    )
    nonacid(acid, [("1.0F", "2.0D", "NULL"), ("-4.0F", "1.0D", "3.0F")], "c1, c2, c3", "e011_02")
    acid.sql(
        "MERGE INTO merge_test USING e011_02 ON (merge_test.c1 = e011_02.c1) WHEN NOT MATCHED THEN INSERT VALUES"
        " (CASE WHEN e011_02.c1 > 0 THEN e011_02.c1 + 1 ELSE e011_02.c1 END, e011_02.c2 + e011_02.c3,"
        " coalesce(e011_02.c3, 1))"
    )
    assert rows(acid, "SELECT * FROM merge_test") == [(-4, 4, 3), (2, None, 1)]


@pytest.mark.parametrize("table", ["acidtblpart", "acidnestedpart"])
def test_partitions_of_a_merge(acid: AcidSession, table: str) -> None:
    make(acid, table)
    nonacid(acid, [(2, 15), (4, 44), (5, 5), (11, 11)])
    if table == "acidtblpart":
        keys, inserted = "p", "'new part'"
        acid.sql(f"INSERT INTO {table} PARTITION (p) VALUES (1, 1, 'p1'), (2, 2, 'p1'), (3, 3, 'p1'), (4, 4, 'p2')")
        expected: list[Row] = [("new part", 11, 11), ("new part", 5, 5), ("p1", 1, 1), ("p1", 2, 15), ("p1", 3, 3)]
        expected.append(("p2", 4, 44))
    else:
        keys, inserted = "p, q", "3, 4"
        acid.sql(f"INSERT INTO {table} PARTITION (p = 1, q) VALUES (1, 1, 1), (2, 2, 2), (3, 3, 1), (4, 4, 2)")
        expected = [(1, 1, 1, 1), (1, 1, 3, 3), (1, 2, 2, 15), (1, 2, 4, 44), (3, 4, 11, 11), (3, 4, 5, 5)]
    assert acid.table(table).count() == 4
    acid.sql(
        f"MERGE INTO {table} USING nonacid AS s ON {table}.a = s.a WHEN MATCHED THEN UPDATE SET b = s.b"
        f" WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, {inserted})"
    )
    assert rows(acid, f"SELECT {keys}, a, b FROM {table}") == expected
    check_unique(acid, table, keys)
