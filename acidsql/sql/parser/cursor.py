"""A position in the tokens of a statement, and parsers for common elements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

from acidsql.errors import AcidError, ParseError, UnsupportedError
from acidsql.sql.statements import Name, Number, PartitionSpec, Span, TableName, Text
from acidsql.sql.tokens import Kind, Token, tokenize

T = TypeVar("T")

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CLOSED = {")", "]", "}"}
_BEFORE_OPERANDS = {"AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "IN"}
QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")


class LeftToSpark(Exception):
    """Raised when only Spark can parse a statement, which is then passed to it."""


class Cursor:
    """Reads tokens from left to right. Each ``expect_…`` raises a ParseError at an unexpected token."""

    def __init__(self, source: str, tokens: list[Token] | None = None) -> None:
        self.source = source
        self.tokens = tokenize(source) if tokens is None else tokens
        self.at = 0
        self.begin = 0
        """Start of the statement; after EXPLAIN that of the inner statement."""

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def word(self) -> str:
        """The token's text in upper case; empty for quoted names, strings, numbers and the end."""
        return self.tokens[self.at].word

    def at_end(self) -> bool:
        return self.sees_kind(Kind.END)

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def sees(self, *words: str) -> bool:
        """Whether these words follow, in this order."""
        return all(self.peek(i).word == w for i, w in enumerate(words))

    def sees_kind(self, kind: Kind) -> bool:
        return self.tokens[self.at].kind is kind

    # --- reading -----------------------------------------------------------------------------------------------------

    def advance(self) -> Token:
        token = self.tokens[self.at]
        if token.kind is not Kind.END:
            self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Read these words if they follow, in this order."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def accept_one_of(self, *words: str) -> str | None:
        """Read one of these words if one follows."""
        return self.advance().word if self.word in words else None

    def expect(self, *words: str) -> None:
        for word in words:
            if self.word != word:
                raise self.error(f"Expected {word}")
            self.at += 1

    def accept_equals(self) -> bool:
        """``=``, or ``==``, which is equivalent in Spark."""
        return self.accept("=") or self.accept("==")

    def expect_one_of(self, *words: str) -> str:
        word = self.accept_one_of(*words)
        if word is None:
            raise self.error("Expected " + ", ".join(words[:-1]) + f" or {words[-1]}")
        return word

    def expect_end(self) -> None:
        if not self.at_end():
            raise self.error("Expected the end of the statement")

    # --- errors ------------------------------------------------------------------------------------------------------

    def error(self, message: str, token: Token | None = None, hint: str | None = None) -> ParseError:
        """A ParseError at a token (by default the current one), with the token in its message."""
        at = token or self.token
        actual = "the end" if at.kind is Kind.END else _shown(at)
        start = at.start
        if at.kind is Kind.END and len(self.tokens) > 1:
            start = self.tokens[-2].end
        return ParseError(f"{message}, found {actual}", hint=hint).locate(self.source, start, max(at.end, start + 1))

    def unsupported(
        self, message: str, token: Token | None = None, hint: str | None = None, code: int | None = None
    ) -> UnsupportedError:
        """An UnsupportedError at a token, with Hive's code and SQLSTATE if Hive refuses the same."""
        at = token or self.token
        error = UnsupportedError(message, hint=hint, code=code, sqlstate="42000" if code is not None else None)
        return error.locate(self.source, at.start, at.end)

    # --- spans -------------------------------------------------------------------------------------------------------

    def span(self, first: int, last: int | None = None) -> Span:
        """The text from the token at index ``first`` to the one before ``last`` (by default the current one)."""
        last = self.at if last is None else last
        end = self.tokens[last - 1].end if last > first else self.tokens[first].start
        return Span(self.source, self.tokens[first].start, end)

    def statement_span(self) -> Span:
        """The whole statement: from its first token to the last one read."""
        return self.span(self.begin)

    def rest(self) -> Span:
        """Everything up to the end, without the ``;``."""
        first = self.at
        self.at = len(self.tokens) - 1
        return self.span(first)

    # --- names -------------------------------------------------------------------------------------------------------

    def expect_name(self, what: str) -> Name:
        if not self.token.is_name:
            raise self.error(f"Expected {what}")
        token = self.advance()
        if token.quoted and not token.name:
            raise self.error(f"Expected {what}", token)
        self._refuse_dash(token)
        return Name(token.name, Span(self.source, token.start, token.end))

    def _refuse_dash(self, token: Token) -> None:
        following = self.token
        if following.word == "-" and following.start == token.end and self.peek().kind is not Kind.END:
            name = f"{token.name}-{self.peek().name}"
            raise self.error(f"The name {name} must be back-quoted", hint=f"Write `{name}`.")

    def expect_table(self, what: str = "a table name") -> TableName:
        """``[[catalog.]database.]table``; longer names, and IDENTIFIER (…), are left to Spark."""
        first = self.at
        if self.sees("IDENTIFIER", "("):
            raise LeftToSpark
        parts = [self.expect_name(what).text]
        while self.word == "." and self.peek().is_name:
            self.at += 1
            parts.append(self.expect_name(what).text)
        if self.word == ".":
            self.at += 1
            raise self.error("Expected a name after the dot")
        span = self.span(first)
        if len(parts) > 3:
            raise LeftToSpark
        catalog, database, table = [None] * (3 - len(parts)) + parts
        return TableName(str(table), database, span, catalog)

    def names_in_parentheses(self, what: str) -> tuple[Name, ...]:
        """``(a, b)``."""
        return self.list_in_parentheses(lambda: self.expect_name(what))

    def list_in_parentheses(self, item: Callable[[], T]) -> tuple[T, ...]:
        """``(item, item, …)``, at least one."""
        self.expect("(")
        items = [item()]
        while self.accept(","):
            items.append(item())
        if self.word != ")":
            raise self.error("Expected , or )")
        self.at += 1
        return tuple(items)

    def if_exists(self) -> bool:
        return self.sees("IF", "EXISTS") and self.accept("IF", "EXISTS")

    def if_not_exists(self) -> bool:
        return self.sees("IF", "NOT", "EXISTS") and self.accept("IF", "NOT", "EXISTS")

    # --- literals ----------------------------------------------------------------------------------------------------

    def expect_string(self, what: str) -> str:
        """A string; adjacent strings are concatenated, as in Spark."""
        if not self.sees_kind(Kind.STRING):
            raise self.error(f"Expected {what} in quotes")
        text = self.advance().value
        while self.sees_kind(Kind.STRING):
            text += self.advance().value
        return text

    def expect_text(self, what: str) -> Text:
        """A string with its position."""
        first = self.at
        return Text(self.expect_string(what), self.span(first))

    def expect_integer(self, what: str) -> int:
        if not self.sees_kind(Kind.NUMBER) or not self.token.text.isdecimal():
            raise self.error(f"Expected {what}")
        return int(self.advance().text)

    def expect_number(self, what: str) -> Number:
        """A whole number with its position."""
        first = self.at
        return Number(self.expect_integer(what), self.span(first))

    def properties(self) -> dict[str, str]:
        """``('key' = 'value', …)``; a key may also be ``a.b.c``, a value also a number, TRUE or FALSE."""
        return {key.text: value for key, value in self.named_properties()}

    def named_properties(self) -> tuple[tuple[Name, str], ...]:
        """As :meth:`properties`, with the positions of the keys."""

        def one() -> tuple[Name, str]:
            key = self.property_key()
            self.accept_equals()
            return key, self._property_value(key.text)

        return self.list_in_parentheses(one)

    def property_key(self) -> Name:
        """``'key'`` or ``a.b.c``."""
        first = self.at
        if self.sees_kind(Kind.STRING):
            return Name(self.expect_string("a property name"), self.span(first))
        parts = [self.expect_name("a property name").text]
        while self.accept("."):
            parts.append(self.expect_name("a property name").text)
        return Name(".".join(parts), self.span(first))

    def _property_value(self, key: str) -> str:
        if self.sees_kind(Kind.STRING):
            return self.expect_string("a value")
        if self.sees_kind(Kind.NUMBER):
            return self.advance().text
        if self.word in ("TRUE", "FALSE"):
            return self.advance().word.lower()
        raise self.error(f"Expected a value for property {key} (a string, a number, TRUE or FALSE)")

    # --- pieces that are left to Spark -------------------------------------------------------------------------------

    def skip_brackets(self) -> None:
        """Read from an opening bracket to just past the closing one."""
        opened = [self.token]
        self.at += 1
        while opened:
            token = self.token
            if token.kind is Kind.END:
                raise self.error(f"Expected {_CLOSING[opened[-1].text]}", hint=_where(self.source, opened[-1]))
            if token.word in _CLOSING:
                opened.append(token)
            elif token.word in _CLOSED:
                if token.word != _CLOSING[opened[-1].text]:
                    raise self.error(f"Expected {_CLOSING[opened[-1].text]}", hint=_where(self.source, opened[-1]))
                opened.pop()
            self.at += 1

    def skip_angles(self) -> None:
        """Read from the ``<`` of a type to just past its ``>``."""
        opened, depth = self.token, 0
        while not self.at_end():
            depth += {"<": 1, ">": -1}.get(self.word, 0)
            if self.word == "(":
                self.skip_brackets()
            else:
                self.at += 1
            if depth == 0:
                return
        raise self.error("Expected >", hint=_where(self.source, opened))

    def _skip_cast(self) -> None:
        """``::type``; its ``<``, ``,`` and ``>`` are not operators and do not end the expression."""
        self.at += 2
        if self.word == "<":
            self.skip_angles()

    def expect_expression(self, stops: Collection[str], what: str = "an expression") -> Span:
        """An expression up to ``,``, a closing bracket, the end, or one of the phrases that may follow it here.

        A phrase has one or more words, such as ``WHEN MATCHED``; inside ``CASE … END`` none ends the expression.
        """
        first, cast_end = self.at, -1
        while not self.at_end() and self.word != "," and self.word not in _CLOSED:
            if self.at_phrase(stops) and (self.at == cast_end or self._ends_expression(first, stops)):
                break
            if self.word in _CLOSING:
                self.skip_brackets()
            elif self.word == "::" and self.peek().is_name:
                self._skip_cast()
                cast_end = self.at
            elif not (stops and self._skip_case()):
                self.at += 1
        if self.at == first:
            raise self.error(f"Expected {what}")
        if self.at != cast_end and self._wants_operand(self.at - 1):
            raise self.error("Expected the rest of the expression")
        return self.span(first)

    def at_phrase(self, phrases: Collection[str]) -> bool:
        """Whether one of these phrases follows."""
        word = self.word
        return any(word == p or (p.startswith(f"{word} ") and self.sees(*p.split())) for p in phrases)

    def _ends_expression(self, first: int, stops: Collection[str]) -> bool:
        """Whether the stop phrase here ends the expression, and is not a column of that name, unlike two words."""
        before, after = self.tokens[self.at - 1], self.peek()
        if self.word not in stops:
            return before.word not in (".", ":")
        if self.at > first:
            return before.word not in (".", ":") and not self._wants_operand(self.at - 1)
        return not (after.kind is Kind.SYMBOL and after.word not in "([{")

    def _skip_case(self) -> bool:
        """Read ``CASE … END`` if it follows; a column named ``case`` has no END."""
        if self.word != "CASE" or self.tokens[self.at - 1].word in (".", ":"):
            return False
        first, depth = self.at, 0
        while not self.at_end() and self.word not in _CLOSED:
            if self.word in _CLOSING:
                self.skip_brackets()
                continue
            if self.tokens[self.at - 1].word not in (".", ":"):
                depth += (self.word == "CASE") - (self.word == "END")
            self.at += 1
            if depth == 0:
                return True
        self.at = first
        return False

    def _wants_operand(self, index: int) -> bool:
        """Whether an operand must follow the token at this index."""
        token = self.tokens[index]
        if token.kind is Kind.SYMBOL:
            return token.word not in _CLOSED and token.word != "?"
        return token.word in _BEFORE_OPERANDS and self.tokens[index - 1].word not in (".", ":")

    def partition_spec(self) -> PartitionSpec | None:
        """``PARTITION (p = 1, q)``, or None."""
        if not self.sees("PARTITION", "("):
            return None
        first = self.at
        self.at += 1
        keys = self.list_in_parentheses(self._partition_value)
        return PartitionSpec(keys, self.span(first))

    def _partition_value(self) -> tuple[Name, Span | None]:
        key = self.expect_name("a partition key")
        if self.accept_equals():
            return key, self.expect_expression((), "a value")
        return key, None

    def at_query(self) -> bool:
        """Whether a query can start here: SELECT, WITH, FROM, VALUES, TABLE, or any of them in parentheses."""
        ahead = 0
        while self.peek(ahead).word == "(":
            ahead += 1
        return self.peek(ahead).word in QUERY_WORDS

    def query(self, what: str = "a query") -> Span:
        """A query, which extends to the end of the statement."""
        if not self.at_query():
            raise self.error(f"Expected {what}")
        first = self.at
        self.skip_balanced()
        return self.span(first)

    def skip_balanced(self) -> None:
        """Skip to the end, checking only brackets."""
        while not self.at_end():
            if self.word in _CLOSED:
                raise self.error("Expected the end of the statement")
            if self.word in _CLOSING:
                self.skip_brackets()
            else:
                self.at += 1

    @contextmanager
    def at_statement(self) -> Iterator[None]:
        """Parse the statement that starts here, inside another one (EXPLAIN)."""
        outer, self.begin = self.begin, self.at
        yield
        self.begin = outer


def _shown(token: Token) -> str:
    text = token.text if len(token.text) <= 40 else f"{token.text[:37]}…"
    return text if token.kind in (Kind.STRING, Kind.QUOTED) else f"'{text}'"


def _where(source: str, opened: Token) -> str:
    place: AcidError = ParseError("").locate(source, opened.start)
    return f"The {opened.text} at line {place.line}:{place.column} is not closed."
