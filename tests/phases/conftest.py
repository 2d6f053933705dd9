"""One set of templates for all tests of this folder, and a count of what was driven at the end."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.phases.encounter import Phase
from tests.phases.matrix import Failure, Matrix, Pair
from tests.phases.warehouses import Warehouses


class Tally:
    """What was driven in this run."""

    def __init__(self) -> None:
        self.pairs = self.cases = 0
        self.failures: list[Failure] = []
        self.skewed: list[tuple[Pair, Phase]] = []


_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TALLY] = Tally()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash[_TALLY]
    if not tally.pairs:
        return
    terminalreporter.section("phases")
    told = f"{tally.pairs} pairs of statements, {tally.cases} phases, {len(tally.failures)} illegal outcomes"
    terminalreporter.line(told)
    skewed = sorted({str(pair) for pair, _ in tally.skewed})
    if skewed:
        terminalreporter.line(
            f"{len(tally.skewed)} outcomes that snapshot isolation allows, and no serial order gives:"
        )
        for pair in skewed:
            terminalreporter.line(f"  {pair}")
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
    made = Matrix(warehouses)
    tally.skewed = made.skewed
    return made
