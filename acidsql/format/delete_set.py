"""Which rows of a file are deleted: the events of delete files as sorted numbers, looked up for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidsql.errors import UnsupportedError
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.schema import BUCKET, CURRENT_TRANSACTION, ORIGINAL_TRANSACTION, ROW_ID
from acidsql.valid_ids import ValidWriteIdList

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

Numbers = npt.NDArray[Any]

_BLOCK = 1 << 16
"""Rows that are looked up at once: what is counted for them stays in the processor's cache."""
_STATEMENT_BITS = 13
"""4096 statements, and one more for directories without a statement id."""
_MAX_WRITE_ID = 1 << 31
"""Write ids up to here go into one number with the ``bucket`` value."""


@dataclass(frozen=True)
class RowKeys:
    """Identity of rows, in the order of a file.

    A column that holds one number only, as most of them do in what one statement wrote, is in memory once.

    Attributes:
        originals, buckets, row_ids, currents: ``originalTransaction``, ``bucket``, ``rowId``, ``currentTransaction``.
    """

    originals: Longs
    buckets: Longs
    row_ids: Longs
    currents: Longs

    def __len__(self) -> int:
        return len(self.row_ids)

    @classmethod
    def of(cls, columns: pa.Table | pa.RecordBatch) -> RowKeys:
        """From columns of these names, in any letter case."""
        by_name = {name.lower(): column for name, column in zip(columns.schema.names, columns.columns, strict=True)}
        found = (by_name[n.lower()] for n in (ORIGINAL_TRANSACTION, BUCKET, ROW_ID, CURRENT_TRANSACTION))
        return cls(*(_narrow(np.asarray(column.cast(pa.int64()))) for column in found))

    @classmethod
    def joined(cls, parts: Sequence[RowKeys]) -> RowKeys:
        """Those of several files, one after another."""
        if len(parts) == 1:
            return parts[0]
        columns = ("originals", "buckets", "row_ids", "currents")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))

    def where(self, mask: Mask) -> RowKeys:
        """Some of them."""
        row_ids, others = self.row_ids[mask], (self.originals, self.buckets, self.currents)
        count = len(row_ids)
        originals, buckets, currents = (
            np.broadcast_to(column[:1], count) if _is_narrow(column) else column[mask] for column in others
        )
        return RowKeys(originals, buckets, row_ids, currents)

    def slice(self, start: int, stop: int) -> RowKeys:
        """Those with these numbers."""
        return RowKeys(*(c[start:stop] for c in (self.originals, self.buckets, self.row_ids, self.currents)))

    def seen_by(self, write_ids: ValidWriteIdList) -> Mask:
        """Which of them a snapshot sees, by their current transaction."""
        exceptions = np.array(write_ids.exceptions, dtype=np.int64)
        return _each(lambda ids: (ids <= write_ids.high_watermark) & ~np.isin(ids, exceptions), self.currents)

    def first(self) -> tuple[int, int, int]:
        """The key of the first row."""
        return self.at(0)

    def at(self, row: int) -> tuple[int, int, int]:
        """The key of a row; -1 is the last."""
        return int(self.originals[row]), int(self.buckets[row]), int(self.row_ids[row])

    def are_sorted(self) -> bool:
        """Whether each key is greater than the one before it."""
        columns = [c for c in (self.originals, self.buckets, self.row_ids) if not _is_narrow(c)]
        decided = np.zeros(max(0, len(self) - 1), dtype=np.bool_)
        for column in columns:
            step = np.diff(column)
            if bool(np.any(~decided & (step < 0))):
                return False
            decided |= step > 0
        return bool(np.all(decided))


def reach(directory: BaseName | DeltaName | None, *, deletes: bool = False) -> int:
    """A number by which :func:`acidsql.format.directory.qualifies` can be told for many rows.

    A delete event of a directory can hide a row of another where its number is the greater one.

    Args:
        directory: The directory, None for original files.
        deletes: Whether it holds delete events: they count by their largest write id, rows by their smallest.
    """
    if not isinstance(directory, DeltaName):
        return 0
    if deletes:
        return directory.max_write_id << _STATEMENT_BITS | directory.last_statement
    return directory.min_write_id << _STATEMENT_BITS | directory.first_statement


