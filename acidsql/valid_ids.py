"""Which transactions and which write ids a reader sees: Hive's ``ValidReadTxnList`` and ``ValidReaderWriteIdList``.

Both are immutable values with Hive's text form (``writeToString``), so they can be stored, logged and passed to Hive.
The constructors sort the lists of ids. The smallest open id is always computed from the open ids; the one in a text is
ignored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from acidsql.errors import InvalidValue

NO_OPEN_ID = 9223372036854775807
"""Hive prints ``Long.MAX_VALUE`` as the smallest open id when none is open."""


class RangeResponse(Enum):
    """Result of the range methods (Hive: ``ValidWriteIdList.RangeResponse``)."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True)
class ValidTxnList:
    """The transactions that a snapshot sees.

    Attributes:
        high_watermark: Transactions above it are invisible.
        open_ids: Open transactions at or below the high watermark, ascending.
        aborted_ids: Aborted transactions at or below the high watermark, ascending.
    """

    high_watermark: int
    open_ids: tuple[int, ...] = ()
    aborted_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "open_ids", _ascending(self.open_ids))
        object.__setattr__(self, "aborted_ids", _ascending(self.aborted_ids))

    @property
    def min_open(self) -> int | None:
        """The smallest open transaction, None where none is open."""
        return self.open_ids[0] if self.open_ids else None

    @cached_property
    def exceptions(self) -> tuple[int, ...]:
        """Open and aborted transactions together, ascending."""
        return _ascending(self.open_ids + self.aborted_ids)

    def is_valid(self, txn: int) -> bool:
        """Whether the snapshot sees what the transaction wrote (Hive: ``isTxnValid``)."""
        return txn <= self.high_watermark and not _contains(self.exceptions, txn)

    def is_aborted(self, txn: int) -> bool:
        """Whether the transaction is known to be aborted (Hive: ``isTxnAborted``)."""
        return _contains(self.aborted_ids, txn)

    def with_own(self, txn: int) -> ValidTxnList:
        """The list of an open transaction, which sees what it has written itself."""
        return ValidTxnList(self.high_watermark, tuple(t for t in self.open_ids if t != txn), self.aborted_ids)

    def to_text(self) -> str:
        """Hive's text form: ``<high watermark>:<smallest open>:<open,…>:<aborted,…>``."""
        return _to_text(self.high_watermark, self.open_ids, self.aborted_ids)

    @classmethod
    def from_text(cls, text: str) -> ValidTxnList:
        """Parse Hive's text form; ranges of ids may be written as ``a-b`` (Hive 4) or in full.

        Raises:
            InvalidValue: When the text is not of that form.
        """
        return cls(*_from_text(text, text.split(":")))


@dataclass(frozen=True)
class ValidWriteIdList:
    """The write ids of one table that a snapshot sees.

    Attributes:
        table: ``database.table``.
        high_watermark: Write ids above it are invisible.
        open_ids: Open write ids at or below the high watermark, ascending.
        aborted_ids: Aborted write ids at or below the high watermark, ascending.
    """

    table: str
    high_watermark: int
    open_ids: tuple[int, ...] = ()
    aborted_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "open_ids", _ascending(self.open_ids))
        object.__setattr__(self, "aborted_ids", _ascending(self.aborted_ids))

    @property
    def min_open(self) -> int | None:
        """The smallest open write id, None where none is open."""
        return self.open_ids[0] if self.open_ids else None

    @cached_property
    def exceptions(self) -> tuple[int, ...]:
        """Open and aborted write ids together, ascending."""
        return _ascending(self.open_ids + self.aborted_ids)

    def is_valid(self, write_id: int) -> bool:
        """Whether the snapshot sees rows of this write id (Hive: ``isWriteIdValid``)."""
        return write_id <= self.high_watermark and not _contains(self.exceptions, write_id)

    def is_aborted(self, write_id: int) -> bool:
        """Whether the write id is known to be aborted (Hive: ``isWriteIdAborted``)."""
        return _contains(self.aborted_ids, write_id)

    def is_valid_base(self, write_id: int) -> bool:
        """Whether a compacted base up to this write id can serve the snapshot (Hive: ``isValidBase``).

        A base that was compacted over an id still open for this snapshot irrevocably contains its rows.
        """
        return write_id <= self.high_watermark and (self.min_open is None or write_id < self.min_open)

    def as_of(self, write_id: int) -> ValidWriteIdList:
        """The list limited to ids up to ``write_id``; hidden ids below it stay hidden."""
        opened, aborted = (tuple(w for w in ids if w <= write_id) for ids in (self.open_ids, self.aborted_ids))
        return ValidWriteIdList(self.table, min(write_id, self.high_watermark), opened, aborted)

    def sees_any(self, first: int, last: int, *, but: int | None = None) -> bool:
        """Whether it sees any of the write ids ``first``…``last``, other than that of a transaction itself."""
        last = min(last, self.high_watermark)
        first = max(first, 1)
        hidden = _count(self.exceptions, first, last)
        is_own = but is not None and first <= but <= last and self.is_valid(but)
        return last - first + 1 - hidden > is_own

    def unseen_by(self, earlier: ValidWriteIdList) -> tuple[int, ...]:
        """The write ids that this list sees, and an earlier one does not."""
        newer = range(earlier.high_watermark + 1, self.high_watermark + 1)
        return tuple(w for w in (*earlier.exceptions, *newer) if self.is_valid(w))

    def range_valid(self, first: int, last: int) -> RangeResponse:
        """How many of the write ids ``first``…``last`` the snapshot sees (Hive: ``isWriteIdRangeValid``)."""
        if first > self.high_watermark:
            return RangeResponse.NONE
        hidden = max(0, last - self.high_watermark) + _count(self.exceptions, first, last)
        if hidden == 0:
            return RangeResponse.ALL
        return RangeResponse.NONE if hidden == last - first + 1 else RangeResponse.SOME

    def range_aborted(self, first: int, last: int) -> RangeResponse:
        """How many of the write ids ``first``…``last`` are aborted (Hive: ``isWriteIdRangeAborted``)."""
        aborted = 0 if first > self.high_watermark else _count(self.aborted_ids, first, last)
        if aborted == 0:
            return RangeResponse.NONE
        return RangeResponse.ALL if aborted == last - first + 1 else RangeResponse.SOME

    def for_compaction(self) -> CompactorWriteIds:
        """What a compactor may process: nothing at or above the smallest open write id.

        Hive's ``TxnUtils.createValidCompactWriteIdList``.
        """
        top = self.high_watermark if self.min_open is None else self.min_open - 1
        return CompactorWriteIds(self.table, top, (), tuple(w for w in self.aborted_ids if w <= top))

    def for_cleaning(self, highest: int) -> CleanerWriteIds:
        """The write ids for cleaning after a compaction of everything up to ``highest``."""
        seen = self.as_of(highest)
        return CleanerWriteIds(seen.table, seen.high_watermark, seen.open_ids, seen.aborted_ids)

    def to_text(self) -> str:
        """Hive's text form: ``<database.table>:<high watermark>:<smallest open>:<open,…>:<aborted,…>``."""
        return f"{self.table}:{_to_text(self.high_watermark, self.open_ids, self.aborted_ids)}"

    @classmethod
    def from_text(cls, text: str) -> ValidWriteIdList:
        """Parse Hive's text form; ranges of ids may be written as ``a-b`` (Hive 4) or in full.

        Raises:
            InvalidValue: When the text is not of that form.
        """
        table, _, ids = text.partition(":")
        return cls(table, *_from_text(text, ids.split(":")))


