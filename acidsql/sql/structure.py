"""The shape of a query: its scopes, the relations in each FROM, the stars and qualified names, read from the tokens.

Expressions are walked through, not understood: what counts is where the next clause starts, and every word of Spark's
may also be a name. So a word is a keyword only where an operand just ended; where an operand must follow, it is one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from acidsql.sql.statements import Span, TableName
from acidsql.sql.tokens import Kind, Token

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
    time_travel: bool = False
    obstacle: str | None = None

    @property
    def shown_name(self) -> str:
        """The name that columns may be qualified with."""
        return self.alias if self.alias is not None else self.name.table


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


def read_query(source: str, tokens: list[Token]) -> Structure:
    """The structure of a query. ``tokens`` end with an END token."""
    reader = _Reader(source, tokens)
    reader.query(None, frozenset())
    reader.finish()
    return reader.found


def read_expression(source: str, tokens: list[Token]) -> tuple[Structure, Scope]:
    """The structure of an expression, and the scope that its own columns belong to."""
    reader = _Reader(source, tokens)
    scope = Scope(None, frozenset())
    reader.walk(scope)
    reader.finish()
    return reader.found, scope


_SET_OPERATIONS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
_BY = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
_CLAUSES = {"WHERE", "HAVING", "LIMIT", "OFFSET", "WINDOW", *_BY}
_JOINS = {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}
_NO_ALIAS = (
    {"FROM", "ON", "USING", "LATERAL", "PIVOT", "UNPIVOT", "SELECT", "TABLESAMPLE", "WHEN", "SET"}
    | _SET_OPERATIONS
    | {"WHERE", "HAVING", "LIMIT", "OFFSET", "WINDOW"}
    | _JOINS
)
_OPERATORS = {"AND", "OR", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "ESCAPE", "WHEN", "THEN", "ELSE", "IN"}
_PREFIXES = {"NOT", "CASE", "WHEN", "THEN", "ELSE"}
_CLOSING = {")", "]", "}"}
_OPENING = {"(", "[", "{"}


def _matching(tokens: list[Token]) -> dict[int, int]:
    """Where each opening bracket is closed, by their indexes; what is not closed is closed by the end."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.word in _OPENING:
            opened.append(i)
        elif token.word in _CLOSING and opened:
            found[opened.pop()] = i
    for i in opened:
        found[i] = len(tokens) - 2
    return found


