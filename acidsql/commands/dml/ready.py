"""The last step of every statement that changes rows, before files are written."""

from __future__ import annotations

from acidsql.catalyst import Catalyst
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StatementContext
from acidsql.errors import UnsupportedError
from acidsql.plan.changes import ChangeSet
from acidsql.plan.checks import checked


def ready(env: Environment, context: StatementContext, changes: ChangeSet) -> ChangeSet:
    """Changes that were held against the table's CHECK constraints, in the session that writes files.

    That session has the time zone of the files. Constraints, and what columns that are left out get, are evaluated
    before it, in the zone of the user and at the time of the statement.

    Raises:
        UnsupportedError: When a function of the user's would see its arguments in the zone of the files.
    """
    held = checked(env.own_spark, changes, env.zones)
    analysed = context.now.fixed(Catalyst.analyzed(held.frame))
    if not env.zones.same and (name := env.catalyst.zoned_function(analysed)) is not None:
        raise UnsupportedError(
            f"{name} is a pandas or Arrow function of timestamps: it would see them in {env.zones.jvm}, the time zone"
            f" of the JVMs that write files, not in {env.zones.session}",
            hint=f"SET TIME ZONE '{env.zones.jvm}', or write the answer of a query into a table of Spark's first.",
        )
    return held.over(env.writing.frame(analysed))
