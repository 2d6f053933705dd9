"""CREATE VIEW and DROP VIEW for views in the metastore: Spark itself cannot read ACID tables below a view."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.query import reads_acid_tables
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.names import SPARK_CATALOG
from acidsql.commands.transaction.pin import pinned
from acidsql.commands.transaction.run import write_transaction
from acidsql.errors import AcidError, AlreadyExists, AnalysisError, TableNotFound, TransactionError, UnsupportedError
from acidsql.metastore.model import (
    LAST_DDL,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    VIEW_NAMESPACE,
    VIEW_SETTING,
    VIRTUAL_VIEW,
    Column,
    LockComponent,
    LockType,
    Table,
)
from acidsql.plan.scan import VIRTUAL_COLUMNS
from acidsql.plan.text import quote
from acidsql.plan.values import CHAR_TYPE
from acidsql.settings import DROP_IGNORES
from acidsql.sql.placed import padded, place_of
from acidsql.sql.statements import CreateView, DropView, Name, Span, TableName
from acidsql.sql.tokens import Kind, tokenize
from acidsql.types import parse_type, to_hive


class CreateViewCommand:
    """CREATE VIEW.

    1. Find the ACID tables that the query reads; without any, Spark creates the view.
    2. Let Spark analyse the query over a snapshot: its names and types become the view's columns. If that fails,
       nothing is registered.
    3. Qualify table names in the text with their databases. As in Hive the view's columns are selected by name from the
       query in parentheses, so that a ``*`` in it does not grow with its table.
    4. Register the view, or replace an older one, under a SHARED_READ lock of its database, with the settings of Spark
       that its text is read under from then on.
    """

    def __init__(self, env: Environment, statement: CreateView, parameters: Mapping[str, Any]) -> None:
        self.env = env
        # the stored text must not depend on the session's variables
        self.statement = replace(statement, query=_substituted(env, statement.query))
        self.database = env.database_of(statement.view)
        self.name = statement.view.table.lower()
        self.full_name = f"{self.database}.{self.name}"
        self.parameters = parameters

    def run(self) -> bool:
        """All phases; False if Spark has to create the view."""
        env, statement = self.env, self.statement
        existing = env.metastore.find_table(self.database, self.name)
        if existing is not None and statement.if_not_exists:
            return True
        is_ours = reads_acid_tables(env, statement.query, self.parameters)
        if existing is None and not is_ours and env.spark.catalog.databaseExists(self.database):
            return False
        self._check_name(existing)
        unqualified = _unqualified(env, statement.query)
        self._refuse_temporary(unqualified)
        view = self._view(self._analysed(), _with_databases(env, statement.query, unqualified))
        with write_transaction(env, [LockComponent(LockType.SHARED_READ, self.database)]):
            try:
                existing = env.metastore.find_table(self.database, self.name)
                self._check_name(existing)
                if existing is not None:
                    env.metastore.alter_table(replace(view, created_at=existing.created_at))
                else:
                    env.metastore.create_table(view)
            except AcidError as e:
                raise self._at_name(e) from e
        return True

    # --- resolve -----------------------------------------------------------------------------------------------------

    def _check_name(self, existing: Table | None) -> None:
        env, name = self.env, self.statement.view
        try:
            env.metastore.get_database(self.database)
        except AcidError as e:
            raise self._at_name(e) from e
        if existing is not None and not existing.is_view:
            raise self._at_name(AlreadyExists(f"Existing table is not a view: {self.full_name}", code=10218))
        if existing is not None and not self.statement.or_replace:
            raise self._at_name(AlreadyExists(f"Table already exists: {self.full_name}"))
        if existing is None and env.spark.catalog.tableExists(f"{quote(self.database)}.{quote(self.name)}"):
            raise self._at_name(AlreadyExists(f"Spark already has a table or view {self.full_name}"))
        if any(k.lower() in (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES) for k in self.statement.properties):
            raise with_location(name.span, AnalysisError(f"A view cannot be transactional: {self.full_name}"))

    def _refuse_cycle(self, binding: Binding) -> None:
        for path in binding.view_paths:
            if self.full_name in path:
                cycle = " -> ".join([self.full_name, *path[: path.index(self.full_name) + 1]])
                raise self._at_name(AnalysisError(f"Recursive view {self.full_name} detected (cycle: {cycle})"))

    def _refuse_temporary(self, unqualified: Sequence[TableName]) -> None:
        for name in unqualified:
            if self.env.catalyst.is_temporary_view(name.table):
                problem = f"View {self.full_name} cannot read {name.table}: it is a temporary view of this session"
                raise with_location(name.span, AnalysisError(problem))
        query = self.statement.query
        tokens = tokenize(query.source, query.start, query.end)
        for token, after in pairwise(tokens):
            is_call = token.kind in (Kind.WORD, Kind.QUOTED) and after.word == "("
            if is_call and self.env.catalyst.is_temporary_function(token.name):
                problem = f"View {self.full_name} cannot call {token.name}: it is a temporary function of this session"
                raise with_location(Span(query.source, token.start, token.end), AnalysisError(problem))

    def _analysed(self) -> list[StructField]:
        """Names and types of the query's columns. Spark's errors pass through."""
        query = self.statement.query
        with pinned(self.env) as pin:
            binding = Binding(pin.context, {}, query.text)
            try:
                plan = binding.query(query)
                self._refuse_cycle(binding)
                frame = binding.catalyst.frame(plan)
            except SparkAnalysisException as e:
                if e.getCondition() == "UNBOUND_SQL_PARAMETER":
                    problem = f"View {self.full_name} cannot have parameters: its query is stored without their values"
                    raise with_location(query, AnalysisError(problem)) from e
                raise
            analysed = binding.catalyst.expressions(binding.catalyst.analyzed(frame))
            if any(e.nodeName() == "VariableReference" for e in analysed):
                problem = f"View {self.full_name} cannot read a session variable"
                raise with_location(query, AnalysisError(problem))
            fields = frame.schema.fields
            pin.end()
        return fields

    # --- the view ----------------------------------------------------------------------------------------------------

    def _view(self, fields: Sequence[StructField], qualified: str) -> Table:
        statement = self.statement
        columns = self._columns(fields)
        kept = {f"{VIEW_SETTING}{name}": value for name, value in self.env.sessions.captured().items()}
        namespace = (SPARK_CATALOG, str(self.env.spark.catalog.currentDatabase()))
        kept[f"{VIEW_NAMESPACE}numParts"] = str(len(namespace))
        kept |= {f"{VIEW_NAMESPACE}part.{i}": part for i, part in enumerate(namespace)}
        return Table(
            self.database,
            self.name,
            "",
            columns,
            parameters={**statement.properties, **kept, LAST_DDL: str(int(time.time()))},
            comment=statement.comment,
            table_type=VIRTUAL_VIEW,
            owner=self.env.user,
            created_at=int(time.time()),
            view_text=_named_columns(qualified, [f.name for f in fields], columns, self.name),
            view_original=statement.query.text,
        )

    def _columns(self, fields: Sequence[StructField]) -> tuple[Column, ...]:
        given = self.statement.columns
        if given is not None and len(given) != len(fields):
            message = (
                "The number of columns produced by the SELECT clause does not match the number of column names"
                f" specified by CREATE VIEW: {len(fields)} and {len(given)}"
            )
            raise self._at_name(AnalysisError(message, code=10089))
        names: Sequence[tuple[Name | None, str, str | None]] = (
            [(n, n.text.lower(), comment) for n, comment in given]
            if given is not None
            else [(None, f.name.lower(), f.metadata.get("comment")) for f in fields]
        )
        columns: list[Column] = []
        for (name, text, comment), field in zip(names, fields, strict=True):
            place = name.span if name is not None else self.statement.query
            if any(c.name == text for c in columns):
                raise with_location(place, AnalysisError(f"Duplicate column name: {text}", code=10036))
            if text.upper() in VIRTUAL_COLUMNS:
                raise with_location(
                    place, AnalysisError(f"{text} is a reserved column name", hint="Give it another name: AS …")
                )
            columns.append(Column(text, self._type(field, text, place), comment))
        return tuple(columns)

    @staticmethod
    def _type(field: StructField, name: str, place: Span) -> str:
        try:
            return to_hive(parse_type(field.metadata.get(CHAR_TYPE) or field.dataType.simpleString()))
        except AcidError as e:
            message = f"The type of column {name} is not supported in views of the metastore: {e.message}"
            raise with_location(place, UnsupportedError(message, hint="CAST it to another type.")) from e

    def _at_name(self, error: AcidError) -> AcidError:
        return with_location(self.statement.view.span, error)


def _substituted(env: Environment, query: Span) -> Span:
    """The query with the session's variables replaced by their values, as Spark stores the text of its views."""
    text = env.catalyst.substituted(query.text)
    head = query.source[: query.start]
    return query if text == query.text else Span(head + text, query.start, query.start + len(text))


