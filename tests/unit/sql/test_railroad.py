"""The drawings of the grammar are those of the grammar."""

from __future__ import annotations

import re

import pytest

from grammar import railroad
from tests.unit.sql.corpus import productions

TEXT = railroad.GRAMMAR.read_text(encoding="utf-8")


def test_the_readme_has_the_drawings_of_todays_grammar() -> None:
    readme = railroad.README.read_text(encoding="utf-8")
    assert railroad.with_drawings(readme, railroad.document(TEXT)) == readme


def test_every_production_is_drawn() -> None:
    assert set(railroad.productions(TEXT)) == productions()


def pieces(node: railroad.Node) -> set[str]:
    """The words that a drawing must show."""
    if isinstance(node, railroad.Sequence | railroad.Choice):
        return {piece for part in node.parts for piece in pieces(part)}
    if isinstance(node, railroad.Loop):
        return pieces(node.body) | pieces(node.between)
    return set(node.text.split())


@pytest.mark.parametrize("name", sorted(productions()))
def test_a_drawing_shows_every_word_of_its_production(name: str) -> None:
    node = railroad.productions(TEXT)[name]
    drawing = railroad.draw_production(node)
    assert all(piece in drawing for piece in pieces(node))
    assert drawing.startswith("╟")
    assert drawing.count("╢") == 1
    assert max(map(len, drawing.splitlines())) <= 120


@pytest.mark.parametrize(
    ("production", "drawing"),
    [
        ('a = "X", b ;', "╟─ X ─ b ─╢"),
        ('a = "X" | b ;', "╟──┬ X ┬──╢\n   ╰ b ╯"),
        ("a = [ b ] ;", "╟──┬ b ┬──╢\n   ╰───╯"),
        ('a = b, { ",", b } ;', "╟──┬ b ─┬──╢\n   ╰◀ , ╯"),
        ("a = b, { b } ;", "╟──┬ b ┬──╢\n   ╰◀──╯"),
        ("a = { b } ;", "╟──┬───────┬──╢\n   ╰─┬ b ┬─╯\n     ╰◀──╯"),
        ("a = ( b | c ), ? in words ? ; (* not this *)", "╟──┬ b ┬── ⟨in words⟩ ─╢\n   ╰ c ╯"),
    ],
)
def test_what_the_signs_of_the_notation_look_like(production: str, drawing: str) -> None:
    assert railroad.draw_production(railroad.productions(production)["a"]) == drawing


@pytest.mark.parametrize("text", ["a = b", "a = ( b ;", "a b ;", "a = { b ] ;"])
def test_a_production_that_is_not_well_formed_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        railroad.productions(text)


def test_a_wide_production_goes_on_in_the_next_line() -> None:
    text = "a = " + ", ".join(f'"{c * 40}"' for c in "xyz") + " ;"
    first, second = re.split("\n", railroad.draw_production(railroad.productions(text)["a"]))
    assert first.endswith("▷")
    assert second.startswith("▷")
