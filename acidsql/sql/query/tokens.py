"""Walking over the tokens of a query: what stands here, and which words end what."""

from __future__ import annotations

from acidsql.sql.query.structure import Structure
from acidsql.sql.tokens import Kind, Token

SET_OPERATIONS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
BY = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
CLAUSES = {"WHERE", "HAVING", "LIMIT", "OFFSET", "WINDOW", *BY}
JOINS = {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}
NEVER_ALIAS = {"ON", "USING", "LATERAL"} | SET_OPERATIONS | JOINS
"""Words that Spark takes for no alias (``strictNonReserved`` of its grammar)."""
HARDLY_ALIAS = {"FROM", "PIVOT", "UNPIVOT", "SELECT", "TABLESAMPLE", "WHERE", "HAVING", "LIMIT", "OFFSET", "WINDOW"}
OPERATORS = {"AND", "OR", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "ESCAPE", "WHEN", "THEN", "ELSE", "IN"}
PREFIXES = {"NOT", "CASE", "WHEN", "THEN", "ELSE"}
OPERAND_SIGNS = {"(", "-", "+", "~", "!", ":", "?"}
"""Signs that an operand may begin with."""
CLOSING = {")", "]", "}"}
OPENING = {"(", "[", "{"}


def _matching(tokens: list[Token]) -> dict[int, int]:
    """Where each opening bracket is closed, by their indexes; what is not closed is closed by the end."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.word in OPENING:
            opened.append(i)
        elif token.word in CLOSING and opened:
            found[opened.pop()] = i
    for i in opened:
        found[i] = len(tokens) - 2
    return found


class TokenReader:
    """A place in the tokens; ``at`` is the index of the next one. The last token is END."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0
        self.closing = _matching(tokens)
        self.found = Structure()

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
        return self.token.kind is Kind.END or self.word in CLOSING

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

    def skip_group(self) -> None:
        """Past a group in brackets that holds no expressions."""
        self.at = min(self.closing[self.at] + 1, len(self.tokens) - 1)

    # --- words -----------------------------------------------------------------------------------------------------

    def starts_query(self, ahead: int = 0) -> bool:
        """Whether a query starts here, and not a column or function that is called like its first word."""
        word, following = self.peek(ahead).word, self.peek(ahead + 1)
        if following.kind is Kind.END:
            return False
        if word == "(":
            return self.starts_query(ahead + 1) and self.ends_query(self.closing.get(self.at + ahead, 0) + 1)
        if word == "SELECT":
            return following.kind is not Kind.SYMBOL or following.word in OPERAND_SIGNS | {"*"}
        if word == "WITH":
            return following.is_name and (self.peek(ahead + 2).word in ("AS", "(") or following.word == "RECURSIVE")
        if following.word in NEVER_ALIAS | {"AS"} and self.peek(ahead + 2).is_name:
            return False
        if word == "FROM":
            return following.is_name or following.word == "("
        if word == "VALUES":
            return following.kind is not Kind.SYMBOL or following.word in OPERAND_SIGNS
        if word == "TABLE":
            return following.is_name
        return word in ("MAP", "REDUCE") and (following.is_name or following.kind is Kind.STRING)

    def ends_query(self, index: int) -> bool:
        """Whether a query in parentheses, behind which this token stands, is one of its own and no operand."""
        token, following = self.tokens[index], self.tokens[min(index + 1, len(self.tokens) - 1)]
        if token.kind is Kind.END or token.word in CLOSING or token.word in SET_OPERATIONS or token.word == "|>":
            return True
        return following.word == "BY" if token.word in BY else token.word in ("LIMIT", "OFFSET")

    @staticmethod
    def ends_item(token: Token) -> bool:
        """Whether a token behind a word makes that word an item of its own."""
        return token.kind is Kind.END or token.word in {",", ")", ".", "AS", "="}

    def is_last_word(self) -> bool:
        """Whether nothing follows here that a clause could go on with: the word is an alias then."""
        following, second = self.peek(), self.peek(2)
        if following.word == "FROM" and self.word not in SET_OPERATIONS:
            return second.word == "(" or (second.is_name and second.word not in HARDLY_ALIAS | NEVER_ALIAS | BY)
        return following.kind is Kind.END or following.word in {",", ")"}

    def may_be_alias(self) -> bool:
        """Whether a name stands here that is not the first word of what may follow a relation."""
        if not self.token.is_name or self.word in NEVER_ALIAS:
            return False
        return self.is_last_word() or not (self.word in HARDLY_ALIAS or self.at_clause())

    def at_clause(self) -> bool:
        if self.word in BY:
            return self.peek().word == "BY"
        if self.word == "WINDOW":
            return self.peek().is_name and self.peek(2).word == "AS"
        return self.word in CLAUSES
