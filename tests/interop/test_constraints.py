"""Constraints that one side declares and both enforce, and fields of structs that one side adds and both read."""

from __future__ import annotations

import pytest

from acidsql.errors import AcidError, ConstraintViolation
from acidsql.metastore.model import Constraint, ConstraintKind
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.values import parse_fields
from tests.services.hiveserver2 import HiveError


def refused_by_both(t: SharedTable, statement: str) -> None:
    """Neither side takes the rows of a statement."""
    before = t.agree()
    with pytest.raises(HiveError):  # its client is not told more than that a task failed
        t.both.hive.run(t.text(statement))
    with pytest.raises(ConstraintViolation):
        t.both.acid.sql(t.text(statement)).collect()
    assert t.agree() == before


@pytest.mark.parametrize("by", SIDES)
def test_a_check_that_is_added_is_enforced_by_both_and_gone_when_the_other_drops_it(both: Both, by: str) -> None:
    t = both.table("id int, n int", "p int", by=HIVE)
    t.acid("INSERT INTO {t} PARTITION (p) SELECT 1, -10, 1")
    both.run(by, f"ALTER TABLE {t.name} ADD CONSTRAINT positive CHECK (n > 0) ENABLE NOVALIDATE")
    assert t.agree() == [(1, -10, 1)]
    t.hive("INSERT INTO {t} PARTITION (p = 1) SELECT 2, 20").acid("INSERT INTO {t} PARTITION (p) SELECT 3, 30, 2")
    refused_by_both(t, "INSERT INTO {t} PARTITION (p = 1) SELECT 4, 0")
    refused_by_both(t, "UPDATE {t} SET n = 0 - n WHERE id = 2")
    both.run(ACIDSQL if by == HIVE else HIVE, f"ALTER TABLE {t.name} DROP CONSTRAINT positive")
    t.hive("INSERT INTO {t} PARTITION (p = 1) SELECT 5, 0").acid("UPDATE {t} SET n = -1 WHERE id = 2")
    assert [r[:2] for r in t.agree()] == [(1, -10), (2, -1), (3, 30), (5, 0)]


@pytest.mark.parametrize("by", SIDES)
def test_what_change_column_declares_is_enforced_by_both(both: Both, by: str) -> None:
    t = both.table("id int, v string", by=ACIDSQL)
    both.run(by, f"ALTER TABLE {t.name} CHANGE COLUMN id id int CONSTRAINT there NOT NULL ENABLE")
    both.run(by, f"ALTER TABLE {t.name} CHANGE COLUMN v v string CONSTRAINT filled DEFAULT 'none' ENABLE")
    t.hive("INSERT INTO {t} (id) VALUES (1)").acid("INSERT INTO {t} (id) VALUES (2)")
    assert t.agree() == [(1, "none"), (2, "none")]
    refused_by_both(t, "INSERT INTO {t} VALUES (NULL, 'x')")
    other = ACIDSQL if by == HIVE else HIVE
    both.run(other, f"ALTER TABLE {t.name} DROP CONSTRAINT there")
    both.run(other, f"ALTER TABLE {t.name} DROP CONSTRAINT filled")
    t.hive("INSERT INTO {t} VALUES (NULL, 'x')").acid("INSERT INTO {t} (id) VALUES (3)")
    assert {(None, "x"), (3, None)} <= set(t.agree())


@pytest.mark.parametrize("by", SIDES)
def test_keys_that_are_only_declared_are_known_to_both(both: Both, by: str) -> None:
    parent, child = both.table("a int, b string", by=by), both.table("x int, y string", by=by)
    both.run(by, f"ALTER TABLE {parent.name} ADD CONSTRAINT pk_p PRIMARY KEY (a, b) DISABLE NOVALIDATE RELY")
    both.run(by, f"ALTER TABLE {child.name} ADD CONSTRAINT uk_c UNIQUE (y) DISABLE NOVALIDATE")
    foreign = f"FOREIGN KEY (x, y) REFERENCES {parent.name} (a, b) DISABLE NOVALIDATE RELY"
    both.run(by, f"ALTER TABLE {child.name} ADD CONSTRAINT fk_c {foreign}")
    database, _, name = child.name.partition(".")
    found = {c.name: c for c in both.acid.metastore.get_table(database, name).informational}
    assert found == {
        "uk_c": Constraint(ConstraintKind.UNIQUE, ("y",)),
        "fk_c": Constraint(
            ConstraintKind.FOREIGN_KEY, ("x", "y"), rely=True, parent=parent.name, parent_columns=("a", "b")
        ),
    }
    described = [tuple(r) for r in both.hive.run(f"DESCRIBE FORMATTED {child.name}") or []]
    told = {str(cell).strip() for row in described for cell in row if cell is not None}
    assert {"fk_c", "uk_c", f"Parent Column Name:{parent.name}.a", "# Foreign Keys"} <= told
    child.hive("INSERT INTO {t} VALUES (1, 'x')").acid("INSERT INTO {t} VALUES (1, 'x')")
    both.run(ACIDSQL if by == HIVE else HIVE, f"ALTER TABLE {child.name} DROP CONSTRAINT fk_c")
    left = both.acid.metastore.get_table(database, name).informational
    assert [c.name for c in left] == ["uk_c"]


