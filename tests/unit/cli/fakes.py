"""A session that answers from a table of scripts, so that the command line can be tested without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from acidsql.commands.transaction import outcome
from acidsql.output import Format


class Frame:
    """A result: column names and rows of texts."""

    def __init__(self, columns: list[str], rows: list[tuple[str | None, ...]]) -> None:
        self.columns = columns
        self.rows = rows


class Session:
    """Stands in for AcidSession.

    Args:
        answers: For each statement its frame, or the error that it raises.
    """

    def __init__(self, answers: Mapping[str, Frame | Exception]) -> None:
        self.answers = answers
        self.database = "default"
        self.ran: list[str] = []
        self.variables: Mapping[str, str] = {}
        self.connected: dict[str, Any] = {}
        self.closed = False
        self.in_transaction = False
        self.commits = False
        """Whether each statement commits what it changes."""
        self.spark = None

    def connect(self, spark: object = None, **places: Any) -> Session:
        self.connected = {"spark": spark, **places}
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True

    def sql(self, text: str) -> Frame:
        self.ran.append(text)
        if text in ("START TRANSACTION", "COMMIT"):
            self.in_transaction = text != "COMMIT"
        if self.commits:
            outcome.has_committed()
        answer = self.answers.get(text, Frame([], []))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _take_back(self, error: BaseException) -> None:
        self.ran.append(f"taken back: {type(error).__name__}")

    def script(
        self, script: str | os.PathLike[str], variables: Mapping[str, str], *, keeps_transaction: bool = False
    ) -> Iterator[Frame]:
        self.variables = variables
        text = script.read_text(encoding="utf-8") if isinstance(script, Path) else str(script)
        for part in text.split(";"):
            if part.strip():
                yield self.sql(part.strip())


def write_result(frame: Frame, format: Format, out: TextIO, *, header: bool = True) -> int:
    """Stands in for the function of that name, which needs Spark's frames."""
    for row in frame.rows:
        out.write(f"{format.value}{'' if header else ' bare'}: {row}\n")
    return len(frame.rows)
