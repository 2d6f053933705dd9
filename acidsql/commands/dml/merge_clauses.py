"""The WHEN clauses of MERGE with their columns resolved: which column gets which expression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.commands.dml.assignments import assigned_columns, named_columns
from acidsql.commands.error_location import with_location
from acidsql.errors import AcidError, AnalysisError
from acidsql.metastore.model import Column, Table
from acidsql.plan.merge import Fits
from acidsql.plan.target import Change
from acidsql.plan.text import quote
from acidsql.plan.values import typed_default
from acidsql.sql.statements import Default, Match, MergeInsert, MergeUpdate, Span, WhenClause

_FITS = {
    Match.MATCHED: Fits.PAIR,
    Match.NOT_MATCHED: Fits.SOURCE,
    Match.NOT_MATCHED_BY_SOURCE: Fits.TARGET,
}


@dataclass(frozen=True)
class Clause:
    """A WHEN clause.

    Attributes:
        number: Its place among the clauses.
        clause: What the user wrote.
        change: What it does.
        values: By column, the user's expression or a text of ours (DEFAULT, and what a star stands for).
        guard: What must hold where it is chosen, and the message where it does not.
    """

    number: int
    clause: WhenClause
    change: Change
    values: Mapping[str, Span | str] = field(default_factory=dict)
    guard: tuple[str, str] | None = None

    @property
    def fits(self) -> Fits:
        """The rows that it is about."""
        return _FITS[self.clause.match]

    @property
    def spans(self) -> Iterator[Span]:
        """The user's expressions in it."""
        if self.clause.condition is not None:
            yield self.clause.condition
        yield from (v for v in self.values.values() if isinstance(v, Span))

    def place_of(self, column: str) -> Span:
        """Where a column's value comes from."""
        value = self.values.get(column)
        return value if isinstance(value, Span) else self.clause.span


@dataclass(frozen=True)
class Names:
    """What the clauses may speak of.

    Attributes:
        table: The target.
        target: The target's name in the expressions, back-quoted.
        source: The source's, likewise.
        source_columns: Names of the source's columns; None while they are not known: stars then stand for nothing.
        evolves: Whether a star leaves out what the source does not have.
    """

    table: Table
    target: str
    source: str
    source_columns: Sequence[str] | None = None
    evolves: bool = False

    def of_source(self, column: str) -> str | None:
        """The source's column of a name, as text."""
        found = next((c for c in self.source_columns or () if c.lower() == column), None)
        return None if found is None else f"{self.source}.{quote(found)}"


def resolve_clauses(clauses: Sequence[WhenClause], names: Names) -> list[Clause]:
    """All clauses.

    Raises:
        AnalysisError: When a column is not there, is named twice or cannot be set, when there are more or fewer values
            than columns, or when a star finds no column in the source.
    """
    return [_resolve(number, clause, names) for number, clause in enumerate(clauses)]


def _resolve(number: int, clause: WhenClause, names: Names) -> Clause:
    action = clause.action
    if isinstance(action, MergeInsert):
        return Clause(number, clause, Change.INSERT, _inserted(clause, action, names))
    if not isinstance(action, MergeUpdate):
        return Clause(number, clause, Change.DELETE)
    if action.assignments is None:
        return _update_by_star(number, clause, names)
    values: dict[str, Span | str] = {}
    for name, assignment in assigned_columns(names.table, action.assignments).items():
        value = assignment.value
        values[name] = typed_default(_column(names.table, name)) if isinstance(value, Default) else value
    return Clause(number, clause, Change.UPDATE, values)


def _column(table: Table, name: str) -> Column:
    return next(c for c in table.all_columns if c.name == name)


# --- UPDATE SET * ----------------------------------------------------------------------------------------------------


def _update_by_star(number: int, clause: WhenClause, names: Names) -> Clause:
    """Every column from the source's column of its name; those that cannot be updated must stay what they are."""
    if clause.match is Match.NOT_MATCHED_BY_SOURCE:
        raise with_location(clause.span, AnalysisError("UPDATE SET * needs a row of the source, and there is none"))
    table, values, fixed = names.table, dict[str, "Span | str"](), []
    if names.source_columns is None:
        return Clause(number, clause, Change.UPDATE, values)
    for column in table.all_columns:
        found = names.of_source(column.name)
        if found is None:
            _require_evolution(column, clause, names)
        elif column in table.partition_keys or column.name in table.bucket_columns:
            fixed.append((column.name, f"{found} <=> {names.target}.{quote(column.name)}"))
        else:
            values[column.name] = found
    guard = None
    if fixed:
        listed = ", ".join(name for name, _ in fixed)
        message = f"UPDATE SET * would change {listed} of table {table.full_name}, by which its rows are placed"
        guard = " AND ".join(text for _, text in fixed), message
    return Clause(number, clause, Change.UPDATE, values, guard)


def _require_evolution(column: Column, clause: WhenClause, names: Names) -> None:
    if not names.evolves:
        listed = ", ".join(names.source_columns or ())
        problem = AnalysisError(f"The source has no column {column.name} for *", hint=f"Its columns are {listed}.")
        raise with_location(clause.span, problem)


# --- INSERT ----------------------------------------------------------------------------------------------------------


def _inserted(clause: WhenClause, action: MergeInsert, names: Names) -> dict[str, Span | str]:
    """A value for each column of the table, keys included."""
    table = names.table
    given: dict[str, Span | str] = {}
    if action.values is None:
        for column in table.all_columns:
            found = names.of_source(column.name)
            if found is not None:
                given[column.name] = found
            elif names.source_columns is not None:
                _require_evolution(column, clause, names)
    else:
        columns = _insert_columns(action, names)
        if len(columns) != len(action.values):
            raise with_location(clause.span, _wrong_count(table, columns, len(action.values)))
        for column, value in zip(columns, action.values, strict=True):
            given[column.name] = typed_default(column) if isinstance(value, Default) else value
    starless = action.values is not None or names.source_columns is not None
    for column in table.all_columns:
        if column.name not in given and starless:
            given[column.name] = _left_out(column, clause, table)
    return {c.name: given[c.name] for c in table.all_columns if c.name in given}


def _left_out(column: Column, clause: WhenClause, table: Table) -> str:
    """The value of a column that INSERT does not name."""
    if column in table.partition_keys:
        raise with_location(clause.span, AnalysisError(f"Partition key {column.name} has no value", code=10044))
    if column.not_null and column.default is None:
        problem = AnalysisError(f"Column {column.name} is NOT NULL and has no default; it needs a value")
        raise with_location(clause.span, problem)
    return typed_default(column)


def _insert_columns(action: MergeInsert, names: Names) -> list[Column]:
    return list(names.table.all_columns) if action.columns is None else named_columns(names.table, action.columns)


def _wrong_count(table: Table, columns: Sequence[Column], count: int) -> AcidError:
    return AnalysisError(
        f"Cannot insert into target table because column number/types are different '{table.name}':"
        f" {len(columns)} columns, but {count} values",
        code=10044,
        hint=f"The columns are {', '.join(c.name for c in columns)}.",
    )
