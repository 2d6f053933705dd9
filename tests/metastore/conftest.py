"""The stores that the suite runs over, and what each of them can do.

One suite, every store: a test asks for ``store`` (or ``open_store``, for other settings or a second session) and names
with ``@pytest.mark.needs("…")`` what only some stores can do. A new store is one more row of :data:`STORES`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from tests.metastore.situations import Clock

CAPABILITIES = {
    "own clock": "time comes from the test's clock",
    "own settings": "each session has its own hive.txn.timeout, hive.max.open.txns and hive.txn.xlock.write",
    "reallocate": "a transaction can give back its write id for a new one",
    "seeds": "write ids and transaction ids can start above those of files made elsewhere",
    "table meets partition": "a change of a whole table is in conflict with one of its partitions",
    "zero-wait reads": "a read that would have to wait can be answered at once",
    "forgets components": "the components of an aborted transaction can be dropped by the client",
    "database file": "the store is a SQLite file of ours",
    "processes": "test programs of other processes can open it from its URL",
}


@dataclass(frozen=True)
class Opening:
    """With what a session is opened."""

    directory: Path
    settings: Settings
    clock: Clock | None

    @property
    def file(self) -> Path:
        return self.directory / "metastore.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    @property
    def warehouse(self) -> str:
        return f"file:{self.directory}/warehouse"


@dataclass(frozen=True)
class StoreKind:
    """A store under test: how it is opened, what it can do, and why it is left out where it cannot run."""

    open: Callable[[Opening], Metastore]
    capabilities: frozenset[str]
    missing: Callable[[], str | None] = lambda: None


def _open_sqlite(opening: Opening) -> Metastore:
    clock: dict[str, Any] = {} if opening.clock is None else {"now_ms": opening.clock}
    return EmbeddedMetastore(opening.url, opening.settings, opening.warehouse, **clock)


STORES: Mapping[str, StoreKind] = {
    "sqlite": StoreKind(_open_sqlite, frozenset(CAPABILITIES)),
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*capabilities): the test runs on stores that have all of them")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_name" in metafunc.fixturenames:
        metafunc.parametrize("store_name", list(STORES), scope="session")


@pytest.fixture
def kind(store_name: str, request: pytest.FixtureRequest) -> StoreKind:
    found = STORES[store_name]
    wanted = {one for mark in request.node.iter_markers("needs") for one in mark.args}
    assert wanted <= set(CAPABILITIES), f"unknown capabilities: {sorted(wanted - set(CAPABILITIES))}"
    if wanted - found.capabilities:
        pytest.skip(f"{store_name} cannot do: {', '.join(sorted(wanted - found.capabilities))}")
    reason = found.missing()
    if reason is not None:
        pytest.skip(f"{store_name} is not there: {reason}")
    return found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opening(kind: StoreKind, tmp_path: Path, clock: Clock) -> Opening:
    return Opening(tmp_path, Settings(), clock)


OpenStore = Callable[..., Metastore]


@pytest.fixture
def open_store(kind: StoreKind, opening: Opening) -> Iterator[OpenStore]:
    """Opens sessions on one store, each with its own settings; closes them at the end."""
    opened: list[Metastore] = []

    def open_one(settings: Mapping[str, str] | None = None) -> Metastore:
        opened.append(kind.open(Opening(opening.directory, Settings(settings), opening.clock)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> Metastore:
    """A new store with the database ``default`` and nothing else."""
    return open_store()


@pytest.fixture
def optimistic(open_store: OpenStore) -> Metastore:
    """A session in which the first committer wins (``hive.txn.xlock.write=false``)."""
    return open_store({"hive.txn.xlock.write": "false"})


CountRows = Callable[[str], int]


@pytest.fixture
def count_rows(opening: Opening) -> CountRows:
    """Counts the rows of a table of the database file, from outside."""

    def count(name: str) -> int:
        with closing(sqlite3.connect(opening.file)) as connection:
            return int(connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0])

    return count
