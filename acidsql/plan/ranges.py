"""Leaving out whole files: which of them may hold rows that meet conditions, by the ranges of their whole numbers.

The statistics at the end of a file, which is read anyway, tell the least and the greatest value of each column. Without
this a look-up by key opens every delta of a table, and most small changes leave one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from acidsql.catalyst import Catalyst, Expression
from acidsql.types import WHOLE_NUMBERS, is_as_wide

FEWEST = 4
"""To take conditions apart costs as many calls of the JVM as to open some files costs time: fewer are read."""

Ranges = Mapping[str, tuple[int, int]]
"""The least and the greatest value of columns in a file, by their names in lower case. A column that is not there may
have any value."""
Test = Callable[[Ranges], bool]
"""Whether a file may hold a row that meets a condition: false where it surely holds none."""

_COMPARED: dict[str, Callable[[int, int, int], bool]] = {
    "EqualTo": lambda low, high, value: low <= value <= high,
    "EqualNullSafe": lambda low, high, value: low <= value <= high,
    "LessThan": lambda low, high, value: low < value,
    "LessThanOrEqual": lambda low, high, value: low <= value,
    "GreaterThan": lambda low, high, value: high > value,
    "GreaterThanOrEqual": lambda low, high, value: high >= value,
}
_TURNED = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
"""The comparison with its sides exchanged."""


def may_meet(conditions: Sequence[Expression]) -> Test | None:
    """Whether a file may hold rows that meet all of some conditions; None where these rule out no file.

    Args:
        conditions: Resolved conditions over columns of one relation.
    """
    tests = [test for condition in conditions if (test := _test(condition)) is not None]
    return _all(tests) if tests else None


def _all(tests: Sequence[Test]) -> Test:
    return lambda ranges: all(test(ranges) for test in tests)


def _any(tests: Sequence[Test]) -> Test:
    return lambda ranges: any(test(ranges) for test in tests)


def _test(condition: Expression) -> Test | None:
    """The test of one condition; None where it rules out no file."""
    kind = condition.nodeName()
    if kind in ("And", "Or"):
        sides = [_test(side) for side in Catalyst.items(condition.children())]
        known = [side for side in sides if side is not None]
        if kind == "And":
            return _all(known) if known else None
        return _any(known) if len(known) == len(sides) else None
    if kind in _COMPARED:
        left, right = condition.left(), condition.right()
        return _comparison(kind, left, right) or _comparison(_TURNED.get(kind, kind), right, left)
    if kind == "In":
        return _one_of(condition.value(), [_number(one) for one in Catalyst.items(condition.list())])
    if kind == "InSet":
        texts = condition.hset().mkString(",").split(",") if _column(condition.child()) else []
        return _one_of(condition.child(), [None if text == "null" else int(text) for text in texts])
    return None


def _comparison(kind: str, column: Expression, constant: Expression) -> Test | None:
    name = _column(column)
    value = None if name is None else _number(constant)
    if name is None or value is None:
        return None
    compared = _COMPARED[kind]
    return lambda ranges: name not in ranges or compared(*ranges[name], value)


def _one_of(column: Expression, values: Sequence[int | None]) -> Test | None:
    name = _column(column)
    if name is None or not values or None in values:
        return None
    numbers = [value for value in values if value is not None]
    return lambda ranges: name not in ranges or any(ranges[name][0] <= value <= ranges[name][1] for value in numbers)


def _column(expression: Expression) -> str | None:
    """The column of whole numbers that an expression is, if need be a wider one of it."""
    while expression.nodeName() == "Cast" and is_widened(expression):
        expression = expression.child()
    if expression.nodeName() != "AttributeReference" or expression.dataType().simpleString() not in WHOLE_NUMBERS:
        return None
    return str(expression.name()).lower()


def is_widened(cast: Expression) -> bool:
    """Whether a cast makes a wider one of a whole number."""
    return is_as_wide(cast.dataType().simpleString(), cast.child().dataType().simpleString())


def _number(expression: Expression) -> int | None:
    """The whole number that an expression is."""
    if expression.nodeName() != "Literal" or expression.dataType().simpleString() not in WHOLE_NUMBERS:
        return None
    value = expression.value()
    return None if value is None else operator.index(value)
