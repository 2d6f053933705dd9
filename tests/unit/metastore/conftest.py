"""Scripted servers of a Hive Metastore, and sessions on them that lose no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from acidsql.metastore.hive import HiveMetastore
from acidsql.settings import Settings
from tests.unit.metastore.scripted import ScriptedMetastore

QUICK = {
    "hive.metastore.uri.selection": "sequential",
    "hive.metastore.client.connect.retry.delay": "0s",
    "hive.metastore.client.socket.timeout": "20s",
    "acidsql.metastore.connect.timeout": "20s",
}
"""Nothing waits but a test that wants it."""

Serve = Callable[..., ScriptedMetastore]
Connect = Callable[..., HiveMetastore]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers; ends them after the test."""
    running: list[ScriptedMetastore] = []

    def start(**answers: Any) -> ScriptedMetastore:
        running.append(ScriptedMetastore(**answers))
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens sessions on servers or addresses; closes them after the test."""
    opened: list[HiveMetastore] = []

    def open_one(*servers: ScriptedMetastore | str, **settings: str) -> HiveMetastore:
        uris = ",".join(one if isinstance(one, str) else one.uri for one in servers)
        names = {name.replace("_", "."): value for name, value in settings.items()}
        opened.append(HiveMetastore(uris, Settings({**QUICK, **names})))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()
