"""The events of an ACID file: their six columns, and what the file's user metadata say about them.

The layout is that of Hive's ``OrcRecordUpdater``; the order of sorting that of ``RecordIdentifier``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from acidsql.errors import CorruptFile
from acidsql.format.names import ACID_VERSION, ACID_VERSION_FILE
from acidsql.types import HiveType, Primitive, Struct

OPERATION = "operation"
ORIGINAL_TRANSACTION = "originalTransaction"
BUCKET = "bucket"
ROW_ID = "rowId"
CURRENT_TRANSACTION = "currentTransaction"
ROW = "row"

KEY_COLUMNS = (ORIGINAL_TRANSACTION, BUCKET, ROW_ID)
"""Identity of a row; every file is sorted by it."""
EVENT_COLUMNS = (OPERATION, *KEY_COLUMNS, CURRENT_TRANSACTION, ROW)

VERSION_KEY = "hive.acid.version"
STATS_KEY = "hive.acid.stats"
KEY_INDEX_KEY = "hive.acid.key.index"

VERSION_FILE = ACID_VERSION_FILE
VERSION_FILE_CONTENT = ACID_VERSION
"""One byte, no line end; the same value stands under :data:`VERSION_KEY` in each file."""


class Operation(IntEnum):
    """What an event does. UPDATE is of ACID version 1 (before Hive 3); since then it is a delete and an insert."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


class AcidSchema(IntEnum):
    """Whether field names are those of events."""

    NONE = 0
    EXACT = 1
    ANY_CASE = 2
    """In other letter case, as Hive's query based compaction writes them: orc-core takes such a file for an ordinary
    one, Hive and acidsql do not."""


class RecordKey(NamedTuple):
    """Identity of a row: its original write id, the ``bucket`` value and its number in the file that it came from."""

    original_transaction: int
    bucket: int
    row_id: int


@dataclass(frozen=True)
class AcidStats:
    """How many events of each kind a file holds (``hive.acid.stats``)."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    def to_bytes(self) -> bytes:
        """The value of :data:`STATS_KEY`."""
        return b"%d,%d,%d" % (self.inserts, self.updates, self.deletes)


def parse_stats(value: bytes) -> AcidStats | None:
    """How many events of each kind the value of :data:`STATS_KEY` tells of; None where it cannot be understood."""
    try:
        inserts, updates, deletes = map(int, value.decode().split(","))
    except ValueError:
        return None
    return AcidStats(inserts, updates, deletes)


def event_type(row_type: Struct) -> Struct:
    """The type of the events of a table whose data columns are ``row_type``."""
    bigint, integer = Primitive("bigint"), Primitive("int")
    types: tuple[HiveType, ...] = (integer, bigint, integer, bigint, bigint, row_type)
    return Struct(tuple(zip(EVENT_COLUMNS, types, strict=True)))


def is_acid_schema(field_names: Sequence[str]) -> AcidSchema:
    """Whether the top-level fields of a file are those of events, in any order (``AcidUtils``: ``isOriginal``)."""
    if len(field_names) != len(EVENT_COLUMNS):
        return AcidSchema.NONE
    if set(field_names) == set(EVENT_COLUMNS):
        return AcidSchema.EXACT
    lower = {name.lower() for name in EVENT_COLUMNS}
    return AcidSchema.ANY_CASE if {name.lower() for name in field_names} == lower else AcidSchema.NONE


def key_index(last_keys: Iterable[RecordKey]) -> bytes:
    """The value of :data:`KEY_INDEX_KEY`: the key of the last row of each stripe; empty for a file without stripes.

    It must be exact: Hive skips the deletes that lie outside of the keys that it reads here.
    """
    return "".join(f"{key.original_transaction},{key.bucket},{key.row_id};" for key in last_keys).encode()


def parse_key_index(value: bytes) -> tuple[RecordKey, ...]:
    """The last key of each stripe from the value of :data:`KEY_INDEX_KEY`.

    Raises:
        CorruptFile: When it is not of that form.
    """
    try:
        parts = (part.split(",") for part in value.decode().split(";") if part)
        return tuple(RecordKey(int(txn), int(bucket), int(row)) for txn, bucket, row in parts)
    except ValueError as e:
        raise CorruptFile(f"Not a key index: {value!r}") from e


def acid_metadata(stats: AcidStats, last_keys: Iterable[RecordKey]) -> dict[str, bytes]:
    """The user metadata of an ACID file."""
    return {KEY_INDEX_KEY: key_index(last_keys), STATS_KEY: stats.to_bytes(), VERSION_KEY: ACID_VERSION}
