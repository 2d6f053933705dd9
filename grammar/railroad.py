"""Draws the productions of ``acidsql.ebnf`` as railroad diagrams in text.

``python grammar/railroad.py`` puts the drawings into ``grammar/README.md``; a test sees that they are up to date.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GRAMMAR = Path(__file__).parent / "acidsql.ebnf"
README = Path(__file__).parent / "README.md"
BEGIN = "<!-- drawn by grammar/railroad.py -->\n"
END = "<!-- end of the drawings -->\n"
WIDTH = 100
"""Columns after which a drawing goes on in the next line, where its top level allows it."""


# --- the grammar as trees --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Word:
    """A keyword or sign."""

    text: str


@dataclass(frozen=True)
class Reference:
    """The name of a production."""

    text: str


@dataclass(frozen=True)
class Described:
    """``? in words ?``."""

    text: str


@dataclass(frozen=True)
class Sequence:
    """One after the other; nothing at all where it is empty."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of these."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Loop:
    """Once or more, with something (or nothing) between."""

    body: Node
    between: Node


Node = Word | Reference | Described | Sequence | Choice | Loop
NOTHING = Sequence(())

_TOKEN = re.compile(
    r"""\(\*.*?\*\)|"(?P<a>[^"]*)"|'(?P<b>[^']*)'|\?(?P<words>[^?]*)\?|(?P<name>\w+)|[=,;|()\[\]{}]""", re.DOTALL
)


def productions(text: str) -> dict[str, Node]:
    """The productions of a grammar in ISO 14977's notation, by name, in their order."""
    tokens = [m for m in _TOKEN.finditer(text) if not m[0].startswith("(*")]
    return _Reader(tokens).productions()


