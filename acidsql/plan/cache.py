"""A small cache of data read from immutable files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from acidsql.format.data_files import AcidFile, DirectoryGone

T = TypeVar("T")


class FileCache(Generic[T]):
    """An LRU cache. A file that was replaced (different size or time) is read again."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[tuple[str, int, int], T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, file: AcidFile, read: Callable[[], T]) -> T:
        """The cached data of a file, read on a miss.

        Raises:
            DirectoryGone: When the file is not there any longer.
        """
        key = (file.path, file.length, file.modified_ns)
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        try:
            value = read()
        except FileNotFoundError as e:
            raise DirectoryGone(file.path) from e
        with self._lock:
            self._entries[key] = value
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return value
