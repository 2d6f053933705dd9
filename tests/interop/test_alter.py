"""Names, columns and whole tables that one side changes, and the other goes on with."""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.values import parse_fields
from tests.services.hiveserver2 import HiveError


@pytest.mark.parametrize("by", SIDES)
def test_a_renamed_table_is_the_same_table(both: Both, by: str) -> None:
    t = both.table("id int, v string", "p int", by=HIVE)
    t.acid("INSERT INTO {t} PARTITION (p) SELECT 1, 'a', 1", "INSERT INTO {t} PARTITION (p) SELECT 2, 'b', 2")
    t.hive("UPDATE {t} SET v = 'A' WHERE id = 1")
    name = both.new_name()
    both.run(by, f"ALTER TABLE {t.name} RENAME TO {name}")
    renamed = SharedTable(both, name, t.columns, t.keys)
    assert renamed.agree() == [(1, "A", 1), (2, "b", 2)]
    renamed.hive("INSERT INTO {t} PARTITION (p = 1) SELECT 3, 'c'", "DELETE FROM {t} WHERE id = 1")
    renamed.acid("UPDATE {t} SET v = upper(v)", "INSERT INTO {t} PARTITION (p) SELECT 4, 'd', 9")
    assert renamed.agree() == [(2, "B", 2), (3, "C", 1), (4, "d", 9)]


@pytest.mark.parametrize("by", SIDES)
def test_columns_change_their_names_and_types_on_both_sides(both: Both, by: str) -> None:
    t = both.table("id int, v string, n int", "p int", by=ACIDSQL)
    t.hive("INSERT INTO {t} PARTITION (p = 1) SELECT 1, 'a', 10")
    t.acid("INSERT INTO {t} PARTITION (p) SELECT 2, 'b', 20, 2")
    both.run(by, f"ALTER TABLE {t.name} CHANGE COLUMN n amount bigint CASCADE")
    both.run(by, f"ALTER TABLE {t.name} CHANGE COLUMN v name string COMMENT 'who' CASCADE")
    changed = SharedTable(both, t.name, parse_fields("id int, name string, amount bigint"), t.keys)
    assert changed.agree() == [(1, "a", 10, 1), (2, "b", 20, 2)]
    changed.acid(
        "UPDATE {t} SET amount = 5000000000 WHERE id = 1", "INSERT INTO {t} PARTITION (p) SELECT 3, 'c', 30, 1"
    )
    changed.hive("UPDATE {t} SET name = 'B' WHERE amount = 20", "DELETE FROM {t} WHERE id = 3")
    assert changed.agree() == [(1, "a", 5000000000, 1), (2, "B", 20, 2)]


def test_a_partition_that_acidsql_renames(both: Both) -> None:
    t = both.table("id int", "p int", by=HIVE)
    t.acid("INSERT INTO {t} PARTITION (p) SELECT 1, 1", "INSERT INTO {t} PARTITION (p) SELECT 2, 2")
    both.run(ACIDSQL, f"ALTER TABLE {t.name} PARTITION (p = 1) RENAME TO PARTITION (p = 7)")
    assert t.agree() == [(1, 7), (2, 2)]
    t.hive("INSERT INTO {t} PARTITION (p = 1) SELECT 3").acid("DELETE FROM {t} WHERE p = 7")
    assert t.agree() == [(2, 2), (3, 1)]


@pytest.mark.parametrize("insert_only", [False, True], ids=["full ACID", "insert-only"])
@pytest.mark.parametrize("by", SIDES)
def test_a_truncated_table_is_empty_on_both_sides(both: Both, by: str, insert_only: bool) -> None:
    t = both.table("id int", "p int", by=HIVE, insert_only=insert_only)
    t.acid("INSERT INTO {t} PARTITION (p) SELECT 1, 1", "INSERT INTO {t} PARTITION (p) SELECT 2, 2")
    t.on(by, "TRUNCATE TABLE {t} PARTITION (p = 1)")
    assert t.agree() == [(2, 2)]
    t.on(by, "TRUNCATE TABLE {t}").hive("INSERT INTO {t} PARTITION (p = 1) SELECT 3")
    t.acid("INSERT INTO {t} PARTITION (p) SELECT 4, 2")
    assert t.agree() == [(3, 1), (4, 2)]


@pytest.mark.parametrize("by", SIDES)
def test_loaded_files_have_the_same_row_ids_on_both_sides(both: Both, by: str, tmp_path: Path) -> None:
    t = both.table("id int, v string", by=HIVE)
    for number, name in enumerate(("b.orc", "a.orc")):
        with (tmp_path / name).open("wb") as file, pyorc.Writer(file, "struct<id:int,v:string>") as writer:
            writer.writerows([(10 * number + i, name) for i in range(3)])
    t.acid("INSERT INTO {t} VALUES (100, 'x')")
    t.on(by, f"LOAD DATA LOCAL INPATH '{tmp_path}' INTO TABLE {{t}}")
    t.hive("UPDATE {t} SET v = 'new' WHERE id = 1").acid("DELETE FROM {t} WHERE id IN (0, 11)")
    t.on(by, f"LOAD DATA LOCAL INPATH '{tmp_path}/a.orc' OVERWRITE INTO TABLE {{t}}")
    assert [r[0] for r in t.agree()] == [10, 11, 12]


def test_hive_fills_in_a_default_that_acidsql_has_set_and_minds_its_not_null(both: Both) -> None:
    t = both.table("id int, v string", by=HIVE)
    both.run(ACIDSQL, f"ALTER TABLE {t.name} ALTER COLUMN v SET DEFAULT 'none'")
    both.run(ACIDSQL, f"ALTER TABLE {t.name} ALTER COLUMN id SET NOT NULL")
    t.hive("INSERT INTO {t} (id) VALUES (1)").acid("INSERT INTO {t} (id) VALUES (2)")
    assert t.agree() == [(1, "none"), (2, "none")]
    with pytest.raises(HiveError):  # its client is not told more than that a task failed
        both.hive.run(t.text("INSERT INTO {t} VALUES (NULL, 'x')"))
    assert t.agree() == [(1, "none"), (2, "none")]
    both.run(ACIDSQL, f"ALTER TABLE {t.name} CHANGE id key int")
    both.run(ACIDSQL, f"ALTER TABLE {t.name} ALTER COLUMN key DROP NOT NULL")
    renamed = SharedTable(both, t.name, parse_fields("key int, v string"), ())
    renamed.hive("INSERT INTO {t} VALUES (NULL, 'x')")
    assert (None, "x") in renamed.agree()
