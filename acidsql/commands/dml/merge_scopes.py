"""What clauses of MERGE can name, as in Spark: NOT MATCHED the source alone, NOT MATCHED BY SOURCE the target.

All clauses are evaluated in one plan over the pairs of both. There a column of the other side would be NULL, and a name
that both sides have ambiguous. So an expression of these clauses is resolved over its own side first, and stands in
that plan as what Spark has made of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from acidsql.catalyst import Catalyst, Expression, Plan
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.binding import Binding
from acidsql.errors import AcidError, AnalysisError
from acidsql.plan.merge import Branch, MatchKind
from acidsql.sql.statements import Span

_COLUMN = re.compile(r"\s*(\w+)\s*\.\s*(\w+)\s*")


@dataclass(frozen=True)
class Side:
    """One side of a MERGE.

    Attributes:
        name: What expressions call it by.
        plan: Its rows.
        columns: The names of its columns in lower case.
        attributes: Columns that stand for themselves in a clause with a star.
    """

    name: str
    plan: Plan
    columns: Collection[str]
    attributes: tuple[Expression, ...] = ()


class Scopes:
    """Resolves clauses that see one side alone."""

    def __init__(self, binding: Binding, with_clause: Span | None, span: Span) -> None:
        """``with_clause`` is what stands before the statement, whose text is ``span``."""
        self._binding = binding
        self._with_clause = with_clause
        self._span = span

    def resolved(self, branches: Sequence[Branch], kind: MatchKind, side: Side, other: Side) -> tuple[Branch, ...]:
        """All clauses, those of a kind resolved over a side, where they may name something of the other one.

        Raises:
            AnalysisError: Where it has a window function.
            pyspark.errors.AnalysisException: As Spark, where an expression names something else.
        """
        known = side.name.lower() if side.name.lower() != other.name.lower() else None
        stars = {id(attribute) for attribute in side.attributes}

        def is_of_side(expression: Expression, place: object) -> bool:
            return (
                id(expression) in stars
                or (isinstance(place, Span) and _is_column(place.text, known, side.columns))
                or _names_only(expression, known, side.columns)
            )

        asked = [b for b in branches if b.match is kind and not all(is_of_side(e, place) for e, place in _texts(b))]
        if not asked:
            return tuple(branches)
        resolved = iter(self._resolve_over([e for b in asked for e, _ in _texts(b)], side.plan))
        return tuple(_with(b, resolved) if b in asked else b for b in branches)

    def _resolve_over(self, expressions: Sequence[Expression], side: Plan) -> Sequence[Expression]:
        """Expressions resolved over some rows; those that have queries under a WITH clause as they are."""
        binding, catalyst, secret = self._binding, self._binding.catalyst, self._binding.secret
        if any(map(catalyst.has_windows, expressions)):
            raise refused_window(self._span)
        # neither an aggregate function nor one that makes several rows of one is at home there
        whole = [catalyst.case([(catalyst.literal(True), e)], None) for e in expressions]
        columns = [catalyst.alias(e, f"__acid_side{secret}_{i}") for i, e in enumerate(whole)]
        plan = catalyst.project([Catalyst.output(side)[0], *columns], side)
        analysed = binding.resolved(binding.bound(binding.with_clause(self._with_clause, plan), self._span))
        aliases = Catalyst.items(catalyst.without_definitions(analysed).projectList().tail())
        resolved = [alias.child() for alias in aliases]
        if analysed.nodeName() != "WithCTE":
            return resolved
        return [e if catalyst.has_queries(r) else r for e, r in zip(expressions, resolved, strict=True)]


def refused_window(span: Span) -> AcidError:
    """The error of a clause with a window function: Spark has none there, Hive one over its rows."""
    hint = "Compute it in the source: USING (SELECT …, row_number() OVER (…) AS n FROM …)."
    return with_location(span, AnalysisError("Window functions are not allowed in the clauses of MERGE", hint=hint))


def _is_column(text: str, side: str | None, columns: Collection[str]) -> bool:
    """Whether a text is the name of a side and one of its columns: most are, and Spark need not be asked."""
    names = _COLUMN.fullmatch(text)
    return names is not None and names[1].lower() == side and names[2].lower() in columns


def _names_only(expression: Expression, side: str | None, columns: Collection[str]) -> bool:
    """Whether an expression has no other names than those of a side and one of its columns, and no queries."""
    for leaf in Catalyst.items(expression.collectLeaves()):
        kind = leaf.nodeName()
        if kind == "UnresolvedAttribute":
            parts = [str(part).lower() for part in Catalyst.items(leaf.nameParts())]
            if len(parts) < 2 or parts[0] != side or parts[1] not in columns:
                return False
        elif kind != "Literal":
            return False
    return True


def _texts(branch: Branch) -> Iterator[tuple[Expression, object]]:
    """The expressions of a clause, with the places of values."""
    if branch.condition is not None:
        yield branch.condition, None
    yield from ((value, branch.places[name]) for name, value in branch.values.items())


def _with(branch: Branch, expressions: Iterator[Expression]) -> Branch:
    """A clause with other expressions, in the order of :func:`_texts`."""
    condition = None if branch.condition is None else next(expressions)
    return replace(branch, condition=condition, values={name: next(expressions) for name in branch.values})
