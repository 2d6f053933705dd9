"""Detects whether the input is a complete statement, with the quotes and comments of Spark's lexer."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"/\*|\*/")
# A raw string has no escapes; a doubled quote is the end of one string and the start of the next.
_PIECE = re.compile(
    r"""(?<!\w)[rR](?: '[^']*' | "[^"]*" ) | '(?: \\. | [^'\\] )*' | "(?: \\. | [^"\\] )*" | `[^`]*` | \s+ | .""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES = "'\"`"
OPEN = "open"


def is_complete(text: str) -> bool:
    """Whether the text ends in a ``;`` that closes a statement; comments may follow it."""
    return _last(text) == ";"


def is_blank(text: str) -> bool:
    """Whether the text contains only space, comments and ``;``."""
    return _last(text, ignore=";") == ""


def _last(text: str, ignore: str = "") -> str:
    """The last character outside of comments; OPEN when a quote or comment is not closed."""
    last, at = "", 0
    while at < len(text):
        if text.startswith("/*", at):
            at = _comment_end(text, at)
            if at < 0:
                return OPEN
            continue
        if text.startswith("--", at):
            newline = text.find("\n", at)
            at = len(text) if newline < 0 else newline
            continue
        piece = _PIECE.match(text, at)
        if piece is None or piece[0] in _QUOTES:
            return OPEN
        at = piece.end()
        if not piece[0].isspace() and piece[0] not in ignore:
            last = piece[0][-1]
    return last


def _comment_end(text: str, start: int) -> int:
    """The offset just past a bracketed comment, which may be nested; -1 when it is not closed."""
    depth = 0
    for mark in _COMMENT.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1
