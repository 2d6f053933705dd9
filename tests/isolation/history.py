"""A history: transactions that append numbers to lists and read those lists, when they were, and what came of them.

A list tells the order in which it was written, and so which transaction's write each read has seen: that is what makes
such histories easy to judge (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
Observations").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


@dataclass(frozen=True)
class Append:
    """A number was put at the end of a list. Each number is appended to a list once, by one transaction."""

    key: str
    value: int


@dataclass(frozen=True)
class Read:
    """A list was read."""

    key: str
    values: tuple[int, ...]


Operation: TypeAlias = Append | Read


class Outcome(Enum):
    """What came of a transaction, as its session was told."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """Nobody was told: it counts as committed where others have seen it."""


@dataclass(frozen=True)
class Txn:
    """A transaction.

    Attributes:
        number: Its place in the history.
        operations: What it did, in this order.
        outcome: What came of it.
        began, ended: When: of two that did not overlap, the later one began after the earlier one ended.
    """

    number: int
    operations: tuple[Operation, ...]
    outcome: Outcome = Outcome.COMMITTED
    began: int = 0
    ended: int = 1 << 62

    @property
    def appends(self) -> tuple[Append, ...]:
        return tuple(one for one in self.operations if isinstance(one, Append))

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(one for one in self.operations if isinstance(one, Read))