def _unqualified(env: Environment, query: Span) -> list[TableName]:
    """The unqualified table names of a query, including those in IDENTIFIER, in the order of the text."""
    catalyst = env.catalyst
    names: dict[int, TableName] = {}
    for relation in catalyst.relations(catalyst.parse(padded(query))):
        place = place_of(relation, query)
        if relation.nodeName() == "PlanWithUnresolvedIdentifier":
            if not place.text.upper().startswith("IDENTIFIER"):
                raise with_location(query, UnsupportedError("IDENTIFIER is not supported at this position in a view"))
            relation = catalyst.identified(relation)
            if relation.nodeName() != "UnresolvedRelation":  # the query of a WITH clause
                continue
        match catalyst.name_of(relation):
            case table, None, None:
                names[place.start] = TableName(table, None, place)
    return [names[start] for start in sorted(names)]


def _with_databases(env: Environment, query: Span, unqualified: Sequence[TableName]) -> str:
    """The query with its unqualified table names qualified, so that it does not depend on the current database."""
    pieces, end = [], query.start
    for name in unqualified:
        pieces += [query.source[end : name.span.start], f"{quote(_database(env, name))}.{quote(name.table)}"]
        end = name.span.end
    return "".join([*pieces, query.source[end : query.end]])


def _database(env: Environment, name: TableName) -> str:
    """The database to which an unqualified name currently resolves."""
    if env.registered(name) is not None:
        return env.database
    return str(env.spark.catalog.currentDatabase())


