"""What EXPLAIN needs to know of a statement that changes a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from acidsql.commands.resolve.binding import Read
from acidsql.commands.resolve.context import StatementContext
from acidsql.metastore.model import LockComponent, Table


@dataclass(frozen=True)
class Explained:
    """A statement's plan, or that of one part of it, before anything is locked or written.

    Attributes:
        table: The table that it changes.
        locks: What it would ask for.
        reads: What it reads of ACID tables, also of the one that it changes.
        changes: The rows that it would write; None where there is nothing to change, or Spark has no part in it.
        writes: What it would write, each with its place: ``delta``, ``base in p=1``.
        files: Files of the user's that it would take in, with what becomes of them.
        no_plan: Why there is no plan of Spark's, where ``changes`` is None.
        more: What else there is to tell: titles, each with its lines.
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
    """A command that can tell what it would do. Its class docstring says how, in numbered phases."""

    def explain(self, context: StatementContext) -> Sequence[Explained]:
        """The plan over a context with a snapshot for reading alone, in several parts where the statement has them.

        It takes no lock and no write id, and writes nothing.
        """
        ...
