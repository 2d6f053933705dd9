"""Memory that ORC's writer in C++ leaves behind."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

_WIDE = 128
"""Columns of a file from which on :func:`give_back` is worth its time, some 0.5 ms a column."""


def give_back(columns: int) -> None:
    """Give the memory of a writer that is gone back to the system, where the file had many columns.

    The writer reserves some 4 MB for each column, and touches little of it. Of what is freed malloc keeps the pages
    that were touched, others each time, until it has them all: 4 GB after a few files of 1,000 columns.

    Args:
        columns: How many the file had, with those within others.
    """
    if columns >= _WIDE:
        _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    """glibc's ``malloc_trim``; other C libraries have none."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _: None
    return found