def test_hive_and_acidsql_refuse_a_key_that_would_be_enforced(both: Both) -> None:
    t = both.table("a int", by=HIVE)
    statement = f"ALTER TABLE {t.name} ADD CONSTRAINT pk PRIMARY KEY (a) ENABLE NOVALIDATE"
    with pytest.raises(HiveError, match="10326"):
        both.hive.run(statement)
    with pytest.raises(AcidError) as caught:
        both.acid.sql(statement)
    assert caught.value.code == 10326


@pytest.mark.parametrize("insert_only", [False, True], ids=["full ACID", "insert-only"])
@pytest.mark.parametrize("by", SIDES)
def test_fields_that_are_added_to_structs_are_read_by_both(both: Both, by: str, insert_only: bool) -> None:
    t = both.table("id int, s struct<a:int,b:string>, l array<struct<a:int,b:string>>", by=by, insert_only=insert_only)
    old = "named_struct('a', {n}, 'b', 'x'), array(named_struct('a', {n}, 'b', 'y'))"
    t.hive(f"INSERT INTO {{t}} SELECT 1, {old.replace('{n}', '1')}")
    t.acid(f"INSERT INTO {{t}} SELECT 2, {old.replace('{n}', '2')}")
    both.run(by, f"ALTER TABLE {t.name} CHANGE COLUMN s s struct<a:bigint,b:string,c:double>")
    both.run(by, f"ALTER TABLE {t.name} CHANGE COLUMN l l array<struct<a:int,b:string,c:int>>")
    fields = parse_fields("id int, s struct<a:bigint,b:string,c:double>, l array<struct<a:int,b:string,c:int>>")
    changed = SharedTable(both, t.name, fields, t.keys, identified=not insert_only)
    changed.agree()
    new = (
        "named_struct('a', CAST(5000000000 AS bigint), 'b', 'x', 'c', CAST(1.5 AS double)),"
        " array(named_struct('a', 9, 'b', 'y', 'c', 7))"
    )
    changed.hive(f"INSERT INTO {{t}} SELECT 3, {new}").acid(f"INSERT INTO {{t}} SELECT 4, {new}")
    if not insert_only:
        changed.acid("UPDATE {t} SET id = 11 WHERE id = 1").hive("UPDATE {t} SET id = 12 WHERE id = 2")
        changed.hive("DELETE FROM {t} WHERE s.a = 5000000000 AND id = 4").acid("DELETE FROM {t} WHERE s.c IS NULL")
        assert [r[0] for r in changed.agree()] == [3]


@pytest.mark.parametrize("by", SIDES)
@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("decimal(10,2)", "CAST(12345678.90 AS decimal(10,2))", "decimal(4,0)"),
        ("decimal(10,2)", "CAST(12.50 AS decimal(10,2))", "decimal(4,0)"),
        ("int", "70000", "decimal(4,0)"),
        ("string", "'abcdef'", "varchar(3)"),
        ("string", "'abcdef'", "char(3)"),
        ("int", "123456", "varchar(3)"),
        ("date", "date '2024-02-29'", "char(4)"),
        ("struct<a:int,b:string>", "named_struct('a', 7, 'b', 'xy')", "struct<b:string,c:int>"),
        ("struct<a:int,b:string>", "named_struct('a', 7, 'b', 'xy')", "struct<a:string,b:int>"),
        ("array<struct<a:int>>", "array(named_struct('a', 7))", "array<struct<z:bigint>>"),
        ("map<string,int>", "map('k', 1)", "map<string,bigint>"),
    ],
)
def test_what_does_not_fit_a_new_type_is_read_alike(both: Both, by: str, old: str, value: str, new: str) -> None:
    t = both.table(f"id int, v {old}", by=by)
    t.hive(f"INSERT INTO {{t}} SELECT 1, {value}").acid(f"INSERT INTO {{t}} SELECT 2, {value}")
    both.run(by, f"ALTER TABLE {t.name} CHANGE COLUMN v v {new}")
    changed = SharedTable(both, t.name, parse_fields(f"id int, v {new}"), t.keys)
    changed.agree()
    changed.acid("UPDATE {t} SET id = 11 WHERE id = 1")
    assert sorted(r[0] for r in changed.agree()) == [2, 11]
