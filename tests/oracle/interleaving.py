"""Another session does something at one moment of a statement, or a statement is held there.

A moment is a call of a method of the statement's metastore: those are the steps that its algorithm is written in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.session import AcidSession

PATIENCE = 60
"""Seconds after which a moment that does not come is a failure."""


@contextmanager
def two_sessions(
    spark: SparkSession, warehouse: Path, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[AcidSession, AcidSession]]:
    """Two sessions on one warehouse. The second one gives up soon when it has to wait for a lock."""
    given = dict(settings or {})
    hasty = {**given, "acidsql.lock.timeout": "1s"}
    with (
        acidsql.connect(spark, warehouse=warehouse, settings=given) as one,
        acidsql.connect(spark, warehouse=warehouse, settings=hasty) as other,
    ):
        yield one, other


class Moment:
    """What happens right before the next call of a method, once.

    Attributes:
        came: Whether the call came.
        failed: The error of what was done then: another session's statement may be refused, or wait in vain.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, session: AcidSession, method: str, action: Callable[[], object]
    ) -> None:
        self.came, self.failed = False, None
        store = session.metastore
        real = getattr(store, method)

        def step(*args: Any, **kwargs: Any) -> Any:
            if not self.came:
                self.came = True
                self._run(action)
            return real(*args, **kwargs)

        monkeypatch.setattr(store, method, step)

    failed: AcidError | PySparkException | None

    def _run(self, action: Callable[[], object]) -> None:
        try:
            action()
        except (AcidError, PySparkException) as e:
            self.failed = e

    @property
    def done(self) -> bool:
        """Whether the moment came, and what was done then succeeded."""
        return self.came and self.failed is None


class Held:
    """A statement in a thread of its own, held right before a call of its metastore's method.

    Attributes:
        result: What the statement gives in the end.
    """

    result: Future[Any]

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, session: AcidSession, method: str, statement: Callable[[], object]
    ) -> None:
        self._there, self._go = threading.Event(), threading.Event()
        store = session.metastore
        real = getattr(store, method)

        def step(*args: Any, **kwargs: Any) -> Any:
            self._there.set()
            assert self._go.wait(PATIENCE)
            return real(*args, **kwargs)

        monkeypatch.setattr(store, method, step)
        self._pool = ThreadPoolExecutor(1)
        self.result = self._pool.submit(statement)
        assert self._there.wait(PATIENCE)

    def release(self) -> None:
        self._go.set()
        self._pool.shutdown(wait=True)


def start_until_it_waits(
    monkeypatch: pytest.MonkeyPatch, session: AcidSession, statement: Callable[[], object]
) -> Future[Any]:
    """Start a statement in a thread; come back when it waits for a lock, or is done without."""
    waiting = threading.Event()
    real = session.metastore.check_lock

    def check_lock(lock_id: int) -> Any:
        waiting.set()
        return real(lock_id)

    monkeypatch.setattr(session.metastore, "check_lock", check_lock)
    pool = ThreadPoolExecutor(1)
    result = pool.submit(statement)
    result.add_done_callback(lambda _: waiting.set())
    assert waiting.wait(PATIENCE)
    pool.shutdown(wait=False)
    return result
