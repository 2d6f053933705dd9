"""What a run of two statements came to, and whether it may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.errors import AnalysisException

from acidsql.errors import AcidError, NoSuchLock, NoSuchTransaction, TableNotFound, TransactionError

Rows: TypeAlias = tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class Rejection:
    """A statement's error.

    Attributes:
        kind: Its class, and Hive's code where it has one.
        may_retry: Whether it says that the statement had no effect and can be run again.
        message: Its first line; two rejections are equal whatever it is.
    """

    kind: str
    may_retry: bool = False
    message: str = field(default="", compare=False)

    @classmethod
    def of(cls, error: Exception) -> Rejection:
        fatal = (NoSuchLock, NoSuchTransaction)
        may_retry = isinstance(error, TransactionError) and not isinstance(error, fatal)
        return cls(_kind_of(error), may_retry, _gist_of(error)[:300])

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def _kind_of(error: Exception) -> str:
    """Class and code; Spark's own word for a table that does not exist means the same as ours."""
    if isinstance(error, AnalysisException) and error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        error = TableNotFound("")
    code = error.code if isinstance(error, AcidError) and error.code is not None else ""
    return f"{type(error).__name__} {code}".strip()


def _gist_of(error: Exception) -> str:
    """The first line of a message, and the last cause of an error of the JVM."""
    lines = str(error).splitlines() or [""]
    causes = [line.strip() for line in lines if line.startswith("Caused by:")]
    return " ".join([lines[0], *causes[-1:]])


Answer: TypeAlias = Rows | Rejection


@dataclass(frozen=True)
class TableState:
    """A table as a new session finds it: its columns, its place, its partitions with their places, and its rows."""

    columns: tuple[str, ...]
    location: str
    partitions: tuple[str, ...]
    rows: Answer


State: TypeAlias = tuple[tuple[str, TableState], ...]
"""All tables by their names."""


@dataclass(frozen=True)
class Outcome:
    """What both statements answered, and what there was then."""

    first: Answer | None
    second: Answer | None
    state: State

    def __str__(self) -> str:
        told = [f"first {shown(self.first)}", f"second {shown(self.second)}"]
        for name, table in self.state:
            places = f" {' '.join(table.partitions)}" if table.partitions else ""
            told.append(f"{name}({', '.join(table.columns)}) in {table.location}{places}: {shown(table.rows)}")
        return "; ".join(told)


def shown(answer: Answer | None) -> str:
    """An answer in a line."""
    if answer is None:
        return "not run"
    if isinstance(answer, Rejection):
        return f"<{answer}>"
    return f"[{', '.join('(' + ', '.join(map(str, row)) + ')' for row in answer)}]"


@dataclass(frozen=True)
class Alternatives:
    """The outcomes that a run is compared with; each is computed when it is asked for.

    Attributes:
        serial: The serial orders that are legal.
        without_first, without_second: What the other statement alone comes to.
        before: What there was before both, where the locks of Hive let both read that: they order two statements that
            change the same rows, but not one that adds rows to a table that it reads itself.
    """

    serial: Iterable[Callable[[], Outcome]]
    without_first: Callable[[], Outcome]
    without_second: Callable[[], Outcome]
    before: Callable[[], State] | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether an outcome is legal.

    Attributes:
        problem: Why it is not, with what would have been legal.
        is_skewed: Whether it is legal though no serial order gives it: both statements read what was there before, and
            neither undid the other (the write skew of snapshot isolation).
    """

    problem: str | None = None
    is_skewed: bool = False


def judge(outcome: Outcome, legal: Alternatives) -> Verdict:
    """Whether an outcome is one of those that are legal."""
    expected = []
    for order in legal.serial:
        expected.append(order())
        if outcome == expected[-1]:
            return Verdict()
    gave_up = [isinstance(a, Rejection) and a.may_retry for a in (outcome.first, outcome.second)]
    if gave_up == [True, False]:
        alone = legal.without_first()
        if (outcome.second, outcome.state) == (alone.second, alone.state):
            return Verdict()
        expected.append(alone)
    elif gave_up == [False, True]:
        alone = legal.without_second()
        if (outcome.first, outcome.state) == (alone.first, alone.state):
            return Verdict()
        expected.append(alone)
    elif legal.before is not None:
        both = side_by_side(legal.before(), legal.without_second(), legal.without_first())
        if outcome == both:
            return Verdict(is_skewed=True)
    told = "\n".join(f"  or     {e}" for e in expected).replace("or    ", "expect", 1)
    return Verdict(f"{told}\n  got    {outcome}")


def side_by_side(before: State, first: Outcome, second: Outcome) -> Outcome | None:
    """What two statements come to that read the same snapshot; None where they change the same row, or more than rows.

    Args:
        before: The snapshot. Where both add the same columns, its rows have NULL there.
        first, second: What each of them alone makes of it.
    """
    tables = []
    for (name, old), (a_name, a), (b_name, b) in zip(before, first.state, second.state, strict=False):
        old = _widened(old, a.columns) if a.columns == b.columns else old
        described = [(n, t.columns, t.location) for n, t in ((name, old), (a_name, a), (b_name, b))]
        rows = [None if isinstance(t.rows, Rejection) else Counter(t.rows) for t in (old, a, b)]
        if len(set(described)) > 1 or None in rows:
            return None
        was, by_first, by_second = (r for r in rows if r is not None)
        if (was - by_first) & (was - by_second):
            return None
        both = was - (was - by_first) - (was - by_second) + (by_first - was) + (by_second - was)
        partitions = tuple(sorted({*old.partitions, *a.partitions, *b.partitions}))
        merged = tuple(sorted(both.elements(), key=str))
        tables.append((name, TableState(old.columns, old.location, partitions, merged)))
    if not len(before) == len(first.state) == len(second.state):
        return None
    return Outcome(first.first, second.second, tuple(tables))


def _widened(table: TableState, columns: tuple[str, ...]) -> TableState:
    """A table with more columns, in the order given; as it is where some of its own are not among them."""
    if isinstance(table.rows, Rejection) or not set(table.columns) <= set(columns):
        return table
    named = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    return replace(table, columns=columns, rows=tuple(tuple(row.get(c) for c in columns) for row in named))
