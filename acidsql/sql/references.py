"""Which tables a query or an expression names, and the user's own text with those names replaced.

Scoping is sqlglot's work (stock ``parse_one``): its identifiers and stars carry their offsets, so the tree is only looked
at, and every change is a splice into the source text. Where sqlglot cannot parse what Spark may accept, table positions
are found in the tokens alone, and :attr:`References.exact` says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from acidsql.errors import UnsupportedError
from acidsql.sql.conjuncts import split_conjuncts, where_after
from acidsql.sql.statements import Span, TableName
from acidsql.sql.tokens import Kind, Token, tokenize

logging.getLogger("sqlglot").setLevel(logging.ERROR)

ROW_ID = "ROW__ID"
_TARGET = "SELECT * FROM __acidsql_target WHERE "
"""Put before an expression to make it a statement; its table stands for the target of UPDATE or DELETE."""


@dataclass(frozen=True, eq=False)
class TableReference:
    """One occurrence of a table's name. ``alias`` is the one that the text gives it."""

    name: TableName
    alias: str | None = None
    alias_at: int = 0
    """Offset where an alias would stand."""

    @property
    def qualifier(self) -> str:
        """The name by which columns are qualified, in lower case."""
        return (self.alias or self.name.table).lower()


@dataclass(frozen=True)
class _Star:
    """A ``*`` that shows the columns of some tables: where it stands, and which they are."""

    at: int
    relations: tuple[TableReference, ...]
    qualified: bool


@dataclass(frozen=True)
class _Qualified:
    """A column with a database before its table's name: the offsets of what has to go, and the table (None: the target)."""

    start: int
    end: int
    relation: TableReference | None


@dataclass(frozen=True)
class _Scope:
    """What pruning must know of the SELECT in whose FROM a table stands."""

    relations: int
    inner_joins_only: bool


@dataclass(frozen=True, eq=False)
class References:
    """The tables that a text names, and what is needed to replace their names."""

    span: Span
    tables: tuple[TableReference, ...]
    uses_row_id: bool
    exact: bool = True
    _stars: tuple[_Star, ...] = ()
    _qualified: tuple[_Qualified, ...] = ()
    _scopes: Mapping[TableReference, _Scope] = field(default_factory=dict)
    _target: tuple[str, ...] = ()

    def splice(self, views: Mapping[TableReference, str]) -> str:
        """The text with each table of ``views`` replaced by its view, under the name it had."""
        edits: list[tuple[int, int, str]] = []
        for reference, view in views.items():
            name = reference.name.span
            edits.append((name.start, name.end, _quote(view)))
            if reference.alias is None:
                edits.append((reference.alias_at, reference.alias_at, f" AS {_quote(reference.name.table)}"))
        edits += [(q.start, q.end, "") for q in self._qualified if q.relation is None or q.relation in views]
        if self.uses_row_id:
            for star in self._stars:
                hidden = [r for r in star.relations if r in views]
                edits += self._except(star, hidden) if hidden else []
        return _apply(self.span, edits)

    def _except(self, star: _Star, hidden: Iterable[TableReference]) -> Iterator[tuple[int, int, str]]:
        names = [ROW_ID if star.qualified else f"{_quote(r.alias or r.name.table)}.{ROW_ID}" for r in hidden]
        tokens = tokenize(self.span.source, star.at + 1, self.span.end)
        if tokens[0].word == "EXCEPT" and tokens[1].word == "(":
            close = _closing(tokens, 1)
            yield tokens[close].start, tokens[close].start, ", " + ", ".join(names)
        else:
            yield star.at + 1, star.at + 1, f" EXCEPT ({', '.join(names)})"

    def conjuncts(self, reference: TableReference | None, columns: Set[str]) -> tuple[Span, ...]:
        """Conditions that every row of a table must meet to have any part in the answer, over some columns alone.

        They are conjuncts of the WHERE of the SELECT in whose FROM the table stands (``reference`` None: of the expression
        itself), built from comparisons and constants only. What is left out is merely not pruned with.

        Args:
            reference: The table.
            columns: Names of its columns, in lower case.
        """
        if not self.exact:
            return ()
        if reference is None:
            return split_conjuncts(self.span, columns, self._target, unqualified=True)
        scope = self._scopes.get(reference)
        where = where_after(self.span, reference.name.span.end)
        if scope is None or where is None or not scope.inner_joins_only:
            return ()
        return split_conjuncts(where, columns, (reference.qualifier,), unqualified=scope.relations == 1)


