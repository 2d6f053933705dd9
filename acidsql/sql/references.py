"""Which tables a query or an expression names, and the user's own text with other names in their place.

The text is never printed anew: names, aliases and EXCEPT clauses are put into it, and everything else stays byte for
byte as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from acidsql.errors import ParseError, UnsupportedError
from acidsql.sql.agreement import agrees
from acidsql.sql.conditions import safe_conjuncts
from acidsql.sql.query import Chain, Relation, Scope, Star, Structure, read_expression, read_query
from acidsql.sql.statements import Span, TableName
from acidsql.sql.tokens import Token, tokenize

ROW_ID = "ROW__ID"
ROW_IS_DELETED = "ROW__IS__DELETED"
VIRTUAL_COLUMNS = (ROW_ID, ROW_IS_DELETED)
"""Columns that a table has for whoever names them; no star stands for them."""
SPARK_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class TableReference:
    """A table named at one place.

    Attributes:
        alias: The user's, None where there is none.
        version: Behind ``VERSION AS OF``: a whole number or a ``:parameter``; None where no version is asked for.
    """

    name: TableName
    alias: str | None
    version: Span | None = None


@dataclass(frozen=True)
class _Outer:
    """What an expression that stands in no query is over.

    Attributes:
        scope: Where the expression's own columns are looked for.
        target: The table that the statement changes, with its alias.
        other: A second table beside it, with its alias: the source of MERGE.
        names: The names, in lower case, of whatever is in scope beside the target.
        alone: Whether nothing is: then every column without a qualifier is the target's.
    """

    scope: Scope
    target: tuple[TableName, str | None]
    other: tuple[TableName, str | None] | None = None
    names: frozenset[str] = frozenset()
    alone: bool = True

    def qualifiers(self) -> set[str]:
        """The names, in lower case, by which a column is sure to be the target's."""
        return {_shown_name(*self.target)} - self.names

    def is_unaliased(self, database: str, table: str, current: str | None) -> bool:
        """Whether one of the tables is called ``database.table`` here: it has no alias that hides that name."""
        return any(
            alias is None and (name.database or current or "").lower() == database and name.table.lower() == table
            for name, alias in (self.target, *([self.other] if self.other else []))
        )


def _shown_name(name: TableName, alias: str | None) -> str:
    return (alias if alias is not None else name.table).lower()


@dataclass(frozen=True)
class _Edit:
    """Put ``text`` in the place of ``source[start:end]``."""

    start: int
    end: int
    text: str


