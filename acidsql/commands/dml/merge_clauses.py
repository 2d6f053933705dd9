"""Resolves the WHEN clauses of MERGE: the expression of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.catalyst import Expression
from acidsql.commands.dml.assignments import assigned_columns, named_columns
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.binding import Binding
from acidsql.errors import AcidError, AnalysisError
from acidsql.metastore.model import Column, Table
from acidsql.plan.failures import failing
from acidsql.plan.merge_clauses import Branch, MatchKind, Source
from acidsql.plan.relation import Relation
from acidsql.plan.target import Change
from acidsql.plan.values import typed_default
from acidsql.sql.statements import Default, Match, MergeDelete, MergeInsert, MergeUpdate, Span, WhenClause

_KINDS = {
    Match.MATCHED: MatchKind.PAIR,
    Match.NOT_MATCHED: MatchKind.SOURCE,
    Match.NOT_MATCHED_BY_SOURCE: MatchKind.TARGET,
}


@dataclass(frozen=True)
class Scope:
    """What the clauses may refer to.

    Attributes:
        binding: Parses their expressions.
        table: The target; ``relation`` is its leaf and ``source`` the source in the plan.
        evolves: Whether a star skips columns that the source lacks.
    """

    binding: Binding
    table: Table
    relation: Relation
    source: Source
    evolves: bool

    def default(self, column: Column) -> Expression:
        """A column's DEFAULT."""
        return self.binding.env.sessions.own.resolved_expression(typed_default(column))

    def value(self, column: Column, value: Span | Default) -> Expression:
        return self.default(column) if isinstance(value, Default) else self.binding.expression(value)

    def of_source(self, column: Column, clause: WhenClause) -> Expression | None:
        """The source column from which a star sets one of the table; None where there is none, and need not be.

        Raises:
            AnalysisError: When the source has several of its name, or none and has to.
        """
        found = self.source.columns(column.name)
        if len(found) == 1:
            return found[0]
        if not found and self.evolves:
            return None
        count = "several columns" if found else "no column"
        hint = f"Its columns are {', '.join(a.name() for a in self.source.visible)}."
        problem = AnalysisError(f"The source has {count} {column.name}, which * requires", hint=hint)
        raise with_location(clause.span, problem)


def resolve_clauses(clauses: Sequence[WhenClause], scope: Scope) -> tuple[Branch, ...]:
    """The clauses as branches of a plan.

    Raises:
        AcidError: When a column does not exist, is named twice or cannot be set, when the numbers of values and
            columns differ, or when the source lacks a column for a star.
    """
    return tuple(_resolve(number, clause, scope) for number, clause in enumerate(clauses))


def _resolve(number: int, clause: WhenClause, scope: Scope) -> Branch:
    action = clause.action
    if isinstance(action, MergeInsert):
        return _branch(number, clause, scope, Change.INSERT, *_inserted(clause, action, scope))
    if not isinstance(action, MergeUpdate):
        return _branch(number, clause, scope, Change.DELETE, {}, {})
    if action.assignments is None:
        return _update_by_star(number, clause, scope)
    values, places = {}, {}
    for name, assignment in assigned_columns(scope.table, action.assignments).items():
        value = assignment.value
        values[name] = scope.value(_column(scope.table, name), value)
        places[name] = value.span if isinstance(value, Default) else value
    return _branch(number, clause, scope, Change.UPDATE, values, places)


def _branch(
    number: int,
    clause: WhenClause,
    scope: Scope,
    change: Change,
    values: dict[str, Expression],
    places: dict[str, Span],
    choice: Expression | None = None,
) -> Branch:
    condition = None if clause.condition is None else scope.binding.expression(clause.condition)
    chosen = scope.binding.catalyst.literal(number) if choice is None else choice
    given = {name: places.get(name, clause.span) for name in values}
    return Branch(number, _KINDS[clause.match], condition, change, values, chosen, given)


