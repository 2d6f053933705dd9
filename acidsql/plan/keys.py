"""Conditions made of values that were fetched: what a row must meet to be equal to one of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from acidsql.catalyst import Catalyst, Expression
from acidsql.plan.relation import Relation
from acidsql.types import parse_type, to_hive

MOST_KEYS = 500
"""So many values are listed; of more, the range is taken."""

_KEYS = ("tinyint", "smallint", "int", "bigint", "string", "date")
"""Types whose values surely compare alike wherever they stand."""


def key_condition(
    own: Catalyst, relation: Relation, attribute: Expression, values: pa.ChunkedArray
) -> Expression | None:
    """The condition that a column of a relation is equal to one of some values, or at least between them.

    Values are typed literals, never text.

    Args:
        own: A session of acidsql's own.
        relation: The relation.
        attribute: Its column.
        values: The values, of the column's type.

    Returns:
        A resolved condition; None where the type's values may compare in several ways.
    """
    name = attribute.name()
    column = next((c for c in relation.table.all_columns if c.name == name), None)
    if column is None or to_hive(parse_type(column.type)) not in _KEYS:
        return None
    if attribute.dataType().simpleString() not in _KEYS:  # a string with a collation
        return None
    distinct = pc.drop_null(pc.unique(values))
    if not len(distinct):
        return own.literal(False)
    if len(distinct) <= MOST_KEYS:
        return _resolved(own, relation, own.is_in(attribute, _literals(own, distinct)))
    counted = distinct.cast(pa.int32()) if pa.types.is_date32(distinct.type) else distinct  # days beyond year 9999
    bounds = pc.min_max(counted)
    least, most = _literals(own, pa.array([b.as_py() for b in bounds.values()], type=counted.type).cast(distinct.type))
    return _resolved(own, relation, own.between(attribute, least, most))


def _literals(own: Catalyst, values: pa.Array) -> list[Expression]:
    """Typed literals; days are given as numbers: Python's calendar is shorter."""
    if pa.types.is_date32(values.type):
        return [own.date(n) for n in values.cast(pa.int32()).to_pylist()]
    return [own.literal(v) for v in values.to_pylist()]


def _resolved(own: Catalyst, relation: Relation, condition: Expression) -> Expression:
    """The condition as the analyser resolves it: literals have the column's type."""
    return own.analyzed(own.frame(own.filter(condition, relation.leaf))).condition()
