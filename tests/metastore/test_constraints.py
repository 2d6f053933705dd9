"""Constraints of tables: those that are enforced, those that are only declared, and their names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.errors import AcidError
from acidsql.metastore.model import Column, Constraint, ConstraintKind, Table
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import check, table

KEY = Constraint(ConstraintKind.PRIMARY_KEY, ("a", "b"), "parent_pk", rely=True)


@pytest.fixture
def parent() -> Table:
    return replace(table("parent"), columns=(Column("a", "int"), Column("b", "int")), table_constraints=(KEY,))


@pytest.fixture
def child() -> Table:
    return replace(
        table("child"),
        columns=(
            Column("x", "int", not_null=True, not_null_name="x_there"),
            Column("y", "int", default="7", default_name="y_seven"),
            Column("z", "string"),
        ),
        table_constraints=(
            Constraint(ConstraintKind.PRIMARY_KEY, ("x",), "child_pk"),
            Constraint(ConstraintKind.UNIQUE, ("y", "x"), "child_uk", rely=True),
            Constraint(
                ConstraintKind.FOREIGN_KEY,
                ("y", "x"),
                "child_fk",
                parent="default.parent",
                parent_columns=("a", "b"),
            ),
            Constraint(ConstraintKind.NOT_NULL, ("z",), "z_there", rely=True),
            Constraint(ConstraintKind.CHECK, (), "c_3", expression="z <> 'x'"),
            check("x > 0", "c_1"),
            check("y > 0", "c_2"),
        ),
    )


def names(found: Table) -> set[str | None]:
    return {c.name for c in found.constraints}


def by_kind(found: Table) -> list[Constraint]:
    return sorted(found.informational, key=lambda c: c.kind.value)


def test_a_table_is_found_with_the_constraints_that_it_was_made_with(
    store: Metastore, parent: Table, child: Table
) -> None:
    store.create_table(parent)
    store.create_table(child)
    found = store.get_table("default", "child")
    assert (found.columns, found.checks) == (child.columns, child.checks)
    assert by_kind(found) == by_kind(child)
    assert names(found) == names(child)
    assert store.get_table("default", "parent").informational == (KEY,)


def test_a_constraint_without_a_name_is_given_one(store: Metastore) -> None:
    unnamed = replace(
        table("t"),
        columns=(Column("a", "int", not_null=True), Column("b", "int", default="1")),
        table_constraints=(Constraint(ConstraintKind.UNIQUE, ("a", "b")), check("a > 0"), check("b > 0")),
    )
    store.create_table(unnamed)
    found = store.get_table("default", "t")
    assert len(names(found)) == 5
    assert all(names(found))
    store.alter_table(replace(found, comment="new"))
    assert names(store.get_table("default", "t")) == names(found)


def test_constraints_come_and_go_by_an_alteration_and_the_others_stay(
    store: Metastore, parent: Table, child: Table
) -> None:
    bare = replace(child, columns=tuple(Column(c.name, c.type) for c in child.columns), table_constraints=())
    store.create_table(parent)
    store.create_table(bare)
    store.alter_table(child)
    found = store.get_table("default", "child")
    assert (found.columns, found.checks, names(found)) == (child.columns, child.checks, names(child))
    store.alter_table(found.constrained(c for c in found.table_constraints if c.name == "c_2"))
    found = store.get_table("default", "child")
    assert names(found) == {"x_there", "y_seven", "c_2"}
    store.alter_table(bare)
    assert store.get_table("default", "child").constraints == ()


@pytest.mark.needs("keeps constraints", "follows renamed parents")
def test_constraints_go_with_the_names_of_their_columns(store: Metastore, parent: Table, child: Table) -> None:
    """A foreign key refers to its parent's columns whatever they are called."""
    store.create_table(parent)
    store.create_table(child)
    renamed = replace(parent, columns=(Column("aa", "int"), Column("b", "int")))
    store.alter_table(renamed.constrained([replace(KEY, columns=("aa", "b"))]))
    assert [c.columns for c in store.get_table("default", "parent").informational] == [("aa", "b")]
    [foreign] = [c for c in store.get_table("default", "child").informational if c.parent]
    assert (foreign.columns, foreign.parent_columns) == (("y", "x"), ("aa", "b"))


def test_a_foreign_key_goes_with_the_name_of_its_parent_and_ends_with_it(
    store: Metastore, parent: Table, child: Table
) -> None:
    store.create_table(parent)
    store.create_table(child)
    store.rename_table("default", "parent", replace(parent, name="older"))
    [foreign] = [c for c in store.get_table("default", "child").informational if c.parent]
    assert foreign.parent == "default.older"
    store.drop_table("default", "older")
    assert not [c for c in store.get_table("default", "child").informational if c.parent]


def test_a_foreign_key_needs_its_parent(store: Metastore, child: Table) -> None:
    with pytest.raises(AcidError):
        store.create_table(child)
    assert store.find_table("default", "child") is None