def _column(table: Table, name: str) -> Column:
    return next(c for c in table.all_columns if c.name == name)


# --- UPDATE SET * ----------------------------------------------------------------------------------------------------


def _update_by_star(number: int, clause: WhenClause, scope: Scope) -> Branch:
    """Set every column from the source column of the same name; columns that cannot be updated must be equal."""
    if clause.match is Match.NOT_MATCHED_BY_SOURCE:
        raise with_location(
            clause.span, AnalysisError("UPDATE SET * needs a source row: it cannot be used in NOT MATCHED BY SOURCE")
        )
    table, catalyst = scope.table, scope.binding.catalyst
    values: dict[str, Expression] = {}
    fixed: list[tuple[str, Expression]] = []
    attributes = scope.relation.attributes
    for column in table.all_columns:
        found = scope.of_source(column, clause)
        if found is None:
            continue
        if column in table.partition_keys or column.name in table.bucket_columns:
            fixed.append((column.name, catalyst.equal(found, attributes[column.name], null_safe=True)))
        else:
            values[column.name] = found
    choice = None
    if fixed:
        listed = ", ".join(name for name, _ in fixed)
        message = (
            f"UPDATE SET * would change {listed} of table {table.full_name}, which determine where rows are stored"
        )
        failure = scope.binding.env.sessions.own.resolved_expression(f"CAST({failing(message)} AS int)")
        holds = catalyst.both([condition for _, condition in fixed])
        choice = catalyst.case([(holds, catalyst.literal(number))], failure)
    return _branch(number, clause, scope, Change.UPDATE, values, {}, choice)


# --- INSERT ----------------------------------------------------------------------------------------------------------


def _inserted(clause: WhenClause, action: MergeInsert, scope: Scope) -> tuple[dict[str, Expression], dict[str, Span]]:
    """A value for each column of the table, keys included, and the spans of those that the user wrote."""
    table = scope.table
    given: dict[str, Expression] = {}
    places: dict[str, Span] = {}
    if action.values is None:
        for column in table.all_columns:
            found = scope.of_source(column, clause)
            if found is not None:
                given[column.name] = found
    else:
        columns = list(table.all_columns) if action.columns is None else named_columns(table, action.columns)
        if len(columns) != len(action.values):
            raise with_location(clause.span, _wrong_count(table, columns, len(action.values)))
        for column, value in zip(columns, action.values, strict=True):
            given[column.name] = scope.value(column, value)
            places[column.name] = value.span if isinstance(value, Default) else value
    for column in table.all_columns:
        if column.name not in given:
            given[column.name] = _left_out(column, clause, scope)
    return {c.name: given[c.name] for c in table.all_columns}, places


def _left_out(column: Column, clause: WhenClause, scope: Scope) -> Expression:
    """The value of a column that INSERT does not name."""
    if column in scope.table.partition_keys:
        problem = AnalysisError(f"Partition key {column.name} has no value", code=10044)
        raise with_location(clause.span, problem)
    if column.not_null and column.default is None:
        problem = AnalysisError(f"Column {column.name} is NOT NULL and has no default; it needs a value")
        raise with_location(clause.span, problem)
    return scope.default(column)


def _wrong_count(table: Table, columns: Sequence[Column], count: int) -> AcidError:
    return AnalysisError(
        f"Cannot insert into target table because column number/types are different '{table.name}':"
        f" {len(columns)} columns, but {count} values",
        code=10044,
        hint=f"The columns are {', '.join(c.name for c in columns)}.",
    )


def is_delete(clause: WhenClause) -> bool:
    return isinstance(clause.action, MergeDelete)


def is_star(clause: WhenClause) -> bool:
    """Whether a clause matches the source's columns by name."""
    action = clause.action
    return (isinstance(action, MergeUpdate) and action.assignments is None) or (
        isinstance(action, MergeInsert) and action.values is None
    )
