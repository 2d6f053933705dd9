"""What a statement that fails must leave behind: nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.tree import tree


def assert_nothing_left(acid: AcidSession, warehouse: Path, run: Callable[[], object]) -> AcidError | PySparkException:
    """The error of a statement that fails, and leaves no transaction, lock, file or table, and none changed."""
    before, tables = _files(warehouse), _tables(acid)
    with pytest.raises((AcidError, PySparkException)) as caught:
        run()
    nothing_is_open(acid)
    assert _files(warehouse) == before
    assert _tables(acid) == tables
    assert isinstance(caught.value, (AcidError, PySparkException))
    return caught.value


def _files(warehouse: Path) -> list[str]:
    return [f for f in tree(warehouse) if not f.startswith("acidsql.db")]


def _tables(acid: AcidSession) -> list[object]:
    """Everything that the store knows of its tables and their partitions."""
    found: list[object] = []
    for database in acid.metastore.list_databases():
        for name in acid.metastore.list_tables(database):
            found += [acid.metastore.get_table(database, name), *acid.metastore.list_partitions(database, name)]
    return found
