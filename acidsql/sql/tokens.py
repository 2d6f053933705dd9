"""The tokens of a statement: sqlglot's Spark tokenizer, with the source position of every token.

The text between two tokens (space, comments, hints) is scanned here too, because sqlglot differs from Spark in
unclosed comments and in line comments continued with a backslash. Spark's rules apply.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from acidsql.errors import ParseError


class Kind(Enum):
    """The kind of a token."""

    WORD = "word"
    """A keyword or an unquoted name, depending on the context."""
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"
    """Follows the last token; its text is empty."""


class Token(NamedTuple):
    """A token: ``source[start:end]`` is its ``text``.

    ``word`` is the text in upper case for words and symbols and empty for everything else, so that comparing it with a
    keyword never takes a quoted name or a string for one.
    """

    kind: Kind
    text: str
    start: int
    end: int
    word: str

    @property
    def quoted(self) -> bool:
        """Whether it is a back-quoted name."""
        return self.kind is Kind.QUOTED

    @property
    def is_name(self) -> bool:
        """Whether it can be an identifier; every keyword of Spark's can."""
        return self.kind is Kind.WORD or self.kind is Kind.QUOTED

    @property
    def name(self) -> str:
        """The identifier without its back-quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is Kind.QUOTED else self.text

    @property
    def value(self) -> str:
        """The value of a string literal."""
        return unescape(self.text)


class _SourceTokenizer(Spark.Tokenizer):
    """Spark's tokenizer without the features for sqlglot's own parser.

    No keywords (so ``ORDER  BY`` stays two words, and ``SHOW …`` is not swallowed whole as a command), no Jinja, no
    hints (they are comments here), no type suffixes that split ``1L`` in three. As in Spark 4, a doubled quote inside a
    string is an escaped quote (``spark.sql.legacy.consecutiveStringLiterals.enabled`` is off).
    """

    KEYWORDS = {  # noqa: RUF012 - a class attribute of sqlglot
        symbol: Spark.Tokenizer.KEYWORDS[symbol]
        for symbol in ("==", "::", "||", "|>", ">=", "<=", "<>", "!=", "<=>", "->", "=>")
    }
    COMMANDS = set()  # noqa: RUF012
    NUMERIC_LITERALS = {}  # noqa: RUF012
    HEX_STRINGS = []  # noqa: RUF012
    STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012


_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[lLsSyYfFdD]|[bB][dD])?")
_QUOTES = ("'", '"')
_SPACE = re.compile(r"\s+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*\r?\n?")
_COMMENT_MARK = re.compile(r"/\*|\*/")


def tokenize(source: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of ``source[start:end]``, followed by an END token; offsets are those of the source.

    Raises:
        ParseError: When a string, a quoted name or a comment is not closed.
    """
    stop = len(source) if end is None else end
    if start == 0 and stop == len(source):
        return list(_tokens_of(source))
    return _cut(_tokens_of(source), start, stop)


@lru_cache(maxsize=1)
def _tokens_of(source: str) -> tuple[Token, ...]:
    """All tokens of a text. The last text is cached: the spans of a statement are tokenised after the statement."""
    tokens: list[Token] = []
    at = 0
    while at < len(source):
        at = _scan(source, at, len(source), tokens)
    tokens.append(Token(Kind.END, "", len(source), len(source), ""))
    return tuple(tokens)


def _cut(tokens: tuple[Token, ...], start: int, stop: int) -> list[Token]:
    first = bisect_left(tokens, start, key=lambda t: t.start)
    last = bisect_left(tokens, stop, lo=first, key=lambda t: t.start)
    return [*tokens[first:last], Token(Kind.END, "", stop, stop, "")]


def _scan(source: str, start: int, stop: int, tokens: list[Token]) -> int:
    """Add tokens from ``start`` on; returns where to restart, if Spark sees a comment where sqlglot sees tokens."""
    tokenizer = _SourceTokenizer(dialect=Spark)
    piece = source[start:stop]
    broken = False
    try:
        raw = tokenizer.tokenize(piece)
    except TokenError:
        raw, broken = list(tokenizer.tokens), True
    at = start
    for token in raw:
        begin, finish = token.start + start, token.end + 1 + start
        gap = source[at:begin]
        at = skip_gap(source, at, stop) if gap and not gap.isspace() else begin
        if at > begin:
            return at
        if at < begin:
            raise _unexpected(source, at)
        if source[begin] in "nN" and source[begin + 1 : begin + 2] in _QUOTES:
            # sqlglot's national strings; for Spark a word and a string.
            tokens.append(_make(source, begin, begin + 1))
            begin += 1
        tokens.append(_make(source, begin, finish))
        at = finish
    at = skip_gap(source, at, stop)
    if at < stop:
        raise _not_closed(source, at) if broken else _unexpected(source, at)
    return stop


def _make(source: str, start: int, end: int) -> Token:
    text = source[start:end]
    first = text[0]
    if first == "`":
        return Token(Kind.QUOTED, text, start, end, "")
    if text[-1] in "'\"" and len(text) > 1:
        return Token(Kind.STRING, text, start, end, "")
    if first.isdigit() and _NUMBER.fullmatch(text):
        return Token(Kind.NUMBER, text, start, end, "")
    if first.isalnum() or first == "_":
        return Token(Kind.WORD, text, start, end, text.upper())
    return Token(Kind.SYMBOL, text, start, end, text)


def skip_gap(source: str, start: int, stop: int) -> int:
    """The first offset at or after ``start`` that is neither space nor in a comment or hint.

    Raises:
        ParseError: When a bracketed comment is not closed.
    """
    at = start
    while at < stop:
        if source[at].isspace():
            match = _SPACE.match(source, at, stop)
        elif source.startswith("--", at):
            match = _LINE_COMMENT.match(source, at, stop)
        elif source.startswith("/*", at):
            at = _comment_end(source, at, stop)
            continue
        else:
            return at
        assert match is not None
        at = match.end()
    return at


def _comment_end(source: str, start: int, stop: int) -> int:
    """The offset just past a bracketed comment, which may be nested."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(source, start, stop):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise ParseError("The comment is not closed", hint="Each /* needs a */.").locate(source, start, start + 2)


def _not_closed(source: str, at: int) -> ParseError:
    what = "quoted name" if source[at] == "`" else "string"
    return ParseError(f"The {what} is not closed").locate(source, at)


def _unexpected(source: str, at: int) -> ParseError:
    return ParseError(f"Unexpected {source[at]!r}").locate(source, at)


# --- strings ---------------------------------------------------------------------------------------------------------

_ESCAPE = re.compile(
    r"\\(?:u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<one>.))", re.DOTALL
)
_ONE = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unescape(literal: str) -> str:
    """The value of a string literal, by Spark's rules (``SparkParserUtils.unescapeSQLString``)."""
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]
    body = literal[1:-1].replace(quote * 2, quote)
    return _ESCAPE.sub(_replace_escape, body) if "\\" in body else body


def _replace_escape(match: re.Match[str]) -> str:
    if match["one"] is not None:
        return _ONE.get(match["one"], match["one"])
    if match["octal"] is not None:
        return chr(int(match["octal"], 8))
    point = int(match["short"] or match["long"], 16)
    return chr(point) if point <= 0x10FFFF else "\ufffd"
