"""A small cache of data read from immutable files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from acidsql.format.data_files import AcidFile, DirectoryGone

T = TypeVar("T")


class FileCache(Generic[T]):
    """An LRU cache. A file that was replaced (``AcidFile.identity``) is read again."""

    def __init__(self, capacity: int, *, weigh: Callable[[T], int] = lambda _: 1) -> None:
        """``capacity`` is what all entries may weigh together; each one weighs one unless ``weigh`` says more."""
        self._capacity = capacity
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[tuple[str, int, int, int], T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, file: AcidFile, read: Callable[[], T]) -> T:
        """The cached data of a file, read on a miss.

        Raises:
            DirectoryGone: When the file is not there any longer.
        """
        key = file.identity
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        try:
            value = read()
        except FileNotFoundError as e:
            raise DirectoryGone(file.path) from e
        with self._lock:
            if key in self._entries:
                self._weight -= self._weigh(self._entries.pop(key))
            self._entries[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._capacity and self._entries:
                self._weight -= self._weigh(self._entries.popitem(last=False)[1])
        return value
