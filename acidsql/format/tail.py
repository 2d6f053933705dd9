"""The tail of an ORC file, read without decoding a row: types, stripes, user metadata, calendar.

pyorc and pyarrow both keep the calendar to themselves, and pyarrow the lengths of char and varchar. The layout is that
of ORC's ``orc_proto.proto``: postscript (never compressed), before it the footer, in compression chunks.

Files come from anybody who may write to a table's directory, so nothing in a tail is believed that costs more than the
tail itself (rule 10): lengths, numbers and what expands have limits, and types are a tree as all writers write it. A
file that is read by Arrow or ORC's own readers has been held against these rules first.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

import pyarrow as pa

from acidsql.errors import CorruptFile, UnsupportedError
from acidsql.format.schema import AcidSchema, is_acid_schema
from acidsql.fs import FileSystem
from acidsql.protobuf import Message, bytes_of, number_of, numbers_of, read_message, read_varint
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar

MAGIC = b"ORC"

_FIRST_READ = 16 * 1024
COMPRESSION_CODES = ("none", "zlib", "snappy", "lzo", "lz4", "zstd")
"""By ``CompressionKind``."""
LIST, MAP, STRUCT, DECIMAL, VARCHAR, CHAR = 10, 11, 12, 14, 16, 17
PRIMITIVE_KINDS = {
    0: "boolean",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "bigint",
    5: "float",
    6: "double",
    7: "string",
    8: "binary",
    9: "timestamp",
    15: "date",
    18: LOCAL_TIMESTAMP,
}
_PROLEPTIC_GREGORIAN = 2

MAX_FOOTER = 256 << 20
"""The maximum size of a footer in bytes, compressed or not. Ten thousand columns need about three million, but the C++
writer of ORC also stores the minimum and the maximum string of each column there, of any length."""
MAX_STATISTICS = MAX_FOOTER
"""Bytes of the statistics of all stripes."""
MAX_CHUNK = 1 << 23
"""Bytes of a compression chunk, expanded: its length has 23 bits where it is stored as it is."""
MAX_DEPTH = 100
"""Types within types."""
MAX_PRECISION = 38
_KNOWN_BYTES = 1 << 16
"""Types of so many bytes in a footer are kept; what a file may say beyond that is not."""
_MAX_LENGTH = (1 << 31) - 1
_MAX_ROWS = (1 << 63) - 1


@dataclass(frozen=True)
class Stripe:
    """One stripe: where it begins, its length in bytes, its rows."""

    offset: int
    length: int
    rows: int


@dataclass(frozen=True)
class OrcFooter:
    """What an ORC file says about itself.

    Attributes:
        row_count: Number of rows.
        field_names: Names of the top-level fields.
        row_type: The type of the table's row: of the field ``row`` in an ACID file, of the whole row in another.
        acid_schema: Whether the fields are those of events, and in which letter case.
        metadata: The user metadata.
        stripes: The stripes, in order.
        proleptic: Whether dates before 1582-10-15 count in the proleptic Gregorian calendar; otherwise they count in
            the Julian one (what Java's ``GregorianCalendar`` does, and Hive by default).
        compression: ``none``, ``zlib``, ``snappy``, ``lzo``, ``lz4`` or ``zstd``.
    """

    row_count: int
    field_names: tuple[str, ...]
    row_type: Struct
    acid_schema: AcidSchema
    metadata: Mapping[str, bytes]
    stripes: tuple[Stripe, ...]
    proleptic: bool
    compression: str

    @property
    def is_acid(self) -> bool:
        """Whether the file holds events."""
        return self.acid_schema is not AcidSchema.NONE


def read_footer(fs: FileSystem, path: str, length: int | None = None) -> OrcFooter:
    """Read the footer of an ORC file.

    Args:
        fs: The file system of ``path``.
        path: The file.
        length: Where the file ends, if not at its physical end: a streamed file has a footer after each commit.

    Raises:
        CorruptFile: When it is not an ORC file, or not a whole one.
        UnsupportedError: When it is compressed with LZO, or has columns of a type that Hive tables of this kind cannot
            have.
    """
    with fs.open_read(path) as file:
        return footer_of(read_tail(file, path, length), path)


@dataclass(frozen=True)
class Tail:
    """The messages at the end of an ORC file, as they stand there.

    Attributes:
        postscript, footer: ``PostScript`` and ``Footer``.
        packed_statistics: Statistics of the stripes (``Metadata``), packed; empty where they were not asked for.
        size: Where the file ends.
    """

    postscript: Message
    footer: Message
    packed_statistics: bytes
    size: int

    @property
    def compression(self) -> str:
        """One of :data:`COMPRESSION_CODES`."""
        return COMPRESSION_CODES[number_of(self.postscript, 2)]

    @property
    def stripe_statistics(self) -> list[bytes]:
        """``StripeStatistics`` of each stripe; empty where the file has none."""
        found = read_message(expand(self.packed_statistics, self.compression, MAX_STATISTICS))
        return [bytes_of(one) for one in found.get(1, [])]


UNREADABLE = (
    *(ValueError, IndexError, KeyError, TypeError, ArithmeticError, OSError),
    *(struct.error, zlib.error, pa.ArrowException),
)
"""What comes of bytes that mean nothing."""


@contextmanager
def as_errors_of(name: str) -> Iterator[None]:
    """What does not fit in bytes from outside, as an error that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except UNREADABLE as e:
        raise CorruptFile(f"{name} is not a complete ORC file") from e
    except UnsupportedError as e:
        raise UnsupportedError(f"{name}: {e.message}", hint=e.hint) from e


def read_tail(file: BinaryIO, name: str, length: int | None = None, *, statistics: bool = False) -> Tail:
    """Read the tail of an ORC file.

    Args:
        file: The file.
        name: What it is called in errors.
        length: Where it ends, as for :func:`read_footer`.
        statistics: Whether the statistics of the stripes are read, too.

    Raises:
        CorruptFile, UnsupportedError: As by :func:`read_footer`.
    """
    with as_errors_of(name):
        return _read(file, length, statistics)


def footer_of(tail: Tail, name: str) -> OrcFooter:
    """What a tail says. Errors as by :func:`read_footer`."""
    with as_errors_of(name):
        return _footer(tail.footer, tail.size, tail.compression)


def _read(file: BinaryIO, length: int | None, statistics: bool) -> Tail:
    size = file.seek(0, 2)
    if length is not None:
        if length > size:
            raise ValueError(f"it has {size} bytes, not {length}")
        size = length
    if size < 2 * len(MAGIC):
        raise ValueError(f"it has {size} bytes")
    tail = _last(file, size, _FIRST_READ)
    postscript = read_message(tail[-1 - tail[-1] : -1])
    if postscript.get(8000) != [MAGIC]:
        raise ValueError("it does not end like one")
    footer_length, statistics_length = number_of(postscript, 1), number_of(postscript, 5) if statistics else 0
    compression = COMPRESSION_CODES[number_of(postscript, 2)]
    if footer_length > MAX_FOOTER or statistics_length > MAX_STATISTICS:
        raise ValueError("its tail is longer than any table needs")
    whole = statistics_length + footer_length + tail[-1] + 1
    if whole > len(tail):
        tail = _last(file, size, whole)
    start = len(tail) - whole
    if start < 0:
        raise ValueError("its footer is longer than the file")
    middle = start + statistics_length
    footer = read_message(expand(tail[middle : middle + footer_length], compression, MAX_FOOTER))
    return Tail(postscript, footer, tail[start:middle], size)


def _last(file: BinaryIO, size: int, count: int) -> bytes:
    start = max(0, size - count)
    file.seek(start)
    return file.read(size - start)


def _footer(footer: dict[int, list[int | bytes]], size: int, compression: str) -> OrcFooter:
    stripes = tuple(_stripe(read_message(bytes_of(one))) for one in footer.get(3, []))
    _check_stripes(stripes, size)
    root = types_of(tuple(map(bytes_of, footer.get(4, []))))
    if not isinstance(root, Struct):
        raise ValueError("its rows are not structs")
    names = tuple(name for name, _ in root.fields)
    acid_schema = is_acid_schema(names)
    row = next((t for name, t in root.fields if name.lower() == "row"), None) if acid_schema else root
    items = (read_message(bytes_of(one)) for one in footer.get(5, []))
    return OrcFooter(
        row_count=_rows(footer, 6),
        field_names=names,
        row_type=row if isinstance(row, Struct) else root,
        acid_schema=acid_schema,
        metadata={bytes_of(item[1][-1]).decode(): bytes_of(item[2][-1]) for item in items},
        stripes=stripes,
        proleptic=number_of(footer, 11) == _PROLEPTIC_GREGORIAN,
        compression=compression,
    )


def _stripe(found: dict[int, list[int | bytes]]) -> Stripe:
    length = sum(number_of(found, field) for field in (2, 3, 4))
    return Stripe(number_of(found, 1), length, _rows(found, 5))


def _rows(found: Message, field: int) -> int:
    rows = number_of(found, field)
    if rows > _MAX_ROWS:
        raise ValueError("its number of rows is too large")
    return rows


def _check_stripes(stripes: Sequence[Stripe], size: int) -> None:
    """They stand one behind another: what is read of a file is then no more than the file."""
    end = 0
    for one in stripes:
        if one.offset < end or one.offset + one.length > size:
            raise ValueError("a stripe is within another, or ends beyond the file")
        end = one.offset + one.length


def types_of(messages: tuple[bytes, ...]) -> HiveType:
    """The type of the rows; that of the many files of one table is made once."""
    return (_known_type if sum(map(len, messages)) <= _KNOWN_BYTES else _new_type)(messages)


def _new_type(messages: tuple[bytes, ...]) -> HiveType:
    return _type(_Types([read_message(one) for one in messages]))


_known_type = lru_cache(maxsize=64)(_new_type)


@dataclass
class _Types:
    """The types of a footer, taken one after another: each stands in front of its fields, and once.

    All writers list them so. A list in which two types share a field is a tree that is exponentially large.
    """

    messages: list[Message]
    next: int = 0
    depth: int = 0


def _type(types: _Types) -> HiveType:
    """The type tree below the next column."""
    found = types.messages[types.next]
    types.next += 1
    kind = number_of(found, 1)
    if kind in PRIMITIVE_KINDS:
        return Primitive(PRIMITIVE_KINDS[kind])
    if kind == DECIMAL:
        return _decimal(number_of(found, 5) or MAX_PRECISION, number_of(found, 6))
    if kind in (CHAR, VARCHAR):
        return (Char if kind == CHAR else Varchar)(_length(number_of(found, 4)))
    below = _below(types, found)
    if kind == STRUCT:
        names = (bytes_of(name).decode() for name in found.get(3, []))
        return Struct(tuple(zip(names, below, strict=True)))
    if kind == LIST:
        (element,) = below
        return Array(element)
    if kind == MAP:
        key, value = below
        return Map(key, value)
    raise UnsupportedError("it has a column of a type that cannot be read, such as uniontype")


def _below(types: _Types, found: Message) -> list[HiveType]:
    """The types of the fields."""
    below: list[HiveType] = []
    types.depth += 1
    if types.depth > MAX_DEPTH:
        raise ValueError("its types are too deep")
    for child in numbers_of(found.get(2, [])):
        if child != types.next:
            raise ValueError("its types are not a tree")
        below.append(_type(types))
    types.depth -= 1
    return below


def _decimal(precision: int, scale: int) -> Decimal:
    if precision > MAX_PRECISION or scale > precision:
        raise ValueError("it has an invalid decimal type")
    return Decimal(precision, scale)


def _length(length: int) -> int:
    if length > _MAX_LENGTH:
        raise ValueError("it has an invalid char or varchar type")
    return length


# --- compression -----------------------------------------------------------------------------------------------------


def expand(data: bytes, compression: str, limit: int) -> bytes:
    """The content of compression chunks: three bytes of length, the lowest bit set where it is not compressed.

    Raises: ValueError when a chunk expands to more than any writer's does, or all of them to more than a limit.
    """
    if compression == "none":
        return data
    if compression == "lzo":
        raise UnsupportedError("files compressed with LZO cannot be read", hint="Rewrite the table with another codec.")
    expand, parts, at, size = _CODECS[compression], [], 0, 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        if len(chunk) != head >> 1:
            raise ValueError("its footer is truncated")
        parts.append(chunk if head & 1 else expand(chunk))
        size += len(parts[-1])
        if size > limit:
            raise ValueError("its tail expands to more than any table needs")
        at += 3 + len(chunk)
    return b"".join(parts)


def _sized(size: int) -> int:
    """A size of a chunk that may be allocated."""
    if size > MAX_CHUNK:
        raise ValueError("a chunk of its tail expands to more than any writer's")
    return size


def _zlib(chunk: bytes) -> bytes:
    expander = zlib.decompressobj(wbits=-15)
    made = expander.decompress(chunk, MAX_CHUNK + 1)
    _sized(len(made))
    if not expander.eof:
        raise ValueError("a chunk of its tail is truncated")
    return made


def _snappy(chunk: bytes) -> bytes:
    return bytes(pa.Codec("snappy").decompress(chunk, _sized(read_varint(chunk, 0)[0]), asbytes=True))


def _zstd(chunk: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
        made = bytes(stream.read(_FIRST_READ))  # for what it may be at most memory would be taken each time
        if len(made) == _FIRST_READ:
            made += bytes(stream.read(MAX_CHUNK + 1 - len(made)))
    _sized(len(made))
    return made


def _lz4(chunk: bytes) -> bytes:
    return bytes(pa.Codec("lz4_raw").decompress(chunk, _sized(_lz4_size(chunk)), asbytes=True))


def _lz4_size(chunk: bytes) -> int:
    """The size of a raw LZ4 block once expanded, which only its sequences tell."""
    size = at = 0

    def run(nibble: int) -> int:
        nonlocal at
        length = nibble
        if nibble == 15:
            while True:
                more = chunk[at]
                at += 1
                length += more
                if more != 255:
                    break
        return length

    while at < len(chunk):
        token = chunk[at]
        at += 1
        literals = run(token >> 4)
        at += literals
        size += literals
        if at < len(chunk):  # the last sequence is literals only
            at += 2
            size += run(token & 15) + 4
    return size


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "zlib": _zlib,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
