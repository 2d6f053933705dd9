"""Files over Java's streams, with streams that are Python's."""

from __future__ import annotations

import gc
import io

import pytest
from py4j.protocol import Py4JNetworkError

from acidsql.errors import StorageError
from acidsql.fs.streams import Reading, Upload, buffered


class JavaInput(io.BytesIO):
    """An ``FSDataInputStream`` that counts its calls."""

    calls = 0

    def readNBytes(self, count: int) -> bytes:
        self.calls += 1
        return self.read(count)

    def seek(self, offset: int, whence: int = 0) -> int:
        self.calls += 1
        return super().seek(offset, whence)


class JavaOutput:
    """An ``FSDataOutputStream``."""

    def __init__(self, *, capable: bool = True, failing: str = "") -> None:
        self.done: list[str] = []
        self.content = b""
        self._capable = capable
        self._failing = failing

    def _step(self, name: str) -> None:
        self.done.append(name)
        if name == self._failing:
            raise Py4JNetworkError("gone")

    def write(self, data: bytes) -> None:
        self._step("write")
        self.content += data

    def hasCapability(self, name: str) -> bool:
        return self._capable and name == "hsync"

    def hsync(self) -> None:
        self._step("hsync")

    def close(self) -> None:
        self._step("close")


def test_a_tail_is_read_by_few_calls() -> None:
    java = JavaInput(bytes(range(256)) * 1000)
    with buffered(Reading(java, "f", 256_000)) as file:
        assert file.seek(0, 2) == 256_000
        file.seek(256_000 - 16_384)
        assert file.read(16_384) == java.getvalue()[-16_384:]
        assert java.calls == 4


def test_a_file_that_grew_shorter_ends_where_it_ends() -> None:
    with buffered(Reading(JavaInput(b"12345"), "f", 100)) as file:
        assert file.read() == b"12345"


def test_an_upload_is_written_synced_and_closed() -> None:
    java = JavaOutput()
    with Upload("f", lambda: java, chunk=4) as file:
        file.write(b"123456789")
        assert java.done == []
    file.close()
    assert java.content == b"123456789"
    assert java.done == ["write", "write", "write", "hsync", "close"]


def test_an_object_store_has_nothing_to_sync() -> None:
    java = JavaOutput(capable=False)
    with Upload("f", lambda: java):
        pass
    assert java.done == ["close"]


@pytest.mark.parametrize("failing", ["write", "hsync", "close"])
def test_a_failed_upload_is_an_error_and_its_stream_is_closed(failing: str) -> None:
    java = JavaOutput(failing=failing)
    file = Upload("the/file", lambda: java)
    file.write(b"1")
    with pytest.raises(StorageError, match="Cannot write the/file: the Java process of Spark does not answer"):
        file.close()
    assert java.done[-1] == "close"
    assert file.closed


def test_nothing_is_written_where_the_content_could_not_be_made() -> None:
    java = JavaOutput()
    with pytest.raises(ZeroDivisionError), Upload("f", lambda: java) as file:
        file.write(bytes([1 // 0]))
    assert java.done == []


def test_nothing_is_written_where_nobody_closes_the_file() -> None:
    java = JavaOutput()
    file = Upload("f", lambda: java)
    file.write(b"1")
    del file
    gc.collect()
    assert java.done == []
