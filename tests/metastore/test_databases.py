"""Databases of the catalog."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.errors import AlreadyExists, AnalysisError, DatabaseNotFound
from acidsql.metastore.model import Database
from acidsql.metastore.protocol import Metastore
from tests.metastore.conftest import OpenStore
from tests.metastore.situations import home, table
from tests.metastore.stores import Opening


def test_a_new_store_has_the_default_database_in_the_warehouse(store: Metastore, opening: Opening) -> None:
    assert store.list_databases() == ["default"]
    assert store.get_database("default").location == opening.warehouse
    assert store.list_tables("default") == []


def test_a_database_is_found_as_it_was_created(store: Metastore) -> None:
    hr = Database("hr", home("hr"), "people", {"owner team": "hr", "empty": ""})
    store.create_database(hr)
    assert store.get_database("hr") == hr


def test_a_database_may_lie_elsewhere(store: Metastore) -> None:
    hr = Database("hr", f"{home()}/elsewhere/people")
    store.create_database(hr)
    assert store.get_database("hr").location == hr.location
    emp = replace(table("emp", "hr"), location=f"{hr.location}/emp")
    store.create_table(emp)
    assert store.get_table("hr", "emp").location == emp.location


def test_databases_are_listed_by_name(store: Metastore) -> None:
    for name in ("zoo", "hr", "acme"):
        store.create_database(Database(name, home(name)))
    assert store.list_databases() == ["acme", "default", "hr", "zoo"]


def test_a_database_is_created_once(store: Metastore) -> None:
    store.create_database(Database("hr", home("hr")))
    with pytest.raises(AlreadyExists, match="hr"):
        store.create_database(Database("hr", f"{home()}/elsewhere"))
    assert store.get_database("hr").location == home("hr")


def test_a_database_that_is_not_there_is_an_error(store: Metastore) -> None:
    for call in (store.get_database, store.list_tables, store.drop_database):
        with pytest.raises(DatabaseNotFound, match="nowhere"):
            call("nowhere")


def test_an_empty_database_is_dropped(store: Metastore) -> None:
    store.create_database(Database("hr", home("hr")))
    store.drop_database("hr")
    assert store.list_databases() == ["default"]
    with pytest.raises(DatabaseNotFound):
        store.get_database("hr")


def test_a_database_with_tables_is_not_dropped(store: Metastore) -> None:
    store.create_database(Database("hr", home("hr")))
    store.create_table(table("emp", "hr"))
    with pytest.raises(AnalysisError) as caught:
        store.drop_database("hr")
    assert caught.value.code == 10226
    assert store.list_tables("hr") == ["emp"]


def test_the_default_database_is_not_dropped(store: Metastore) -> None:
    with pytest.raises(AnalysisError, match="default"):
        store.drop_database("default")
    assert store.list_databases() == ["default"]


@pytest.mark.needs("own settings")
def test_another_session_sees_a_database_at_once(store: Metastore, open_store: OpenStore) -> None:
    other = open_store()
    store.create_database(Database("hr", home("hr")))
    assert other.list_databases() == ["default", "hr"]


@pytest.mark.needs("own settings")
def test_opening_a_store_again_keeps_what_is_in_it(store: Metastore, open_store: OpenStore) -> None:
    store.create_table(table())
    store.close()
    assert open_store().list_tables("default") == ["t"]
