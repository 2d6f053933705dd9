"""Which transactions and which write ids a reader sees: Hive's ``ValidReadTxnList`` and ``ValidReaderWriteIdList``.

Both are immutable values with Hive's text form (``writeToString``), so they can be kept, logged and handed to Hive.
Skeleton: shapes are fixed, bodies are to be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NO_OPEN_ID = 9223372036854775807
"""Hive prints ``Long.MAX_VALUE`` as the smallest open id where none is open."""


class RangeResponse(Enum):
    """Answer of the range questions (Hive: ``ValidWriteIdList.RangeResponse``)."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True)
class ValidTxnList:
    """The transactions that a snapshot sees.

    Attributes:
        high_watermark: Transactions above it are not seen.
        open_ids: Open transactions at or below the high watermark, ascending.
        aborted_ids: Aborted transactions at or below the high watermark, ascending.
    """

    high_watermark: int
    open_ids: tuple[int, ...] = ()
    aborted_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class ValidWriteIdList:
    """The write ids of one table that a snapshot sees.

    Attributes:
        table: ``database.table``.
        high_watermark: Write ids above it are not seen.
        open_ids: Open write ids at or below the high watermark, ascending.
        aborted_ids: Aborted write ids at or below the high watermark, ascending.
    """

    table: str
    high_watermark: int
    open_ids: tuple[int, ...] = ()
    aborted_ids: tuple[int, ...] = ()