class References:
    """The tables that a text names.

    Attributes:
        tables: One for each place, in their order. Names of WITH queries, table functions, VALUES and subqueries are
            not among them.
        virtual_columns: Those of :data:`VIRTUAL_COLUMNS` that the text mentions.
    """

    def __init__(self, span: Span, tokens: list[Token], structure: Structure, outer: _Outer | None = None) -> None:
        self._span = span
        self._tokens = tokens
        self._structure = structure
        self._outer = outer
        self._relations = {TableReference(r.name, r.alias, r.version): r for r in structure.relations if not r.is_cte}
        self.tables: tuple[TableReference, ...] = tuple(self._relations)
        mentioned = {t.name.upper() for t in tokens if t.is_name}
        self.virtual_columns = tuple(name for name in VIRTUAL_COLUMNS if name in mentioned)

    @property
    def uses_row_id(self) -> bool:
        """Whether the text mentions ROW__ID."""
        return ROW_ID in self.virtual_columns

    @property
    def uses_row_is_deleted(self) -> bool:
        """Whether the text mentions ROW__IS__DELETED."""
        return ROW_IS_DELETED in self.virtual_columns

    @cached_property
    def exact(self) -> bool:
        """Whether the scopes are sure to be right: they were read without doubt, and sqlglot finds the same tables."""
        if self._structure.doubt is not None:
            return False
        return agrees(self._span, self._structure.relations, is_expression=self._outer is not None)

    # --- splicing ----------------------------------------------------------------------------------------------------

    def splice(self, views: Mapping[TableReference, str], *, database: str | None = None) -> str:
        """The text with views in the place of tables; an unaliased table's name stays as the view's alias.

        VERSION AS OF goes with the name. Columns qualified with a database lose it where they mean such a table. Where
        the text uses ROW__ID, which the views then have as a column, stars leave it out.

        Args:
            views: Names of views, by the reference that each stands for.
            database: The current database, in which unqualified table names are.

        Raises:
            UnsupportedError: When a table is named where no view can stand, or as of a time, or as of a version that is
                no whole number.
        """
        found = {self._relations[r]: view for r, view in views.items()}
        edits: list[_Edit] = []
        for relation, view in found.items():
            self._refuse(relation)
            edits += self._name_edits(relation, view)
        edits += self._column_edits(found, database)
        if self.virtual_columns and found:
            edits += self._star_edits(found)
        return self._apply(edits)

    def _refuse(self, relation: Relation) -> None:
        problem = hint = None
        span, name = relation.name.span, relation.name.table
        if relation.travel is not None and relation.version is None:
            span = relation.travel
            problem = f"Table {name} cannot be read {relation.travel_problem}"
            hint = "VERSION AS OF takes a write id, a whole number or a named parameter; DESCRIBE HISTORY lists them."
        elif self.virtual_columns and relation.obstacle is not None:
            problem = f"{self.virtual_columns[0]} cannot be used in a query that has table {name} {relation.obstacle}"
        if problem is not None:
            raise UnsupportedError(problem, hint=hint).locate(span.source, span.start, span.end)

    def _name_edits(self, relation: Relation, view: str) -> Iterator[_Edit]:
        span, quoted = relation.name.span, _quote(view)
        if relation.body:
            # No alias can follow TABLE t, and what stands behind it may still say t.column.
            query = f"SELECT {self._all_columns()} FROM {quoted} AS {_quote(relation.name.table)}"
            text = f"TABLE ({query})" if relation.body == "argument" else query
            yield _Edit(relation.body_start, max(relation.end, span.end), text)
            return
        if relation.travel is not None:
            yield _Edit(span.end, relation.travel.end, "")
        if relation.alias is not None:
            yield _Edit(span.start, span.end, quoted)
        else:
            alias = f" AS {_quote(relation.name.table)}"
            if relation.end == span.end:
                yield _Edit(span.start, span.end, quoted + alias)
            else:
                yield _Edit(span.start, span.end, quoted)
                yield _Edit(relation.end, relation.end, alias)

    def _all_columns(self) -> str:
        return f"* EXCEPT ({', '.join(self.virtual_columns)})" if self.virtual_columns else "*"

    def _column_edits(self, found: Mapping[Relation, str], database: str | None) -> Iterator[_Edit]:
        for chain in self._structure.chains:
            names = [self._tokens[i].name.lower() for i in chain.parts]
            table_at = self._table_part(chain, names, found, database)
            if table_at:
                yield _Edit(self._tokens[chain.parts[0]].start, self._tokens[chain.parts[table_at]].start, "")

    def _table_part(
        self, chain: Chain, names: list[str], found: Mapping[Relation, str], database: str | None
    ) -> int | None:
        """Which part of ``[catalog.]database.table.column`` is the table, where it is a spliced, unaliased one."""
        length = len(names) + chain.is_star
        starts = [1] if length >= 3 else []
        if length >= 4 and names[0] == SPARK_CATALOG:
            starts.insert(0, 2)
        scope: Scope | None = chain.scope
        while scope is not None and starts:
            for at in starts:
                if any(self._is(r, names[at - 1], names[at], database) for r in scope.relations if r in found):
                    return at
                if self._is_outer(scope, names[at - 1], names[at], database):
                    return at
            if names[0] in scope.other_names or any(names[0] == r.shown_name.lower() for r in scope.relations):
                return None
            scope = scope.parent
        return None

    @staticmethod
    def _is(relation: Relation, database: str, table: str, current: str | None) -> bool:
        in_database = (relation.name.database or current or "").lower() == database
        return relation.alias is None and not relation.body and in_database and relation.name.table.lower() == table

    def _is_outer(self, scope: Scope, database: str, table: str, current: str | None) -> bool:
        """Whether it is what UPDATE, DELETE or MERGE is about: its rows always come from a view."""
        outer = self._outer
        return outer is not None and scope is outer.scope and outer.is_unaliased(database, table, current)

    def _star_edits(self, found: Mapping[Relation, str]) -> Iterator[_Edit]:
        for star in self._structure.stars:
            hidden = self._hidden(star, found)
            given = self._given_exceptions(star)
            excepted = {n[-1] for n in given if len(n) == 1} if not star.qualifier else set()
            names = [n for n in hidden if n not in given and n[-1] not in excepted]
            if not names:
                continue
            text = ", ".join(".".join(_quote(p) if p not in VIRTUAL_COLUMNS else p for p in n) for n in names)
            if star.except_close is not None:
                close = self._tokens[star.except_close].start
                yield _Edit(close, close, f", {text}")
            else:
                end = self._tokens[star.at].end
                yield _Edit(end, end, f" EXCEPT ({text})")

    def _hidden(self, star: Star, found: Mapping[Relation, str]) -> list[tuple[str, ...]]:
        """Which columns a star must leave out, as dotted names."""
        spliced = [r for r in star.scope.relations if r in found and r.visible]
        if not star.qualifier:
            return [(r.shown_name, name) for r in spliced for name in self.virtual_columns]
        qualifier = [self._tokens[i].name.lower() for i in star.qualifier]
        is_spliced = any(r.shown_name.lower() == qualifier[-1] for r in spliced)
        return [(name,) for name in self.virtual_columns] if is_spliced else []

    def _given_exceptions(self, star: Star) -> list[tuple[str, ...]]:
        """The names of the EXCEPT clause that the user wrote; virtual columns in upper case."""
        if star.except_open is None or star.except_close is None:
            return []
        given: list[tuple[str, ...]] = [()]
        for token in self._tokens[star.except_open + 1 : star.except_close]:
            if token.word == ",":
                given.append(())
            elif token.is_name:
                name = token.name
                given[-1] = (*given[-1], name.upper() if name.upper() in VIRTUAL_COLUMNS else name)
        return given

    def _apply(self, edits: list[_Edit]) -> str:
        source, at = self._span.source, self._span.start
        made: list[str] = []
        for edit in sorted(edits, key=lambda e: (e.start, e.end)):
            made += [source[at : edit.start], edit.text]
            at = edit.end
        made.append(source[at : self._span.end])
        return "".join(made)

    # --- conditions --------------------------------------------------------------------------------------------------

    def conjuncts(self, reference: TableReference | None, columns: AbstractSet[str]) -> tuple[Span, ...]:
        """Conditions that every row of a table must meet which can matter, over the given columns alone.

        They are conjuncts of the WHERE of the SELECT in whose FROM the reference stands (and of the ON of its inner
        joins), or of the expression itself. Only those count that hold no subquery, no function, and no name that
        might be another table's.

        Args:
            reference: The table; None for the target of :func:`analyse_expression`.
            columns: Names of its columns, in lower case.
        """
        if self._structure.doubt is not None:
            return ()
        if reference is None:
            return self._target_conjuncts(columns)
        relation = self._relations[reference]
        scope = relation.scope
        if not relation.filtered or relation.body or scope.bodies != 1:
            return ()
        same_name = [r for r in scope.relations if r.shown_name.lower() == relation.shown_name.lower()]
        qualifiers = {relation.shown_name.lower()}
        if len(same_name) > 1 or qualifiers & set(scope.other_names):
            qualifiers = set()
        alone = len(scope.relations) == 1 and not scope.others
        ranges = [scope.where] if scope.where is not None else []
        if not scope.outer_joins:
            ranges += scope.inner_on
        return tuple(
            span
            for first, last in ranges
            for span in safe_conjuncts(self._span.source, self._tokens[first:last], columns, qualifiers, alone)
        )

    def _target_conjuncts(self, columns: AbstractSet[str]) -> tuple[Span, ...]:
        if self._outer is None:
            return ()
        tokens, qualifiers = self._tokens[:-1], self._outer.qualifiers()
        return tuple(safe_conjuncts(self._span.source, tokens, columns, qualifiers, self._outer.alone))


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _depth_checked(span: Span) -> Iterator[None]:
    try:
        yield
    except RecursionError as e:
        raise ParseError("Brackets are nested too deeply").locate(span.source, span.start) from e


