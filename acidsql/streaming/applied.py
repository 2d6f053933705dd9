"""The table that remembers what was applied to another one, by the rules of one type of slowly changing dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from acidsql.commands.ddl.alter import alter_table
from acidsql.commands.environment import Environment
from acidsql.commands.registry import run
from acidsql.commands.transaction import outcome
from acidsql.errors import AlreadyExists, AnalysisError, UnsupportedError
from acidsql.metastore.model import APPLIED, Column, LockType, Table
from acidsql.plan.text import quote
from acidsql.sql.parser import parse_table_name
from acidsql.sql.statements import TableName

SEQUENCE, DELETED = "applied_sequence", "applied_delete"
"""Its columns besides the keys. Of type 2 a row that is no delete is the end of a row that was in the table: a delete
as long as nothing else has happened then."""

_PREFIX = "acidsql_applied_"
_SCD_TYPE = "acidsql.applied.type"
"""A property of it: 1 or 2."""


class Applied:
    """The companion of a table.

    The table has its full name in a property, which goes with it: RENAME keeps it, also into another database, and
    a table that is made anew under the name of a dropped one has none.

    Args:
        env: The session.
        name: The table, as the user calls it.
        table: The same.
        keys: The names and types of the columns that name a row.
        sequence_type: The type of the sequence.
        scd_type: 1 or 2.
    """

    def __init__(
        self,
        env: Environment,
        name: TableName,
        table: Table,
        keys: Sequence[tuple[str, str]],
        sequence_type: str,
        scd_type: int,
    ) -> None:
        self._env, self._name, self._table, self._scd_type = env, name, table, str(scd_type)
        self._wanted = [*keys, (SEQUENCE, sequence_type), (DELETED, "boolean")]
        database, _, its_name = table.parameters.get(APPLIED, "").partition(".")
        self._place: tuple[str, str] | None = (database, its_name) if its_name else None

    @property
    def place(self) -> tuple[str, str]:
        """Its database and name, once it is there."""
        assert self._place is not None
        return self._place

    @property
    def text(self) -> str:
        """The same in a statement."""
        return ".".join(map(quote, self.place))

    def make(self) -> None:
        """Make it, or check that it is one for these changes. One that remembers nothing is made one.

        Raises:
            AnalysisError: When it is gone, or of other keys, of another type of the sequence, or of the other rules.
            UnsupportedError: When it is not there yet, in a transaction.
        """
        env, of_table = self._env, self._table.full_name
        if self._place is None and env.transaction is not None:
            raise UnsupportedError(
                f"What is applied to {of_table} is not remembered yet: a table for it cannot be made in a transaction",
                hint="Apply changes, maybe none, outside of a transaction first.",
            )
        if self._place is None:
            with outcome.aside():
                self._place = self._made()
        found = env.metastore.find_table(*self._place)
        if found is None:
            raise AnalysisError(
                f"{'.'.join(self._place)}, which remembers what was applied to {of_table}, is gone",
                hint=f"To begin anew: ALTER TABLE … UNSET TBLPROPERTIES ('{APPLIED}').",
            )
        problem = self._problem(found)
        if problem is not None and env.transaction is None:
            with outcome.aside():
                alter_table(env, parse_table_name(self.text), LockType.EXCLUSIVE, lambda t: self._remade(t, problem))
        elif problem is not None:
            raise problem

    def _problem(self, found: Table) -> AnalysisError | None:
        """Why a companion is none for these changes."""
        if [(c.name, c.type) for c in found.columns] != self._wanted:
            return AnalysisError(
                f"{found.full_name}, which remembers what was applied, has other keys, or another type of the sequence",
                hint=f"Apply changes as before; or begin anew: ALTER TABLE … UNSET TBLPROPERTIES ('{APPLIED}').",
            )
        type = found.parameters.get(_SCD_TYPE, self._scd_type)
        if type != self._scd_type:
            return AnalysisError(
                f"{found.full_name} remembers what was applied by the rules of type {type}",
                hint=f"Apply changes as before, scd_type={type}.",
            )
        return None

    def _remade(self, table: Table, problem: AnalysisError) -> Table:
        """A companion for these changes, of one under whose lock nothing was ever applied, since the first call failed.

        Raises: the problem where something was.
        """
        # of type 2 deletes alone are remembered: whether something was applied the rows of the table tell
        target = f"{quote(self._table.database)}.{quote(self._table.name)}"
        places = [self.text] if table.parameters.get(_SCD_TYPE) == "1" else [self.text, target]
        if any(not run(self._env, f"SELECT 1 FROM {place} LIMIT 1").isEmpty() for place in places):
            raise problem
        columns = tuple(Column(name, type) for name, type in self._wanted)
        return replace(table, columns=columns, parameters={**table.parameters, _SCD_TYPE: self._scd_type})

    def _made(self) -> tuple[str, str]:
        """Make one, unless somebody else has done so meanwhile; its database and name."""
        columns = ", ".join(f"{quote(name)} {type}" for name, type in self._wanted)
        first, database = f"{_PREFIX}{self._table.name}", quote(self._table.database)
        for name in itertools.chain([first], (f"{first}_{number}" for number in itertools.count(2))):
            created = f"CREATE TABLE {database}.{quote(name)} ({columns}) STORED AS ORC"
            try:
                of_type = f"'{_SCD_TYPE}'='{self._scd_type}'"
                run(self._env, f"{created} TBLPROPERTIES ('transactional'='true', {of_type})")
            except AlreadyExists:  # of a table that was dropped, or of this one by now
                continue
            break
        alter_table(
            self._env,
            self._name,
            LockType.EXCL_WRITE,
            lambda t: replace(t, parameters={APPLIED: f"{t.database}.{name}", **t.parameters}),
        )
        known, _, its_name = self._env.get_table(self._name).parameters[APPLIED].partition(".")
        if its_name != name:
            run(self._env, f"DROP TABLE {database}.{quote(name)}")
        return known, its_name