class CompactorWriteIds(ValidWriteIdList):
    """The write ids that a compactor sees: it ignores ranges that extend above the high watermark.

    Hive's ``ValidCompactorWriteIdList``.
    """

    def range_valid(self, first: int, last: int) -> RangeResponse:
        """ALL or NONE, by the upper end: aborted ids inside a range are compacted away."""
        return RangeResponse.ALL if last <= self.high_watermark else RangeResponse.NONE


class CleanerWriteIds(ValidWriteIdList):
    """The write ids that a cleaner sees: it ignores ranges that extend above the high watermark.

    Hive's ``ValidCleanerWriteIdList``.
    """

    def range_valid(self, first: int, last: int) -> RangeResponse:
        """As for a reader, but NONE where the upper end is above the high watermark."""
        return RangeResponse.NONE if last > self.high_watermark else super().range_valid(first, last)


def join_write_ids(txn_id: int, lists: Iterable[ValidWriteIdList]) -> str:
    """The lists of all tables of one transaction as one text (Hive: ``ValidTxnWriteIdList``), joined by ``$``."""
    return "$".join([str(txn_id), *(one.to_text() for one in lists)])


def split_write_ids(text: str) -> tuple[int, tuple[ValidWriteIdList, ...]]:
    """The transaction and its lists from :func:`join_write_ids`.

    Raises:
        InvalidValue: When the text is not of that form.
    """
    txn_id, *lists = text.split("$")
    try:
        return int(txn_id), tuple(ValidWriteIdList.from_text(one) for one in lists)
    except ValueError as e:
        raise InvalidValue(f"Not a list of valid write ids: {text!r}") from e


def _ascending(ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(ids))) if len(ids) > 1 else tuple(ids)


def _contains(ids: Sequence[int], one: int) -> bool:
    at = bisect_left(ids, one)
    return at < len(ids) and ids[at] == one


def _count(ids: Sequence[int], first: int, last: int) -> int:
    """How many of the ascending ids are in ``first``…``last``."""
    return max(0, bisect_right(ids, last) - bisect_left(ids, first))


def _to_text(high_watermark: int, open_ids: tuple[int, ...], aborted_ids: tuple[int, ...]) -> str:
    # Every id in full: Hive 3 cannot parse the ranges that Hive 4 writes, and Hive 4 parses both.
    smallest = open_ids[0] if open_ids else NO_OPEN_ID
    return f"{high_watermark}:{smallest}:{','.join(map(str, open_ids))}:{','.join(map(str, aborted_ids))}"


def _from_text(text: str, parts: list[str]) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """High watermark, open and aborted ids; trailing empty parts may be missing, as in Hive's parser."""
    try:
        if not 2 <= len(parts) <= 4:
            raise ValueError(f"{len(parts)} parts")
        high_watermark, _ = int(parts[0]), int(parts[1])
        open_ids, aborted_ids = (_parse_ids(parts[i]) if len(parts) > i else () for i in (2, 3))
    except ValueError as e:
        raise InvalidValue(f"Not a list of valid ids: {text!r}") from e
    return high_watermark, open_ids, aborted_ids


def _parse_ids(text: str) -> tuple[int, ...]:
    ids: list[int] = []
    for part in text.split(",") if text else []:
        first, _, last = part.partition("-")
        ids.extend(range(int(first), int(last or first) + 1))
    return tuple(ids)
