"""Deleted rows as one array of bits in the plan, tested by an expression: no join, and whole-stage code generation.

What was made for one statement is kept for the next ones, with the DataFrame that has it in the JVM; a statement that
deletes further rows adds them to a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.catalyst import Catalyst
from acidsql.plan.deleted_rows import Ids, Origin

MAX_ORIGINS = 128
"""With more origins than this a search for that of each row is slower than a join."""
MAX_WORDS = 4 << 20
_KEPT_WORDS = 8 << 20
"""The words of all bitmaps that a session keeps, together."""
_KEPT = 64
"""So many bitmaps it keeps."""

_Places = Mapping[Origin, tuple[int, int]]


@dataclass(frozen=True)
class Bitmap:
    """A bit for each row id of some origins, 1 for one that is deleted.

    Attributes:
        places: Where the words of each origin begin, and how many they are: a power of two of which the place is a
            multiple, so that a word's place is an OR of two numbers; a sum would be checked for an overflow in each
            row.
        runs: The row ids in it with their origins, by the identities of their arrays. The same files have other origins
            where partitions were added or renamed.
        words: The bits.
        frame: The words as the one row of a DataFrame, an ``array<bigint>``.
    """

    places: _Places
    runs: Mapping[int, tuple[Origin, Ids]]
    words: npt.NDArray[np.uint64]
    frame: DataFrame


_lock = threading.Lock()


def _kept(own: Catalyst) -> list[Bitmap]:
    """Those of a session, which go with it; the one that was used last comes first."""
    bitmaps: list[Bitmap] = own.held.setdefault(__name__, [])
    return bitmaps


def bitmap_of(own: Catalyst, deleted: Mapping[Origin, Sequence[Ids]]) -> Bitmap | None:
    """A bitmap of deleted rows; None where they are too scattered for one.

    Args:
        own: A session of acidsql's own.
        deleted: Row ids by their origin.
    """
    places = _places(deleted)
    if places is None:
        return None
    runs = {id(run): (origin, run) for origin, arrays in deleted.items() for run in arrays}
    with _lock:
        alike = [b for b in _kept(own) if b.places == places and _is_part(b.runs, runs)]
        before = max(alike, key=lambda b: len(b.runs), default=None)
        if before is not None and len(before.runs) == len(runs):
            _keep(own, before)
            return before
    words = (
        np.zeros(sum(size for _, size in places.values()), dtype=np.uint64) if before is None else before.words.copy()
    )
    for number, (origin, run) in runs.items():
        if before is None or number not in before.runs:
            base, _ = places[origin]
            np.bitwise_or.at(words, base + (run >> 6), np.uint64(1) << (run & 63).astype(np.uint64))
    array = pa.array([words.view(np.int64)], type=pa.list_(pa.field("word", pa.int64(), nullable=False)))
    frame = own.spark.createDataFrame(pa.table({"words": array}))
    made = Bitmap(places, runs, words, frame)
    with _lock:
        _keep(own, made, instead_of=before)
    return made


def _is_part(some: Mapping[int, tuple[Origin, Ids]], runs: Mapping[int, tuple[Origin, Ids]]) -> bool:
    return all(number in runs and runs[number][0] == origin for number, (origin, _) in some.items())


def _places(deleted: Mapping[Origin, Sequence[Ids]]) -> _Places | None:
    """Where the words of each origin go, the largest first; None where there are too many of them."""
    if len(deleted) > MAX_ORIGINS:
        return None
    last = {origin: max(int(run.max()) for run in runs) for origin, runs in deleted.items()}
    sizes = {origin: 1 << (row // 64).bit_length() for origin, row in last.items()}
    if sum(sizes.values()) > MAX_WORDS:
        return None
    made, base = {}, 0
    for origin, size in sorted(sizes.items(), key=lambda item: -item[1]):
        made[origin] = (base, size)
        base += size
    return made


def _keep(own: Catalyst, bitmap: Bitmap, instead_of: Bitmap | None = None) -> None:
    kept = _kept(own)
    kept[:] = [bitmap, *(b for b in kept if b is not bitmap and b is not instead_of)][:_KEPT]
    while sum(len(b.words) for b in kept) > _KEPT_WORDS and len(kept) > 1:
        kept.pop()
