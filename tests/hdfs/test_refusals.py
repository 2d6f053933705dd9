"""A namenode that says no: a clear error, no rows changed, nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from acidsql.errors import StorageError
from acidsql.session import AcidSession
from tests.hdfs.conftest import Directory

_NO_LIMIT = 2**63 - 2
"""``HdfsConstants.QUOTA_DONT_SET`` is one more, and -1 takes a quota away."""

STATEMENTS = [
    "INSERT INTO t VALUES (9, 'a'), (9, 'new')",
    "UPDATE t SET id = id + 1",
    "DELETE FROM t WHERE id = 1",
    "INSERT OVERWRITE t SELECT id + 1, p FROM t",
]


@pytest.fixture
def table(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return acid


@contextmanager
def safe_mode(directory: Directory) -> Iterator[None]:
    """The namenode takes no changes at all."""
    actions = directory.spark._jvm.org.apache.hadoop.fs.SafeModeAction  # type: ignore[union-attr]
    directory.hadoop.setSafeMode(actions.ENTER)
    try:
        yield
    finally:
        directory.hadoop.setSafeMode(actions.LEAVE)


@contextmanager
def quota(directory: Directory, more: int) -> Iterator[None]:
    """Only so many files and directories more may be made."""
    there = directory.hadoop.getContentSummary(directory.path())
    count = there.getFileCount() + there.getDirectoryCount()
    directory.hadoop.setQuota(directory.path(), count + more, _NO_LIMIT)
    try:
        yield
    finally:
        directory.hadoop.setQuota(directory.path(), -1, -1)


def _state(acid: AcidSession, directory: Directory) -> object:
    """Files, what stands beside the partitions' directories (those may stay behind), rows."""
    others = [name for name in directory.names("t") if not name.startswith("p=")]
    return directory.files(), others, sorted(tuple(r) for r in acid.sql("SELECT * FROM t").collect())


@pytest.mark.parametrize(
    ("statement", "driver_rows"), [*((s, 20000) for s in STATEMENTS), (STATEMENTS[0], 0), (STATEMENTS[1], 0)]
)
def test_in_safe_mode_no_statement_does_anything(
    table: AcidSession, directory: Directory, statement: str, driver_rows: int
) -> None:
    table.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    before = _state(table, directory)
    with safe_mode(directory), pytest.raises(StorageError, match="safe mode") as error:
        table.sql(statement)
    assert "\n" not in error.value.message
    assert _state(table, directory) == before
    assert [r.state for r in table.sql("SHOW TRANSACTIONS").collect() if r.state == "open"] == []
    table.sql(statement)


@pytest.mark.parametrize("statement", STATEMENTS[:2])
def test_wherever_the_quota_ends_a_statement_is_wholly_done_or_not_at_all(
    table: AcidSession, directory: Directory, statement: str
) -> None:
    before = _state(table, directory)
    refused = 0
    for more in range(0, 40, 3):
        with quota(directory, more):
            message = _refusal(table, statement)
        if message is None:
            break
        refused += 1
        assert "quota" in message
        assert "\n" not in message
        assert _state(table, directory) == before, more
    assert refused > 1
    assert _state(table, directory) != before


def _refusal(acid: AcidSession, statement: str) -> str | None:
    try:
        acid.sql(statement)
    except StorageError as e:
        return e.message
    return None


def test_a_table_that_cannot_be_made_is_not_there(acid: AcidSession, directory: Directory) -> None:
    with safe_mode(directory):
        with pytest.raises(StorageError, match="safe mode"):
            acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        with pytest.raises(StorageError, match="safe mode"):
            acid.sql("CREATE DATABASE d")
    assert directory.names() == []
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("CREATE DATABASE d")
