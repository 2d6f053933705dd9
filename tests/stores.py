"""The store of all sessions in PostgreSQL: ``make test-postgres`` runs tests/spark so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from acidsql import metastore, session
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from tests.metastore import postgres_store


@contextmanager
def stores_in_postgres() -> Iterator[None]:
    """Each file that a session of this process would have its store in is a database instead."""
    databases: dict[str, str] = {}

    def open_metastore(url: str, settings: Settings, *, warehouse: str) -> Metastore:
        if "://" not in url or url.startswith("sqlite"):
            place = url.removeprefix("sqlite:///").removeprefix("file:")
            if place not in databases:
                databases[place] = postgres_store.new_database()
            url = databases[place]
        return metastore.open_metastore(url, settings, warehouse=warehouse)

    with patch.object(session, "open_metastore", open_metastore):
        yield
