"""A running Hive, and acidsql sessions on its metastore.

The suite starts a Hive of its own and stops it at the end. ``ACIDSQL_TEST_HIVE`` names another one that runs already:
``thrift://127.0.0.1:9083,127.0.0.1:10000`` (a metastore and a HiveServer2 whose files are on this machine; nothing is
compacted there), or ``standing``: what ``python -m tests.services.hive up`` has started.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

import acidsql
from tests.interop.both import Both, Tally
from tests.services.hive import STAGED, HiveServer, hive_is_possible
from tests.services.hiveserver2 import Hive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acidsql.session import AcidSession

RUNNING = "ACIDSQL_TEST_HIVE"
_TALLY = pytest.StashKey[Tally]()
_numbers = itertools.count(100, 100)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TALLY] = Tally()
    config.addinivalue_line("markers", "interop: needs a running Hive")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "interop" in item.path.parts:
            item.add_marker(pytest.mark.interop)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash[_TALLY]
    if tally.statements:
        terminalreporter.section("Hive and acidsql")
        for line in tally.lines():
            terminalreporter.write_line(line)


@dataclass(frozen=True)
class Service:
    """Where Hive answers; ``server`` where its processes are the suite's to start and stop."""

    metastore_uri: str
    host: str
    port: int
    server: HiveServer | None = None

    def connect(self) -> Hive:
        """A session of Hive of its own."""
        more = STAGED if self.server is not None and self.server.has_cleaner else {}
        return Hive(self.port, self.host, settings={"hive.exec.dynamic.partition.mode": "nonstrict", **more})


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    return pytestconfig.stash[_TALLY]


@pytest.fixture(scope="session")
def hive_service() -> Iterator[Service]:
    given = os.environ.get(RUNNING)
    if given and given != "standing":
        uri, _, address = given.partition(",")
        found = urlsplit(f"//{address}")
        yield Service(uri, found.hostname or "127.0.0.1", found.port or 10000)
        return
    if reason := hive_is_possible():
        pytest.skip(f"NO HIVE, nothing of this suite was run: {reason}")
    if given:
        standing = HiveServer.attach()
        assert standing is not None, "start it: python -m tests.services.hive up"
        yield Service(standing.metastore_uri, "127.0.0.1", standing.port, standing)
        return
    with HiveServer() as started:
        yield Service(started.metastore_uri, "127.0.0.1", started.port, started)


@pytest.fixture(scope="session")
def database(hive_service: Service) -> Iterator[str]:
    """A database for this run, made by Hive."""
    name = f"interop_{os.getpid()}"
    with hive_service.connect() as hive:
        hive.run(f"CREATE DATABASE {name}")
        yield name
        hive.run(f"DROP DATABASE {name} CASCADE")


OpenAcid = Callable[..., "AcidSession"]
OpenHive = Callable[[], Hive]


@pytest.fixture
def open_acid(spark: SparkSession, hive_service: Service) -> Iterator[OpenAcid]:
    """Opens sessions of acidsql on Hive's metastore; closes them at the end."""
    with ExitStack() as opened:

        def open_one(**settings: str) -> AcidSession:
            return opened.enter_context(acidsql.connect(spark, metastore=hive_service.metastore_uri, settings=settings))

        yield open_one


@pytest.fixture
def open_hive(hive_service: Service) -> Iterator[OpenHive]:
    """Opens sessions of Hive; closes them at the end."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(hive_service.connect())


@pytest.fixture
def both(open_hive: OpenHive, open_acid: OpenAcid, database: str, tally: Tally) -> Both:
    return Both(open_hive(), open_acid(), database, tally, first=next(_numbers))


@pytest.fixture(scope="module")
def compactor(hive_service: Service) -> Iterator[None]:
    """Hive's compaction worker runs; nobody removes old files."""
    yield from _compacting(hive_service, cleaner=False)


@pytest.fixture(scope="module")
def cleaner(hive_service: Service) -> Iterator[None]:
    """Hive's compaction worker and its cleaner run. Hive's sessions write aside first: its cleaner asks for that."""
    yield from _compacting(hive_service, cleaner=True)


def _compacting(hive_service: Service, *, cleaner: bool) -> Iterator[None]:
    if hive_service.server is None:
        pytest.skip(f"nobody compacts in the Hive of {RUNNING}")
    hive_service.server.start_compactor(cleaner=cleaner)
    yield
    hive_service.server.stop_compactor()
