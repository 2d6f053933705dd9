"""Many looks at a file system: at the same time where each one waits for a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from acidsql.fs.resolve import absolute, is_local

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 16
_FEW = 3
"""So few looks are taken one after the other."""


def side_by_side(look: Callable[[T], R], items: Sequence[T], location: str) -> Iterable[R]:
    """What a function gives for each of some items, in their order; an error is that of the first item that has one.

    On local disks threads gain nothing: a look takes less time than to pass it to one, and they would share one lock.

    Args:
        look: The function. It may be called for items behind one that fails.
        items: The items.
        location: Where it looks: what says whether that is the local file system.
    """
    if len(items) <= _FEW or is_local(absolute(location)):
        return map(look, items)
    with ThreadPoolExecutor(min(_THREADS, len(items)), "acidsql-look") as pool:
        return list(pool.map(look, items))
