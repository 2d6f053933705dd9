"""Which rows of a file hold timestamps finer than a microsecond: what Hive stores and Spark cannot carry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyorc

from acidsql.errors import CorruptFile
from acidsql.format.schema import ROW
from acidsql.format.stripes import DIVIDER, StripeSource
from acidsql.format.tail import OrcFooter
from acidsql.fs import FileSystem
from acidsql.types import Array, HiveType, Map, Primitive, Struct, contains

Numbers = npt.NDArray[np.int64]

_TIMESTAMPS = ("timestamp", "timestamp with local time zone")
_PER_MICROSECOND = 1000


def timestamp_columns(columns: Sequence[HiveType]) -> tuple[int, ...]:
    """Positions of the columns with timestamps in them."""
    return tuple(i for i, t in enumerate(columns) if any(contains(t, name) for name in _TIMESTAMPS))


def finer_rows(fs: FileSystem, path: str, footer: OrcFooter, columns: Sequence[int]) -> Numbers:
    """The numbers, from 0, of the rows of a file with a timestamp in some columns that is finer than a microsecond.

    Args:
        fs: The file system of ``path``.
        path: The file.
        footer: Its footer.
        columns: Positions of columns; those that the file does not have hold nothing.

    Raises:
        CorruptFile: When it is not an ORC file, or not a whole one.
    """
    wanted = [i for i in columns if i < len(footer.row_type.fields)]
    if not wanted or not footer.row_count:
        return np.empty(0, dtype=np.int64)
    names = [footer.row_type.fields[i][0] for i in wanted]
    above = next((n for n in footer.field_names if n.lower() == ROW), ROW) if footer.is_acid else None
    try:
        source = StripeSource(pa.BufferReader(fs.read_bytes(path)), path)
        if not _may_be_finer(source, names, above):
            return np.empty(0, dtype=np.int64)
        return _exactly(source, footer, wanted, above)
    except (pa.ArrowException, pyorc.errors.ORCError, OSError, RuntimeError, ValueError) as e:
        raise CorruptFile(f"{path} is not a complete ORC file: {e}") from e


def _may_be_finer(source: StripeSource, names: Sequence[str], above: str | None) -> bool:
    """Looks by Arrow, which is fast, but counts nanoseconds in 64 bits: times far away may look finer than they are."""
    if any(DIVIDER in name for name in names):
        return True
    columns = [f"{above}{DIVIDER}{n}" if above else n for n in names]
    try:
        batches = (source.batch(number, columns) for number in range(len(source.stripes)))
        return any(_leaves_are_finer(column) for batch in batches for column in batch.columns)
    except pa.ArrowInvalid:  # a time beyond what it can count; or the file is broken, which the second look finds
        return True


def _leaves_are_finer(values: Any) -> bool:
    if isinstance(values, pa.ChunkedArray):
        return any(_leaves_are_finer(chunk) for chunk in values.chunks)
    if pa.types.is_struct(values.type):
        return any(_leaves_are_finer(leaf) for leaf in values.flatten())
    if pa.types.is_map(values.type):
        return _leaves_are_finer(values.keys) or _leaves_are_finer(values.items)
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        return _leaves_are_finer(values.flatten())
    if not pa.types.is_timestamp(values.type) or values.type.unit != "ns":
        return False
    numbers = values.drop_null().cast(pa.int64()).to_numpy(zero_copy_only=False)
    return bool((numbers % _PER_MICROSECOND != 0).any())


def _exactly(source: StripeSource, footer: OrcFooter, columns: Sequence[int], above: str | None) -> Numbers:
    """Row by row, by pyorc, which gives seconds and nanoseconds apart."""
    fields = footer.row_type.fields
    tests = [(i, fields[i][1]) for i in columns]
    place = footer.field_names.index(above) if above else 0
    found = []
    stored = chain.from_iterable(source.rows(number) for number in range(len(source.stripes)))
    for number, event in enumerate(stored):
        row = event[place] if above else event
        if row is not None and any(_is_finer(row[i], t) for i, t in tests):
            found.append(number)
    return np.array(found, dtype=np.int64)


def _is_finer(value: Any, t: HiveType) -> bool:
    if value is None:
        return False
    if isinstance(t, Primitive):
        return t.name.startswith("timestamp") and value[1] % _PER_MICROSECOND != 0
    if isinstance(t, Array):
        return any(_is_finer(v, t.element) for v in value)
    if isinstance(t, Map):
        return any(_is_finer(k, t.key) or _is_finer(v, t.value) for k, v in value.items())
    if isinstance(t, Struct):
        return any(_is_finer(v, field) for v, (_, field) in zip(value, t.fields, strict=True))
    return False
