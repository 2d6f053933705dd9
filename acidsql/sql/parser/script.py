"""Scripts: splitting into statements, and substitution of ``${name}``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acidsql.errors import ParseError
from acidsql.sql.tokens import Token, tokenize


@dataclass(frozen=True)
class ScriptStatement:
    """A statement of a script, without its ``;`` and without the comments around it.

    Attributes:
        text: The statement.
        line: Its first line in the script, from 1.
        column: Where it begins in that line, from 1.
        offset: Its offset in the script.
    """

    text: str
    line: int
    column: int
    offset: int


def split_script(text: str) -> list[ScriptStatement]:
    """The statements of a script, separated by ``;`` outside of strings, quoted names and comments; no empty ones.

    ``BEGIN … END`` is one statement, with all that is in it.

    Raises:
        ParseError: When a string, a quoted name or a comment is not closed.
    """
    statements: list[ScriptStatement] = []
    tokens = tokenize(text)
    at = 0
    while tokens[at].text:
        if tokens[at].word == ";":
            at += 1
            continue
        first = at
        at = _end_of_compound(tokens, at) or at
        while tokens[at].text and tokens[at].word != ";":
            at += 1
        start = tokens[first].start
        found = text[start : tokens[at - 1].end]
        statements.append(
            ScriptStatement(found, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start), start)
        )
    return statements


_OPENING = {"BEGIN", "CASE", "FOR", "IF", "LOOP", "REPEAT", "WHILE"}
"""What begins a part of a compound statement that END ends, where it stands at the beginning of a statement."""


class _Opened(NamedTuple):
    """Such a word; other than as a statement (CASE as an expression) no statement begins within."""

    word: str
    is_statement: bool


def is_open_script(text: str) -> bool:
    """Whether a script ends within a ``BEGIN … END``, so that a ``;`` does not complete it."""
    try:
        return any(_end_of_compound(tokenize(text[s.offset :]), 0) is None for s in split_script(text))
    except ParseError:
        return False


def _end_of_compound(tokens: Sequence[Token], at: int) -> int | None:
    """Behind the END of a ``BEGIN … END``, by the grammar of Spark's SQL scripting; None if the END is missing.

    0 for anything else: ``BEGIN``, ``BEGIN TRANSACTION`` and ``BEGIN WORK`` start a transaction.
    """
    following = tokens[at + 1] if tokens[at].word == "BEGIN" else tokens[-1]
    if following.word in (";", "TRANSACTION", "WORK") or not following.text:
        return 0
    opened: list[_Opened] = []
    starts, is_label, position = True, False, at
    while tokens[position].text:
        word, started = tokens[position].word, starts
        starts = False
        if not started and tokens[position - 1].word in (".", ":"):  # t.end, :case
            pass
        elif word == "END":
            last = opened.pop()
            if not opened:
                return position + 1
            if last.is_statement and tokens[position + 1].word == last.word:  # END IF
                position += 1
        elif word in ("BEGIN", "CASE") or (started and word in _OPENING):
            opened.append(_Opened(word, started or word == "BEGIN"))
            starts = word in ("BEGIN", "LOOP", "REPEAT")
        elif opened[-1].is_statement:
            starts = word in (";", "THEN", "ELSE", "DO") or (word == ":" and is_label)
        is_label = started and tokens[position].is_name and word != "SELECT"
        position += 1
    return None


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
