"""Scripts: where one statement ends and the next begins, and what ``${name}`` stands for."""

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
        line: The line of the script that it starts in, from 1.
        offset: Where it starts in the script.
    """

    text: str
    line: int
    offset: int


def split_script(text: str) -> list[ScriptStatement]:
    """The statements of a script; a ``;`` outside of strings, quoted names and comments ends one. Empty ones count not.

    Raises:
        ParseError: When a string, a quoted name or a comment is not closed.
    """
    found: list[ScriptStatement] = []
    piece: list[Token] = []
    for token in tokenize(text):
        if token.word == ";" or not token.text:
            if piece:
                start = piece[0].start
                found.append(ScriptStatement(text[start : piece[-1].end], text.count("\n", 0, start) + 1, start))
            piece = []
        else:
            piece.append(token)
    return found


_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_PREFIXES = ("hivevar:", "hiveconf:")


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Put the values of variables in the place of ``${name}``, ``${hivevar:name}`` and ``${hiveconf:name}``.

    As in Hive and Spark this is done to the text, inside strings too. A variable that nobody knows is left alone in a
    comment. What a value brings in is not looked at again.

    Raises:
        ParseError: When a variable has no value.
    """
    if "${" not in text:
        return text
    commented = _Comments(text)

    def value(found: re.Match[str]) -> str:
        name = found[1].strip()
        bare = next((name[len(p) :] for p in _PREFIXES if name.lower().startswith(p)), name)
        for candidate in (name, bare):
            if candidate in variables:
                return str(variables[candidate])
        if commented.hold(found.start()):
            return found[0]
        known = ", ".join(sorted(variables)) or "none"
        raise ParseError(f"The variable {bare} has no value", hint=f"Variables that have one: {known}.").locate(
            text, found.start(), found.end()
        )

    return _VARIABLE.sub(value, text)


class _Comments:
    """Which places of a text are in comments; none where the text cannot be taken apart before its variables are in."""

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
