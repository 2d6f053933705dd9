"""Where a statement's events go, what kinds of changes there are, and how many of them there were."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from acidsql.errors import UnsupportedError
from acidsql.format.names import BaseName, DeltaName
from acidsql.metastore.model import Capabilities, Table

IDENTITY = ("writeId", "bucketId", "rowId")
"""The fields of ROW__ID, and the columns of a frame of changes that name the row which is replaced or deleted."""

CODECS = {"ZLIB": "zlib", "SNAPPY": "snappy", "ZSTD": "zstd", "LZ4": "lz4", "NONE": "none"}


class Change(IntEnum):
    """What happens to a row; the values of the column ``kind`` in a frame of changes of several kinds."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    NOTHING = 3
    """A row that MERGE has matched and leaves as it is: it only counts in the check that no row is matched twice."""


@dataclass(frozen=True)
class Target:
    """A table, the write id, how files are compressed, the statement's number, and whether a base hides old data."""

    table: Table
    write_id: int
    compression: str
    statement_id: int = 0
    overwrite: bool = False

    @property
    def next(self) -> Target:
        """The next statement of the same transaction: where MERGE inserts, as Hive numbers its branches."""
        return replace(self, statement_id=self.statement_id + 1)

    @property
    def inserts(self) -> BaseName | DeltaName:
        """The directory of insert events."""
        if self.overwrite:
            return BaseName(self.write_id)
        return DeltaName(self.write_id, self.write_id, self.statement_id)

    @property
    def deletes(self) -> DeltaName:
        """The directory of delete events: same write id and statement id."""
        return DeltaName(self.write_id, self.write_id, self.statement_id, is_delete=True)


def compression_of(table: Table, capabilities: Capabilities, wanted: str) -> str:
    """How files of a table are compressed.

    Args:
        table: The table: its property ``orc.compress`` comes first.
        capabilities: Those of the store, which tells who else reads the files.
        wanted: The setting for tables without that property: a codec, or ``auto``.

    Raises:
        UnsupportedError: When the property is none that can be written.
    """
    usual = ("ZSTD" if capabilities.reads_zstd else "ZLIB") if wanted == "auto" else wanted
    name = table.parameters.get("orc.compress", usual).upper()
    if name not in CODECS:
        raise UnsupportedError(
            f"Table {table.full_name} has orc.compress={name}, which cannot be written",
            hint=f"Use one of {', '.join(CODECS)}.",
        )
    return CODECS[name]


@dataclass(frozen=True)
class RowCounts:
    """How many rows came, changed and went."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(self.inserted + other.inserted, self.updated + other.updated, self.deleted + other.deleted)
