"""sqlglot's own reading of a text: asked where a second opinion, or a tree of an expression, is wanted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_LOGGER = logging.getLogger("sqlglot")


def parse_quietly(text: str) -> exp.Expression | None:
    """The tree of a query in Spark's dialect; None where sqlglot cannot read it, and nothing in the log."""
    try:
        with _silence():
            tree = sqlglot.parse_one(text, read="spark")
    except (SqlglotError, RecursionError):
        return None
    return None if isinstance(tree, exp.Command) or not isinstance(tree, exp.Expression) else tree


@contextmanager
def _silence() -> Iterator[None]:
    """sqlglot warns of what it cannot parse; the caller knows from the answer."""

    def drop(record: logging.LogRecord) -> bool:
        # One of our own for each call: another thread's end must not bring the warnings back.
        return False

    _LOGGER.addFilter(drop)
    try:
        yield
    finally:
        _LOGGER.removeFilter(drop)
