"""Binds the texts of a statement to its context: parsed by Spark, with ACID tables replaced by scans."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import DataFrame

from acidsql.catalyst import TABLE_FUNCTION, Catalyst, Expression, Plan, closed, has_subqueries, parts_of
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.names import SPARK_CATALOG, AcidTable, SparkTable, View
from acidsql.commands.resolve.reads import StatementReads
from acidsql.errors import AcidError, AnalysisError, InvalidValue, TableNotFound, UnsupportedError
from acidsql.metastore.model import VIEW_NAMESPACE, Table
from acidsql.plan.feed import TABLE_CHANGES, check_changes
from acidsql.plan.feed_history import Changes
from acidsql.plan.relation import Relation, changes_relation, relation
from acidsql.plan.scan import ROW_ID, ROW_IS_DELETED
from acidsql.sql.parser import parse_table_name
from acidsql.sql.placed import padded, place_of, with_versions
from acidsql.sql.statements import Span, TableName

_NO_WINDOW = "Compute the bounds from the time: date_trunc(), or timestamp_seconds(… div 600 * 600)."


class Binding(StatementReads):
    """The texts of one statement, and the tables that they read.

    1. :meth:`query` and :meth:`expression` parse a text; its ACID tables become leaves.
    2. :meth:`analysed` lets Spark resolve a plan composed of them.
    3. :meth:`scanned` replaces the leaves by scans of the snapshot, after pruning partitions and stripes by the
       conditions that Spark's optimiser pushes down to each leaf (:class:`StatementReads`).
    """

    def __init__(
        self,
        context: StatementContext,
        parameters: Mapping[str, Any],
        text: str = "",
        *,
        given: Mapping[str, Plan] | None = None,
    ) -> None:
        """``text`` is the whole statement: ROW__ID exists only for a statement that mentions it.

        ``given`` are plans under names that no text of a user has.
        """
        super().__init__(context)
        self._given = dict(given or {})
        self.parameters = parameters
        self.view_paths: list[tuple[str, ...]] = []
        self.secret = uuid.uuid4().hex[:12]
        self._row_id = self._is_deleted = False
        self._shared: dict[tuple[str, int | None], Relation] | None = None
        self._mention(text)
        self._sessions: dict[tuple[frozenset[tuple[str, str]], str | None, bool], Catalyst] = {}

    def _mention(self, text: str) -> None:
        """From now on tables have the hidden columns that are named in a text."""
        upper = text.upper()
        self._row_id = self._row_id or ROW_ID in upper
        self._is_deleted = self._is_deleted or ROW_IS_DELETED in upper

    def anew(self) -> Binding:
        """Another binding of the same statement in the same context, without shared relations."""
        made = Binding(self.context, self.parameters)
        made._row_id, made._is_deleted, made.secret = self._row_id, self._is_deleted, self.secret
        return made

    # --- 1: texts ----------------------------------------------------------------------------------------------------

    def query(self, span: Span, defaults: Mapping[tuple[int, int], Expression] | None = None) -> Plan:
        """A query, its ACID tables as leaves.

        Args:
            span: Its text.
            defaults: What DEFAULT stands for in VALUES, by the numbers of row and column.
        """
        span = with_versions(span, self.parameters)
        plan = self.catalyst.parse(padded(span))
        return self.bound(self.catalyst.with_values(plan, defaults) if defaults else plan, span)

    def expression(self, span: Span) -> Expression:
        """One expression of the user; :meth:`bound` still has to bind the tables in its subqueries.

        Raises:
            AnalysisError: When it is a star or has an alias: a single value is expected. Or when it is the window of a
                time: Spark then leaves rows without a time out, or makes several of one.
        """
        span = with_versions(span, self.parameters)
        parsed = self.catalyst.parse_expression(padded(span))
        if "window" in span.text.lower() and any(map(_is_time_window, parts_of(parsed))):
            raise with_location(
                span, AnalysisError("window() and session_window() are not allowed here", hint=_NO_WINDOW)
            )
        if parsed.nodeName() in ("UnresolvedStar", "UnresolvedStarBase", "Alias", "UnresolvedAlias", "MultiAlias"):
            raise with_location(span, AnalysisError("An expression with a single value is expected here"))
        return parsed

    def with_clause(self, clause: Span | None, plan: Plan) -> Plan:
        """A plan in the scope of the WITH clause before the statement."""
        if clause is None:
            return plan
        text = with_versions(clause, self.parameters)
        return self.catalyst.under(self.catalyst.parse_with(f"{padded(text)}\nSELECT 1"), plan)

    def changing_definitions(self, plan: Plan) -> dict[int, str]:
        """Of a resolved plan, as :meth:`Catalyst.changing_definitions`."""
        return self.catalyst.changing_definitions(plan, {r.number for r in self.relations})

    def bound(
        self,
        plan: Plan,
        span: Span,
        inside: tuple[str, ...] = (),
        database: str | None = None,
        session: Catalyst | None = None,
    ) -> Plan:
        """A parsed plan with ACID tables replaced by leaves, also below views.

        Args:
            plan: The plan.
            span: The text that it was parsed from, for error positions.
            inside: The views that contain the text, the outermost first.
            database: The database of unqualified names; by default the current one.
            session: Where the plan was parsed, if not in the user's session.
        """
        catalyst = session or self.catalyst
        if self._shared is None and catalyst.groups_by_subqueries(plan):
            # Spark has to see that a subquery in the SELECT list is the one that stands in GROUP BY
            self._shared = {}
        # an expression may have subqueries with a WITH clause of their own, whose queries are no children of the plan
        plan = catalyst.with_windows(catalyst.substitute_with(plan))
        if self.parameters and not inside:
            for name in catalyst.positions_by_parameter(plan):  # Spark 4.1 sorts by the column there, 4.0 by a constant
                problem = f"The parameter :{name} cannot be the position of a column in ORDER BY, SORT BY or GROUP BY"
                raise with_location(span, AnalysisError(problem))
            plan = catalyst.with_parameters(plan, self.parameters)

        def replaced(node: Plan) -> Plan:
            name = node.nodeName()
            if name == "UnresolvedWith":
                raise with_location(span, UnsupportedError("A WITH clause at this place is not supported"))
            if name == "PlanWithUnresolvedIdentifier":
                node = catalyst.identified(node)
                name = node.nodeName()
                if name != "UnresolvedRelation":
                    return self.bound(node, span, inside, database, session)
            if name == "UnresolvedRelation":
                return self._relation(node, span, None, inside, database)
            if name == "RelationTimeTravel":
                return self._time_travel(node, span, inside, database)
            if name == TABLE_FUNCTION and catalyst.function_of(node) == TABLE_CHANGES:
                return self._changes(node, place_of(node, span), database)
            if name == "SubqueryAlias" and node.child().nodeName() == "Project":
                return self._aliased(node)
            return node

        if "|>" in span.text:  # what its SET puts in the place of columns is hidden in a star
            plan = catalyst.with_replacements(plan, lambda one: self.bound(one, span, inside, database, session))
        return catalyst.transform(plan, replaced)

    def _time_travel(self, node: Plan, span: Span, inside: tuple[str, ...], database: str | None) -> Plan:
        relation = node.relation()
        if relation.nodeName() != "UnresolvedRelation":
            return node
        return self._relation(relation, span, node, inside, database)

    def _relation(
        self, node: Plan, span: Span, travel: Plan | None, inside: tuple[str, ...], database: str | None
    ) -> Plan:
        parts = Catalyst.name_of(node)
        unchanged = travel if travel is not None else node
        if parts is None:
            return unchanged
        table, given, catalog = parts
        if table in self._given:
            return self._given[table]
        found = self.context.resolve(table, given or database, catalog)
        place = place_of(node, span)
        name = TableName(table, given, place, catalog)
        if isinstance(found, SparkTable):
            self._require_in_spark(found, name)
            return unchanged
        if not isinstance(found, AcidTable | View):
            return unchanged
        version = self._version(travel, found.table, place)
        if node.isStreaming() or not node.options().isEmpty():
            what = "as a stream" if node.isStreaming() else "with reader options"
            raise with_location(place, UnsupportedError(f"{found.table.full_name} cannot be read {what}"))
        if isinstance(found, View):
            return self._view(found.table, name, inside) or unchanged
        return self._leaf(found.table, version, place)

    def _leaf(self, table: Table, version: int | None, place: Span) -> Plan:
        qualifier = [SPARK_CATALOG, table.database]
        key = table.full_name, version
        if self._shared is not None and key in self._shared:
            known = self._shared[key]
            return self._named(known, table.name, qualifier, known.leaf.newInstance())
        made = relation(
            self.env.sessions,
            table,
            self._zones,
            version=version,
            row_id=self._row_id,
            is_deleted=self._is_deleted,
        )
        self.relations.append(made)
        self._places[made.number] = place
        if self._shared is not None:
            self._shared[key] = made
        return self._named(made, table.name, qualifier)

    def _changes(self, call: Plan, place: Span, database: str | None) -> Plan:
        """``table_changes('table', first [, last [, 'key', …]])``."""
        given = self.catalyst.constants_of(call) or []
        name, first, last = [*given, None, None, None][:3]
        keys = tuple(key for key in given[3:] if isinstance(key, str))
        is_known = isinstance(name, str) and isinstance(first, int) and not isinstance(last, str)
        if not is_known or len(keys) < len(given[3:]):
            problem = "table_changes() takes a table's name, the first and the last write id, and names of key columns"
            hint = "As table_changes('db.t', 5) or table_changes('db.t', 5, 9, 'id'); its arguments are constants."
            raise with_location(place, AnalysisError(problem, hint=hint))
        parsed = parse_table_name(str(name))
        named = TableName(parsed.table, parsed.database or database, place, parsed.catalog)
        return self.changes(named, Changes(cast(int, first), cast("int | None", last), keys))

    def changes(self, name: TableName, changes: Changes) -> Plan:
        """The changes of a table."""
        found = self.context.resolve(name.table, name.database, name.catalog)
        if not isinstance(found, AcidTable):
            self.env.get_table(name)  # raises why it has none
            raise with_location(name.span, UnsupportedError(f"{name.table} is not an ACID table: it tells no changes"))
        changes = replace(changes, keys=tuple(key.lower() for key in changes.keys))
        try:
            check_changes(found.table, changes.keys)
        except AcidError as e:
            raise with_location(name.span, e) from e
        made = changes_relation(self.env.sessions, found.table, changes)
        self.relations.append(made)
        self._places[made.number] = name.span
        return self._named(made, found.table.name, [SPARK_CATALOG, found.table.database])

    def _named(self, made: Relation, name: str, qualifier: Sequence[str], leaf: Plan = None) -> Plan:
        """A relation, or a copy of its leaf, under a name; a star does not include its hidden columns."""
        named = self.catalyst.named(name, qualifier, made.leaf if leaf is None else leaf)
        columns = named.output()
        if columns.size() == made.visible:
            return named
        return self.catalyst.project(columns.take(made.visible), named, hidden=columns.drop(made.visible))

    def _aliased(self, node: Plan) -> Plan:
        """``t AS x`` of a table with hidden columns: the alias includes them."""
        project = node.child()
        # Spark itself hides columns of joins with USING and of NATURAL ones, in queries that are analysed already
        if not self.catalyst.hides_columns(project) or project.child().nodeName() != "SubqueryAlias":
            return node
        leaf = project.child().child()
        number = Catalyst.leaf_number(leaf)
        made = next((r for r in self.relations if r.number == number), None)
        return node if made is None else self._named(made, node.alias(), [], leaf)

    def _version(self, travel: Plan | None, table: Table, place: Span) -> int | None:
        """The write id of VERSION AS OF; None for the current version."""
        if travel is None:
            return None
        if table.is_view or not table.is_transactional:
            kind = "a view" if table.is_view else "not transactional"
            problem: AcidError = UnsupportedError(f"{table.full_name} is {kind}: its versions are not write ids")
            raise with_location(place, problem)
        if travel.version().isEmpty():
            problem = UnsupportedError(
                f"Table {table.full_name} cannot be read as of a timestamp",
                hint="VERSION AS OF takes a write id; DESCRIBE HISTORY lists them.",
            )
            raise with_location(place, problem)
        text = travel.version().get()
        if not text.isdecimal():
            problem = InvalidValue(f"VERSION AS OF takes a write id, a whole number, not {text!r}")
            raise with_location(place, problem)
        return int(text)

    def _require_in_spark(self, found: SparkTable, name: TableName) -> None:
        """Spark reads tables of the metastore that are not transactional: raise an error if it cannot."""
        registered = found.registered
        if registered is None or self.env.known_to_spark(name):
            return
        raise with_location(
            name.span,
            UnsupportedError(
                f"{registered.full_name} is not transactional, so Spark has to read it, but it does not exist in this"
                " Spark session",
                hint="Pass connect() a session with Hive support on the same metastore: enableHiveSupport(),"
                " spark.hadoop.hive.metastore.uris, and spark.sql.hive.metastore.version as the server's.",
            ),
        )

    def whole(self, found: AcidTable | View, name: TableName, version: int | None) -> Plan:
        """All columns of a table or view."""
        if isinstance(found, AcidTable):
            return self._leaf(found.table, version, name.span)
        return self._view(found.table, name, ()) or self.catalyst.parse(f"TABLE {name.span.text}")

    def command(self, whole: Span) -> Plan:
        """A Spark statement, with its queries over scans of the snapshot."""
        span = with_versions(whole, self.parameters)
        return self._command(self.catalyst.parse(padded(span)), span)

    def _command(self, plan: Plan, span: Span) -> Plan:
        children = list(Catalyst.items(plan.children()))
        if plan.nodeName() == "Union":  # FROM … INSERT … INSERT …
            return plan.withNewChildren(self.catalyst.seq([self._command(child, span) for child in children]))
        made = [
            child
            if child.nodeName() == "UnresolvedIdentifier"
            else self.scanned(self.analysed(self.bound(child, span)))
            for child in children
        ]
        return plan.withNewChildren(self.catalyst.seq(made))

    # --- views -------------------------------------------------------------------------------------------------------

    def _view(self, view: Table, name: TableName, inside: tuple[str, ...]) -> Plan | None:
        """A view's query with the view's column names; None if Spark can read the view itself."""
        text, session = view.view_text or "", self._session_of(view)
        before = len(self.relations)
        try:
            if view.full_name in inside:
                cycle = " -> ".join([*inside[inside.index(view.full_name) :], view.full_name])
                raise AnalysisError(f"Recursive view {view.full_name} detected (cycle: {cycle})")
            self._mention(text)
            span = Span(text, 0, len(text))
            parsed = _parsed_view(session, view, text)
            query = self.bound(parsed, span, (*inside, view.full_name), view.database, session)
        except TableNotFound:  # of a nested view, which the message names
            raise
        except AcidError as e:
            problem = UnsupportedError(f"View {view.full_name} cannot be read: {e.message}", hint=e.hint)
            raise with_location(name.span, problem) from e
        self.view_paths.append((*inside, view.full_name))
        if len(self.relations) == before and self.env.known_to_spark(name):
            return None
        try:
            frame = session.frame(query)
        except SparkAnalysisException as e:
            raise with_location(name.span, _unreadable(view, e)) from e
        if len(frame.columns) != len(view.columns):
            problem = UnsupportedError(
                f"View {view.full_name} cannot be read: its query returns {len(frame.columns)} columns, the view has"
                f" {len(view.columns)}: an underlying table was altered",
                hint="CREATE OR REPLACE VIEW … AS … uses the current columns.",
            )
            raise with_location(name.span, problem)
        named = self.catalyst.analyzed(frame.toDF(*[c.name for c in view.columns]))
        return self.catalyst.named(view.name, [SPARK_CATALOG, view.database], named)

    def _session_of(self, view: Table) -> Catalyst:
        """Where a view is parsed and analysed: under the settings and in the database of its creation, if known."""
        settings, database = view.view_settings, view.parameters.get(f"{VIEW_NAMESPACE}part.1")
        hidden = self.env.sessions.hides(view.view_text or "")
        key = (frozenset(settings.items()), database, hidden)
        if key not in self._sessions:
            self._sessions[key] = self.env.sessions.of_view(settings, database, hidden=hidden)
        return self._sessions[key]

    # --- the target --------------------------------------------------------------------------------------------------

    def target(self, table: Table, alias: str | None) -> tuple[Relation, Plan]:
        """The target of the statement with the identity of its rows, and its plan."""
        made = relation(self.env.sessions, table, self._zones, row_id=True, is_target=True, secret=self.secret)
        self.relations.append(made)
        qualifier = [] if alias is not None else [SPARK_CATALOG, table.database]
        return made, self._named(made, alias if alias is not None else table.name, qualifier)

    # --- 2: analysis -------------------------------------------------------------------------------------------------

    def analysed(self, plan: Plan) -> Plan:
        """The plan as resolved by Spark's analyser, over leaves; current_timestamp() and the like are fixed."""
        return self.context.now.fixed(self.resolved(plan))

    def resolved(self, plan: Plan) -> Plan:
        """As :meth:`analysed`, but the current time is still to be fixed."""
        try:
            return self.catalyst.analyzed(self.catalyst.frame(plan))
        except SparkAnalysisException as e:
            self._explain_missing_row_id(e)
            raise

    def _explain_missing_row_id(self, error: SparkAnalysisException) -> None:
        """Raises: AnalysisError for ROW__ID of a table without row ids."""
        name = (error.getMessageParameters() or {}).get("objectName", "")
        insert_only = [r for r in self.relations if r.table.is_insert_only and not r.is_target]
        if ROW_ID in name.upper() and insert_only:
            problem = AnalysisError(
                f"The rows of {insert_only[0].table.full_name} have no ROW__ID: the table is insert-only transactional",
                hint="Only full-ACID tables have row ids.",
            )
            raise with_location(self._places[insert_only[0].number], problem) from error

    def answer(self, plan: Plan) -> DataFrame:
        """A bound plan as a DataFrame of the user's session."""
        analysed = self.analysed(plan)
        scanned = self.scanned(analysed)
        if has_subqueries(self.catalyst, analysed):  # leaves have no columns that the answer does not need
            scanned = closed(self.catalyst, scanned)
        return self.catalyst.frame(scanned)


