"""Expressions inside a query: walked through, not understood.

What counts is where the next clause starts, and every word of Spark's may also be a name. So a word is a keyword only
where an operand just ended; where an operand must follow, it is one.
"""

from __future__ import annotations

from collections.abc import Collection

from acidsql.sql.query.structure import Chain, Scope, Star
from acidsql.sql.query.tokens import CLOSING, OPENING, OPERATORS, PREFIXES, SET_OPERATIONS, TokenReader
from acidsql.sql.tokens import Kind


class ExpressionReader(TokenReader):
    """Finds the stars, the dotted names and the subqueries of expressions."""

    def query(self, parent: Scope | None, ctes: frozenset[str]) -> None:
        """Read a query; there where queries are read."""
        raise NotImplementedError

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
        if word in stops:
            return True
        if word == "LATERAL":
            return self.peek().word == "VIEW"
        if word in ("SELECT", "MAP", "REDUCE"):
            return self.starts_query()
        if word == "FROM":
            return not (self.peek().word == "FROM" and self.is_last_word())
        return (word in SET_OPERATIONS or self.at_clause()) and not self.is_last_word()

    def operand(self, scope: Scope, first: int, is_list: bool) -> bool:
        """One token or group where an operand must stand; whether one is still needed."""
        if self.word in PREFIXES and not (self.ends_item(self.peek()) or self.is_last_word()):
            self.step()
            return True
        if self.token.kind is Kind.SYMBOL and self.word not in OPENING and self.word != "?":
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
        if word in OPERATORS:
            self.step()
            return True
        if word == "." and self.peek().is_name:
            self.step(2)
            return False
        if self.token.kind is Kind.SYMBOL and word not in OPENING and word != "?":
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
        if self.word in OPENING:
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

    def close(self) -> None:
        """Past the closing bracket; what stands before it that was not understood is walked through."""
        if not self.at_close:
            self.doubt(f"{self.token.text} was not expected")
            self.walk(Scope(None, frozenset()))
        if self.word in CLOSING:
            self.step()
