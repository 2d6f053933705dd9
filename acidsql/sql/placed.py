"""Fragments of a statement for Spark's parser, padded so that errors have the statement's lines and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from acidsql.errors import InvalidValue
from acidsql.sql.statements import Span
from acidsql.sql.tokens import Kind, tokenize

_NO_LINE_BREAK = re.compile(r"[^\n]")


def padded(span: Span) -> str:
    """The text of a span, preceded by as many blanks and line breaks as there are characters before it.

    What Spark says about its place, by line and column or by the number of the character, is then true of the source.
    """
    return f"{blank(span.source[: span.start])}{span.text}"


def blank(text: str) -> str:
    """As many blanks, with the same line breaks."""
    return _NO_LINE_BREAK.sub(" ", text)


def place_of(node: Any, span: Span) -> Span:
    """The span in the statement of a node that Spark parsed from :func:`padded` text."""
    origin = node.origin()
    if not (origin.startIndex().isDefined() and origin.stopIndex().isDefined()):
        return span
    start, end = origin.startIndex().get(), origin.stopIndex().get() + 1
    return Span(span.source, start, end) if span.start <= start < end <= span.end else span


def with_versions(span: Span, parameters: Mapping[str, Any]) -> Span:
    """The text with parameters after VERSION AS OF replaced by their values: Spark's grammar allows none there.

    Raises:
        InvalidValue: When such a value is not a whole number.
    """
    if not parameters or "OF" not in span.text.upper():
        return span
    tokens = tokenize(span.source, span.start, span.end)
    replaced, end = "", span.start
    for at in range(len(tokens) - 4):
        words = [t.word for t in tokens[at : at + 4]]
        if words[0] not in ("VERSION", "SYSTEM_VERSION") or words[1:] != ["AS", "OF", ":"]:
            continue
        mark, name = tokens[at + 3], tokens[at + 4]
        if name.kind not in (Kind.WORD, Kind.QUOTED) or name.name not in parameters:
            continue
        value = parameters[name.name]
        if not isinstance(value, int) or isinstance(value, bool):
            problem = InvalidValue(f"VERSION AS OF takes a write id, a whole number; :{name.name} is {value!r}")
            raise problem.locate(span.source, mark.start, name.end)
        replaced += span.source[end : mark.start] + str(value).ljust(name.end - mark.start)
        end = name.end
    if not replaced:
        return span
    head = span.source[: span.start]
    text = head + replaced + span.source[end : span.end]
    return Span(text, span.start, len(text))
