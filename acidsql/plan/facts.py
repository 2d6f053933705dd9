"""Metadata of a data file that a scan needs in advance: parts of its footer, read once and cached."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acidsql import fs
from acidsql.errors import AcidError, CorruptFile, UnsupportedError
from acidsql.format.directory import AcidFile
from acidsql.format.orc import Stripe, read_footer
from acidsql.format.orc_statistics import ranges_of_row
from acidsql.format.schema import STATS_KEY, VERSION_KEY, AcidSchema, AcidStats, parse_stats
from acidsql.format.tail import footer_of, read_tail
from acidsql.plan.cache import FileCache
from acidsql.types import HiveType


@dataclass(frozen=True)
class FileMetadata:
    """Metadata of one data file.

    Attributes:
        columns: Names and types of its data columns.
        acid: Whether it has events.
        rows: Number of rows or events.
        stripes: The stripes of a file without event columns; not needed for other files.
        is_versioned: Whether its metadata has the ACID version, as of all writers since Hive 3 except Spark's.
        stats: The number of events of each kind; None if unknown.
        ranges: The least and the greatest value of columns of whole numbers, by position; only of files of events.
    """

    columns: tuple[tuple[str, HiveType], ...]
    acid: AcidSchema
    rows: int
    stripes: tuple[Stripe, ...]
    is_versioned: bool
    stats: AcidStats | None
    ranges: Mapping[int, tuple[int, int]]

    @property
    def changes_rows(self) -> bool:
        """Whether it may have update or delete events."""
        if self.stats is None:
            return self.rows > 0
        return self.stats.updates > 0 or self.stats.deletes > 0


_FILES = 100_000
"""Of so many files the metadata is kept: about 60 MB."""

_facts = FileCache[FileMetadata](_FILES)
_types = FileCache["tuple[HiveType, ...] | None"](_FILES)
_PARQUET = b"PAR1"
"""Magic bytes at the start of a Parquet file."""


def facts_of(file: AcidFile) -> FileMetadata:
    """The metadata of a file.

    Raises:
        CorruptFile: When it is not a complete ORC file.
    """

    def read() -> FileMetadata:
        filesystem, path = fs.resolve(file.path)
        with filesystem.open_read(path) as opened:
            tail = read_tail(opened, path, file.length if file.is_prefix else None)
        footer = footer_of(tail, path)
        stats = footer.metadata.get(STATS_KEY)
        return FileMetadata(
            columns=footer.row_type.fields,
            acid=footer.acid_schema,
            rows=footer.row_count,
            stripes=() if footer.is_acid else footer.stripes,
            is_versioned=VERSION_KEY in footer.metadata,
            stats=None if stats is None else parse_stats(stats),
            ranges=ranges_of_row(tail, footer, path),
        )

    return _facts.get(file, read)


def read_ahead(files: Sequence[AcidFile], location: str) -> None:
    """Read the metadata of many files at the same time where each one waits for a network.

    Errors are left to whoever asks for a file: not all that are read here may be.

    Args:
        files: The files.
        location: The table's directory: what says whether they are on the local file system.
    """

    def look(file: AcidFile) -> None:
        with contextlib.suppress(AcidError):
            facts_of(file)

    if not fs.is_local(fs.absolute(location)):
        for _ in fs.side_by_side(look, files, location):
            pass


def plain_types(file: AcidFile) -> tuple[HiveType, ...] | None:
    """The types of the columns of an ORC file without events; None for a Parquet file.

    Raises:
        UnsupportedError: When it is neither.
    """

    def read() -> tuple[HiveType, ...] | None:
        filesystem, path = fs.resolve(file.path)
        with filesystem.open_read(path) as opened:
            if opened.read(len(_PARQUET)) == _PARQUET:
                return None
        try:
            return tuple(type for _, type in read_footer(filesystem, path).row_type.fields)
        except CorruptFile as e:
            raise UnsupportedError(
                f"{file.path} is neither an ORC nor a Parquet file, which is not supported",
                hint="Use Hive to copy the table into one that is STORED AS ORC.",
            ) from e

    return _types.get(file, read)
