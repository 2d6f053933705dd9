"""Tails that no writer wrote: each is refused by name, soon, and without the memory that it asks for (rule 10)."""

from __future__ import annotations

import io
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql import protobuf
from acidsql.errors import AcidError, CorruptFile
from acidsql.format import tail
from acidsql.format.orc_statistics import merged
from acidsql.format.stripes import StripeFile, StripeSource
from acidsql.format.tail import COMPRESSION_CODES, OrcFooter, footer_of, read_tail
from acidsql.protobuf import Message, bytes_of, read_message, write_message, write_varint
from acidsql.types import Array, Primitive

GOLDEN = Path(__file__).parents[2] / "golden" / "data"
MEMORY = 64 << 20
"""Bytes that a small crafted file may take."""

Fields = list[tuple[int, int | bytes]]
INT, LIST, MAP, STRUCT = 3, 10, 11, 12


def file_of(footer: bytes, *, compression: str = "none", postscript: Fields | None = None) -> bytes:
    """An ORC file that has no more than a tail."""
    code = COMPRESSION_CODES.index(compression)
    fields: Fields = [(1, len(footer)), (2, code), (3, 1 << 18), (4, 0), (4, 12), (5, 0), (6, 6), (8000, b"ORC")]
    last = write_message([*fields[:-1], *(postscript or []), fields[-1]])
    return b"ORC" + footer + last + bytes([len(last)])


def type_of(kind: int, *children: int, names: Sequence[str] = ()) -> bytes:
    return write_message([(1, kind), *((2, child) for child in children), *((3, n.encode()) for n in names)])


def footer_with(types: Sequence[bytes], *more: tuple[int, int | bytes]) -> bytes:
    return write_message([(1, 3), (2, 3), *((4, one) for one in types), (6, 1), *more])


def footer_from(data: bytes) -> OrcFooter:
    return footer_of(read_tail(io.BytesIO(data), "crafted"), "crafted")


