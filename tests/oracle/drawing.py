"""Random nested queries over the tables of :mod:`tests.oracle.shop`: most have an answer, some are wrong on purpose.

A query is drawn inside scopes, as it is read: each relation shows columns under the qualifiers that SQL gives it, and
what is outside is seen from the inside. Now and then a name is taken that the scope does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

INT, TEXT = "int", "text"
T = TypeVar("T")

COLUMNS: dict[str, dict[str, str]] = {
    "a.t": {"id": INT, "v": TEXT, "n": INT, "p": INT},
    "b.t": {"id": INT, "v": TEXT, "n": INT, "p": INT},
    "a.u": {"id": INT, "n": INT, "t.id": INT, "t.v": TEXT, "k": TEXT},
    "b.u": {"id": INT, "a.t.id": INT, "a.id": INT, "b.t": INT},
    "b.a": {"id": INT, "v": TEXT},
}
"""What can be named of each table, fields of structs with the dots that lead to them."""
ALIASES = ("x", "t", "a", "u", "b", "y")


@dataclass(frozen=True)
class Relation:
    """Something in FROM.

    Attributes:
        text: How FROM has it.
        qualifiers: By which its columns can be named, the empty one among them.
        columns: Their types by their names.
    """

    text: str
    qualifiers: tuple[str, ...]
    columns: dict[str, str]


@dataclass(frozen=True)
class Scope:
    """What can be named: relations of FROM, those outside, the CTEs and the current database."""

    database: str
    relations: tuple[Relation, ...] = ()
    outer: Scope | None = None
    ctes: dict[str, dict[str, str]] = field(default_factory=dict)

    def inside(self) -> Scope:
        return Scope(self.database, (), self, self.ctes)

    def beside(self) -> Scope:
        """For a query in FROM: it sees no relation, but the CTEs."""
        return Scope(self.database, (), None, self.ctes)

    def over(self, *relations: Relation) -> Scope:
        return Scope(self.database, (*self.relations, *relations), self.outer, self.ctes)


class Drawing:
    """Draws texts; ``draw`` is that of hypothesis."""

    def __init__(self, draw: Callable[[Any], Any], qualify: bool) -> None:
        self._draw, self._qualify = draw, qualify

    def one(self, choices: Sequence[T]) -> T:
        """One of them; hypothesis tends to the first when it makes an example smaller."""
        return self._draw(st.sampled_from(choices))  # type: ignore[no-any-return]

    def maybe(self, times: int = 1, of: int = 2) -> bool:
        """True in about ``times`` of ``of`` cases; false in the smallest example."""
        return bool(self._draw(st.integers(0, of - 1)) >= of - times)

    # --- relations ---------------------------------------------------------------------------------------------------

    def table(self, scope: Scope, alias: str | None = None) -> Relation:
        """A table under one of its names, perhaps with an alias."""
        name = self.one(tuple(COLUMNS))
        database, short = name.split(".")
        spellings = [name, name, f"spark_catalog.{name}", name.upper()]
        if database == scope.database and short not in scope.ctes:
            spellings.append(short)
        spelling = self.one(spellings)
        if alias is None and self.maybe():
            alias = self.one(ALIASES)
        if alias is not None:
            return Relation(f"{spelling} AS {alias}", ("", alias), COLUMNS[name])
        return Relation(spelling, ("", short, name, f"spark_catalog.{name}"), COLUMNS[name])

    def relation(self, scope: Scope, depth: int) -> Relation:
        """A table, a CTE, a query or literal rows."""
        kind = self.one(("table", "table", "table", "table", "cte", "query", "values"))
        alias = self.one(ALIASES)
        if kind == "cte" and scope.ctes:
            name = self.one(tuple(scope.ctes))
            return Relation(name, ("", name), scope.ctes[name])
        if kind == "query" and depth > 0:
            text, columns = self.block(scope.beside(), depth - 1)
            return Relation(f"({text}) AS {alias}", ("", alias), columns)
        if kind == "values":
            rows = "(1, 'x'), (3, 'y'), (NULL, 'z')"
            return Relation(f"(VALUES {rows}) AS {alias}(id, v)", ("", alias), {"id": INT, "v": TEXT})
        return self.table(scope)

    def from_(self, scope: Scope, depth: int) -> tuple[str, Scope]:
        """FROM's text, and the scope with its relations."""
        first = self.relation(scope, depth)
        scope = scope.over(first)
        text = first.text
        if not self.maybe(2, 5):
            return text, scope
        kind = self.one(("JOIN", "LEFT JOIN", "CROSS JOIN", ",", "USING", "NATURAL JOIN", "LATERAL", "FULL JOIN"))
        if kind == "LATERAL":
            alias = self.one(ALIASES)
            inner, columns = self.block(scope.inside(), 0)
            second = Relation(f"LATERAL ({inner}) AS {alias}", ("", alias), columns)
            return f"{text}, {second.text}", scope.over(second)
        second = self.relation(scope, depth)
        both = scope.over(second)
        if kind in ("CROSS JOIN", "NATURAL JOIN"):
            return f"{text} {kind} {second.text}", both
        if kind == ",":
            return f"{text}, {second.text}", both
        if kind == "USING":
            return f"{text} {self.one(('JOIN', 'LEFT JOIN', 'FULL JOIN'))} {second.text} USING (id)", both
        on = f"{self.column(both, INT)} = {self.column(both, INT)}"
        return f"{text} {kind} {second.text} ON {on}", both

    # --- expressions -------------------------------------------------------------------------------------------------

    def column(self, scope: Scope, kind: str) -> str:
        """A column of the scope or of an outer one, under one of its names."""
        if scope.outer is not None and scope.outer.relations and self.maybe(1, 3):
            return self.column(scope.outer, kind)
        relations = [r for r in scope.relations if kind in r.columns.values()]
        if not relations or self.maybe(1, 40):
            return self.one(("id", "t.id", "a.t.id", "b.t.id")) if kind == INT else self.one(("v", "t.v", "a.t.v"))
        relation = self.one(relations)
        name = self.one([c for c, t in relation.columns.items() if t == kind])
        qualifiers = relation.qualifiers if len(scope.relations) == 1 else relation.qualifiers[1:] or ("",)
        qualifier = self.one(qualifiers)
        return f"{qualifier}.{name}" if qualifier else name

    def value(self, scope: Scope, kind: str, depth: int) -> str:
        """An expression of a type."""
        form = self.one(("column", "column", "column", "literal", "more", "scalar"))
        if form == "literal":
            return self.one(("1", "2", "3")) if kind == INT else self.one(("'x'", "'y'"))
        if form == "more":
            column = self.column(scope, kind)
            return f"{column} + 1" if kind == INT else f"upper({column})"
        if form == "scalar" and depth > 0:
            if self.maybe(1, 4):
                function = self.one(("max", "min", "count"))
                return f"(SELECT {function}(k) FROM (SELECT {self.column(scope, kind)} AS k))"
            inside = scope.inside()
            text, inside = self.from_(inside, 0)
            found = f"SELECT max({self.column(inside, kind)}) FROM {text}"
            return f"({found} WHERE {self.condition(inside, 0)})" if self.maybe(3, 4) else f"({found})"
        return self.column(scope, kind)

    def condition(self, scope: Scope, depth: int) -> str:
        """A condition; with a depth it may hold queries."""
        simple = ("compare", "compare", "key", "in list", "is null")
        form = self.one((*simple, "not", "both", "exists", "exists", "in", "not in") if depth > 0 else simple)
        if form == "key":
            return f"{self.column(scope, INT)} {self.one(('=', '>', '<', '<>'))} {self.one(('1', '2', '4'))}"
        if form == "in list":
            kind = self.one((INT, TEXT))
            return f"{self.column(scope, kind)} IN ({'1, 2, 5' if kind == INT else repr('x') + ', ' + repr('z')})"
        if form == "is null":
            return f"{self.column(scope, self.one((INT, TEXT)))} IS {self.one(('', 'NOT '))}NULL"
        if form == "not":
            return f"NOT ({self.condition(scope, depth - 1)})"
        if form == "both":
            return f"({self.condition(scope, 0)} {self.one(('AND', 'OR'))} {self.condition(scope, depth - 1)})"
        if form == "exists" and self.maybe(1, 5):
            column = self.column(scope, INT)
            return f"{self.one(('', 'NOT '))}EXISTS (SELECT k FROM (SELECT {column} AS k) GROUP BY k HAVING k > 1)"
        if form == "exists":
            text, inside = self.from_(scope.inside(), 0)
            where = self.condition(inside, depth - 1)
            return f"{self.one(('', 'NOT '))}EXISTS (SELECT 1 FROM {text} WHERE {where})"
        if form in ("in", "not in"):
            kind = self.one((INT, INT, TEXT))
            text, inside = self.from_(scope.inside(), 0)
            where = f" WHERE {self.condition(inside, 0)}" if self.maybe() else ""
            return f"{self.column(scope, kind)} {form.upper()} (SELECT {self.column(inside, kind)} FROM {text}{where})"
        kind = self.one((INT, INT, TEXT))
        operator = self.one(("=", "<", "<=>", ">=", "<>"))
        return f"{self.value(scope, kind, depth)} {operator} {self.value(scope, kind, depth)}"

    # --- queries -----------------------------------------------------------------------------------------------------

    def block(self, scope: Scope, depth: int) -> tuple[str, dict[str, str]]:
        """SELECT … FROM … with named columns, as a relation of another query: its text and columns."""
        text, inside = self.from_(scope, depth)
        where = f" WHERE {self.condition(inside, depth)}" if self.maybe() else ""
        if self.maybe(1, 4):
            key, counted = self.column(inside, TEXT), self.column(inside, INT)
            having = f" HAVING count(*) > {self.one(('0', '1'))}" if self.maybe() else ""
            return f"SELECT {key} AS v, max({counted}) AS id FROM {text}{where} GROUP BY {key}{having}", {
                "v": TEXT,
                "id": INT,
            }
        columns = {"id": INT, "v": TEXT} if self.maybe() else {"id": INT, "n": INT, "v": TEXT}
        listed = ", ".join(f"{self.value(inside, kind, depth)} AS {name}" for name, kind in columns.items())
        return f"SELECT {listed} FROM {text}{where}", columns

    def select(self, scope: Scope, depth: int) -> str:
        """SELECT … FROM … of any columns and stars."""
        text, inside = self.from_(scope, depth)
        where = f" WHERE {self.condition(inside, depth)}" if self.maybe(2, 3) else ""
        form = self.one(("columns", "columns", "star", "group", "block", "window"))
        if form == "block":
            return self.block(scope, depth)[0]
        if form == "group":
            key = self.column(inside, self.one((INT, TEXT)))
            having = f" HAVING max({self.column(inside, INT)}) > {self.one(('1', '3'))}" if self.maybe() else ""
            return f"SELECT {key}, count(*), sum({self.column(inside, INT)}) FROM {text}{where} GROUP BY {key}{having}"
        if form == "window" and self._qualify:
            window = f"OVER (PARTITION BY {self.column(inside, TEXT)} ORDER BY {self.column(inside, INT)})"
            return f"SELECT {self.column(inside, INT)} FROM {text}{where} QUALIFY rank() {window} = 1"
        if form == "star":
            relation = self.one(inside.relations)
            qualifier = self.one(relation.qualifiers)
            return f"SELECT {qualifier + '.*' if qualifier else '*'} FROM {text}{where}"
        kinds = [self.one((INT, TEXT)) for _ in range(1 + self.maybe() + self.maybe())]
        listed = ", ".join(self.value(inside, kind, depth) for kind in kinds)
        return f"SELECT {self.one(('', '', 'DISTINCT '))}{listed} FROM {text}{where}"

    def query(self, database: str) -> str:
        """A whole query: CTEs, a set operation, an order with a limit."""
        scope = Scope(database)
        before = ""
        if self.maybe(1, 4):
            name = self.one(("t", "a", "u", "c"))
            text, columns = self.block(scope, 1)
            before = f"WITH {name} AS ({text}) "
            scope = Scope(database, ctes={name: columns})
        if self.maybe(1, 5):
            operation = self.one(("UNION ALL", "UNION", "EXCEPT", "INTERSECT ALL"))
            pair = [self.pair(scope) for _ in "ab"]
            return f"{before}{pair[0]} {operation} {pair[1]}"
        text = self.select(scope, 2)
        if self.maybe(1, 4):
            text += f" ORDER BY ALL{self.one((' LIMIT 3', ' DESC', ' LIMIT 2 OFFSET 1'))}"
        return before + text

    def pair(self, scope: Scope) -> str:
        """A query of an integer and a text."""
        text, inside = self.from_(scope, 1)
        where = f" WHERE {self.condition(inside, 1)}" if self.maybe() else ""
        return f"SELECT {self.value(inside, INT, 1)}, {self.value(inside, TEXT, 1)} FROM {text}{where}"


