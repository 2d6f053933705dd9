"""The identities of rows that a transaction deletes, small enough to be kept by a store while they can matter.

A row is one of its partition by original transaction, bucket and row id (rule 1 of the format).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Origin = tuple[str, int, int]
"""Partition (its name; empty where the table has none), original transaction, bucket (all 32 bits)."""

_WIDTHS = tuple(np.dtype(f"<u{size}") for size in (1, 2, 4, 8))


@dataclass(frozen=True)
class RowSet:
    """A set of rows of one table.

    Attributes:
        ids: For each origin the row ids (int64), ascending, each once, at least one.
    """

    ids: Mapping[Origin, NDArray[np.int64]] = field(default_factory=dict)

    @staticmethod
    def of(partition: str, txns: NDArray[Any], buckets: NDArray[Any], row_ids: NDArray[Any]) -> RowSet:
        """Rows of one partition: their original transactions, buckets and row ids, best with equal ones together."""
        made: dict[Origin, NDArray[np.int64]] = {}
        for start, end in runs(txns, buckets):
            origin, ids = (partition, int(txns[start]), int(buckets[start])), row_ids[start:end].astype(np.int64)
            made[origin] = np.union1d(made[origin], ids) if origin in made else np.unique(ids)
        return RowSet(made)

    def __bool__(self) -> bool:
        return bool(self.ids)

    def __len__(self) -> int:
        return sum(map(len, self.ids.values()))

    def __or__(self, other: RowSet) -> RowSet:
        made = {**self.ids, **other.ids}
        return RowSet(made | {o: np.union1d(self.ids[o], other.ids[o]) for o in self.ids.keys() & other.ids.keys()})

    def of_partition(self, name: str) -> RowSet:
        """The rows of one partition."""
        return RowSet({origin: ids for origin, ids in self.ids.items() if origin[0] == name})

    def meets(self, other: RowSet) -> bool:
        """Whether there is a row in both."""
        return any(_meet(self.ids[o], other.ids[o]) for o in self.ids.keys() & other.ids.keys())

    def packed(self) -> bytes:
        """As bytes, which :meth:`unpacked` reads: the origins as JSON, then of each the distances between its row ids,
        as wide as the widest needs. A million rows take some 20 kB where they are neighbours, 1 MB where they are
        scattered."""
        head, body = [], []
        for (partition, txn, bucket), ids in self.ids.items():
            steps = np.diff(ids).astype(np.uint64)
            width = next(w for w in _WIDTHS if not len(steps) or int(steps.max()) <= np.iinfo(w).max)
            head.append((partition, txn, bucket, int(ids[0]), len(steps), width.itemsize))
            body.append(steps.astype(width).tobytes())
        text = json.dumps(head, separators=(",", ":")).encode()
        return zlib.compress(b"".join([len(text).to_bytes(8, "little"), text, *body]), 1)

    @staticmethod
    def unpacked(packed: bytes) -> RowSet:
        """The inverse of :meth:`packed`. Raises: ValueError when it is nothing that was packed."""
        try:
            data = zlib.decompress(packed)
            at = 8 + int.from_bytes(data[:8], "little")
            made: dict[Origin, NDArray[np.int64]] = {}
            for partition, txn, bucket, first, count, size in json.loads(data[8:at]):
                ids = np.empty(count + 1, np.int64)
                ids[0] = first
                ids[1:] = np.frombuffer(data, np.dtype(f"<u{size}"), count, at)
                made[str(partition), int(txn), int(bucket)] = np.cumsum(ids)
                at += count * size
        except (zlib.error, TypeError, OverflowError) as e:
            raise ValueError(f"not a set of rows: {e}") from e
        if at != len(data):
            raise ValueError("not a set of rows: of another length")
        return RowSet(made)


def runs(one: NDArray[Any], other: NDArray[Any]) -> list[tuple[int, int]]:
    """Where the neighbours begin and end that have the same numbers in two columns."""
    if not len(one):
        return []
    starts = np.flatnonzero((one[1:] != one[:-1]) | (other[1:] != other[:-1])) + 1
    return list(pairwise([0, *starts.tolist(), len(one)]))


def _meet(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether two ascending lists have a number in common."""
    few, many = sorted((one, other), key=len)
    places = np.searchsorted(many, few)
    return bool((many[np.minimum(places, len(many) - 1)] == few).any())
