"""Validation of constraints: DEFAULT and CHECK by Spark's analyser, keys by Hive's rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AcidError, AnalysisError, TableNotFound
from acidsql.metastore.model import Column, Constraint, ConstraintKind, Table
from acidsql.plan.text import quote
from acidsql.sql.statements import ConstraintDef, CreateTable, Name, Span, TableName
from acidsql.sql.tokens import tokenize
from acidsql.types import HiveType, parse_type, to_spark

INVALID_CONSTRAINT = 10326
"""Hive's ``INVALID_CSTR_SYNTAX``."""
INVALID_FOREIGN_KEY = 10325
"""Hive's ``INVALID_FK_SYNTAX``."""
REFUSED = 40000
"""Hive's code when its metastore refuses a constraint."""
INVALID_COLUMN = 10002
MAX_NAME = 255
_KEYS = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)


def check_default(env: Environment, default: Span, type: HiveType) -> None:
    """Check that DEFAULT is a single value without tables that fits the column's type. Spark's errors pass through.

    Raises:
        AnalysisError: When it has a subquery, an aggregate or a window (Hive 10326).
    """
    _refuse_query(default, "DEFAULT")
    made = env.own_spark.sql(f"SELECT CAST(({default.text}\n) AS {to_spark(type, plain_strings=True)}) FROM VALUES (1)")
    plan = made._jdf.queryExecution().analyzed()
    if _nodes(plan) != ["Project", "LocalRelation"] or _has_subquery(env, plan):
        raise with_location(default, _invalid("DEFAULT cannot have a subquery, aggregate, window or generator"))
    made.collect()  # runs no job; fails for a value that cannot be cast


def check_condition(env: Environment, condition: Span, table: TableName, columns: Sequence[Column]) -> str:
    """Check that CHECK is a deterministic condition over a row's data columns. Spark's errors pass through.

    Args:
        env: The session.
        condition: The condition.
        table: The table's name; columns may be qualified with it.
        columns: The table's data columns.

    Returns:
        The condition, as text.

    Raises:
        AnalysisError: When it has a subquery, is not boolean, or is not deterministic (Hive 10326).
    """
    _refuse_query(condition, "CHECK")
    nulls = [f"CAST(NULL AS {to_spark(parse_type(c.type), plain_strings=True)}) AS {quote(c.name)}" for c in columns]
    source = f"(SELECT {', '.join(nulls)} FROM VALUES (1)) AS {quote(table.table)}"
    [value] = env.own_spark.sql(f"SELECT ({condition.text}\n) FROM {source}").schema.fields
    kind = value.dataType.simpleString()
    if kind != "boolean":
        raise with_location(condition, _invalid(f"CHECK must be a boolean condition, not a value of type {kind}"))
    kept = env.own_spark.sql(
        f"SELECT 1 FROM {source} WHERE ({condition.text}\n)"
    )  # WHERE allows no aggregate and no window
    plan = kept._jdf.queryExecution().analyzed().children().head()
    if _has_subquery(env, plan):
        raise with_location(condition, _invalid("CHECK cannot have a subquery"))
    if not plan.condition().deterministic():
        raise with_location(condition, _invalid("CHECK must be deterministic"))
    return condition.text


def _refuse_query(expression: Span, what: str) -> None:
    """Refuse subqueries before Spark reports that it cannot find an ACID table in them."""
    tokens = tokenize(expression.source, expression.start, expression.end)
    for one, other in pairwise(tokens):
        if one.word == "(" and other.word in ("SELECT", "WITH", "FROM"):
            raise with_location(expression, _invalid(f"{what} cannot have a subquery"))


def _has_subquery(env: Environment, plan: Any) -> bool:
    assert env.spark._jvm is not None
    subqueries = env.spark._jvm.org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    expressions = plan.expressions()
    return any(subqueries.hasSubquery(expressions.apply(i)) for i in range(expressions.size()))


def _nodes(plan: Any) -> list[str]:
    """The node kinds of a plan from the top down, following the first child."""
    names, children = [str(plan.nodeName())], plan.children()
    return names if children.isEmpty() else names + _nodes(children.head())


def _invalid(message: str) -> AnalysisError:
    return AnalysisError(f"Invalid Constraint syntax: {message}", code=INVALID_CONSTRAINT)


# --- constraints that are not enforced -------------------------------------------------------------------------------


def with_declared(env: Environment, table: Table, definitions: Iterable[ConstraintDef]) -> Table:
    """The table with additional constraints that are declared but not enforced (``DISABLE NOVALIDATE``).

    The rules are those of Hive's ``ConstraintsUtils`` and of its metastore (``ObjectStore``): nothing is validated,
    keys are not enforced, a foreign key refers to a primary or unique key, a table has one primary key.

    Raises:
        AnalysisError: For an option that Hive does not support (10326, for foreign keys 10325), an unknown column
            (10002), a second primary key, or a foreign key without a matching parent key (40000).
        TableNotFound: When the parent table of a foreign key does not exist.
    """
    for definition in definitions:
        made = _declared(env, table, definition)
        if made.kind is ConstraintKind.PRIMARY_KEY and any(c.kind is made.kind for c in table.constraints):
            raise with_location(definition.span, _refused(f"Primary key already exists for: {table.full_name}"))
        table = table.constrained((*table.table_constraints, made))
    return table


