"""The clauses of MERGE, the kinds of joins that they need, and its source in a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from pyspark.sql import functions as F

from acidsql.catalyst import Catalyst, Expression, Plan
from acidsql.plan.target import Change


class MatchKind(Enum):
    """The rows to which a clause applies."""

    PAIR = "matched"
    SOURCE = "not matched"
    TARGET = "not matched by source"


class Join(Enum):
    """The kind of join; the target is on the left."""

    PAIRS = "inner"
    PAIRS_AND_TARGET = "left"
    PAIRS_AND_SOURCE = "right"
    ALL = "full"
    SOURCE_ALONE = "leftanti"
    """Source rows without a match."""
    NO_TARGET = "none"
    """Source rows that are known to have no match."""

    @property
    def has_target(self) -> bool:
        """Whether a pair may have a row of the target."""
        return self not in (Join.SOURCE_ALONE, Join.NO_TARGET)


@dataclass(frozen=True)
class Branch:
    """One WHEN clause, resolved.

    Attributes:
        number: Its place among the clauses.
        match: The rows that it is about.
        condition: What stands behind AND.
        change: What it does.
        values: The new value of each column that it names; of all columns for an INSERT.
        choice: Its number, or an expression that gives it or fails.
        places: Where in the statement the value of each column stands.
    """

    number: int
    match: MatchKind
    condition: Expression | None
    change: Change
    values: Mapping[str, Expression]
    choice: Expression
    places: Mapping[str, object]


@dataclass(frozen=True)
class Source:
    """The rows of USING in a plan.

    Attributes:
        plan: The plan, under the source's name.
        visible: The columns that expressions see.
        mark: A column that is never NULL: it is, in a pair, where there is no row of the source.
        number: A column that numbers the rows of a source that was fetched; None for one that was not.
    """

    plan: Plan
    visible: tuple[Expression, ...]
    mark: Expression
    number: Expression | None = None

    def columns(self, name: str) -> Sequence[Expression]:
        """The columns of a name, in any letter case."""
        return self._by_name.get(name, ())

    @cached_property
    def _by_name(self) -> dict[str, list[Expression]]:
        made: dict[str, list[Expression]] = {}
        for attribute in self.visible:
            made.setdefault(attribute.name().lower(), []).append(attribute)
        return made


def source_of(
    catalyst: Catalyst, plan: Plan, name: str, qualifier: Sequence[str], secret: str, number: str | None
) -> Source:
    """A resolved plan as the source of a MERGE.

    Args:
        catalyst: The session.
        plan: The rows; ``number`` names a column of them that is not the user's.
        name: The name by which expressions call it.
        qualifier: What may stand before the name.
        secret: Makes a name that no text can know.
        number: The column that numbers the rows.
    """
    columns = Catalyst.output(plan)
    mark = catalyst.alias(catalyst.expression(F.lit(True)), f"__acid_mark{secret}")
    named = catalyst.named(name, qualifier, catalyst.project([*columns, mark], plan))
    output = Catalyst.output(named)
    visible = [a for a in output[:-1] if a.name() != number]
    numbers = [a for a in output if a.name() == number]
    hidden = [*numbers, output[-1]]
    return Source(
        catalyst.project(visible, named, hidden=hidden), tuple(visible), output[-1], numbers[0] if numbers else None
    )
