"""SELECT and its relatives: answered by Spark, over one snapshot of every ACID table that they name."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.binding import Snapshot, bind, find_sources
from acidsql.errors import UnsupportedError
from acidsql.metastore.model import TxnType
from acidsql.plan.scan import snapshot_frame
from acidsql.plan.views import Views
from acidsql.settings import READ_LEASE
from acidsql.sql.references import analyse_query
from acidsql.sql.statements import CreateTempView, Query, Span, TableName


class Pin:
    """A reader's transaction: it holds the snapshot's files against the cleaner until it is released.

    Reads take no locks: a snapshot names immutable directories. What the pin protects is their removal.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        env.heartbeats.end_released()
        [self.id] = env.metastore.open_txns(user=env.user, host=env.host, type=TxnType.READ_ONLY, agent_info=env.agent)
        self.snapshot = Snapshot(env, env.metastore.get_valid_txns(self.id))

    def hold(self, frame: DataFrame) -> DataFrame:
        """Keep the snapshot until the frame is garbage, for ``acidsql.read.lease`` at most."""
        self._env.heartbeats.pin(self.id, self._env.settings.value(READ_LEASE))
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


def with_sources(
    env: Environment, span: Span, parameters: Mapping[str, Any], head: str = "", tail: str = ""
) -> DataFrame:
    """``head + query + tail`` on Spark, its ACID tables replaced by their snapshots."""
    references = analyse_query(span)
    sources = find_sources(env, references, parameters)
    if not sources:
        return env.sql(f"{head}{span.text}{tail}", parameters)
    with pinned(env) as pin, Views(env.spark) as views:
        return pin.hold(env.sql(f"{head}{bind(env, references, sources, pin.snapshot, views)}{tail}", parameters))


def query(env: Environment, statement: Query, parameters: Mapping[str, Any]) -> DataFrame:
    """A lazy DataFrame over a snapshot fixed now.

    1. Find the ACID tables that the query names; the catalog leaves the partitions that its conditions allow.
    2. Open a read-only transaction: its snapshot serves all of them.
    3. Put a view over each table's snapshot in the place of its name, and hand the text to Spark.
    4. Keep the transaction alive until the DataFrame is garbage.
    """
    return with_sources(env, statement.span, parameters)


def create_temp_view(env: Environment, statement: CreateTempView, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE TEMPORARY VIEW over ACID tables: the view keeps the snapshot of the moment it was made.

    Spark keeps the text of a view that SQL made and analyses it anew each time, when our names are gone; so the view is
    made from the analysed DataFrame instead.
    """
    references = analyse_query(statement.query)
    sources = find_sources(env, references, parameters)
    if not sources:
        return env.sql(statement.span.text, parameters)
    frame = with_sources(env, statement.query, parameters)
    define_view(env, statement, frame)
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
    table = env.find_table(name)
    if table is None:
        if env.registered(name) is None and not env.known_to_spark(name):
            env.get_table(name)
        if version is not None:
            problem = f"{name.table} is not an ACID table: it has no versions that are write ids"
            raise with_location(name.span, UnsupportedError(problem))
        text = f"SELECT * FROM {name.span.text}"
        return with_sources(env, Span(text, 0, len(text)), {})
    with pinned(env) as pin:
        partitions = env.metastore.list_partitions(table.database, table.name) if table.partition_keys else None
        return pin.hold(snapshot_frame(env.spark, pin.snapshot.of(table, partitions, version)))
