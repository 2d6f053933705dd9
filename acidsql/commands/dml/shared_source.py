"""The source of several INSERTs, read once: whatever it is, each of them sees the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acidsql.catalyst import Catalyst, Plan
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.metastore.model import Table
from acidsql.plan.relation import with_scans
from acidsql.sql.statements import Span


class SharedSource:
    """The rows of a FROM clause.

    1. Resolve ``FROM …`` with all its columns. :attr:`is_repeatable` tells whether it surely gives the same rows each
       time; then each INSERT may read it on its own, with its own pruning, and the rest does not apply.
    2. A leaf stands for the rows while the INSERTs are resolved; it has the columns of the clause, with their
       qualifiers.
    3. :meth:`read` evaluates the rows once and keeps them in Spark, in memory or on disk: where they get lost, Spark
       fails, and does not evaluate them again.
    4. :meth:`over` puts them into the place of the leaf. :meth:`forget` frees them.
    """

    def __init__(self, context: StatementContext, parameters: Mapping[str, Any], clause: Span, statement: str) -> None:
        """``clause`` is WITH and FROM, ``statement`` the text in which columns may be named."""
        self._env = context.env
        self.binding = binding = Binding(context, parameters, statement)
        self.name = f"__acid_source_{binding.secret}"
        """What the INSERTs read from; :attr:`clause` is the text of that."""
        self.clause = _span(f"FROM {self.name}")
        catalyst = binding.catalyst
        found = binding.resolved(binding.query(_span(f"{clause.text} SELECT *")))
        columns, hidden = Catalyst.output(found), catalyst.hidden_below(found, statement)
        numbered = catalyst.frame(catalyst.with_further(found, hidden))
        numbered = numbered.toDF(*[f"s{i}" for i in range(len(numbered.columns))])
        self.analysed: Plan = catalyst.analyzed(numbered)
        """The plan of the rows. Whoever runs it fixes the current time in it before that."""
        self.is_repeatable = catalyst.is_repeatable(self.analysed, {r.number for r in binding.relations})
        leaf, self._number = catalyst.leaf(numbered._jdf.schema().json())
        named = catalyst.project(catalyst.renamed(Catalyst.output(leaf), [*columns, *hidden]), leaf)
        output, visible = Catalyst.output(named), len(columns)
        self.stand_in: Plan = catalyst.project(output[:visible], named, hidden=output[visible:]) if hidden else named
        """The leaf under the names of the columns."""
        self._rows: Plan = None

    @property
    def tables(self) -> list[Table]:
        """The ACID tables that are read."""
        return self.binding.tables

    def read(self) -> None:
        """Evaluate the rows."""
        own = self._env.sessions.own
        kept = own.frame(self.binding.scanned(self.analysed)).localCheckpoint(eager=False)
        self._rows = own.analyzed(kept)
        kept.count()

    def over(self, plan: Plan) -> Plan:
        """A resolved plan with the rows in the place of the leaf."""
        return with_scans(self._env.catalyst, plan, lambda number: self._rows if number == self._number else None)

    def forget(self) -> None:
        """Free the memory and the disk that the rows take."""
        if self._rows is not None:
            for leaf in Catalyst.leaves(self._rows):
                leaf.rdd().unpersist(False)


def _span(text: str) -> Span:
    return Span(text, 0, len(text))
