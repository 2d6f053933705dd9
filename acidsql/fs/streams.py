"""Files of Hadoop's file systems as Python's: what is read comes in ranges, what is written goes out at the end."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from acidsql.errors import StorageError
from acidsql.fs.java import DIRECT, java_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 8 << 20
"""Most bytes that are written by one call of the JVM: py4j makes a text of them."""


class Reading(io.RawIOBase):
    """An ``FSDataInputStream`` as a raw file: few calls a range, and one to go somewhere else."""

    def __init__(self, stream: Any, path: str, length: int) -> None:
        super().__init__()
        self._stream = stream
        self._path = path
        self._length = length
        self._at = 0
        self._stream_at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        wanted = max(0, min(len(view), self._length - self._at))
        done = 0
        with java_errors("read", self._path):
            while done < wanted:
                if self._stream_at != self._at:
                    self._stream.seek(self._at)
                data = self._stream.readNBytes(min(wanted - done, DIRECT))
                if not data:
                    break
                view[done : done + len(data)] = data
                done += len(data)
                self._at = self._stream_at = self._at + len(data)
        return done

    def close(self) -> None:
        if not self.closed:
            super().close()
            with java_errors("close", self._path):
                self._stream.close()


def buffered(file: Reading) -> io.BufferedReader:
    """A raw file with a buffer, as ``open`` makes it."""
    return io.BufferedReader(file, 2 * DIRECT)


class Upload(io.BytesIO):
    """A new file that is kept in memory and written when it is closed.

    It is not written where the ``with`` block that fills it fails, nor where nobody closes it.
    """

    def __init__(self, path: str, create: Callable[[], Any], chunk: int = CHUNK) -> None:
        super().__init__()
        self._path = path
        self._chunk = chunk
        self._create: Callable[[], Any] | None = create

    def close(self) -> None:
        create, self._create = self._create, None
        try:
            if create is not None:
                self._write(create)
        finally:
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._create = None
        self.close()

    def __del__(self) -> None:
        self._create = None
        self.close()

    def _write(self, create: Callable[[], Any]) -> None:
        with java_errors("write", self._path), self.getbuffer() as content:
            stream = create()
            try:
                for start in range(0, len(content), self._chunk):
                    stream.write(bytes(content[start : start + self._chunk]))
                if stream.hasCapability("hsync"):  # an object store has the file only once it is closed
                    stream.hsync()
            except BaseException:
                with contextlib.suppress(StorageError, FileNotFoundError), java_errors("close", self._path):
                    stream.close()
                raise
            stream.close()
