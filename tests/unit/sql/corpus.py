"""Reads the corpus of statements in ``grammar/``; its format is described in ``grammar/README.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GRAMMAR = Path(__file__).parents[3] / "grammar"

_ACCEPT = re.compile(r"(?P<kind>\w+) covers: (?P<covers>[\w, ]+)")
_REJECT = re.compile(r"(?P<kind>\w+) (?P<line>\d+):(?P<column>\d+) (?P<message>.+)")


@dataclass(frozen=True)
class Accepted:
    file: str
    kind: str
    covers: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Rejected:
    file: str
    kind: str
    line: int
    column: int
    message: str
    text: str


def _sections(folder: str) -> Iterator[tuple[str, str, str]]:
    for path in sorted((GRAMMAR / folder).glob("*.sql")):
        for section in re.split(r"^--> ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, text = section.partition("\n")
            yield f"{folder}/{path.name}", head.strip(), text.strip().removesuffix(";").rstrip()


def accepted() -> list[Accepted]:
    """The statements that must parse."""
    found = []
    for file, head, text in _sections("accept"):
        match = _ACCEPT.fullmatch(head)
        assert match, f"{file}: {head}"
        found.append(Accepted(file, match["kind"], tuple(match["covers"].split(", ")), text))
    return found


def rejected() -> list[Rejected]:
    """The statements that must not parse."""
    found = []
    for file, head, text in _sections("reject"):
        match = _REJECT.fullmatch(head)
        assert match, f"{file}: {head}"
        place = int(match["line"]), int(match["column"])
        found.append(Rejected(file, match["kind"], *place, match["message"], text))
    return found


def productions() -> set[str]:
    """The names that the grammar defines."""
    text = re.sub(r"\(\*.*?\*\)", "", (GRAMMAR / "acidsql.ebnf").read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(r"^(\w+) *=", text, flags=re.MULTILINE))


def used_names() -> set[str]:
    """The names that the grammar's right-hand sides mention."""
    text = (GRAMMAR / "acidsql.ebnf").read_text(encoding="utf-8")
    text = re.sub(r"""\(\*.*?\*\)|\?[^?]*\?|"[^"]*"|'[^']*'""", " ", text, flags=re.DOTALL)
    return set(re.findall(r"\b[a-z_]+\b", re.sub(r"^\w+ *=", "", text, flags=re.MULTILINE)))
