"""Reads the structure of a query from its tokens: recursive descent along Spark's grammar, expressions as they are.

No tree is built: all that is kept is what splicing and pruning need (:class:`~acidsql.sql.query.structure.Structure`).
"""

from __future__ import annotations

from acidsql.sql.query.relations import RelationReader
from acidsql.sql.query.structure import Chain, Relation, Scope, Star, Structure
from acidsql.sql.query.tokens import JOINS, SET_OPERATIONS
from acidsql.sql.tokens import Token

__all__ = ["Chain", "Relation", "Scope", "Star", "Structure", "read_expression", "read_query"]


def read_query(source: str, tokens: list[Token]) -> Structure:
    """The structure of a query. ``tokens`` end with an END token."""
    reader = _QueryReader(source, tokens)
    reader.query(None, frozenset())
    reader.finish()
    return reader.found


def read_expression(source: str, tokens: list[Token], ctes: frozenset[str]) -> tuple[Structure, Scope]:
    """The structure of an expression, and the scope that its own columns belong to; its subqueries see ``ctes``."""
    reader = _QueryReader(source, tokens)
    scope = Scope(None, ctes)
    reader.walk(scope)
    reader.finish()
    return reader.found, scope


class _QueryReader(RelationReader):
    """Reads queries: WITH clauses, SELECTs, set operations and what follows them."""

    def query(self, parent: Scope | None, ctes: frozenset[str]) -> None:
        """``[WITH …] term [set operation term]… [ORDER BY …] [|> …]``."""
        if self.word == "WITH" and self.starts_query():
            ctes = self.with_clause(parent, ctes)
        scope = self.primary(parent, ctes)
        while not self.at_close:
            if self.word in SET_OPERATIONS:
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

    def pipe(self, scope: Scope, parent: Scope | None, ctes: frozenset[str]) -> None:
        """An operator of the pipe syntax. What ``*`` and names mean behind it is not followed."""
        self.doubt("pipe syntax")
        self.step()
        if self.word in SET_OPERATIONS:
            return
        if self.word in JOINS:
            self.joins(scope, [])
        elif self.word == "TABLESAMPLE":
            self.sample()
        else:
            self.step()
            self.region(scope)
        for relation in scope.relations:
            relation.filtered = False