def analyse_query(span: Span) -> References:
    """The tables of a query.

    Raises:
        UnsupportedError: For ROW__ID beside a NATURAL JOIN, which would join on it.
    """
    tokens = tokenize(span.source, span.start, span.end)
    if tokens[0].word == "TABLE" and tokens[1].is_name:
        return _table_statement(span, tokens)
    try:
        tree = sqlglot.parse_one(span.text, read="spark")
    except (SqlglotError, RecursionError):
        return _by_tokens(span, tokens)
    return _Analysis(span, span.start, tree).references(())


def analyse_expression(span: Span, *, target: TableName, alias: str | None) -> References:
    """The tables in the subqueries of an expression over a target table (WHERE or SET of UPDATE and DELETE)."""
    own = ((alias or target.table).lower(),)
    try:
        tree = sqlglot.parse_one(_TARGET + span.text, read="spark")
    except (SqlglotError, RecursionError):
        return _by_tokens(span, tokenize(span.source, span.start, span.end))
    analysis = _Analysis(span, span.start - len(_TARGET), tree)
    analysis.target = TableReference(target, alias)
    return analysis.references(own)


class _Analysis:
    """Reads a sqlglot tree. ``shift``: what to add to its offsets to get those of the source."""

    def __init__(self, span: Span, shift: int, tree: exp.Expression) -> None:
        self.span = span
        self.shift = shift
        self.tree = tree
        self.target: TableReference | None = None
        self._made: dict[int, TableReference] = {}

    def references(self, target: tuple[str, ...]) -> References:
        tables = [t for t in self.tree.find_all(exp.Table) if self._is_named(t) and not _is_cte(t)]
        for table in tables:
            self._made[id(table)] = self._reference(table)
        row_id = any(i.name.upper() == ROW_ID and self._inside(i) for i in self.tree.find_all(exp.Identifier))
        if row_id:
            self._refuse_natural()
        ordered = sorted(self._made.values(), key=lambda r: r.name.span.start)
        return References(
            self.span,
            tuple(ordered),
            row_id,
            True,
            tuple(self._stars()) if row_id else (),
            tuple(self._qualified_columns()),
            {self._made[id(t)]: self._scope(t) for t in tables},
            target,
        )

    def _inside(self, node: exp.Expression) -> bool:
        return self._start(node) >= self.span.start

    def _start(self, node: exp.Expression) -> int:
        return int(node.meta.get("start", -1 - self.shift)) + self.shift

    def _end(self, node: exp.Expression) -> int:
        return int(node.meta["end"]) + 1 + self.shift

    def _is_named(self, table: exp.Table) -> bool:
        return isinstance(table.this, exp.Identifier) and "start" in table.this.meta and self._inside(table.this)

    def _reference(self, table: exp.Table) -> TableReference:
        parts = [p for p in (table.args.get("catalog"), table.args.get("db"), table.this) if p]
        span = Span(self.span.source, self._start(parts[0]), self._end(parts[-1]))
        name = TableName(
            table.this.name,
            table.args["db"].name if table.args.get("db") else None,
            span,
            table.args["catalog"].name if table.args.get("catalog") else None,
        )
        return TableReference(name, table.alias or None, _alias_place(self.span, span.end))

    # --- scopes ------------------------------------------------------------------------------------------------------

    def _direct(self, select: exp.Expression) -> list[TableReference]:
        """The named tables that stand directly in a SELECT's FROM."""
        return [
            self._made[id(t)]
            for t in select.find_all(exp.Table)
            if id(t) in self._made and t.find_ancestor(exp.Select) is select
        ]

    def _scope(self, table: exp.Table) -> _Scope:
        select = table.find_ancestor(exp.Select)
        if select is None:
            return _Scope(2, False)
        joins = select.args.get("joins") or []
        laterals = select.args.get("laterals") or []
        inner = all(
            (j.args.get("kind") or "").upper() in ("", "INNER", "CROSS")
            and not j.args.get("side")
            and not j.args.get("method")
            for j in joins
        )
        # a table inside parentheses or another relation may be on any side of a join
        plain = isinstance(table.parent, exp.From | exp.Join) and table.parent.parent is select
        pivots = table.args.get("pivots")
        return _Scope(1 + len(joins) + len(laterals), inner and plain and not pivots)

    def _stars(self) -> Iterator[_Star]:
        for star in self.tree.find_all(exp.Star):
            if "start" not in star.meta or not self._inside(star) or isinstance(star.parent, exp.Count):
                continue
            select = star.find_ancestor(exp.Select)
            if select is None:
                continue
            direct = self._direct(select)
            if isinstance(star.parent, exp.Column):
                name = star.parent.table.lower()
                if isinstance(star.parent.parent, exp.Count):
                    continue
                direct = [r for r in direct if r.qualifier == name]
                yield _Star(self._start(star), tuple(direct), True)
            else:
                yield _Star(self._start(star), tuple(direct), False)

    def _qualified_columns(self) -> Iterator[_Qualified]:
        for column in self.tree.find_all(exp.Column):
            database, table = column.args.get("db"), column.args.get("table")
            if database is None or table is None or "start" not in database.meta or not self._inside(database):
                continue
            known, relation = self._relation(column, table.name, database.name)
            if known:
                first = column.args.get("catalog") or database
                yield _Qualified(self._start(first), self._start(table), relation)

    def _relation(self, column: exp.Column, table: str, database: str) -> tuple[bool, TableReference | None]:
        """Whether ``database.table`` means a relation of an enclosing SELECT, and which; None is the target."""
        select = column.find_ancestor(exp.Select)
        while select is not None:
            for reference in self._direct(select):
                if _means(reference, table, database):
                    return True, reference
            select = select.find_ancestor(exp.Select)
        return self.target is not None and _means(self.target, table, database), None

    def _refuse_natural(self) -> None:
        for join in self.tree.find_all(exp.Join):
            if (join.args.get("method") or "").upper() == "NATURAL":
                raise UnsupportedError(
                    "ROW__ID cannot be used beside a NATURAL JOIN, which would join on it", hint="Name the columns: USING."
                ).locate(self.span.source, self.span.start)


