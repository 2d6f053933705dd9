"""Pieces of a statement at their own lines and columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import InvalidValue
from acidsql.sql.placed import padded, with_versions
from acidsql.sql.statements import Span


def whole(text: str) -> Span:
    return Span(text, 0, len(text))


@given(st.text(alphabet="a \n'é"), st.text(alphabet="bc\n", min_size=1), st.text(alphabet="d\n"))
def test_a_piece_keeps_its_line_and_its_column(before: str, piece: str, after: str) -> None:
    source = before + piece + after
    text = padded(Span(source, len(before), len(before) + len(piece)))
    assert text.endswith(piece)
    assert text.count("\n") == (before + piece).count("\n")
    head = text[: len(text) - len(piece)]
    assert len(head) == len(before)
    assert len(head.rpartition("\n")[2]) == len(before.rpartition("\n")[2])
    assert not head.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t VERSION AS OF :n", "SELECT * FROM t VERSION AS OF 7 "),
        ("SELECT * FROM t FOR SYSTEM_VERSION AS OF :n x", "SELECT * FROM t FOR SYSTEM_VERSION AS OF 7  x"),
        ("SELECT ':n', `VERSION AS OF :n` FROM t", "SELECT ':n', `VERSION AS OF :n` FROM t"),
        ("SELECT version FROM t WHERE a = :n", "SELECT version FROM t WHERE a = :n"),
        ("SELECT * FROM t VERSION AS OF :other", "SELECT * FROM t VERSION AS OF :other"),
    ],
)
def test_a_parameter_behind_version_as_of_becomes_its_number(text: str, expected: str) -> None:
    assert with_versions(whole(text), {"n": 7}).text == expected


@pytest.mark.parametrize("value", ["7", 7.0, True, None])
def test_a_version_that_is_no_whole_number_is_refused_at_its_place(value: object) -> None:
    with pytest.raises(InvalidValue, match="VERSION AS OF takes a write id") as caught:
        with_versions(whole("SELECT * FROM t VERSION AS OF :n"), {"n": value})
    assert (caught.value.line, caught.value.column) == (1, 31)
