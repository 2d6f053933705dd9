"""The ``bucket`` column of an event: which writer wrote the row, in which statement of its transaction.

Bits, as in Hive's ``BucketCodec.V1``: 31-29 the version (1), 27-16 the writer (the bucket number), 11-0 the statement;
the others are zero. Version 0, from before Hive 3, is the bare bucket number.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.errors import AcidError, CorruptFile

VERSION_SHIFT = 29
WRITER_SHIFT = 16
WRITER_MASK = 0x0FFF0000
STATEMENT_MASK = 0x0FFF

MAX_WRITER_ID = WRITER_MASK >> WRITER_SHIFT
MAX_STATEMENT_ID = STATEMENT_MASK

_VERSION = 1 << VERSION_SHIFT
_VERSION_MASK = 0xE0000000


@dataclass(frozen=True)
class BucketProperty:
    """The parts of a ``bucket`` value."""

    version: int
    writer_id: int
    statement_id: int


def encode(writer_id: int, statement_id: int = 0) -> int:
    """The ``bucket`` value of a writer in a statement.

    Args:
        writer_id: Number of the bucket file, 0 to 4095.
        statement_id: 0 to 4095; -1 (a directory name without statement id) counts as 0.

    Raises:
        AcidError: When one of them is out of range.
    """
    if not 0 <= writer_id <= MAX_WRITER_ID:
        raise AcidError(
            f"Bucket number {writer_id} is out of range: a statement writes at most {MAX_WRITER_ID + 1} bucket files",
            hint="Write with fewer partitions (repartition the source).",
        )
    if not -1 <= statement_id <= MAX_STATEMENT_ID:
        raise AcidError(
            f"Statement id {statement_id} is out of range: a transaction has at most {MAX_STATEMENT_ID + 1} statements",
            hint="Commit, and go on in a new transaction.",
        )
    return _VERSION | writer_id << WRITER_SHIFT | max(0, statement_id)


def decode(prop: int) -> BucketProperty:
    """The parts of a ``bucket`` value.

    Raises:
        CorruptFile: When the value has an unknown version.
    """
    version = (prop & _VERSION_MASK) >> VERSION_SHIFT
    if version == 0:
        return BucketProperty(0, prop, 0)
    if version != 1:
        raise CorruptFile(f"Bucket value {prop} is of unknown version {version}")
    return BucketProperty(1, (prop & WRITER_MASK) >> WRITER_SHIFT, prop & STATEMENT_MASK)
