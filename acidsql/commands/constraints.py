"""DEFAULT and CHECK: what a declaration may say, by the word of Spark's analyser."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from acidsql.commands.environment import Environment
from acidsql.commands.places import at
from acidsql.errors import AnalysisError
from acidsql.metastore.model import Column
from acidsql.plan.text import quote
from acidsql.sql.statements import Span, TableName
from acidsql.sql.tokens import tokenize
from acidsql.types import HiveType, parse_type, to_spark

INVALID_CONSTRAINT = 10326
"""Hive's ``INVALID_CSTR_SYNTAX``."""


def check_default(env: Environment, default: Span, type: HiveType) -> None:
    """DEFAULT is one value, made without any table, that its column's type can hold. Spark's own errors pass through.

    Raises:
        AnalysisError: When it holds a subquery, an aggregate or a window (Hive 10326).
    """
    _refuse_query(default, "DEFAULT")
    made = env.spark.sql(f"SELECT CAST(({default.text}\n) AS {to_spark(type, plain_strings=True)}) FROM VALUES (1)")
    plan = made._jdf.queryExecution().analyzed()
    if _nodes(plan) != ["Project", "LocalRelation"] or _has_subquery(env, plan):
        raise at(default, _invalid("DEFAULT is a value of its own: no subquery, aggregate, window or generator"))
    made.collect()  # no job runs; a value that cannot be cast is found here


def check_condition(env: Environment, condition: Span, table: TableName, columns: Sequence[Column]) -> str:
    """CHECK is a condition over a row's data columns, the same whenever it is asked. Spark's own errors pass through.

    Args:
        env: The session.
        condition: The condition.
        table: The table's name; columns may be qualified with it.
        columns: The table's data columns.

    Returns:
        The condition, as text.

    Raises:
        AnalysisError: When it holds a subquery, is not boolean, or may be true at one time and false at another
            (Hive 10326).
    """
    _refuse_query(condition, "CHECK")
    nulls = [f"CAST(NULL AS {to_spark(parse_type(c.type), plain_strings=True)}) AS {quote(c.name)}" for c in columns]
    source = f"(SELECT {', '.join(nulls)} FROM VALUES (1)) AS {quote(table.table)}"
    [value] = env.spark.sql(f"SELECT ({condition.text}\n) FROM {source}").schema.fields
    kind = value.dataType.simpleString()
    if kind != "boolean":
        raise at(condition, _invalid(f"CHECK takes a condition that is true or false, not a value of type {kind}"))
    kept = env.spark.sql(f"SELECT 1 FROM {source} WHERE ({condition.text}\n)")  # takes no aggregate and no window
    plan = kept._jdf.queryExecution().analyzed().children().head()
    if _has_subquery(env, plan):
        raise at(condition, _invalid("CHECK cannot have a subquery"))
    if not plan.condition().deterministic():
        raise at(condition, _invalid("CHECK takes a condition that gives the same answer whenever it is asked"))
    return condition.text


def _refuse_query(expression: Span, what: str) -> None:
    """A subquery over an ACID table, which Spark does not know, and would say so."""
    tokens = tokenize(expression.source, expression.start, expression.end)
    for one, other in pairwise(tokens):
        if one.word == "(" and other.word in ("SELECT", "WITH", "FROM"):
            raise at(expression, _invalid(f"{what} cannot have a subquery"))


def _has_subquery(env: Environment, plan: Any) -> bool:
    assert env.spark._jvm is not None
    subqueries = env.spark._jvm.org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    expressions = plan.expressions()
    return any(subqueries.hasSubquery(expressions.apply(i)) for i in range(expressions.size()))


def _nodes(plan: Any) -> list[str]:
    """The kinds of a plan's nodes, from the top down; of a branch the first."""
    names, children = [str(plan.nodeName())], plan.children()
    return names if children.isEmpty() else names + _nodes(children.head())


def _invalid(message: str) -> AnalysisError:
    return AnalysisError(f"Invalid Constraint syntax: {message}", code=INVALID_CONSTRAINT)
