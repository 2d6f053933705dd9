"""The shape of a query: its scopes, the tables in each FROM, the stars and the dotted names."""

from __future__ import annotations

from dataclasses import dataclass, field

from acidsql.sql.statements import Span, TableName

Range = tuple[int, int]
"""Tokens from the first index to the one before the second."""


@dataclass(eq=False)
class Relation:
    """A table named at one place.

    Attributes:
        name: As written; its span covers the dotted name.
        alias: The user's, None where there is none.
        end: Offset behind which an alias goes where the user gave none (after TABLESAMPLE).
        is_cte: It names a query of a WITH clause, not a table.
        body: Empty, or the word TABLE before the name stands for a whole query ("query") or for an argument of a table
            function ("argument").
        body_start: Offset of that word.
        visible: False on the right of SEMI and ANTI joins.
        filtered: Whether a condition of WHERE on its columns may be put upon the table itself: not on the
            null-supplying side of an outer join, not sampled, not pivoted, no columns renamed.
        travel: The clause ``VERSION AS OF …`` or ``TIMESTAMP AS OF …`` behind the name.
        version: What is behind VERSION AS OF, where it is a whole number or a ``:parameter``.
        obstacle: Why a table with a ROW__ID column, or a snapshot, cannot stand here; None where it can.
    """

    name: TableName
    alias: str | None
    end: int
    scope: Scope
    is_cte: bool = False
    body: str = ""
    body_start: int = 0
    visible: bool = True
    filtered: bool = True
    travel: Span | None = None
    version: Span | None = None
    obstacle: str | None = None

    @property
    def shown_name(self) -> str:
        """The name that columns may be qualified with."""
        return self.alias if self.alias is not None else self.name.table

    @property
    def travel_problem(self) -> str:
        """Why a ``travel`` without a ``version`` cannot be followed."""
        clause = self.travel.text.upper() if self.travel is not None else ""
        by_time = clause.removeprefix("FOR").lstrip().startswith(("TIMESTAMP", "SYSTEM_TIME"))
        return "as of a time" if by_time else "as of a version that is not a whole number"


@dataclass(eq=False)
class Scope:
    """A SELECT: its relations, and where its WHERE stands. ``others`` counts subqueries, functions and VALUES."""

    parent: Scope | None
    ctes: frozenset[str]
    relations: list[Relation] = field(default_factory=list)
    other_names: list[str] = field(default_factory=list)
    others: int = 0
    where: Range | None = None
    inner_on: list[Range] = field(default_factory=list)
    bodies: int = 0
    outer_joins: bool = False


@dataclass(frozen=True)
class Star:
    """``*`` or ``q.*`` as an item of a SELECT list; ``except_close`` is the index of the ``)`` of its EXCEPT clause."""

    scope: Scope
    at: int
    qualifier: tuple[int, ...] = ()
    except_open: int | None = None
    except_close: int | None = None


@dataclass(frozen=True)
class Chain:
    """A dotted name in an expression: the indexes of its parts."""

    scope: Scope
    parts: tuple[int, ...]
    is_star: bool


@dataclass
class Structure:
    """All that was found. ``doubt`` says why the scopes may be wrong, None where they are sure to be right."""

    relations: list[Relation] = field(default_factory=list)
    stars: list[Star] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    doubt: str | None = None