def with_constraints(env: Environment, table: Table, statement: CreateTable) -> Table:
    """A new table with the constraints of its CREATE TABLE; its columns already have NOT NULL and DEFAULT."""
    definitions = [*(c for column in statement.columns for c in column.constraints), *statement.constraints]
    check_constraint_names(replace(table, columns=()), definitions)
    for c in definitions:
        if c.kind == "CHECK" and c.is_enforced and c.expression is not None:
            table = with_check(table, check_condition(env, c.expression, statement.table, table.columns), c.given_name)
    return with_declared(env, table, [c for c in definitions if not c.is_enforced])


def with_check(table: Table, condition: str, name: str | None) -> Table:
    """The table with an additional enforced CHECK constraint."""
    return table.constrained((*table.table_constraints, Constraint.enabled(ConstraintKind.CHECK, condition, name=name)))


def check_constraint_names(table: Table, definitions: Iterable[ConstraintDef]) -> None:
    """Check that each name is new and not too long. Raises: AnalysisError (Hive 40000, 10326)."""
    taken = {c.name for c in table.constraints} - {None}
    for definition in definitions:
        if definition.name is None:
            continue
        name = definition.name.text.lower()
        if len(name) > MAX_NAME:
            problem = f"Constraint name: {name} exceeded maximum allowed length: {MAX_NAME}"
            raise with_location(definition.name.span, _invalid(problem))
        if name in taken:
            raise with_location(definition.name.span, _refused(f"Constraint name already exists: {name}"))
        taken.add(name)


def _declared(env: Environment, table: Table, definition: ConstraintDef) -> Constraint:
    kind = ConstraintKind(definition.kind)
    try:
        _check_traits(kind, definition)
    except AcidError as e:
        raise with_location(definition.span, e) from e
    made = Constraint(
        kind,
        () if kind is ConstraintKind.CHECK else tuple(known_column(table, name) for name in definition.columns),
        definition.given_name,
        rely=bool(definition.rely),
        expression=_checked_expression(env, table, definition),
    )
    if definition.parent is None:
        return made
    parent = f"{env.database_of(definition.parent)}.{definition.parent.table.lower()}"
    columns = _parent_columns(env, table, parent, definition)
    return replace(made, parent=parent, parent_columns=columns)


def _check_traits(kind: ConstraintKind, definition: ConstraintDef) -> None:
    is_foreign = kind is ConstraintKind.FOREIGN_KEY
    invalid = _invalid_foreign_key if is_foreign else _invalid
    if kind in (*_KEYS, ConstraintKind.FOREIGN_KEY) and definition.enabled is not False:
        no, yes = ("ENABLE", "DISABLE") if is_foreign else ("ENABLE/ENFORCED", "DISABLE/NOT ENFORCED")
        raise invalid(f"{no} feature not supported yet. Please use {yes} instead.")
    if definition.validate:
        raise invalid("VALIDATE feature not supported yet. Please use NOVALIDATE instead.")


def _checked_expression(env: Environment, table: Table, definition: ConstraintDef) -> str | None:
    """The condition or the value, which must be valid even if it is not enforced."""
    expression = definition.expression
    if expression is None:
        return None
    if definition.kind == "CHECK":
        name = TableName(table.name, table.database, definition.span)
        return check_condition(env, expression, name, table.columns)
    column = known_column(table, definition.columns[0])
    check_default(env, expression, next(parse_type(c.type) for c in table.all_columns if c.name == column))
    return expression.text


def known_column(table: Table, name: Name) -> str:
    """A column's name as in the table. Raises: AnalysisError (Hive 10002)."""
    wanted = name.text.lower()
    if not any(c.name == wanted for c in table.all_columns):
        raise with_location(name.span, AnalysisError(f"Invalid column reference {name.text}", code=INVALID_COLUMN))
    return wanted


def _parent_columns(env: Environment, table: Table, name: str, definition: ConstraintDef) -> tuple[str, ...]:
    """The parent columns of a foreign key; they must form a key of their table."""
    assert definition.parent is not None
    if len(definition.parent_columns) != len(definition.columns):
        message = "The number of foreign key columns should be same as number of parent key columns"
        raise with_location(definition.span, _invalid_foreign_key(message))
    parent = table if name == table.full_name else env.metastore.find_table(*name.split(".", 1))
    if parent is None:
        raise with_location(definition.parent.span, TableNotFound(f"Parent table not found: {name}"))
    columns = tuple(known_column(parent, column) for column in definition.parent_columns)
    keys = [c.columns for c in parent.constraints if c.kind in _KEYS]
    if not any(sorted(key) == sorted(columns) for key in keys):
        message = f"Foreign key references {name}({', '.join(columns)}) but no corresponding primary key or unique key"
        raise with_location(definition.span, _refused(f"{message} exists"))
    return columns


def _invalid_foreign_key(message: str) -> AnalysisError:
    return AnalysisError(f"Invalid Foreign Key syntax: {message}", code=INVALID_FOREIGN_KEY)


def _refused(message: str) -> AnalysisError:
    return AnalysisError(message, code=REFUSED, sqlstate="08S01")
