"""ORC files as Hive's writers leave them, made by pyorc and by nothing of acidsql."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pyorc
from pyorc.converters import TimestampConverter

EVENT = "operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint"
BUCKET_0 = 536870912
"""The ``bucket`` value of writer 0 in statement 0."""
Row = tuple[Any, ...]


class _WholeSeconds(TimestampConverter):
    """pyorc's own takes the seconds from a float, which has no room for the last fractions before the year 10000."""

    @staticmethod
    def to_orc(obj: datetime, timezone: tzinfo) -> tuple[int, int]:
        return int(obj.replace(microsecond=0).timestamp()), obj.microsecond * 1000


def write_orc(path: Path, schema: str, rows: Iterable[Row], stripe_rows: int = 0, **metadata: bytes) -> None:
    """A file; with ``stripe_rows`` a stripe ends after each so many rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        converters = {pyorc.TypeKind.TIMESTAMP: _WholeSeconds}
        writer = pyorc.Writer(file, schema, batch_size=stripe_rows or 1024, stripe_size=1 << 40, converters=converters)
        for number, row in enumerate(rows):
            if stripe_rows and number and number % stripe_rows == 0:
                writer.write_intermediate_footer()
            writer.write(row)
        writer.set_user_metadata(**metadata)
        writer.close()


def write_events(path: Path, columns: str, events: Sequence[Row], *, version: int = 2, stats: bool = True) -> None:
    """Events ``(operation, originalTransaction, bucket, rowId, currentTransaction, row)``.

    Of version 2 the directory and the file name the version; of version 1 they do not.
    """
    counts = ",".join(str(sum(e[0] == kind for e in events)) for kind in range(3))
    metadata = {"hive.acid.stats": counts.encode()} if stats else {}
    if version == 2:
        metadata["hive.acid.version"] = b"2"
    write_orc(path, f"struct<{EVENT},row:struct<{columns}>>", events, **metadata)
    if version == 2:
        (path.parent / "_orc_acid_version").write_text("2")


def inserts(write_id: int, rows: Iterable[Row], bucket: int = BUCKET_0) -> list[Row]:
    """Insert events of one statement."""
    return [(0, write_id, bucket, number, write_id, row) for number, row in enumerate(rows)]


def deletes(write_id: int, keys: Iterable[tuple[int, int, int]]) -> list[Row]:
    """Delete events by identity."""
    return [(2, *key, write_id, None) for key in sorted(keys)]
