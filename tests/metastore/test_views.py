"""Views of the catalog: tables without files, whose query the store keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.errors import AlreadyExists, DatabaseNotFound
from acidsql.metastore.model import Column, Database, Table
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import home, table, unstamped


def view(name: str = "v", database: str = "default") -> Table:
    return Table(
        database,
        name,
        "",
        (Column("a", "int", "the one"), Column("b", "char(3)")),
        parameters={"k": "v"},
        comment="a view",
        table_type="VIRTUAL_VIEW",
        owner="ann",
        view_text="SELECT `a`, `b` FROM (\nSELECT * FROM `default`.`t`\n) `v`",
        view_original="SELECT * FROM t",
    )


def test_a_view_is_found_as_it_was_created(store: Metastore) -> None:
    store.create_table(view())
    found = store.get_table("default", "v")
    assert unstamped(found) == view()
    assert found.is_view
    assert not found.is_transactional


def test_views_are_among_the_tables_and_listed_alone(store: Metastore) -> None:
    store.create_database(Database("hr", home("hr")))
    store.create_table(table())
    store.create_table(view("b"))
    store.create_table(view("a"))
    store.create_table(view("c", "hr"))
    assert store.list_tables("default") == ["a", "b", "t"]
    assert store.list_views("default") == ["a", "b"]
    assert store.list_views("hr") == ["c"]
    with pytest.raises(DatabaseNotFound):
        store.list_views("nowhere")


def test_a_view_gets_another_query(store: Metastore) -> None:
    store.create_table(view())
    with pytest.raises(AlreadyExists):
        store.create_table(view())
    changed = replace(
        view(),
        columns=(Column("x", "string"),),
        view_text="SELECT 'x' AS `x`",
        view_original="SELECT 'x' x",
        comment="no",
    )
    store.alter_table(changed)
    assert unstamped(store.get_table("default", "v")) == changed


def test_a_view_is_dropped(store: Metastore) -> None:
    store.create_table(view())
    store.drop_table("default", "v")
    assert store.list_tables("default") == []
    store.create_table(table("v"))
    assert not store.get_table("default", "v").is_view
