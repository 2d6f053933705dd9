"""Where in a statement an error belongs."""

from __future__ import annotations

from typing import TypeVar

from acidsql.errors import AcidError
from acidsql.sql.statements import Span

E = TypeVar("E", bound=AcidError)


def with_location(span: Span, error: E) -> E:
    """The error, with this piece of the statement as its place, unless it has one already."""
    return error.locate(span.source, span.start, span.end)
