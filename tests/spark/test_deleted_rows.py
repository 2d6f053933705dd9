"""ROW__IS__DELETED and acid.fetch.deleted.rows, as Hive 4 has them (``fetch_deleted_rows.q`` by meaning)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acidsql.errors import AnalysisError
from acidsql.plan import deletes
from acidsql.session import AcidSession
from tests.spark.answers import rows
from tests.spark.test_golden_tables import GOLDEN, adopt


@pytest.fixture(autouse=True)
def t(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t PARTITION (p) VALUES (1, 'foo', 1), (2, 'bar', 2)")
    acid.sql("DELETE FROM t WHERE a = 1")
    acid.sql("INSERT INTO t PARTITION (p = 1) VALUES (3, 'one')")
    acid.sql("UPDATE t SET b = 'updated' WHERE a = 3")


LIVE = [(2, "bar", 2, False), (3, "updated", 1, False)]
ALL = [(1, "foo", 1, True), (2, "bar", 2, False), (3, "one", 1, True), (3, "updated", 1, False)]
QUERY = "SELECT a, b, p, ROW__IS__DELETED FROM t"


def test_without_the_setting_no_row_is_deleted(acid: AcidSession) -> None:
    assert rows(acid, QUERY) == LIVE


def test_with_the_setting_deleted_rows_are_there_and_marked(acid: AcidSession) -> None:
    acid.sql("SET acid.fetch.deleted.rows=true")
    assert rows(acid, QUERY) == ALL
    assert rows(acid, "SELECT a FROM t WHERE ROW__IS__DELETED AND p = 1 AND a > 1") == [(3,)]
    assert rows(acid, "SELECT a FROM t") == [(2,), (3,)], "only whoever names the column gets them"
    acid.sql("SET acid.fetch.deleted.rows=false")
    assert rows(acid, QUERY) == LIVE


def test_as_a_property_of_the_table(acid: AcidSession) -> None:
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('acid.fetch.deleted.rows'='true')")
    assert rows(acid, QUERY) == ALL
    acid.sql("DELETE FROM t WHERE a = 2")
    assert [r[0] for r in rows(acid, "SELECT a FROM t")] == [3]


def test_a_star_does_not_stand_for_it(acid: AcidSession) -> None:
    acid.sql("SET acid.fetch.deleted.rows=true")
    frame = acid.sql("SELECT t.ROW__IS__DELETED AS gone, ROW__ID.writeId AS w, *, t.* EXCEPT (b) FROM t")
    assert frame.columns == ["gone", "w", "a", "b", "p", "a", "p"]
    assert sorted((r.gone, r.w) for r in frame.collect()) == [(False, 1), (False, 4), (True, 1), (True, 3)]


def test_in_a_join_each_table_has_its_own(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE u (a int)")
    acid.sql("INSERT INTO u VALUES (1), (2)")
    acid.sql("DELETE FROM u WHERE a = 2")
    acid.sql("SET acid.fetch.deleted.rows=true")
    found = rows(acid, "SELECT t.a, t.ROW__IS__DELETED, u.ROW__IS__DELETED FROM t JOIN u ON t.a = u.a")
    assert found == [(1, True, False), (2, False, True)]


@pytest.mark.parametrize("bound", ["DRIVER_BYTES", "MOST_BROADCAST"])
def test_by_a_scan_of_the_delete_files(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(deletes, bound, -1)
    acid.sql("SET acid.fetch.deleted.rows=true")
    assert rows(acid, QUERY) == ALL


def test_a_table_that_nothing_was_deleted_from_and_an_empty_one(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE u (a int)")
    acid.sql("SET acid.fetch.deleted.rows=true")
    assert rows(acid, "SELECT a, ROW__IS__DELETED FROM u") == []
    acid.sql("INSERT INTO u VALUES (1)")
    assert rows(acid, "SELECT a, ROW__IS__DELETED FROM u") == [(1, False)]


def test_the_name_is_reserved(acid: AcidSession) -> None:
    with pytest.raises(AnalysisError, match="reserved"):
        acid.sql("CREATE TRANSACTIONAL TABLE u (row__is__deleted int)")


def test_older_versions_of_a_hive_written_table_come_back_as_deleted_rows(acid: AcidSession, tmp_path: Path) -> None:
    """Every row that Hive ever read from the table is there once, by its identity; what it reads now is alive."""
    name = adopt(acid, "emp/07_delete2", tmp_path / "adopted")
    steps = sorted(p for p in (GOLDEN / "emp").iterdir() if p.is_dir() and p.name <= "07_delete2")
    read = [{r[0] for r in json.loads((p / "rowid.json").read_text())["rows"]} for p in steps]
    acid.sql("SET acid.fetch.deleted.rows=true")

    def identities(where: str) -> list[str]:
        found = acid.sql(f"SELECT ROW__ID FROM {name} WHERE {where}").collect()
        return sorted(
            json.dumps(dict(zip(("writeid", "bucketid", "rowid"), r[0], strict=True)), separators=(",", ":"))
            for r in found
        )

    assert identities("NOT ROW__IS__DELETED") == sorted(read[-1])
    assert identities("ROW__IS__DELETED") == sorted(set().union(*read) - read[-1])