def _named_columns(query: str, names: Sequence[str], columns: Sequence[Column], view: str) -> str:
    """The query's columns by name, aliased to those of the view (as Hive's ``CreateViewAnalyzer`` does)."""
    lowered = [n.lower() for n in names]
    if len(set(lowered)) < len(lowered):
        return query  # duplicate names: the view names columns by position
    listed = ", ".join(
        quote(n) if n == c.name else f"{quote(n)} AS {quote(c.name)}" for n, c in zip(names, columns, strict=True)
    )
    return f"SELECT {listed} FROM (\n{query}\n) {quote(view)}"


def create_view(env: Environment, statement: CreateView, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE VIEW; Spark runs it if the view reads no ACID table."""
    if CreateViewCommand(env, statement, parameters).run():
        return env.nothing()
    return env.sql(statement.span.text, parameters)


def drop_view(env: Environment, statement: DropView, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP VIEW: lock it EXCLUSIVE and remove it from the metastore. Spark drops its own views."""
    name = statement.view
    view = env.registered(name)
    if view is None:
        if env.known_to_spark(name):
            return env.sql(statement.span.text, parameters)
        if statement.if_exists or env.settings.value(DROP_IGNORES):
            return env.nothing()
        raise with_location(name.span, TableNotFound(f"Table not found {env.database_of(name)}.{name.table.lower()}"))
    if not view.is_view:
        raise with_location(name.span, AnalysisError("Cannot drop a base table with DROP VIEW", sqlstate="08S01"))
    with write_transaction(env, [LockComponent(LockType.EXCLUSIVE, view.database, view.name)]):
        if not env.metastore.get_table(view.database, view.name).is_view:
            message = f"{view.full_name} was replaced by a table while this statement waited for its lock"
            raise with_location(name.span, TransactionError(message, hint="Run it again."))
        env.metastore.drop_table(view.database, view.name)
    return env.nothing()
