"""Twins for the tests of a module, and the settings that all random tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from tests.oracle.twins import Twins, session_with_own_catalog


@pytest.fixture(scope="session")
def plain(spark: SparkSession) -> SparkSession:
    """Spark without acidsql, with a catalog of its own."""
    return session_with_own_catalog(spark)


@pytest.fixture(scope="module")
def empty_twins(spark: SparkSession, plain: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """Twins without tables, for all tests of a module."""
    folder = tmp_path_factory.mktemp("twins")
    with acidsql.connect(spark, warehouse=folder / "warehouse") as acid:
        twins = Twins(acid, plain, folder)
        yield twins
        twins.close()


@pytest.fixture
def in_samoa(spark: SparkSession) -> Iterator[None]:
    """The JVM's zone is one that has no 30 December 2011."""
    java: Any = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = java.getDefault()
    java.setDefault(java.getTimeZone("Pacific/Apia"))
    yield
    java.setDefault(before)
