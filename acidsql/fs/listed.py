"""A file system whose directories are listed once: for many looks at one moment of it."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import BinaryIO

from acidsql.fs.protocol import FileStatus, FileSystem


class ListedOnce:
    """Another file system, of which each directory stays as it was when it was first listed.

    It is for readers. What is written goes to the other file system, and is not seen in a directory listed before.
    """

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._listings: dict[str, builtins.list[FileStatus]] = {}

    @property
    def root(self) -> str:
        return self._filesystem.root

    def list(self, path: str) -> builtins.list[FileStatus]:
        if path not in self._listings:
            self._listings[path] = self._filesystem.list(path)
        return self._listings[path]

    def exists(self, path: str) -> bool:
        return self._filesystem.exists(path)

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        self._filesystem.mkdirs(path, durable=durable)

    def rename(self, source: str, target: str) -> None:
        self._filesystem.rename(source, target)

    def delete(self, path: str) -> None:
        self._filesystem.delete(path)

    def delete_if_empty(self, path: str) -> bool:
        return self._filesystem.delete_if_empty(path)

    def read_bytes(self, path: str) -> bytes:
        return self._filesystem.read_bytes(path)

    def write_bytes(self, path: str, data: bytes) -> None:
        self._filesystem.write_bytes(path, data)

    def open_read(self, path: str) -> BinaryIO:
        return self._filesystem.open_read(path)

    def open_write(self, path: str) -> BinaryIO:
        return self._filesystem.open_write(path)

    def sync(self, trees: Iterable[str] = (), directories: Iterable[str] = ()) -> None:
        self._filesystem.sync(trees, directories)
