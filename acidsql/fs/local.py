"""The local file system, without a JVM in the way."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from acidsql.errors import StorageError
from acidsql.fs.protocol import FileStatus

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

T = TypeVar("T")

_SYNC_THREADS = 16
"""A disk makes what is synced at the same time durable together."""
_PIECES = 4
"""Pieces of a long list that each of these threads gets, more or less."""
_DELETE_ATTEMPTS = 5
"""Times that a directory is deleted that others change meanwhile."""
_FEW = 4
"""So few paths are synced without threads."""
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""What file systems say that do not sync directories (some network ones): there is nothing more to be done."""


@contextmanager
def _refusals(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as e:
        raise StorageError(f"Cannot {verb} {path}: {e.strerror or e}") from e


class _Written(io.FileIO):
    """A file that is being written: what the disk refuses is a ``StorageError``."""

    def write(self, data: Buffer, /) -> int:
        with _refusals("write", str(self.name)):
            return super().write(data)


class LocalFileSystem:
    """:class:`~acidsql.fs.protocol.FileSystem` on the local disk; paths are absolute."""

    root = ""

    def list(self, path: str) -> list[FileStatus]:
        found, is_whole = [], True
        with _refusals("list", path):
            try:
                entries = os.scandir(path)
            except FileNotFoundError:
                return []
            with entries:
                for entry in entries:
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:  # removed between listing and looking
                        is_whole = False
                        continue
                    is_dir = entry.is_dir()
                    size = 0 if is_dir else stat.st_size
                    found.append(FileStatus(entry.path, entry.name, is_dir, size, stat.st_mtime_ns, stat.st_ino))
        if not is_whole and not self.exists(path):  # the rest has gone with it, or under another name
            return []
        return sorted(found, key=lambda f: f.name)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        with _refusals("create", path):
            missing = _missing(path) if durable else []
            os.makedirs(path, exist_ok=True)
        self.sync(directories=[os.path.dirname(one) for one in missing])

    def rename(self, source: str, target: str) -> None:
        with _refusals("rename", source):
            if os.path.exists(target):
                raise StorageError(f"Cannot rename {source}: {target} already exists")
            os.rename(source, target)

    def delete(self, path: str) -> None:
        with _refusals("delete", path):
            for _ in range(_DELETE_ATTEMPTS):
                try:
                    if os.path.isdir(path) and not os.path.islink(path):
                        shutil.rmtree(path)
                    else:
                        os.unlink(path)
                except FileNotFoundError:  # it, or a part of it that another one moves or removes
                    if os.path.lexists(path):
                        continue
                return
            raise OSError(errno.EBUSY, "others keep changing it", path)

    def delete_if_empty(self, path: str) -> bool:
        with _refusals("delete", path):
            try:
                os.rmdir(path)
            except FileNotFoundError:
                return True
            except OSError as e:
                if e.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    def read_bytes(self, path: str) -> bytes:
        with _refusals("read", path), open(path, "rb") as f:
            return f.read()

    def write_bytes(self, path: str, data: bytes) -> None:
        with _refusals("write", path), _in_its_directory(path, lambda: open(path, "wb")) as f:
            f.write(data)

    def open_read(self, path: str) -> BinaryIO:
        with _refusals("read", path):
            return open(path, "rb")

    def open_write(self, path: str) -> BinaryIO:
        with _refusals("write", path):
            return io.BufferedWriter(_in_its_directory(path, lambda: _Written(path, "x")))

    def sync(self, trees: Iterable[str] = (), directories: Iterable[str] = ()) -> None:
        paths = [below for tree in trees for below in _tree(tree)]
        paths += dict.fromkeys(directories)
        if len(paths) <= _FEW:
            for path in paths:
                _sync(path)
            return
        size = len(paths) // (_PIECES * _SYNC_THREADS) + 1
        pieces = [paths[start : start + size] for start in range(0, len(paths), size)]
        with ThreadPoolExecutor(min(_SYNC_THREADS, len(pieces)), "acidsql-sync") as pool:
            for _ in pool.map(_sync_all, pieces):
                pass


def _in_its_directory(path: str, create: Callable[[], T]) -> T:
    """Create a file; its directory too, which is looked for only where it is missing."""
    try:
        return create()
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return create()


def _missing(path: str) -> list[str]:
    """The directories that must be made for one to be there."""
    missing = []
    while path and not os.path.isdir(path) and path != os.path.dirname(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def _tree(path: str) -> Iterator[str]:
    """A directory and everything below it. Raises: StorageError."""

    def refuse(error: OSError) -> None:
        raise error

    with _refusals("list", path):
        for directory, _, names in os.walk(path, onerror=refuse):
            yield from (os.path.join(directory, name) for name in names)
            yield directory


def _sync_all(paths: Iterable[str]) -> None:
    for path in paths:
        _sync(path)


def _sync(path: str) -> None:
    """Make a file's content, or the names in a directory, durable. Raises: StorageError, FileNotFoundError."""
    with _refusals("sync", path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as e:
            if e.errno not in _CANNOT_SYNC or not os.path.isdir(path):
                raise
        finally:
            os.close(descriptor)
