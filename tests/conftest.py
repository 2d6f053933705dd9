"""One Spark session for each worker; a warehouse and an acidsql session of its own for every test that asks.

PySpark is imported by the fixtures that need it: the other tests run without it, and start at once. How the tests are
dealt out to several workers (``make test``) is said in :mod:`tests.parallel`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import acidsql
from tests import parallel
from tests.memory import use_memory
from tests.sharing import shared_sql
from tests.stores import stores_in_postgres
from tests.ways import OneWay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadScopeScheduling

    from acidsql.session import AcidSession

JAVA_OPTIONS = (
    "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    " -Djdk.lang.Process.launchMechanism=VFORK -Xms1200m -Xmn500m -XX:MetaspaceSize=300m"
)
"""Most queries of the tests run once and over a few rows: what the better compiler would gain is less than it costs.
With room from the start the heap is collected half as often. Hadoop starts a ``chmod`` for each local file."""

IN_POSTGRES = os.environ.get("ACIDSQL_TEST_STORE") == "postgres"
"""Whether the sessions of the tests have their stores in a PostgreSQL: ``make test-postgres``."""

COMPILES = os.environ.get("ACIDSQL_TEST_CODEGEN") == "true"
"""Whether Spark compiles its queries, as for users: in the smoke run, in ``make test-matrix`` and in all long runs.
Elsewhere it interprets them: for the few rows of a test, compiling took half of the whole time."""


def pytest_configure(config: pytest.Config) -> None:
    use_memory(config)
    config.pluginmanager.register(OneWay())
    # Spark's Python workers are those of PATH otherwise, which may be of another version than this environment's
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: tests interrupt themselves
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if IN_POSTGRES:
        left_out = [item for item in items if item.get_closest_marker("file_store")]
        items[:] = [item for item in items if not item.get_closest_marker("file_store")]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: parallel.rank(item.nodeid))


def pytest_collection_finish(session: pytest.Session) -> None:
    _forget_what_stays()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    return parallel.scheduler(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    parallel.tell(node.config, getattr(node, "workeroutput", {}).get("lines", []))


def _forget_what_stays() -> None:
    """Let the garbage collector no longer look at the modules and test cases that stay to the end.

    SHOW TRANSACTIONS and VACUUM collect garbage, which took half a second each time among thousands of tests.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in parallel.told(config):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def _shared_sql() -> Iterator[None]:
    with shared_sql():
        yield


@pytest.fixture(scope="session", autouse=True)
def _stores() -> Iterator[None]:
    if not IN_POSTGRES:
        yield
        return
    with stores_in_postgres():
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    home = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("acidsql-tests")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", f"{JAVA_OPTIONS} -Dderby.system.home={home}")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.codegen.wholeStage", str(COMPILES).lower())
        .config("spark.sql.codegen.factoryMode", "FALLBACK" if COMPILES else "NO_CODEGEN")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"file:{home}/warehouse")
        .config("spark.local.dir", str(home / "local"))
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    _forget_what_stays()
    yield session
    session.stop()


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Let Spark compile the queries of this test, whatever it does in the others."""
    wanted = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: str(spark.conf.get(name)) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(params=[pytest.param("whole files", marks=pytest.mark.long), "searched files"])
def search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with the search that only large tables are worth; in the long runs also as small tables are read."""
    from acidsql.plan import search

    if request.param == "searched files":
        monkeypatch.setattr(search, "MIN_BYTES", 0)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def acid(spark: SparkSession, warehouse: Path) -> Iterator[AcidSession]:
    with acidsql.connect(spark, warehouse=warehouse) as session:
        yield session
    spark._jsparkSession.sessionState().catalog().clearTempTables()  # they belong to the Spark session, not to a test
    spark.conf.set("spark.sql.session.timeZone", "UTC")
