"""SELECT and related statements: run by Spark, over one snapshot of every ACID table that they name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from acidsql.catalyst import Plan, has_subqueries
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StartOver, StatementContext, pause_before
from acidsql.commands.resolve.names import AcidTable, View
from acidsql.commands.transaction.pin import Pin, pinned
from acidsql.compactor.cleaner_lock import CleanerLock
from acidsql.compactor.compaction import WorkerContext
from acidsql.errors import UnsupportedError
from acidsql.format.data_files import DirectoryGone
from acidsql.plan.feed import TABLE_CHANGES
from acidsql.settings import SNAPSHOT_RETRIES
from acidsql.sql.placed import padded, with_versions
from acidsql.sql.statements import CreateTempView, Query, Span, TableName

logger = logging.getLogger(__name__)
T = TypeVar("T")


def over_snapshot(env: Environment, read: Callable[[Pin], T]) -> T:
    """Look names up, list files and read footers over a pin, and over a new one where they were changed meanwhile.

    Readers take no locks, but for the last attempt. In a transaction of the session they see what that one sees.

    Raises:
        DirectoryGone: When one is not there.
        LockTimeout: When others hold the locks.
    """
    within = env.transaction
    if within is not None:
        return within.read(read)
    tables: set[tuple[str, str]] = set()
    for attempt in range(env.settings.value(SNAPSHOT_RETRIES)):
        pause_before(attempt)
        try:
            with pinned(env) as pin:
                return read(pin)
        except (StartOver, DirectoryGone) as e:
            logger.info("a reader starts over: %s", e.message)
            tables |= {(table.database, table.name) for table in pin.context.tables}
    services = WorkerContext(env.metastore, env.heartbeats, env.settings, env.host, env.user)
    with ExitStack() as locks:  # now they have to wait; on a Hive Metastore little of what they do is noticed
        for database, name in sorted(tables) if env.metastore.capabilities.versions_places else ():
            locks.enter_context(CleanerLock(services, database, name, owner="reader")).wait()
        with pinned(env) as pin:
            return read(pin)


def at_snapshot(env: Environment, read: Callable[[StatementContext], T]) -> T:
    """As :func:`over_snapshot`, for an answer that needs no files later: the pin ends with it."""

    def look(pin: Pin) -> T:
        found = read(pin.context)
        pin.end()
        return found

    return over_snapshot(env, look)


def reads_acid_tables(env: Environment, span: Span, parameters: Mapping[str, Any]) -> bool:
    """Whether a text currently names an ACID table, or a view of the metastore."""
    return _names_acid_tables(env, env.catalyst.parse(padded(with_versions(span, parameters))), span.text)


def _names_acid_tables(env: Environment, plan: Plan, text: str) -> bool:
    if TABLE_CHANGES in text.lower() and TABLE_CHANGES in env.catalyst.table_functions(plan):
        return True
    context = StatementContext(env)
    for relation in env.catalyst.relations(plan):
        if relation.nodeName() == "PlanWithUnresolvedIdentifier":
            return True
        name = env.catalyst.name_of(relation)
        if name is not None and context.is_ours(*name):
            return True
    return False


def answered(env: Environment, span: Span, parameters: Mapping[str, Any]) -> DataFrame:
    """The result of a query over one snapshot; run by Spark alone if it names no ACID table."""
    text, catalyst = with_versions(span, parameters), env.catalyst
    plan = catalyst.parse(padded(text))
    # over temporary views of acidsql's, Spark alone would answer subqueries in another way
    is_ours = has_subqueries(catalyst, plan) and catalyst.reads_a_changing_view(plan)
    if not is_ours and not _names_acid_tables(env, plan, span.text):
        return env.sql(span.text, parameters)

    def answer(pin: Pin) -> DataFrame:
        binding = Binding(pin.context, parameters, span.text)
        return pin.hold(binding.answer(binding.bound(plan, text)), binding.held)

    return over_snapshot(env, answer)


def with_query(env: Environment, whole: Span, query: Span, parameters: Mapping[str, Any]) -> DataFrame:
    """A Spark statement that contains a query, run by Spark with the query over one snapshot.

    Args:
        env: The session.
        whole: The statement.
        query: The query in it.
        parameters: Values of named parameters.
    """
    if not reads_acid_tables(env, query, parameters):
        return env.sql(whole.text, parameters)

    def run(pin: Pin) -> DataFrame:
        binding = Binding(pin.context, parameters, whole.text)
        command = binding.command(whole)
        pin.confirm()
        return pin.hold(env.catalyst.frame(command), binding.held)

    return over_snapshot(env, run)


def query(env: Environment, statement: Query, parameters: Mapping[str, Any]) -> DataFrame:
    """A lazy DataFrame over a snapshot fixed now.

    1. Open a read-only transaction: its snapshot serves all tables.
    2. Parse the text with Spark's parser, replace each ACID table by a leaf, and let Spark resolve the plan.
    3. Spark's optimiser pushes conditions down to the leaves; select the partitions that satisfy them.
    4. Replace the leaves by scans of the snapshot.
    5. Keep the transaction alive until Spark has no plan over these files any more.
    """
    return answered(env, statement.span, parameters)


def create_temp_view(env: Environment, statement: CreateTempView, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE TEMPORARY VIEW over ACID tables: the view keeps the snapshot of its creation.

    Spark stores the text of a view created with SQL and analyses it at each use, when acidsql's relations do not exist
    any more; so the view is created from the analysed DataFrame instead.
    """
    if not reads_acid_tables(env, statement.query, parameters):
        return env.sql(statement.span.text, parameters)
    define_view(env, statement, answered(env, statement.query, parameters))
    return env.nothing()


def define_view(env: Environment, statement: CreateTempView, frame: DataFrame) -> None:
    """Create the Spark view that the statement declares over a DataFrame."""
    named = frame if statement.columns is None else frame.toDF(*[c.text for c in statement.columns])
    name = statement.name.text
    if statement.is_global:
        (named.createOrReplaceGlobalTempView if statement.or_replace else named.createGlobalTempView)(name)
    else:
        (named.createOrReplaceTempView if statement.or_replace else named.createTempView)(name)


def table_frame(env: Environment, name: TableName, version: int | None = None) -> DataFrame:
    """All rows of a table or view, as ``acid.table()`` returns them; those of an ACID table as of a write id."""
    if env.registered(name) is None:
        if not env.known_to_spark(name):
            env.get_table(name)
        if version is not None:
            raise _without_versions(name)
        return env.spark.table(name.span.text)

    def rows(pin: Pin) -> DataFrame:
        binding = Binding(pin.context, {})
        resolved = pin.context.resolve(name.table, name.database, name.catalog)
        if version is not None and not isinstance(resolved, AcidTable):
            raise _without_versions(name)
        if not isinstance(resolved, AcidTable | View):
            pin.end()
            return env.spark.table(name.span.text)
        return pin.hold(binding.answer(binding.whole(resolved, name, version)), binding.held)

    return over_snapshot(env, rows)


def _without_versions(name: TableName) -> UnsupportedError:
    problem = f"{name.table} is not an ACID table: its versions are not write ids"
    return with_location(name.span, UnsupportedError(problem))
