"""Where a statement's events go, and how many of them there were."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.errors import UnsupportedError
from acidsql.format.names import BaseName, DeltaName
from acidsql.metastore.model import Table

CODECS = {"ZLIB": "zlib", "SNAPPY": "snappy", "ZSTD": "zstd", "LZ4": "lz4", "NONE": "none"}


@dataclass(frozen=True)
class Target:
    """A table, the write id, the statement's number, and whether old data are hidden by a base."""

    table: Table
    write_id: int
    statement_id: int = 0
    overwrite: bool = False

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

    @property
    def compression(self) -> str:
        """The table's ``orc.compress``, ZLIB when it is not set: Hive 3 cannot read zstd, Spark's default."""
        name = self.table.parameters.get("orc.compress", "ZLIB").upper()
        if name not in CODECS:
            raise UnsupportedError(
                f"Table {self.table.full_name} has orc.compress={name}, which cannot be written",
                hint=f"One of {', '.join(CODECS)}.",
            )
        return CODECS[name]


@dataclass(frozen=True)
class Written:
    """How many insert and delete events were written."""

    inserted: int
    deleted: int
