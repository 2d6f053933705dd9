"""What EXPLAIN shows of a statement that changes a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import Read
from acidsql.metastore.model import LockComponent, Table


@dataclass(frozen=True)
class Explained:
    """A statement's plan, or that of one part of it, before anything is locked or written.

    Attributes:
        table: The table that it changes.
        locks: The locks that it would request.
        reads: The ACID tables that it reads, including the one that it changes.
        changes: The rows that it would write; None if there are none, or Spark is not involved.
        writes: The directories that it would write: ``delta``, ``base in p=1``.
        files: Files of the user that it would load, with their new names.
        no_plan: Why there is no Spark plan, if ``changes`` is None.
        more: Additional sections: titles, each with its lines.
    """

    table: Table
    locks: Sequence[LockComponent]
    reads: Sequence[Read]
    changes: DataFrame | None
    writes: Sequence[str] = ()
    files: Sequence[str] = ()
    no_plan: str = "there are no rows to change"
    more: Sequence[tuple[str, Sequence[str]]] = ()


class Explainable(Protocol):
    """A command that can describe what it would do. Its class docstring has the numbered phases."""

    def explain(self, context: StatementContext) -> Sequence[Explained]:
        """The plan over a context with a read-only snapshot, in several parts if the statement has them.

        Takes no lock or write id, and writes nothing.
        """
        ...
