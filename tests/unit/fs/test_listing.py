"""Listings as Hadoop writes them to the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import StorageError
from acidsql.fs import FileStatus
from acidsql.fs.listing import decode_listing

HOME = "hdfs://h:1/a"


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _wire(path: str, is_dir: bool, length: int, modified: int) -> bytes:
    """One ``FileStatus`` with all the fields that Hadoop sets, and two of the kinds that it does not use."""
    message = (
        _number(1, 1 if is_dir else 2)
        + _text(2, path.encode())
        + _number(3, length)
        + _text(4, _number(1, 0o644))
        + _text(5, b"somebody")
        + _text(6, b"some group")
        + _number(7, modified)
        + _number(8, 12345)
        + _number(10, 3)
        + _number(11, 128 << 20)
        + _varint(90 << 3 | 1)
        + b"12345678"
        + _varint(91 << 3 | 5)
        + b"1234"
        + _number(18, 0)
    )
    return len(message).to_bytes(4, "big") + message


def _array(*statuses: bytes) -> bytes:
    return len(statuses).to_bytes(4, "big") + b"".join(statuses)


ENTRIES = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1),
    st.booleans(),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**45),
)


@given(st.lists(ENTRIES))
def test_every_entry_is_read_exactly(entries: list[tuple[str, bool, int, int]]) -> None:
    data = _array(*(_wire(f"{HOME}/{e[0]}", *e[1:]) for e in entries))
    assert decode_listing(data, HOME) == [
        FileStatus(f"{HOME}/{name}", name, is_dir, 0 if is_dir else length, modified * 10**6)
        for name, is_dir, length, modified in entries
    ]


def test_paths_are_as_they_were_asked_for() -> None:
    [entry] = decode_listing(_array(_wire("hdfs://other-name:8020/a/b", False, 1, 1)), HOME)
    assert entry.path == f"{HOME}/b"


def test_the_root_has_entries_too() -> None:
    [entry] = decode_listing(_array(_wire("hdfs://h:1/x", False, 1, 1)), "hdfs://h:1/")
    assert entry.path == "hdfs://h:1/x"


@pytest.mark.parametrize("path", [HOME, "hdfs://other-name:8020/a"])
def test_a_file_that_lists_itself_is_no_directory(path: str) -> None:
    with pytest.raises(StorageError, match="Not a directory"):
        decode_listing(_array(_wire(path, False, 1, 1)), HOME)
