"""One suite, every store: a test asks for ``store`` (or ``open_store``, for other settings or a second session) and
names with ``@pytest.mark.needs("…")`` what only some stores can do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from acidsql.metastore.embedded import schema
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from tests import parallel
from tests.metastore.situations import Clock, use_warehouse
from tests.metastore.stores import CAPABILITIES, STORES, Opening, StoreKind

OpenStore = Callable[..., Metastore]
CountRows = Callable[[str], int]
Outside = Callable[[str], list[tuple[Any, ...]]]
_NAMES = re.compile(
    "|".join(rf"\b{name}\b" for t in schema.metadata.sorted_tables for name in (t.name, *(c.name for c in t.columns)))
)
"""Names of the store's tables and columns; upper case, so that PostgreSQL takes them in quotes alone."""
LEFT_OUT = pytest.StashKey[dict[str, Counter[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*capabilities): the test runs on stores that have all of them")
    config.addinivalue_line("markers", "lacks(*capabilities): the test runs on stores that have none of them")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_name" in metafunc.fixturenames:
        there = [name for name, kind in STORES.items() if kind.missing() is None]
        metafunc.parametrize("store_name", there, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a store cannot do; the summary counts it by capability."""
    left_out: dict[str, Counter[str]] = {}
    kept, dropped = [], []
    for item in items:
        name = getattr(item, "callspec", None) and item.callspec.params.get("store_name")  # type: ignore[attr-defined]
        if name is None:
            kept.append(item)
            continue
        wanted, spare = ({one for mark in item.iter_markers(m) for one in mark.args} for m in ("needs", "lacks"))
        unknown = (wanted | spare) - set(CAPABILITIES)
        assert not unknown, f"{item.nodeid}: no such capability as {unknown}"
        lacking = sorted(wanted - STORES[name].capabilities)
        (dropped if lacking or spare & STORES[name].capabilities else kept).append(item)
        if lacking:
            left_out.setdefault(name, Counter()).update(lacking)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept
    config.stash[LEFT_OUT] = left_out


def summary(config: pytest.Config) -> Iterator[str]:
    """What was left out, in lines."""
    for name, kind in STORES.items():
        if reason := kind.missing():
            yield f"tests/metastore did not run on {name}: {reason}"
    for name, counts in config.stash.get(LEFT_OUT, {}).items():
        cases = ", ".join(f"{one} ({count})" for one, count in sorted(counts.items()))
        yield f"tests/metastore left out on {name}, by what it lacks: {cases}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if LEFT_OUT in session.config.stash:  # the tests were collected by this process
        parallel.tell(session.config, summary(session.config))


@pytest.fixture
def kind(store_name: str) -> StoreKind:
    return STORES[store_name]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opening(kind: StoreKind, tmp_path: Path, clock: Clock) -> Opening:
    """The store's place, emptied; tables of :mod:`tests.metastore.situations` lie in its warehouse."""
    kind.empty()
    made = kind.opening(tmp_path, Settings(), clock)
    use_warehouse(made.warehouse)
    return made


@pytest.fixture
def open_store(kind: StoreKind, opening: Opening) -> Iterator[OpenStore]:
    """Opens sessions on one store, each with its own settings; closes them at the end."""
    opened: list[Metastore] = []

    def open_one(settings: Mapping[str, str] | None = None) -> Metastore:
        opened.append(kind.open(replace(opening, settings=Settings(settings))))
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


@pytest.fixture
def outside(opening: Opening) -> Outside:
    """Runs SQL in the store's database, from outside."""

    def run(sql: str) -> list[tuple[Any, ...]]:
        with create_engine(opening.url, poolclass=NullPool).begin() as connection:
            result = connection.exec_driver_sql(_NAMES.sub(r'"\g<0>"', sql))
            return [tuple(row) for row in result] if result.returns_rows else []

    return run


@pytest.fixture
def count_rows(outside: Outside) -> CountRows:
    """Counts the rows of a table of the store, from outside."""
    return lambda name: int(outside(f"SELECT COUNT(*) FROM {name}")[0][0])
