"""Conditions that are asked of rows before it is known whether they are deleted.

A scan that hides deleted rows ends in a filter below which Spark moves nothing, so that no condition of the user's is
evaluated over rows that are not in the table and fails for their values. One that fails for no value at all may go
first: most rows are then gone before their ids are looked up. Spark leaves it out above the scan, where it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acidsql.catalyst import Catalyst, Expression
from acidsql.plan.ranges import is_widened
from acidsql.types import WHOLE_NUMBERS

_TOTAL = (
    *("EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"),
    *("And", "Or", "Not", "In", "InSet", "IsNull", "IsNotNull", "StartsWith", "EndsWith", "Contains"),
)
"""Expressions that have an answer, or NULL, for all values."""

_DIVISIONS = ("Remainder", "Pmod")


def early_conditions(
    own: Catalyst, conditions: Sequence[Expression], names: Mapping[str, Sequence[str]]
) -> list[Expression]:
    """The conditions that never fail, over other columns.

    Args:
        own: The session that is to analyse them.
        conditions: Resolved conditions over columns of one relation.
        names: The column that each of those columns is, and the fields on the way to it; others it does not have.
    """
    moved = (_moved(own, condition, names) for condition in conditions)
    return [condition for condition in moved if condition is not None]


def _moved(own: Catalyst, expression: Expression, names: Mapping[str, Sequence[str]]) -> Expression | None:
    """An expression over columns of other names; None for one that may fail."""
    kind = expression.nodeName()
    if kind == "Literal":
        return expression
    if kind == "AttributeReference":
        name = names.get(expression.name().lower())
        return None if name is None else own.unresolved(*name)
    if kind in _DIVISIONS:
        if not _divides_by_a_number(expression):
            return None
    elif kind == "Cast":
        if not is_widened(expression):
            return None
    elif kind not in _TOTAL:
        return None
    children = [_moved(own, child, names) for child in Catalyst.items(expression.children())]
    known = [child for child in children if child is not None]
    return None if len(known) < len(children) else expression.withNewChildren(own.seq(known))


def _divides_by_a_number(division: Expression) -> bool:
    by = division.right()
    return by.nodeName() == "Literal" and by.dataType().simpleString() in WHOLE_NUMBERS and by.value() not in (None, 0)
