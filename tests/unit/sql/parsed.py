"""A statement as the kind that it must be, and the text behind its spans."""

from __future__ import annotations

from typing import TypeVar

from acidsql.sql.parser import parse_statement, split_script
from acidsql.sql.statements import Default, Span, Statement

S = TypeVar("S", bound=Statement)


def parse(kind: type[S], text: str) -> S:
    """A statement, which is of this kind and has nothing around it but semicolons and comments at the end."""
    statement = parse_statement(text)
    assert type(statement) is kind
    assert text.startswith(statement.span.text)
    assert split_script(text.removeprefix(statement.span.text)) == []
    return statement


def text_of(span: Span | Default | None) -> str:
    """What the user wrote: an expression that is there, or the word DEFAULT."""
    assert span is not None
    return "DEFAULT" if isinstance(span, Default) else span.text