class _Reader:
    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self.tokens = tokens
        self.at = 0

    def next(self) -> re.Match[str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, sign: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at][0] == sign
        self.at += found
        return found

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            around = " ".join(m[0] for m in self.tokens[max(0, self.at - 5) : self.at + 1])
            raise ValueError(f"expected {sign} at the end of: {around}")

    def productions(self) -> dict[str, Node]:
        found: dict[str, Node] = {}
        while self.at < len(self.tokens):
            name = self.next()["name"]
            self.expect("=")
            found[name] = self.choice()
            self.expect(";")
        return found

    def choice(self) -> Node:
        parts = [self.sequence()]
        while self.accept("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self) -> Node:
        parts = self.part([])
        while self.accept(","):
            parts = self.part(parts)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def part(self, before: list[Node]) -> list[Node]:
        """One part more; ``a, { sign, a }`` becomes a loop with the sign between."""
        if not self.accept("{"):
            return [*before, self.one()]
        body = self.choice()
        self.expect("}")
        if isinstance(body, Sequence) and len(body.parts) > 1:
            sign, again = body.parts[0], list(body.parts[1:])
            if before[-len(again) :] == again:
                return [*before[: -len(again)], Loop(again[0] if len(again) == 1 else Sequence(tuple(again)), sign)]
        if before and before[-1] == body:
            return [*before[:-1], Loop(body, NOTHING)]
        return [*before, Choice((NOTHING, Loop(body, NOTHING)))]

    def one(self) -> Node:
        for opening, closing in ("()", "[]"):
            if self.accept(opening):
                body = self.choice()
                self.expect(closing)
                return body if opening == "(" else _optional(body)
        token = self.next()
        if token["name"] is not None:
            return Reference(token["name"])
        if token["words"] is not None:
            return Described(" ".join(token["words"].split()))
        return Word(token["a"] if token["a"] is not None else token["b"])


def _optional(body: Node) -> Node:
    return Choice((*body.parts, NOTHING)) if isinstance(body, Choice) else Choice((body, NOTHING))


# --- drawings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """Lines of one width; the track goes in and out in line ``track``."""

    lines: tuple[str, ...]
    track: int = 0

    @property
    def width(self) -> int:
        return len(self.lines[0])

    def padded(self, width: int) -> Drawing:
        """As wide as this; the track is made longer."""
        missing = width - self.width
        return Drawing(
            tuple(s + ("─" if i == self.track else " ") * missing for i, s in enumerate(self.lines)), self.track
        )


def draw(node: Node) -> Drawing:
    """The drawing of a piece of a grammar."""
    if isinstance(node, Word | Reference):
        return Drawing((f" {node.text} ",))
    if isinstance(node, Described):
        lines = textwrap.wrap(f"⟨{node.text}⟩", 48)
        width = max(map(len, lines))
        return Drawing(tuple(f" {line.ljust(width)} " for line in lines))
    if isinstance(node, Sequence):
        return _joined([draw(p) for p in node.parts])
    if isinstance(node, Choice):
        return _stacked([draw(p) for p in node.parts], "├┤")
    return _stacked([draw(node.body), _backwards(draw(node.between))], "││")


def _joined(drawings: list[Drawing]) -> Drawing:
    """One behind the other on one track."""
    made = Drawing(("─",))
    for drawing in drawings:
        above = max(made.track, drawing.track)
        below = max(len(made.lines) - made.track, len(drawing.lines) - drawing.track)
        left, right = (_raised(d, above, below) for d in (made, drawing))
        pairs = zip(left.lines, right.lines, strict=True)
        made = Drawing(tuple(a + b + ("─" if i == above else " ") for i, (a, b) in enumerate(pairs)), above)
    return made


def _raised(drawing: Drawing, above: int, below: int) -> Drawing:
    blank = " " * drawing.width
    top = [blank] * (above - drawing.track)
    bottom = [blank] * (below - (len(drawing.lines) - drawing.track))
    return Drawing((*top, *drawing.lines, *bottom), above)


def _backwards(drawing: Drawing) -> Drawing:
    lines = [("◀" if i == drawing.track else " ") + s for i, s in enumerate(drawing.lines)]
    return Drawing(tuple(lines), drawing.track)


def _stacked(drawings: list[Drawing], middle: str) -> Drawing:
    """One below the other, between two switches; the first lies on the main track."""
    width = max(d.width for d in drawings)
    lines: list[str] = []
    tracks: list[int] = []
    for drawing in drawings:
        tracks.append(len(lines) + drawing.track)
        lines += drawing.padded(width).lines
    first, last = tracks[0], tracks[-1]

    def rail(i: int, ends: str, branch: str) -> str:
        if i == first:
            return "┬"
        if i == last:
            return ends
        if i in tracks:
            return branch
        return "│" if first < i < last else " "

    made = [f"{rail(i, '╰', middle[0])}{s}{rail(i, '╯', middle[1])}" for i, s in enumerate(lines)]
    return Drawing(tuple(f"─{s}─" if i == first else f" {s} " for i, s in enumerate(made)), first)


def draw_production(node: Node) -> str:
    """The drawing of a whole production, over several lines where it is wide."""
    parts = [draw(p) for p in node.parts] if isinstance(node, Sequence) else [draw(node)]
    rows: list[list[Drawing]] = [[]]
    for part in parts:
        if rows[-1] and sum(d.width + 1 for d in rows[-1]) + part.width > WIDTH:
            rows.append([])
        rows[-1].append(part)
    made: list[str] = []
    for i, row in enumerate(rows):
        drawing = _joined(row)
        begin, end = ("╟" if i == 0 else "▷"), ("╢" if i == len(rows) - 1 else "▷")
        for at, line in enumerate(drawing.lines):
            made.append((begin + line + end if at == drawing.track else f" {line}").rstrip())
    return "\n".join(made)


def document(text: str) -> str:
    """All drawings of a grammar, as Markdown."""
    pieces = [f"**{name}**\n\n```text\n{draw_production(node)}\n```\n" for name, node in productions(text).items()]
    return "\n".join(pieces)


def with_drawings(readme: str, drawings: str) -> str:
    """The README with these drawings between its marks."""
    head, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{drawings}\n{END}{tail}"


def main(write: Callable[[str], object] = lambda text: README.write_text(text, encoding="utf-8")) -> None:
    """Draw the grammar into the README."""
    drawings = document(GRAMMAR.read_text(encoding="utf-8"))
    write(with_drawings(README.read_text(encoding="utf-8"), drawings))


if __name__ == "__main__":
    main()
