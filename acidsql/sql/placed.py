"""Pieces of a statement as Spark's parser is given them: at their own lines and columns, so that errors tell these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acidsql.errors import InvalidValue
from acidsql.sql.statements import Span
from acidsql.sql.tokens import Kind, tokenize


def padded(span: Span) -> str:
    """The text of a span behind as many lines, and blanks in its line, as stand before it in the statement."""
    return f"{_before(span)}{span.text}"


def _before(span: Span) -> str:
    head = span.source[: span.start]
    line_start = head.rfind("\n") + 1
    return "\n" * head.count("\n") + " " * (span.start - line_start)


def place_of(node: Any, span: Span) -> Span:
    """The place in the statement of a node that Spark's parser made of :func:`padded`."""
    origin = node.origin()
    if not (origin.startIndex().isDefined() and origin.stopIndex().isDefined()):
        return span
    shift = span.start - len(_before(span))
    start, end = origin.startIndex().get() + shift, origin.stopIndex().get() + 1 + shift
    return Span(span.source, start, end) if span.start <= start < end <= span.end else span


def with_versions(span: Span, parameters: Mapping[str, Any]) -> Span:
    """The text with the values of parameters behind VERSION AS OF, where Spark's grammar takes none.

    Raises:
        InvalidValue: When such a value is no whole number.
    """
    if not parameters or "OF" not in span.text.upper():
        return span
    tokens = tokenize(span.source, span.start, span.end)
    made, end = "", span.start
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
        made += span.source[end : mark.start] + str(value).ljust(name.end - mark.start)
        end = name.end
    if not made:
        return span
    head = span.source[: span.start]
    text = head + made + span.source[end : span.end]
    return Span(text, span.start, len(text))
