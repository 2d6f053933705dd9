"""Lists of any length in statements whose number of parameters is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

BATCH = 500
"""Values in one IN list (SQLite before 3.32 takes 999 parameters)."""


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in pieces of at most :data:`BATCH`."""
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]