@st.composite
def queries(draw: Callable[[Any], Any], qualify: bool) -> tuple[str, str]:
    """A current database and a query; with ``qualify`` there may be QUALIFY in it."""
    drawing = Drawing(draw, qualify)
    database = drawing.one(("a", "b", "default"))
    return database, drawing.query(database)


@dataclass(frozen=True)
class Change:
    """An UPDATE or DELETE of ``a.t``: the target with its alias, the condition, and what ``v`` and ``n`` become."""

    database: str
    target: str
    condition: str
    v: str
    n: str


@st.composite
def changes(draw: Callable[[Any], Any]) -> Change:
    """A change of ``a.t`` under one of its names, by a condition and values that may hold queries."""
    drawing = Drawing(draw, qualify=False)
    scope = Scope(drawing.one(("default", "a", "b")))
    spelling = drawing.one(("a.t", "spark_catalog.a.t", "A.T", *(("t",) if scope.database == "a" else ())))
    qualifiers: tuple[str, ...] = ("", "t", "a.t", "spark_catalog.a.t")
    if drawing.maybe(1, 3):
        alias = drawing.one(ALIASES)
        spelling, qualifiers = f"{spelling} AS {alias}", ("", alias)
    scope = scope.over(Relation(spelling, qualifiers, COLUMNS["a.t"]))
    return Change(
        scope.database,
        spelling,
        drawing.condition(scope, 2),
        drawing.value(scope, TEXT, 1),
        drawing.value(scope, INT, 1),
    )


@st.composite
def typed_queries(draw: Callable[[Any], Any]) -> tuple[str, str]:
    """A current database and a query of an integer and a text."""
    drawing = Drawing(draw, qualify=False)
    scope = Scope(drawing.one(("a", "b", "default")))
    first = drawing.pair(scope)
    if drawing.maybe(1, 3):
        first = f"{first} {drawing.one(('UNION ALL', 'EXCEPT'))} {drawing.pair(scope)}"
    return scope.database, first