class _Reader:
    """Recursive descent over the tokens; ``at`` is the index of the next one."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0
        self.closing = _matching(tokens)
        self.found = Structure()

    # --- tokens ------------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def word(self) -> str:
        return self.tokens[self.at].word

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    @property
    def at_close(self) -> bool:
        return self.token.kind is Kind.END or self.word in _CLOSING

    def step(self, count: int = 1) -> None:
        self.at = min(self.at + count, len(self.tokens) - 1)

    def accept(self, *words: str) -> bool:
        if any(self.peek(i).word != w for i, w in enumerate(words)):
            return False
        self.step(len(words))
        return True

    def doubt(self, why: str) -> None:
        self.found.doubt = self.found.doubt or why

    def finish(self) -> None:
        if self.token.kind is not Kind.END:
            self.doubt(f"something follows the query: {self.token.text}")

    def close(self) -> None:
        """Past the closing bracket; what stands before it that was not understood is walked through."""
        if not self.at_close:
            self.doubt(f"{self.token.text} was not expected")
            self.walk(Scope(None, frozenset()))
        if self.word in _CLOSING:
            self.step()

    # --- queries -----------------------------------------------------------------------------------------------------

    def starts_query(self, ahead: int = 0) -> bool:
        """Whether a query starts here, and not a column or function that is called like its first word."""
        word, following = self.peek(ahead).word, self.peek(ahead + 1)
        if word == "(":
            return self.starts_query(ahead + 1) and self.ends_query(self.closing.get(self.at + ahead, 0) + 1)
        if word == "SELECT":
            return following.kind is not Kind.SYMBOL or following.word in ("(", "*", "-", "+", "~", "!", ":", "?")
        if word == "FROM":
            return following.is_name or following.word == "("
        if word == "VALUES":
            return following.kind is not Kind.SYMBOL or following.word == "("
        if word == "WITH":
            return following.is_name and (self.peek(ahead + 2).word in ("AS", "(") or following.word == "RECURSIVE")
        if word == "TABLE":
            return following.is_name
        return word in ("MAP", "REDUCE") and (following.is_name or following.kind is Kind.STRING)

    def ends_query(self, index: int) -> bool:
        """Whether a query in parentheses, behind which this token stands, is one of its own and no operand."""
        token, following = self.tokens[index], self.tokens[min(index + 1, len(self.tokens) - 1)]
        if token.kind is Kind.END or token.word in _CLOSING or token.word in _SET_OPERATIONS or token.word == "|>":
            return True
        return following.word == "BY" if token.word in _BY else token.word in ("LIMIT", "OFFSET")

    def query(self, parent: Scope | None, ctes: frozenset[str]) -> None:
        """``[WITH …] term [set operation term]… [ORDER BY …] [|> …]``."""
        if self.word == "WITH" and self.starts_query():
            ctes = self.with_clause(parent, ctes)
        scope = self.primary(parent, ctes)
        while not self.at_close:
            if self.word in _SET_OPERATIONS:
                self.step()
                if self.word in ("ALL", "DISTINCT"):
                    self.step()
                scope = self.primary(parent, ctes)
            elif self.at_clause():
                self.step()
                self.region(scope)
            elif self.word == "|>":
                self.pipe(scope, parent, ctes)
            else:
                return

    def with_clause(self, parent: Scope | None, ctes: frozenset[str]) -> frozenset[str]:
        """The names that the query may use from here on. Each sees those before it; itself only WITH RECURSIVE."""
        self.step()
        recursive = self.accept("RECURSIVE")
        while self.token.is_name:
            name = self.token.name.lower()
            self.step()
            if self.word == "(" and not self.starts_query(1):
                self.skip_group()
            if self.accept("MAX", "RECURSION", "LEVEL"):
                self.step()
            self.accept("AS")
            if self.word != "(":
                self.doubt("a WITH clause without a query")
                break
            self.step()
            self.query(parent, ctes | {name} if recursive else ctes)
            self.close()
            ctes = ctes | {name}
            if not self.accept(","):
                break
        return ctes

    def primary(self, parent: Scope | None, ctes: frozenset[str]) -> Scope:
        """SELECT, FROM …, TABLE t, VALUES or a query in parentheses; the scope that ORDER BY sees."""
        scope = Scope(parent, ctes)
        if self.word == "(":
            self.step()
            self.query(parent, ctes)
            self.close()
        elif self.word == "FROM":
            self.step()
            self.relations(scope)
            while self.word in ("SELECT", "MAP", "REDUCE"):
                self.select(scope)
        elif self.word in ("SELECT", "MAP", "REDUCE"):
            self.select(scope)
        elif self.word == "TABLE" and self.peek().is_name:
            start = self.token.start
            self.step()
            self.table(scope, "query", start)
        elif self.word == "VALUES":
            self.values(scope)
        else:
            self.doubt(f"{self.token.text or 'the end'} was not expected where a query starts")
            self.walk(scope)
        return scope

    def select(self, scope: Scope) -> None:
        self.step()
        scope.bodies += 1
        if self.word in ("DISTINCT", "ALL") and not self.ends_item(self.peek()):
            self.step()
        self.region(scope, is_list=True)
        if self.word == "FROM":
            self.step()
            self.relations(scope)
        while True:
            if self.word == "LATERAL" and self.peek().word == "VIEW":
                self.lateral_view(scope)
            elif self.word == "WHERE":
                self.step()
                start = self.at
                self.region(scope)
                scope.where = (start, self.at)
            elif self.at_clause():
                self.step()
                self.region(scope)
            else:
                return

    @staticmethod
    def ends_item(token: Token) -> bool:
        """Whether a token behind a word makes that word an item of its own."""
        return token.kind is Kind.END or token.word in {",", ")", ".", "FROM", "AS", "="}

    def at_clause(self) -> bool:
        if self.word in _BY:
            return self.peek().word == "BY"
        if self.word == "WINDOW":
            return self.peek().is_name and self.peek(2).word == "AS"
        return self.word in _CLAUSES

    def values(self, scope: Scope) -> None:
        """``VALUES row, row … [[AS] alias [(columns)]]``."""
        self.step()
        scope.others += 1
        while True:
            self.region(scope, stops={",", "AS"} | _JOINS)
            if not self.accept(","):
                break
        self.other_alias(scope)

    def pipe(self, scope: Scope, parent: Scope | None, ctes: frozenset[str]) -> None:
        """An operator of the pipe syntax. What ``*`` and names mean behind it is not followed."""
        self.doubt("pipe syntax")
        self.step()
        if self.word in _SET_OPERATIONS:
            return
        if self.word in _JOINS:
            self.joins(scope, [])
        elif self.word == "TABLESAMPLE":
            self.sample()
        else:
            self.step()
            self.region(scope)
        for relation in scope.relations:
            relation.filtered = False

    # --- FROM --------------------------------------------------------------------------------------------------------

    def relations(self, scope: Scope) -> None:
        """``relation, relation … [LATERAL VIEW …]``."""
        while True:
            tree = self.relation(scope)
            if self.word in ("PIVOT", "UNPIVOT"):
                self.pivot(scope, tree)
            if not self.accept(","):
                break
        while self.word == "LATERAL" and self.peek().word == "VIEW":
            self.lateral_view(scope)
        while self.word in ("PIVOT", "UNPIVOT"):
            self.pivot(scope, scope.relations)

    def relation(self, scope: Scope) -> list[Relation]:
        """A relation with its joins; the tables in it."""
        tree = self.relation_primary(scope)
        self.joins(scope, tree)
        return tree

    def joins(self, scope: Scope, tree: list[Relation]) -> None:
        while True:
            if self.word in ("PIVOT", "UNPIVOT"):
                self.pivot(scope, tree)
                continue
            words = []
            while self.word in _JOINS | {"OUTER"} and self.word != "JOIN":
                words.append(self.word)
                self.step()
            if self.word != "JOIN":
                if words:
                    self.doubt("a join without JOIN")
                return
            self.step()
            right = self.relation_primary(scope)
            self.join_kind(scope, words, tree, right)
            self.join_condition(scope, words)
            tree.extend(right)

    def join_kind(self, scope: Scope, words: list[str], left: list[Relation], right: list[Relation]) -> None:
        padded = [*(right if "LEFT" in words or "FULL" in words else []), *(left if {"RIGHT", "FULL"} & {*words} else [])]
        if {"SEMI", "ANTI"} & {*words}:
            padded = right
            for relation in right:
                relation.visible = False
        for relation in padded:
            relation.filtered = False
        scope.outer_joins = scope.outer_joins or bool({"LEFT", "RIGHT", "FULL", "SEMI", "ANTI"} & {*words})
        if "NATURAL" in words:
            for relation in [*left, *right]:
                relation.obstacle = relation.obstacle or "in a NATURAL JOIN"

    def join_condition(self, scope: Scope, words: list[str]) -> None:
        if self.word == "ON":
            self.step()
            start = self.at
            self.region(scope, stops={",", "LATERAL", "PIVOT", "UNPIVOT"} | _JOINS)
            if set(words) <= {"INNER", "CROSS"}:
                scope.inner_on.append((start, self.at))
        elif self.word == "USING" and self.peek().word == "(":
            self.step()
            self.skip_group()

    def relation_primary(self, scope: Scope) -> list[Relation]:
        if self.word == "LATERAL" and self.peek().word != "VIEW":
            self.step()
        if self.word == "(":
            return self.parenthesised(scope)
        if self.word == "VALUES" and self.starts_query():
            self.values(scope)
            return []
        if not self.token.is_name:
            self.doubt(f"{self.token.text or 'the end'} was not expected where a table is named")
            return []
        if self.is_call():
            self.function(scope)
            return []
        return self.table(scope)

    def parenthesised(self, scope: Scope) -> list[Relation]:
        """``(query)`` or ``(relation)``, with what may follow it."""
        is_query = self.starts_query(1)
        self.step()
        inner: list[Relation] = []
        if is_query:
            self.query(scope, scope.ctes)
            scope.others += 1
        else:
            while True:
                inner += self.relation(scope)
                if not self.accept(","):
                    break
        self.close()
        if self.word == "TABLESAMPLE":
            self.sample()
            for relation in inner:
                relation.filtered = False
        if self.other_alias(scope):
            for relation in inner:
                relation.filtered, relation.visible = False, False
                relation.obstacle = relation.obstacle or "inside parentheses with an alias"
        return inner

    def is_call(self) -> bool:
        ahead = 0
        while self.peek(ahead).is_name and self.peek(ahead + 1).word == "." and self.peek(ahead + 2).is_name:
            ahead += 2
        return self.peek(ahead + 1).word == "("

    def function(self, scope: Scope) -> None:
        """A table function; its arguments may hold ``TABLE t``, ``TABLE (t)`` and queries."""
        scope.others += 1
        while self.word != "(":
            self.step()
        self.step()
        while not self.at_close:
            before = self.tokens[self.at - 1].word
            if self.word == "TABLE" and before in ("(", ",", "=>") and (self.peek().is_name or self.peek().word == "("):
                self.table_argument(scope)
            else:
                self.one(scope)
        self.close()
        self.other_alias(scope)

    def table_argument(self, scope: Scope) -> None:
        start = self.token.start
        self.step()
        inside = Scope(scope, scope.ctes)
        if self.word != "(":
            self.table(inside, "argument", start)
        elif self.starts_query(1):
            self.step()
            self.query(scope, scope.ctes)
            self.close()
        elif not self.peek().is_name:
            self.one(scope)
        else:
            self.step()
            [relation] = self.table(inside, "argument", start)
            relation.end = self.token.end
            self.close()

    def table(self, scope: Scope, body: str = "", body_start: int = 0) -> list[Relation]:
        """A table by its name, with time travel, options, sample and alias."""
        name, parts = self.dotted_name()
        relation = Relation(name, None, self.tokens[self.at - 1].end, scope, body=body, body_start=body_start)
        relation.is_cte = parts == 1 and name.table.lower() in scope.ctes
        if not body:
            self.table_suffixes(relation)
            relation.alias = self.alias(relation)
        if parts <= 3:
            self.found.relations.append(relation)
        if relation.is_cte or parts > 3:
            scope.others += 1
            scope.other_names.append(relation.shown_name.lower())
            return []
        scope.relations.append(relation)
        return [relation]

    def table_suffixes(self, relation: Relation) -> None:
        ahead = 1 if self.word == "FOR" else 0
        is_travel = self.peek(ahead).word in ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")
        if is_travel and self.peek(ahead + 1).word == "AS" and self.peek(ahead + 2).word == "OF":
            relation.time_travel, relation.filtered = True, False
            self.step(ahead + 3)
            self.one(relation.scope)
        if self.word == "WITH" and self.peek().word == "(":
            self.step()
            self.skip_group()
        if self.word == "TABLESAMPLE":
            self.sample()
            relation.filtered = False
        relation.end = self.tokens[self.at - 1].end

    def sample(self) -> None:
        self.step()
        if self.word == "(":
            self.skip_group()
        if self.accept("REPEATABLE") and self.word == "(":
            self.skip_group()

    def alias(self, relation: Relation | None) -> str | None:
        """``[AS] alias [(columns)]``."""
        if self.word == "AS":
            self.step()
            if self.word == "(":
                self.skip_group()
                return ""
        elif not self.token.is_name or self.word in _NO_ALIAS or self.at_clause():
            return None
        name = self.token.name
        self.step()
        if self.word == "(":
            self.skip_group()
            if relation is not None:
                relation.filtered = False
                relation.obstacle = relation.obstacle or "with new names for its columns"
        return name

    def other_alias(self, scope: Scope) -> bool:
        name = self.alias(None)
        if name is not None:
            scope.other_names.append(name.lower())
        return name is not None

    def dotted_name(self) -> tuple[TableName, int]:
        start = self.token.start
        parts = [self.token.name]
        self.step()
        while self.word == "." and self.peek().is_name:
            self.step()
            parts.append(self.token.name)
            self.step()
        database = parts[-2] if len(parts) > 1 else None
        catalog = parts[-3] if len(parts) > 2 else None
        span = Span(self.source, start, self.tokens[self.at - 1].end)
        return TableName(parts[-1], database, span, catalog), len(parts)

    def lateral_view(self, scope: Scope) -> None:
        self.step(2)
        self.accept("OUTER")
        scope.others += 1
        while self.token.is_name or self.word == ".":
            self.step()
        self.one(scope)
        if self.token.is_name and self.word not in _NO_ALIAS | {"AS"}:
            scope.other_names.append(self.token.name.lower())
            self.step()
        if self.accept("AS"):
            self.step()
            while self.word == "," and self.peek().is_name:
                self.step(2)

    def pivot(self, scope: Scope, tree: list[Relation]) -> None:
        for relation in tree:
            relation.filtered = False
            relation.obstacle = relation.obstacle or f"under {self.word}"
        scope.others += 1
        self.step()
        while self.word in ("INCLUDE", "EXCLUDE", "NULLS"):
            self.step()
        self.one(scope)
        self.other_alias(scope)

    # --- expressions -------------------------------------------------------------------------------------------------

    def region(self, scope: Scope, *, is_list: bool = False, stops: Collection[str] = ()) -> None:
        """Expressions, up to a word or sign that can only belong to what follows them."""
        needed = True
        first = self.at
        while not self.at_close and self.word != "|>":
            if not needed and self.stops_here(stops):
                return
            if self.word == "," and "," in stops:
                return
            if self.word == "*" and needed:
                self.star(scope, first, is_list)
                needed = False
            elif needed or self.token.quoted:
                needed = self.operand(scope, first, is_list)
            else:
                needed = self.after_operand(scope)

    def stops_here(self, stops: Collection[str]) -> bool:
        word = self.word
        if word in _SET_OPERATIONS or word in stops:
            return True
        if word == "LATERAL":
            return self.peek().word == "VIEW"
        if word in ("SELECT", "MAP", "REDUCE"):
            return self.starts_query()
        return word == "FROM" or self.at_clause()

    def operand(self, scope: Scope, first: int, is_list: bool) -> bool:
        """One token or group where an operand must stand; whether one is still needed."""
        if self.word in _PREFIXES and not self.ends_item(self.peek()):
            self.step()
            return True
        if self.token.kind is Kind.SYMBOL and self.word not in _OPENING and self.word != "?":
            self.step()
            return True
        if self.token.is_name:
            self.name(scope, first if is_list else None)
        else:
            self.one(scope)
        return False

    def after_operand(self, scope: Scope) -> bool:
        """One token, or what belongs together, behind an operand; whether an operand must follow."""
        word = self.word
        if word == "IS":
            self.step()
            self.accept("NOT")
            distinct = self.accept("DISTINCT", "FROM")
            if not distinct:
                self.step()
            return distinct
        if word in ("AS", "OVER", "COLLATE"):
            self.step()
            if self.token.is_name:
                self.step()
            return False
        if word == "::":
            self.step()
            self.skip_type()
            return False
        if word in _OPERATORS:
            self.step()
            return True
        if word == "." and self.peek().is_name:
            self.step(2)
            return False
        if self.token.kind is Kind.SYMBOL and word not in _OPENING and word != "?":
            self.step()
            return True
        self.one(scope)
        return False

    def skip_type(self) -> None:
        self.step()
        if self.word == "<":
            depth = 0
            while self.token.kind is not Kind.END:
                depth += {"<": 1, ">": -1}.get(self.word, 0)
                self.step()
                if depth == 0:
                    break
        if self.word == "(":
            self.skip_group()

    def star(self, scope: Scope, first: int, is_list: bool, qualifier: tuple[int, ...] = ()) -> None:
        """``*`` or the end of ``q.*``, with EXCEPT; an item of the SELECT list where it stands alone."""
        at = self.at
        self.step()
        opened = closed = None
        if self.word == "EXCEPT" and self.peek().word == "(" and not self.starts_query(2):
            self.step()
            opened = self.at
            self.skip_group()
            closed = self.at - 1
        start = qualifier[0] if qualifier else at
        if is_list and (start == first or self.tokens[start - 1].word == ","):
            self.found.stars.append(Star(scope, at, qualifier, opened, closed))

    def name(self, scope: Scope, first: int | None) -> None:
        """A name, dotted or not, in an expression."""
        parts = [self.at]
        self.step()
        while self.word == "." and self.peek().is_name:
            self.step()
            parts.append(self.at)
            self.step()
        if self.word == "." and self.peek().word == "*":
            self.step()
            self.found.chains.append(Chain(scope, tuple(parts), True))
            self.star(scope, first or 0, first is not None, tuple(parts))
        elif len(parts) > 1 and self.word != "(":
            self.found.chains.append(Chain(scope, tuple(parts), False))

    def walk(self, scope: Scope) -> None:
        """Everything up to the closing bracket."""
        while not self.at_close:
            self.one(scope)

    def one(self, scope: Scope) -> None:
        """A token, a dotted name or a group in brackets."""
        if self.word in _OPENING:
            if self.word == "(" and self.starts_query(1):
                self.step()
                self.query(scope, scope.ctes)
                self.close()
            else:
                self.step()
                self.walk(scope)
                self.step()
        elif self.token.is_name and self.tokens[self.at - 1].word != ":":
            self.name(scope, None)
        elif not self.at_close:
            self.step()

    def skip_group(self) -> None:
        """Past a group in brackets that holds no expressions."""
        self.at = min(self.closing[self.at] + 1, len(self.tokens) - 1)
