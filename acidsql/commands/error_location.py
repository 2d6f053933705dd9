"""Positions of errors in a statement."""

from __future__ import annotations

from typing import TypeVar

from acidsql.errors import AcidError
from acidsql.sql.statements import Span

E = TypeVar("E", bound=AcidError)


def with_location(span: Span, error: E) -> E:
    """The error, located at this span of the statement unless it already has a position."""
    return error.locate(span.source, span.start, span.end)
