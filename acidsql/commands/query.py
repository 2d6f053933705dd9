"""SELECT and its relatives: answered by Spark, over one snapshot of every ACID table that they name."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from acidsql.catalyst import HeldFiles
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.names import AcidTable, View
from acidsql.errors import UnsupportedError
from acidsql.metastore.model import TxnType
from acidsql.settings import READ_LEASE
from acidsql.sql.placed import padded, with_versions
from acidsql.sql.statements import CreateTempView, Query, Span, TableName


class Pin:
    """A reader's transaction: it holds the snapshot's files against the cleaner until nothing reads them any more.

    Reads take no locks: a snapshot names immutable directories. What the pin protects is their removal.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        env.heartbeats.end_released()
        [self.id] = env.metastore.open_txns(user=env.user, host=env.host, type=TxnType.READ_ONLY, agent_info=env.agent)
        self.context = StatementContext(env, env.metastore.get_valid_txns(self.id))

    def hold(self, frame: DataFrame, held: HeldFiles) -> DataFrame:
        """Keep the snapshot as long as Spark has a plan over its files, for ``acidsql.read.lease`` at most.

        Frames that are derived from this one, views over it and its cache are such plans.
        """
        self._env.heartbeats.pin(self.id, self._env.settings.value(READ_LEASE), held.are_read)
        weakref.finalize(frame, self._env.heartbeats.release, self.id)
        return frame

    def end(self) -> None:
        """End it now: nothing was handed out."""
        self._env.metastore.commit_txn(self.id)


@contextmanager
def pinned(env: Environment) -> Iterator[Pin]:
    """A pin that ends at once if the block fails; in it, it is kept alive, however long the planning takes."""
    pin = Pin(env)
    try:
        with env.heartbeats.keep_alive(pin.id):
            yield pin
    except BaseException:
        pin.end()
        raise


def reads_acid_tables(env: Environment, span: Span, parameters: Mapping[str, Any]) -> bool:
    """Whether a text names an ACID table, or a view of the metastore, at this moment."""
    context = StatementContext(env)
    catalyst = env.catalyst
    plan = catalyst.with_parameters(catalyst.parse(padded(with_versions(span, parameters))), parameters)
    for node in catalyst.nodes(plan):
        name = node.nodeName()
        if name == "PlanWithUnresolvedIdentifier":
            return True
        if name == "RelationTimeTravel":
            node, name = node.relation(), node.relation().nodeName()
        if name == "UnresolvedRelation":
            parts = list(catalyst.items(node.multipartIdentifier()))
            table, database, catalog = [*reversed(parts), None, None][:3]
            if len(parts) <= 3 and (context.is_ours(table, database, catalog)):
                return True
    return False


def answered(env: Environment, span: Span, parameters: Mapping[str, Any]) -> DataFrame:
    """A query's answer over one snapshot; Spark's own where it names no ACID table."""
    if not reads_acid_tables(env, span, parameters):
        return env.sql(span.text, parameters)
    with pinned(env) as pin:
        binding = Binding(pin.context, parameters, span.text)
        return pin.hold(binding.answer(binding.query(span)), binding.held)


def with_query(env: Environment, whole: Span, query: Span, parameters: Mapping[str, Any]) -> DataFrame:
    """A statement of Spark's around a query, run by Spark with the query over one snapshot.

    Args:
        env: The session.
        whole: The statement.
        query: The query in it.
        parameters: Values of named parameters.
    """
    if not reads_acid_tables(env, query, parameters):
        return env.sql(whole.text, parameters)
    with pinned(env) as pin:
        binding = Binding(pin.context, parameters, whole.text)
        command = binding.command(whole)
        return pin.hold(env.catalyst.frame(command), binding.held)


def query(env: Environment, statement: Query, parameters: Mapping[str, Any]) -> DataFrame:
    """A lazy DataFrame over a snapshot fixed now.

    1. Open a read-only transaction: its snapshot serves all tables.
    2. Parse the text by Spark's parser; put a leaf in the place of each ACID table, and have Spark resolve it all.
    3. Spark's optimiser tells which conditions reach a leaf; the catalog leaves the partitions that they allow.
    4. Put scans of the snapshot in the places of the leaves.
    5. Keep the transaction alive until Spark has no plan over these files any more.
    """
    return answered(env, statement.span, parameters)


def create_temp_view(env: Environment, statement: CreateTempView, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE TEMPORARY VIEW over ACID tables: the view keeps the snapshot of the moment it was made.

    Spark keeps the text of a view that SQL made and analyses it anew each time, when our names are gone; so the view is
    made from the analysed DataFrame instead.
    """
    if not reads_acid_tables(env, statement.query, parameters):
        return env.sql(statement.span.text, parameters)
    define_view(env, statement, answered(env, statement.query, parameters))
    return env.nothing()


def define_view(env: Environment, statement: CreateTempView, frame: DataFrame) -> None:
    """Make the Spark view that the statement's head describes over a frame."""
    named = frame if statement.columns is None else frame.toDF(*[c.text for c in statement.columns])
    name = statement.name.text
    if statement.is_global:
        (named.createOrReplaceGlobalTempView if statement.or_replace else named.createGlobalTempView)(name)
    else:
        (named.createOrReplaceTempView if statement.or_replace else named.createTempView)(name)


def table_frame(env: Environment, name: TableName, version: int | None = None) -> DataFrame:
    """All rows of a table or view, as ``acid.table()`` answers them; those of an ACID table as of a write id."""
    if env.registered(name) is None:
        if not env.known_to_spark(name):
            env.get_table(name)
        if version is not None:
            raise _without_versions(name)
        return env.spark.table(name.span.text)
    with pinned(env) as pin:
        binding = Binding(pin.context, {})
        found = pin.context.resolve(name.table, name.database, name.catalog)
        if version is not None and not isinstance(found, AcidTable):
            raise _without_versions(name)
        if not isinstance(found, AcidTable | View):
            pin.end()
            return env.spark.table(name.span.text)
        return pin.hold(binding.answer(binding.whole(found, name, version)), binding.held)


def _without_versions(name: TableName) -> UnsupportedError:
    problem = f"{name.table} is not an ACID table: it has no versions that are write ids"
    return with_location(name.span, UnsupportedError(problem))
