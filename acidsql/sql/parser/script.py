"""Scripts: splitting into statements, and substitution of ``${name}``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from acidsql.errors import ParseError
from acidsql.sql.tokens import Token, tokenize


@dataclass(frozen=True)
class ScriptStatement:
    """A statement of a script, without its ``;`` and without the comments around it.

    Attributes:
        text: The statement.
        line: Its first line in the script, from 1.
        offset: Its offset in the script.
    """

    text: str
    line: int
    offset: int


def split_script(text: str) -> list[ScriptStatement]:
    """The statements of a script, separated by ``;`` outside of strings, quoted names and comments; no empty ones.

    Raises:
        ParseError: When a string, a quoted name or a comment is not closed.
    """
    statements: list[ScriptStatement] = []
    piece: list[Token] = []
    for token in tokenize(text):
        if token.word == ";" or not token.text:
            if piece:
                start = piece[0].start
                statements.append(ScriptStatement(text[start : piece[-1].end], text.count("\n", 0, start) + 1, start))
            piece = []
        else:
            piece.append(token)
    return statements


_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_PREFIXES = ("hivevar:", "hiveconf:")


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``${name}``, ``${hivevar:name}`` and ``${hiveconf:name}`` by the values of variables.

    As in Hive and Spark this is a text substitution, also inside strings. In a comment an unknown variable is kept.
    Values are not substituted again.

    Raises:
        ParseError: When a variable has no value.
    """
    if "${" not in text:
        return text
    commented = _Comments(text)

    def value(match: re.Match[str]) -> str:
        name = match[1].strip()
        bare = next((name[len(p) :] for p in _PREFIXES if name.lower().startswith(p)), name)
        for candidate in (name, bare):
            if candidate in variables:
                return str(variables[candidate])
        if commented.hold(match.start()):
            return match[0]
        known = ", ".join(sorted(variables)) or "none"
        raise ParseError(f"The variable {bare} has no value", hint=f"Known variables: {known}.").locate(
            text, match.start(), match.end()
        )

    return _VARIABLE.sub(value, text)


class _Comments:
    """The comments of a text; none if it cannot be tokenised before substitution."""

    def __init__(self, text: str) -> None:
        try:
            tokens = tokenize(text)
        except ParseError:
            self._starts: list[int] = []
            self._ends: list[int] = [len(text)]
        else:
            self._starts = [t.start for t in tokens]
            self._ends = [t.end for t in tokens]

    def hold(self, offset: int) -> bool:
        before = bisect_right(self._starts, offset) - 1
        if not self._starts:
            return False
        return before < 0 or offset >= self._ends[before]
