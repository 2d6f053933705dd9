"""A file system that renames directories file by file, as object stores do: nobody sees a half done rename."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem
from acidsql.session import AcidSession
from tests.spark.tree import tree

STATEMENTS = [
    "INSERT INTO t VALUES (9, 'a'), (9, 'new')",
    "UPDATE t SET id = id + 10",
    "DELETE FROM t WHERE id = 1",
    "INSERT OVERWRITE t SELECT id + 20, p FROM t",
]


@pytest.fixture
def table(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return acid


def rows(acid: AcidSession) -> list[tuple[object, ...]]:
    return sorted(tuple(r) for r in acid.sql("SELECT * FROM t").collect())


def rename_file_by_file(monkeypatch: pytest.MonkeyPatch, after_each: Callable[[], None]) -> None:
    """Copy all files, then remove the sources; call somebody after each copy."""
    whole = LocalFileSystem.rename

    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        if not os.path.isdir(source):
            return whole(self, source, target)
        for name in sorted(os.listdir(source)):
            os.makedirs(target, exist_ok=True)
            shutil.copy2(os.path.join(source, name), os.path.join(target, name))
            after_each()
        shutil.rmtree(source)
        return None

    monkeypatch.setattr(LocalFileSystem, "rename", rename)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_reader_in_the_middle_sees_the_rows_before(
    table: AcidSession, spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    before = rows(table)
    seen = []
    with acidsql.connect(spark, warehouse=warehouse) as other:
        rename_file_by_file(monkeypatch, lambda: seen.append(rows(other)))
        table.sql(statement)
        assert len(seen) >= 2
        assert all(each == before for each in seen)
        assert rows(other) == rows(table) != before


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_error_in_the_middle_leaves_nothing_in_either_place(
    table: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    before = rows(table), tree(warehouse / "t")

    def fail() -> None:
        raise StorageError("the store is out of order")

    with monkeypatch.context() as patched:
        rename_file_by_file(patched, fail)
        with pytest.raises(StorageError, match="out of order"):
            table.sql(statement)
    assert (rows(table), tree(warehouse / "t")) == before
    assert not [name for name in os.listdir(warehouse / "t") if name.startswith(("_", "."))]
    table.sql(statement)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_cannot_even_be_removed_stays_invisible(
    table: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    before, files = rows(table), tree(warehouse / "t")

    def fail(*_: object) -> None:
        raise StorageError("the store is out of order")

    with monkeypatch.context() as patched:
        rename_file_by_file(patched, fail)
        patched.setattr(LocalFileSystem, "delete", fail)
        with pytest.raises(StorageError, match="out of order"):
            table.sql(statement)
    left = [f for f in tree(warehouse / "t") if f not in files]
    assert any(not f.startswith("_tmp_") for f in left)
    assert rows(table) == before
    table.sql(statement)
    assert rows(table) != before