def _means(reference: TableReference, table: str, database: str) -> bool:
    """Whether ``database.table`` before a column means this occurrence of a table."""
    own = reference.name.database
    same = own is not None and own.lower() == database.lower()
    return same and reference.alias is None and reference.name.table.lower() == table.lower()


def _is_cte(table: exp.Table) -> bool:
    """Whether a name is that of a common table expression that is visible where it stands."""
    if table.args.get("db"):
        return False
    name = table.name.lower()
    inside: exp.Expression = table
    above = table.parent
    while above is not None:
        with_clause: Any = above.args.get("with_") or above.args.get("with")
        if with_clause is not None and inside is not with_clause:
            if any(cte.alias.lower() == name for cte in with_clause.expressions):
                return True
        elif isinstance(above, exp.With):
            earlier = []
            for cte in above.expressions:
                if cte is inside:
                    break
                earlier.append(cte.alias.lower())
            recursive = [inside.alias.lower()] if above.args.get("recursive") else []
            if name in earlier + recursive:
                return True
        inside, above = above, above.parent
    return False


# --- texts -----------------------------------------------------------------------------------------------------------


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _apply(span: Span, edits: Iterable[tuple[int, int, str]]) -> str:
    made, at = [], span.start
    for start, end, text in sorted(edits):
        made += [span.source[at:start], text]
        at = end
    return "".join([*made, span.source[at : span.end]])


def _closing(tokens: list[Token], opened: int) -> int:
    depth = 0
    for i in range(opened, len(tokens)):
        depth += (tokens[i].word == "(") - (tokens[i].word == ")")
        if depth == 0:
            return i
    return len(tokens) - 1