class DeleteSet:
    """Delete events of one bucket.

    Rows are found by one number: the place of their (``originalTransaction``, ``bucket``) among those of the events,
    and their ``rowId``.
    """

    def __init__(self, files: Sequence[tuple[int, RowKeys]]) -> None:
        """
        Args:
            files: The events of each file that the snapshot sees, with :func:`reach` of its directory.

        Raises:
            UnsupportedError: When the numbers are too large to be combined.
        """
        pairs = [_pairs(keys) for _, keys in files]
        self._pairs: Longs = np.unique(np.concatenate(pairs)) if pairs else np.empty(0, np.int64)
        largest = max((int(keys.row_ids.max()) for _, keys in files if len(keys)), default=0)
        self._shift = max(1, largest.bit_length())
        self._max_row_id = largest
        if len(self._pairs).bit_length() + self._shift > 62:
            raise UnsupportedError("A bucket has too many deletes of rows with large row ids")
        numbers = [self._numbers(pair, keys)[0] for pair, (_, keys) in zip(pairs, files, strict=True)]
        reaches = [np.full(len(keys), reach, np.int64) for reach, keys in files]
        found = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        reached = np.concatenate(reaches) if reaches else np.empty(0, np.int64)
        order = np.lexsort((reached, found))
        found, reached = found[order], reached[order]
        last = np.append(found[1:] != found[:-1], True) if len(found) else np.empty(0, np.bool_)
        self._found: Longs = found[last]  # of several events for one row, the one that reaches furthest
        self._reached: Longs = reached[last]

    def __len__(self) -> int:
        return len(self._found)

    def hides(self, keys: RowKeys, row_reach: int) -> Mask:
        """Which rows are deleted. ``row_reach`` is :func:`reach` of their directory."""
        hidden = np.zeros(len(keys), dtype=np.bool_)
        for start in range(0, len(keys) if len(self._found) else 0, _BLOCK):
            hidden[start : start + _BLOCK] = self._hidden(keys.slice(start, start + _BLOCK), row_reach)
        return hidden

    def _hidden(self, keys: RowKeys, row_reach: int) -> Mask:
        numbers, known = self._numbers(_pairs(keys), keys)
        first = np.searchsorted(self._found, numbers.min())
        end = np.searchsorted(self._found, numbers.max(), side="right")
        found, reached = self._found[first:end], self._reached[first:end]
        if not len(found):
            return np.zeros(len(keys), dtype=np.bool_)
        places = np.minimum(np.searchsorted(found, numbers), len(found) - 1)
        hit: Mask = known & (found[places] == numbers) & (reached[places] > row_reach)
        return hit

    def _numbers(self, pairs: Longs, keys: RowKeys) -> tuple[Longs, Mask]:
        """The one number of each row, and whether there can be an event for it."""
        places = _each(lambda ones: np.minimum(np.searchsorted(self._pairs, ones), len(self._pairs) - 1), pairs)
        known = (self._pairs[places] == pairs) & (keys.row_ids <= self._max_row_id)
        return (places << self._shift) | np.where(known, keys.row_ids, 0), known


def _pairs(keys: RowKeys) -> Longs:
    if len(keys) and int(keys.originals.max()) >= _MAX_WRITE_ID:
        raise UnsupportedError(f"Write ids of {_MAX_WRITE_ID} and above cannot be compacted")
    is_narrow = _is_narrow(keys.originals) and _is_narrow(keys.buckets)
    some = slice(1 if is_narrow else None)
    made: Any = keys.originals[some] << 32 | keys.buckets[some]
    return np.broadcast_to(np.asarray(made, dtype=np.int64), len(keys)) if is_narrow else made


def _is_narrow(column: Numbers) -> bool:
    """Whether a column holds one number, once in memory."""
    return len(column) > 1 and column.strides == (0,)


def _narrow(column: Longs) -> Longs:
    if len(column) > 1 and column[0] == column[-1] and bool(np.all(column == column[0])):
        return np.broadcast_to(column[:1].copy(), len(column))
    return column


def _each(of: Callable[[Numbers], Numbers], column: Numbers) -> Numbers:
    """A function of each number of a column, once where it holds one."""
    return np.broadcast_to(of(column[:1]), len(column)) if _is_narrow(column) else of(column)