def refuse_evaluated_twice(span: Span, *parts: tuple[Binding, Plan]) -> None:
    """Make sure that no WITH clause before a statement that may give other rows each time stands in several of its
    parts, which are resolved, and so evaluated, by themselves.

    Raises:
        UnsupportedError: When one does.
    """
    found: dict[int, str] = {}
    for binding, plan in parts:
        found |= binding.changing_definitions(plan)
    twice = sorted(name for name, count in Counter(found.values()).items() if count > 1)
    if twice:
        problem = f"WITH {twice[0]} may give other rows each time, and several parts of the statement read it"
        raise with_location(span, UnsupportedError(problem, hint="Write its rows into a table first."))


def _is_time_window(expression: Expression) -> bool:
    """Whether it is a call of ``window(…)`` or ``session_window(…)``."""
    if expression.nodeName() != "UnresolvedFunction":
        return False
    return str(expression.nameParts().last()).lower() in ("window", "session_window")


def _parsed_view(session: Catalyst, view: Table, text: str) -> Plan:
    try:
        return session.parse(text)
    except SparkAnalysisException as e:
        raise _unreadable(view, e) from e


def _unreadable(view: Table, error: SparkAnalysisException) -> AcidError:
    """The error for a view query that Spark cannot run."""
    condition = error.getCondition()
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        missing = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        return TableNotFound(f"Table not found {missing} in definition of view {view.full_name}")
    return UnsupportedError(
        f"Spark cannot run the query of view {view.full_name} in the metastore: {condition}",
        hint="Spark does not support Hive's generated column names (_c0) and Hive's own functions; use aliases.",
    )