def _alias_place(span: Span, after: int) -> int:
    """Where an alias goes behind a table's name: behind its TABLESAMPLE, if it has one."""
    tokens = tokenize(span.source, after, span.end)
    at, i = after, 0
    while tokens[i].word == "TABLESAMPLE":
        i += 1
        while tokens[i].word not in ("(", "") and tokens[i].kind is not Kind.END:
            i += 1
        i = _closing(tokens, i)
        at = tokens[i].end
        i = min(i + 1, len(tokens) - 1)
    return at


def _table_statement(span: Span, tokens: list[Token]) -> References:
    """``TABLE t`` as a whole query."""
    parts = [t for t in tokens[1:] if t.is_name]
    name_span = Span(span.source, parts[0].start, parts[-1].end)
    names: list[str | None] = [None, None, *(p.name for p in parts)]
    catalog, database, table = names[-3:]
    reference = TableReference(TableName(str(table), database, name_span, catalog), str(table), name_span.end)
    return References(span, (reference,), False)


_BEFORE_TABLE = ("FROM", "JOIN", "TABLE")
_FROM_INSIDE = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")


def _by_tokens(span: Span, tokens: list[Token]) -> References:
    """Table names by their place alone: behind FROM, JOIN and TABLE, and behind a comma in a FROM clause."""
    ctes = {t.name.lower() for t, a, b in zip(tokens, tokens[1:], tokens[2:], strict=False) if _opens_cte(t, a, b)}
    found: list[TableReference] = []
    functions: list[str] = []
    for i, token in enumerate(tokens[:-1]):
        if token.word == "(":
            functions.append(tokens[i - 1].word if i else "")
        elif token.word == ")" and functions:
            functions.pop()
        elif token.word in _BEFORE_TABLE and not _is_no_clause(token, tokens[i - 1] if i else None, functions):
            found += _listed(span, tokens, i + 1, ctes)
    row_id = any(t.is_name and t.name.upper() == ROW_ID for t in tokens)
    return References(span, tuple(found), row_id, exact=False)


def _opens_cte(name: Token, following: Token, third: Token) -> bool:
    return name.is_name and following.word == "AS" and third.word == "("


def _is_no_clause(token: Token, before: Token | None, functions: list[str]) -> bool:
    if token.word != "FROM":
        return False
    return (before is not None and before.word == "DISTINCT") or (bool(functions) and functions[-1] in _FROM_INSIDE)


def _listed(span: Span, tokens: list[Token], at: int, ctes: Set[str]) -> Iterator[TableReference]:
    """The tables of a FROM list that starts at a token."""
    while at < len(tokens) and tokens[at].is_name and tokens[at].word not in ("SELECT", "VALUES", "LATERAL", "WITH"):
        parts = [tokens[at]]
        while tokens[at + 1].word == "." and tokens[at + 2].is_name:
            at += 2
            parts.append(tokens[at])
        following = tokens[at + 1]
        names: list[str | None] = [None, None, *(p.name for p in parts)]
        catalog, database, table = names[-3:]
        at += 1
        alias = None
        if following.word == "AS" and tokens[at + 1].is_name:
            alias, at = tokens[at + 1].name, at + 2
        elif following.kind is Kind.QUOTED or (following.kind is Kind.WORD and following.word not in _AFTER_TABLE):
            alias, at = following.name, at + 1
        if following.word != "(" and not (database is None and str(table).lower() in ctes):
            place = Span(span.source, parts[0].start, parts[-1].end)
            yield TableReference(TableName(str(table), database, place, catalog), alias, _alias_place(span, place.end))
        if tokens[at].word != ",":
            return
        at += 1


_AFTER_TABLE = frozenset(
    """WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW UNION INTERSECT EXCEPT MINUS JOIN INNER LEFT
    RIGHT FULL CROSS NATURAL SEMI ANTI ON USING LATERAL PIVOT UNPIVOT TABLESAMPLE VERSION TIMESTAMP FOR SELECT QUALIFY
    WITH""".split()
)
