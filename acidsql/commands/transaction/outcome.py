"""What had been committed before a statement was interrupted: who runs it again would do it twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from acidsql.errors import AcidError

IS_KEPT = "the statement was interrupted after its commit: what it has changed stays"


class _Commits(threading.local):
    count = 0
    is_aside = False


_of_thread = _Commits()


def commits() -> int:
    """How many transactions this thread has committed: of two numbers, whether it has committed one between them."""
    return _of_thread.count


def has_committed() -> None:
    """One more."""
    if not _of_thread.is_aside:
        _of_thread.count += 1


@contextmanager
def aside() -> Iterator[None]:
    """A block of a statement that makes what it needs for itself: its commits are not that of the statement."""
    outer, _of_thread.is_aside = _of_thread.is_aside, True
    try:
        yield
    finally:
        _of_thread.is_aside = outer


@contextmanager
def told(since: int | None = None) -> Iterator[None]:
    """A block of a statement: where it is interrupted, or fails, after a commit, the error says so.

    Args:
        since: How many :func:`commits` there were when the statement began, where that was before the block.

    Raises:
        AcidError: In place of an error of Spark's, or the system's, after a commit.
    """
    before = commits() if since is None else since
    try:
        yield
    except KeyboardInterrupt as e:
        if commits() > before and IS_KEPT not in str(e):
            e.args = ("; ".join([*map(str, e.args), IS_KEPT]),)
        raise
    except (Py4JError, PySparkException, OSError) as e:  # PySpark's answer to an interrupt is often one of the call
        if commits() == before or isinstance(e, BrokenPipeError):  # whose reader is gone does not wait for an answer
            raise
        raise AcidError(f"The statement failed after its commit, and what it has changed stays: {e}") from e
