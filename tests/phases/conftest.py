"""One set of templates for all tests of this folder, and a count of what was driven at the end."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.phases.matrix import Failure, Matrix
from tests.phases.warehouses import Warehouses


class Tally:
    """What was driven in this run."""

    def __init__(self) -> None:
        self.pairs: set[str] = set()
        self.failures: list[Failure] = []
        self.matrix: Matrix | None = None


_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TALLY] = Tally()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash[_TALLY]
    matrix = tally.matrix
    if matrix is None or not tally.pairs:
        return
    terminalreporter.section("phases")
    counts = f"{matrix.driven} phases driven, {matrix.spared} known from the one before"
    terminalreporter.line(f"{len(tally.pairs)} pairs of statements: {counts}, {len(tally.failures)} illegal outcomes")
    if matrix.skewed:
        terminalreporter.line(f"{len(matrix.skewed)} outcomes that snapshot isolation allows, but no serial order:")
    for skewed in sorted({str(pair) for pair, _ in matrix.skewed}):
        terminalreporter.line(f"  {skewed}")
    for failure in tally.failures:
        terminalreporter.line(f"  {failure.pair}, stopped at {failure.phase}")


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    return request.config.stash[_TALLY]


@pytest.fixture(scope="session")
def warehouses(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouses:
    return Warehouses(spark, tmp_path_factory.mktemp("phases"))


@pytest.fixture(scope="session")
def matrix(warehouses: Warehouses, tally: Tally) -> Matrix:
    tally.matrix = Matrix(warehouses)
    return tally.matrix
