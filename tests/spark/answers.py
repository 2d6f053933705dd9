"""What statements answer, how they refuse, and that nothing of them goes on: as the tests look at it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from acidsql.errors import AcidError
from acidsql.metastore.model import LockRequest
from acidsql.session import AcidSession

Rows = list[tuple[object, ...]]
_MOMENTS = 10.0
"""Seconds."""


def emp_and_part(acid: AcidSession, *more: str) -> AcidSession:
    """Make two tables with rows: ``emp``, and ``part`` in three partitions; ``more`` are further rows of ``part``."""
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann'), (2, 'Bob')")
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int, v string) PARTITIONED BY (p int, q string)")
    first = ("(1, 'a', 1, 'x')", "(2, 'b', 1, 'y')", "(3, 'c', 2, 'x')")
    acid.sql(f"INSERT INTO part VALUES {', '.join((*first, *more))}")
    return acid


def rows(acid: AcidSession, text: str, **parameters: object) -> Rows:
    """The rows of an answer, in an order that does not hang on the engine's."""
    return sorted((tuple(r) for r in acid.sql(text, **parameters).collect()), key=repr)


def row_ids_are_unique(acid: AcidSession, table: str, key: str = "0") -> None:
    """No two rows of a table have one ROW__ID; of a partitioned table, by its ``key``, no two of a partition."""
    found = [(tuple(r[0]), r[1]) for r in acid.sql(f"SELECT ROW__ID, {key} FROM {table}").collect()]
    assert len(set(found)) == len(found)


def outcome(run: Callable[[], object]) -> object:
    """What a call gives; a frame and a refusal as words."""
    try:
        found = run()
    except (AcidError, PySparkException):
        return "refused"
    return "done" if isinstance(found, DataFrame) else found


def nothing_is_open(acid: AcidSession) -> None:
    """No transaction and no lock is left in the metastore.

    A reader's transaction ends with the last object in Spark that refers to its scan: threads that serve a result, and
    events of queries, do so for moments after the query. What is left over stays longer than this waits.
    """
    end = time.monotonic() + _MOMENTS
    while acid.sql("SHOW TRANSACTIONS").collect() and time.monotonic() < end:
        time.sleep(0.1)
    assert acid.sql("SHOW TRANSACTIONS").collect() == []
    assert acid.sql("SHOW LOCKS").collect() == []


def check_refusal(error: Exception, code: int | None, place: str | None, piece: str) -> None:
    """An error says ``piece``; with a ``code`` of Hive's, or a ``place`` (line:column), it is one of acidsql's."""
    assert piece in str(error)
    if code is not None:
        assert isinstance(error, AcidError)
        assert error.code == code, str(error)
    if place is not None:
        assert isinstance(error, AcidError)
        assert f"{error.line}:{error.column}" == place, str(error)


def overtake_next_lock(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The next statement that asks for a lock waits until another one, ``text``, is done."""
    real = acid.metastore.lock

    def lock(request: LockRequest) -> object:
        monkeypatch.setattr(acid.metastore, "lock", real)
        acid.sql(text)
        return real(request)

    monkeypatch.setattr(acid.metastore, "lock", lock)


def end_released(acid: AcidSession) -> None:
    """End the transactions of readers whose frames are garbage, in Python and in Spark's JVM."""
    acid._env.heartbeats.end_released(collect=True)