@contextmanager
def little_memory(limit: int = MEMORY) -> Iterator[None]:
    """Python's own allocations stay small in the block."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def refuse(data: bytes, memory: int = MEMORY) -> None:
    with little_memory(memory), pytest.raises(CorruptFile, match="crafted is not a complete ORC file"):
        footer_from(data)


def nested(depth: int) -> list[bytes]:
    lists = [type_of(LIST, i + 2) for i in range(depth)]
    return [type_of(STRUCT, 1, names=["a"]), *lists, type_of(INT)]


TYPES: dict[str, list[bytes]] = {
    "share their fields": [*(type_of(STRUCT, i + 1, i + 1, names=["a", "b"]) for i in range(60)), type_of(INT)],
    "share a field in different places": [
        *(type_of(STRUCT, i + 1, i + 2, names=["a", "b"]) for i in range(60)),
        type_of(INT),
        type_of(INT),
    ],
    "are too deep": nested(5000),
    "have themselves as a field": [type_of(STRUCT, 0, names=["a"])],
    "have a field before themselves": [type_of(STRUCT, 1, names=["a"]), type_of(LIST, 0)],
    "have a field that does not exist": [type_of(STRUCT, 7, names=["a"]), type_of(INT)],
    "have a field far away": [type_of(STRUCT, (1 << 64) - 1, names=["a"]), type_of(INT)],
    "have fewer names than fields": [type_of(STRUCT, 1, 2, names=["a"]), type_of(INT), type_of(INT)],
    "are none": [],
    "have no struct at the top": [type_of(INT)],
    "have a list of nothing": [type_of(STRUCT, 1, names=["a"]), type_of(LIST)],
    "have a map without values": [type_of(STRUCT, 1, names=["a"]), type_of(MAP, 2), type_of(INT)],
    "have a name that is no text": [write_message([(1, STRUCT), (2, 1), (3, b"\xff")]), type_of(INT)],
    "have a decimal of a thousand digits": [
        type_of(STRUCT, 1, names=["a"]),
        write_message([(1, 14), (5, 1000), (6, 2)]),
    ],
}


@pytest.mark.parametrize("name", TYPES)
def test_types_that_are_no_tree_are_refused(name: str) -> None:
    refuse(file_of(footer_with(TYPES[name])))


def test_types_within_types_may_be_deep() -> None:
    footer = footer_from(file_of(footer_with(nested(tail.MAX_DEPTH - 1))))
    [(_, column)] = footer.row_type.fields
    depth = 0
    while isinstance(column, Array):
        column, depth = column.element, depth + 1
    assert (depth, column) == (tail.MAX_DEPTH - 1, Primitive("int"))


GOOD = [type_of(STRUCT, 1, names=["a"]), type_of(INT)]


@pytest.mark.parametrize(
    "stripes",
    [
        [[(1, 3), (2, 0), (3, 1 << 40), (4, 0), (5, 1)]],
        [[(1, 1 << 63), (2, 0), (3, 1 << 63), (4, 0), (5, 1)]],
        [[(1, 3), (3, 10), (5, 1)]] * 50,
        [[(1, 3), (3, 1), (5, 1 << 63)]],
    ],
    ids=["beyond the file", "far beyond the file", "one within another", "of too many rows"],
)
def test_stripes_that_cannot_be_are_refused(stripes: list[Fields]) -> None:
    infos = [(3, write_message(one)) for one in stripes]
    refuse(file_of(footer_with(GOOD, *infos)))


@pytest.mark.parametrize(
    "footer",
    [
        footer_with(GOOD, (6, b"text")),
        footer_with(GOOD) + b"\x08" + b"\xff" * 100_000 + b"\x01",
        footer_with(GOOD) + b"\x08" + b"\xff" * 10,
        footer_with(GOOD) + b"\x22" + write_varint(1 << 62) + b"x",
        footer_with(GOOD) + b"\x0f",
        footer_with(GOOD, (5, write_message([(1, b"a name without a value")]))),
    ],
    ids=["text", "a number without end", "a cut number", "a length", "a wire type", "metadata"],
)
def test_messages_that_cannot_be_are_refused(footer: bytes) -> None:
    refuse(file_of(footer))


def test_a_message_has_no_more_fields_than_a_tail_can_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "MAX_FIELDS", 1000)
    footer_from(file_of(footer_with(GOOD) + b"\x08\x01" * 900))
    refuse(file_of(footer_with(GOOD) + b"\x08\x01" * 1000))
    refuse(file_of(footer_with([write_message([(1, STRUCT), (2, b"\x01" * 1001)])])))


@pytest.mark.parametrize("field", [1, 5])
def test_lengths_are_not_believed(field: int) -> None:
    data = file_of(footer_with(GOOD), postscript=[(field, 1 << 62)])
    with little_memory(), pytest.raises(CorruptFile):
        read_tail(io.BytesIO(data), "crafted", statistics=True)


def _chunk(packed: bytes) -> bytes:
    return (len(packed) << 1).to_bytes(3, "little") + packed


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


NOTHING = bytes(20 << 20)
BOMBS: dict[str, Callable[[], bytes]] = {
    "zlib": lambda: _deflated(NOTHING),
    "zstd": lambda: bytes(pa.Codec("zstd").compress(NOTHING, asbytes=True)),
    "snappy": lambda: write_varint((1 << 32) - 1) + b"\0" * 100,
    "lz4": lambda: b"\x1f\x00\x01\x00" + b"\xff" * (1 << 16) + b"\x00\x00",
}


@pytest.mark.parametrize("compression", BOMBS)
def test_a_chunk_that_expands_without_end_is_refused(compression: str) -> None:
    refuse(file_of(_chunk(BOMBS[compression]()), compression=compression))


def test_many_chunks_that_expand_are_refused_together() -> None:
    chunk, enough = _chunk(_deflated(bytes(tail.MAX_CHUNK))), 4 * tail.MAX_FOOTER // tail.MAX_CHUNK
    refuse(file_of(chunk * enough, compression="zlib"), tail.MAX_FOOTER + MEMORY)


@pytest.mark.parametrize("text", ["1e999999999", "nonsense", "NaN", "-Infinity", "0e-99999999", "1" * 5000])
def test_decimals_of_statistics_are_not_written_out_beyond_what_they_can_be(text: str) -> None:
    part = write_message([(1, 1), (6, write_message([(1, text.encode())]))])
    with little_memory():
        try:
            assert len(merged([part, part])) < 100
        except ArithmeticError:
            assert text in ("nonsense",)


def test_statistics_that_mean_nothing_are_those_of_a_file() -> None:
    """A stripe is copied with its statistics, which become those of the new file."""
    path = next(iter(_sources()))
    source = StripeSource(io.BytesIO(_sources()[path]), "crafted")
    for broken in (b"", write_message([(1, b"")]), write_message([(1, write_message([(1, 1), (3, b"\x09")]))] * 20)):
        object.__setattr__(source.stripes[0], "statistics", broken)
        with pytest.raises(CorruptFile, match="crafted"):
            _copied(source)


# --- mutations of files that Hive wrote ------------------------------------------------------------------------------


@lru_cache
def _sources() -> dict[str, bytes]:
    """Files of many kinds: of each table one, small, with at least a stripe."""
    found: dict[str, bytes] = {}
    for path in sorted(GOLDEN.rglob("*_0000*")):
        table = path.relative_to(GOLDEN).parts[0]
        if path.is_dir() or path.name.endswith("_flush_length") or path.stat().st_size > 50_000 or table in found:
            continue
        data = path.read_bytes()
        try:
            if StripeSource(io.BytesIO(data), table).stripes:
                found[table] = data
        except AcidError:
            continue
    assert len(found) > 20
    return found


def _copied(source: StripeSource) -> None:
    """What a compaction does with stripes that it copies."""
    row = source.footer.row_type
    types = row if not source.footer.is_acid else None
    target = StripeFile(io.BytesIO(), types or row, compression=source.footer.compression)
    for number in range(len(source.stripes)):
        target.copy(source, number)
    target.close({})


def _read_all(data: bytes) -> None:
    """Everything that is read from a tail by ourselves."""
    source = StripeSource(io.BytesIO(data), "crafted")
    source.fits(source.footer.row_type, source.footer.compression, proleptic=source.footer.proleptic)
    if all(stripe.statistics is not None for stripe in source.stripes):
        _copied(source)


@lru_cache
def _parts(table: str) -> tuple[bytes, Message, Message]:
    """The bytes before the footer, the footer and the postscript."""
    data = _sources()[table]
    found = read_tail(io.BytesIO(data), table)
    packed = 1 + data[-1] + int(found.postscript[1][0])
    return data[:-packed], found.footer, found.postscript


def _message(fields: Message) -> bytes:
    return write_message((field, value) for field, values in fields.items() for value in values)


TABLES = st.sampled_from(sorted(_sources()))
BYTES = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.sampled_from([b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x10", b"\x00" * 8]),
)
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1), st.sampled_from([1 << 31, 1 << 32, 1 << 63]))
QUICK = settings(max_examples=60, deadline=5000, suppress_health_check=list(HealthCheck))


@QUICK
@given(table=TABLES, where=st.floats(0, 1), new=BYTES, cut=st.integers(0, 12), from_tail=st.booleans())
def test_bytes_of_a_file_that_are_others_raise_only_our_errors(
    table: str, where: float, new: bytes, cut: int, from_tail: bool
) -> None:
    data = _sources()[table]
    first = max(0, len(data) - 600) if from_tail else 0
    at = first + int(where * (len(data) - first))
    with little_memory(), suppress(AcidError):
        _read_all(data[:at] + new + data[at + cut :])


@QUICK
@given(data=st.data(), table=TABLES, in_postscript=st.booleans())
def test_fields_of_a_tail_that_are_others_raise_only_our_errors(
    data: st.DataObject, table: str, in_postscript: bool
) -> None:
    """As the one above, but within a compressed footer, too: it is put together anew, in chunks stored as they are."""
    before, footer, postscript = _parts(table)
    footer, postscript = ({k: list(v) for k, v in one.items()} for one in (footer, postscript))
    message = postscript if in_postscript else footer
    field = data.draw(st.sampled_from(sorted(message)))
    at = data.draw(st.integers(0, len(message[field]) - 1))
    value = message[field][at]
    if isinstance(value, int):
        message[field][at] = data.draw(NUMBERS)
    elif not in_postscript and field in (3, 4, 5) and data.draw(st.booleans()):
        inner = read_message(bytes_of(value))
        name = data.draw(st.sampled_from(sorted(inner) or [1]))
        inner[name] = data.draw(st.lists(NUMBERS | st.binary(max_size=12), max_size=4))
        message[field][at] = _message(inner)
    else:
        message[field][at] = data.draw(st.binary(max_size=40))
    packed = _message(footer)
    chunk = packed if postscript[2] == [0] else (len(packed) << 1 | 1).to_bytes(3, "little") + packed
    if not in_postscript:
        postscript[1] = [len(chunk)]
    last = _message(postscript)
    with little_memory(), suppress(AcidError):
        _read_all(before + chunk + last + bytes([len(last) & 0xFF]))
