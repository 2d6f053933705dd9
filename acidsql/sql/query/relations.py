"""The FROM clause: tables, subqueries, table functions, VALUES, and the joins between them."""

from __future__ import annotations

from acidsql.errors import ParseError
from acidsql.sql.query.expressions import ExpressionReader
from acidsql.sql.query.structure import Relation, Scope
from acidsql.sql.query.tokens import BY, HARDLY_ALIAS, JOINS, NEVER_ALIAS
from acidsql.sql.statements import Span, TableName
from acidsql.sql.tokens import Kind, tokenize

_VERSIONS = {"VERSION", "SYSTEM_VERSION"}
_TRAVELS = {*_VERSIONS, "TIMESTAMP", "SYSTEM_TIME"}
_UNITS = {"YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}


class RelationReader(ExpressionReader):
    """Finds the tables of a FROM clause."""

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
            while self.word in JOINS | {"OUTER"} and self.word != "JOIN":
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
        padded = [
            *(right if "LEFT" in words or "FULL" in words else []),
            *(left if {"RIGHT", "FULL"} & {*words} else []),
        ]
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
            self.region(scope, stops={",", "LATERAL", "PIVOT", "UNPIVOT"} | JOINS)
            if set(words) <= {"INNER", "CROSS"}:
                scope.inner_on.append((start, self.at))
        elif self.word == "USING" and self.peek().word == "(":
            self.step()
            self.skip_group()

    def relation_primary(self, scope: Scope) -> list[Relation]:
        if self.word == "LATERAL" and (self.peek().is_name or self.peek().word == "("):
            self.step()
        if self.word == "(":
            return self.parenthesised(scope)
        if self.word == "VALUES" and self.is_inline_table():
            self.values(scope)
            return []
        if not self.token.is_name:
            self.doubt(f"{self.token.text or 'the end'} was not expected where a table is named")
            return []
        if self.word == "IDENTIFIER" and self.peek().word == "(":
            return self.identifier_clause(scope)
        if self.is_call():
            self.function(scope)
            return []
        return self.table(scope)

    def values(self, scope: Scope) -> None:
        """``VALUES row, row … [[AS] alias [(columns)]]``."""
        self.step()
        scope.others += 1
        while True:
            self.region(scope, stops={",", "AS"} | JOINS)
            if not self.accept(","):
                break
        self.other_alias(scope)

    def parenthesised(self, scope: Scope) -> list[Relation]:
        """``(query)`` or ``(relation)``, with what may follow it."""
        is_query = self.starts_query(1) and not (self.peek().word == "VALUES" and self.holds_join())
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

    def is_inline_table(self) -> bool:
        """Whether VALUES starts a list here; a table of that name may have an alias behind it."""
        following, second = self.peek(), self.peek(2)
        if not following.is_name:
            return self.starts_query()
        # LEFT( and RIGHT( are functions too, all other words of these only go on after a table's name
        if following.word in HARDLY_ALIAS | BY | NEVER_ALIAS - {"LEFT", "RIGHT"}:
            return False
        return second.kind is Kind.STRING or (second.kind is Kind.SYMBOL and second.word not in {",", ")"})

    def holds_join(self) -> bool:
        """Whether JOIN stands in the brackets that open here, not deeper: ``(VALUES (1) AS v JOIN t)``."""
        at, end = self.at + 1, self.closing[self.at]
        while at < end:
            if self.tokens[at].word == "JOIN":
                return True
            at = self.closing.get(at, at) + 1
        return False

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

    def identifier_clause(self, scope: Scope) -> list[Relation]:
        """``IDENTIFIER('name')`` is a table; what other expressions stand for is known to Spark alone."""
        is_literal = (
            self.peek(2).kind is Kind.STRING and self.peek(3).word == ")" and self.peek(4).word not in ("(", ".")
        )
        parts = _name_parts(self.peek(2).value) if is_literal else []
        if not parts:
            self.function(scope)
            if self.word == "(":
                self.one(scope)
                self.other_alias(scope)
            return []
        start = self.token.start
        self.step(4)
        return self.named(scope, _table_name(parts, Span(self.source, start, self.tokens[self.at - 1].end)), len(parts))

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
            relations = self.table(inside, "argument", start)
            for relation in relations:
                relation.end = self.token.end
            self.close()

    def table(self, scope: Scope, body: str = "", body_start: int = 0) -> list[Relation]:
        """A table by its name, with time travel, options, sample and alias."""
        name, parts = self.dotted_name()
        return self.named(scope, name, parts, body, body_start)

    def named(self, scope: Scope, name: TableName, parts: int, body: str = "", body_start: int = 0) -> list[Relation]:
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
        self.time_travel(relation)
        if self.word == "WITH" and self.peek().word == "(":
            self.step()
            self.skip_group()
        if self.word == "TABLESAMPLE":
            self.sample()
            relation.filtered = False
        relation.end = self.tokens[self.at - 1].end

    def time_travel(self, relation: Relation) -> None:
        """``[FOR] (VERSION | TIMESTAMP | SYSTEM_VERSION | SYSTEM_TIME) AS OF value``."""
        first = self.at
        ahead = 1 if self.word == "FOR" else 0
        kind = self.peek(ahead).word
        if kind not in _TRAVELS or (self.peek(ahead + 1).word, self.peek(ahead + 2).word) != ("AS", "OF"):
            return
        self.step(ahead + 3)
        value = self.at
        self.travel_value(relation.scope)
        relation.travel = self.span(first)
        if kind in _VERSIONS and self.is_version(value):
            relation.version = self.span(value)
        else:
            relation.filtered = False

    def travel_value(self, scope: Scope) -> None:
        """A value: a literal, a parameter, a call or a group in brackets, and what operators join to it."""
        while True:
            while self.word in ("-", "+"):
                self.step()
            is_interval = self.word == "INTERVAL" and self.peek(2).word.removesuffix("S") in _UNITS
            is_typed = self.word in ("INTERVAL", "DATE", "TIMESTAMP") and self.peek().kind in (Kind.STRING, Kind.NUMBER)
            if is_typed and is_interval:
                self.step(3)
            elif is_typed or (self.word == ":" and self.peek().is_name):
                self.step(2)
            else:
                self.one(scope)
            if self.word == "(":
                self.one(scope)
            if self.word not in ("-", "+", "*", "/", "||"):
                return
            self.step()

    def is_version(self, first: int) -> bool:
        """Whether a whole number or ``:parameter`` stands from this token to the one before this place."""
        tokens = self.tokens[first : self.at]
        if len(tokens) == 1:
            return tokens[0].kind is Kind.NUMBER and tokens[0].text.isdecimal()
        return len(tokens) == 2 and tokens[0].word == ":" and tokens[1].is_name

    def span(self, first: int) -> Span:
        """The text from the token at this index to the one before this place."""
        return Span(self.source, self.tokens[first].start, self.tokens[self.at - 1].end)

    def sample(self) -> None:
        self.step()
        if self.word == "(":
            self.skip_group()
        if self.accept("REPEATABLE") and self.word == "(":
            self.skip_group()

    def alias(self, relation: Relation | None) -> str | None:
        """``[AS] alias [(columns)]``. In ``AS (columns)`` Spark takes AS for the alias."""
        if self.word == "AS" and self.peek().word != "(":
            self.step()
        elif self.word != "AS" and not self.may_be_alias():
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
        return _table_name(parts, Span(self.source, start, self.tokens[self.at - 1].end)), len(parts)

    def lateral_view(self, scope: Scope) -> None:
        self.step(2)
        self.accept("OUTER")
        scope.others += 1
        while self.token.is_name or self.word == ".":
            self.step()
        self.one(scope)
        view = self.word_or_name()
        if view:
            scope.other_names.append(view)
        self.accept("AS")
        while self.word_or_name() and self.accept(","):
            pass

    def word_or_name(self) -> str:
        """A name that stands here, in lower case, unless it is the first word of what follows; empty then."""
        token = self.token
        if token.word == "AS" or not self.may_be_alias():
            return ""
        self.step()
        return token.name.lower()

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


def _table_name(parts: list[str], span: Span) -> TableName:
    database = parts[-2] if len(parts) > 1 else None
    return TableName(parts[-1], database, span, parts[-3] if len(parts) > 2 else None)


def _name_parts(text: str) -> list[str]:
    """The parts of a dotted name; none where the text is something else."""
    try:
        tokens = tokenize(text)[:-1]
    except ParseError:
        return []
    names, dots = tokens[::2], tokens[1::2]
    is_name = len(tokens) % 2 == 1 and all(t.is_name for t in names) and all(t.word == "." for t in dots)
    return [t.name for t in names] if is_name else []
