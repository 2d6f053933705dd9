"""Conditions made of values that were fetched: what a row must meet to be equal to one of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

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
    subject = own.column(attribute)
    if len(distinct) <= MOST_KEYS:
        condition = subject.isin(_literals(distinct))
    else:
        bounds = pc.min_max(distinct)
        least, most = _literals(pa.array([bounds["min"].as_py(), bounds["max"].as_py()], type=distinct.type))
        condition = (subject >= least) & (subject <= most)
    return _resolved(own, relation, condition)


def _literals(values: Any) -> list[Column]:
    """Typed literals; days are given as numbers: Python's calendar is shorter."""
    if pa.types.is_date32(values.type):
        return [F.date_from_unix_date(F.lit(n)) for n in values.cast(pa.int32()).to_pylist()]
    return [F.lit(v) for v in values.to_pylist()]


def _resolved(own: Catalyst, relation: Relation, condition: Column) -> Expression:
    """The condition as the analyser resolves it: literals have the column's type."""
    frame = own.frame(own.filter(own.expression(condition), relation.leaf))
    return own.analyzed(frame).condition()