def analyse_query(span: Span) -> References:
    """The tables that a query names.

    Raises:
        ParseError: When a string, a quoted name or a comment in it is not closed.
    """
    tokens = tokenize(span.source, span.start, span.end)
    with _depth_checked(span):
        return References(span, tokens, read_query(span.source, tokens))


def analyse_expression(
    span: Span,
    *,
    target: TableName,
    alias: str | None,
    others: Collection[str] | None = None,
    other: tuple[TableName | None, str | None] | None = None,
    ctes: Collection[str] = (),
) -> References:
    """The tables that an expression names in its subqueries.

    Args:
        span: A condition or a value of UPDATE, DELETE or MERGE.
        target: The table that the statement changes: the expression's own columns are its columns. The text is meant to
            stand over a view of it, so :meth:`References.splice` always takes the database from names that mean it.
        alias: The alias that the statement gives it.
        others: Names of further relations in scope. With them (also with none of them, but not with None), and with
            ``other``, columns without a qualifier may be of something else than the target.
        other: The source of MERGE: its table (None for a query) and its alias. Where it is a table without an alias,
            the text is meant to stand over a view of that name, as for the target.
        ctes: Names of a WITH clause that stands before the statement: they are not tables.

    Raises:
        ParseError: When a string, a quoted name or a comment in it is not closed.
    """
    tokens = tokenize(span.source, span.start, span.end)
    with _depth_checked(span):
        structure, scope = read_expression(span.source, tokens, frozenset(c.lower() for c in ctes))
    names = {name.lower() for name in others or ()}
    table = None
    if other is not None:
        name, other_alias = other
        table = (name, other_alias) if name is not None else None
        names |= {other_alias.lower()} if other_alias is not None else set()
        names |= {_shown_name(*table)} if table is not None else set()
    scope.other_names += [*names, *([alias.lower()] if alias is not None else [])]
    alone = others is None and other is None
    outer = _Outer(scope, (target, alias), table, frozenset(names), alone)
    return References(span, tokens, structure, outer)
