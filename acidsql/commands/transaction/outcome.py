"""What had been committed before a statement was interrupted: who runs it again would do it twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

IS_KEPT = "the statement was interrupted after its commit: what it has changed stays"


class _Commits(threading.local):
    count = 0


_of_thread = _Commits()


def commits() -> int:
    """How many transactions this thread has committed: of two numbers, whether it has committed one between them."""
    return _of_thread.count


def has_committed() -> None:
    """One more."""
    _of_thread.count += 1


@contextmanager
def told() -> Iterator[None]:
    """A statement: where it is interrupted after it has committed something, the KeyboardInterrupt says so."""
    before = commits()
    try:
        yield
    except KeyboardInterrupt as e:
        tell(e, before)
        raise


def tell(error: BaseException, before: int) -> None:
    """Let a KeyboardInterrupt say that something has been committed since there were so many :func:`commits`."""
    if isinstance(error, KeyboardInterrupt) and commits() > before and IS_KEPT not in str(error):
        error.args = ("; ".join([*map(str, error.args), IS_KEPT]),)
