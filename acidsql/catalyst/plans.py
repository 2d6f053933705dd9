"""Logical plans: parsed from the user's text, analysed, and inspected.

Names are resolved by Spark itself. The user's text is parsed by Spark's own parser; ours are only the plans that are
put in the place of the relations in it, each below a ``SubqueryAlias`` with the table's full qualifier. So qualifiers,
aliases, scopes, stars and the places in Spark's errors are Spark's own. A plan is walked by a Python object that stands
for ``scala.PartialFunction`` (:mod:`acidsql.catalyst.rules`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import NumberFormatException, ParseException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst.active import active, in_its_session
from acidsql.catalyst.builder import ANALYSIS, Expression, Plan, PlanBuilder
from acidsql.catalyst.java import SPARK
from acidsql.catalyst.rules import rule
from acidsql.errors import UnsupportedError

_REPEATABLE = {
    *("Filter", "Generate", "Join", "LocalRelation", "OneRowRelation", "Project", "Range", "SubqueryAlias"),
    *("Union", "View", "WithCTE", "CTERelationDef", "CTERelationRef"),
}
"""Nodes that give the same rows whenever the nodes below them do."""
JOIN = "JOIN"
AGGREGATE = "AGGREGATE"
SUBQUERY = "PLAN_EXPRESSION"
"""Spark's name of expressions with a plan in them."""
SHUFFLING = (AGGREGATE, "DISTINCT_LIKE", "SORT", "WINDOW")
"""Spark's names of the steps, besides joins, for which rows may go from task to task."""
REPARTITION = "REPARTITION_OPERATION"
"""And of those that send rows to as many tasks as somebody likes."""
_OFFSET = "OFFSET"
"""And of those that leave out rows at the beginning; Spark 4.0 has no name for them."""
CTE = "CTE"
"""And of WITH clauses."""
WINDOW_CLAUSE = "WITH_WINDOW_DEFINITION"
"""And of WINDOW clauses."""
_WINDOW_CLAUSE, _STAR = "WithWindowDefinition", "UnresolvedStarExceptOrReplace"
_DEEPEST = 20
"""So many WINDOW clauses are one in another at most."""

TABLE_FUNCTION = "UnresolvedTableValuedFunction"
"""The node of a function that stands in the place of a relation."""
_CONSTANTS = ("byte", "short", "integer", "long", "string", "void", "tinyint", "smallint", "bigint")

_MARKER = "parameter marker"
"""In the error of Spark's parser about a parameter that it did not expect."""
_PATH_ENABLED = "spark.sql.path.enabled"
_BATCHED_UDF = 100
"""Spark's ``PythonEvalType.SQL_BATCHED_UDF``: rows are pickled, a timestamp as an instant."""


class Catalyst(PlanBuilder):
    """Spark's parser, analyser and optimiser in one session."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        gateway: Any = spark.sparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]

    def active(self) -> AbstractContextManager[None]:
        """Make this session the active one of the thread for the duration of a block."""
        return active(self.spark)

    @cached_property
    def _sql_parser(self) -> Any:
        return self._session.sessionState().sqlParser()

    @cached_property
    def _catalog(self) -> Any:
        """Spark's own tables, views and functions in this session."""
        return self._session.sessionState().catalog()

    # --- text to plans -----------------------------------------------------------------------------------------------

    @in_its_session
    def parse(self, text: str) -> Plan:
        """A statement as Spark's parser reads it, its WITH clauses put into the places of their names.

        Raises:
            pyspark.errors.ParseException: As Spark.
            UnsupportedError: When a parameter stands where no expression may stand.
        """
        with _clear_failures():
            return self.substitute_with(self._sql_parser.parsePlan(text))

    @in_its_session
    def parse_with(self, text: str) -> Plan:
        """A text that is a WITH clause and any query; the clause is kept: see :meth:`under`. Errors: :meth:`parse`."""
        with _clear_failures():
            return self._sql_parser.parsePlan(text)

    def under(self, with_clause: Plan, plan: Plan) -> Plan:
        """A plan that sees the names of a WITH clause, which are put into their places."""
        return self.substitute_with(with_clause.withNewChildren(self.seq([plan])))

    @in_its_session
    def substitute_with(self, plan: Plan) -> Plan:
        """The plan with the names of its WITH clauses replaced by their queries, by Spark's own rule."""
        return self._static(f"{ANALYSIS}.CTESubstitution", "apply")(plan)

    @in_its_session
    def with_windows(self, plan: Plan) -> Plan:
        """The plan with the windows that a WINDOW clause names in the places of their names, by Spark's own rule:
        subqueries in such a clause are part of no expression."""
        pattern = self.pattern(WINDOW_CLAUSE)
        for _ in range(_DEEPEST):
            if not plan.containsPattern(pattern):
                break
            plan = self.transform(plan, lambda n: self._windows.apply(n) if n.nodeName() == _WINDOW_CLAUSE else n)
        return plan

    @cached_property
    def _windows(self) -> Any:
        return self._session.sessionState().analyzer().WindowsSubstitution()

    def with_replacements(self, plan: Plan, function: Callable[[Plan], Plan]) -> Plan:
        """The plan with what stars replace columns by (``|> SET``) as a function makes it of plans that select it."""

        def replaced(star: Expression) -> Expression:
            if star.nodeName() != _STAR or star.replacements().isEmpty():
                return star
            made = function(self.project(star.replacements().get(), self.one_row()))
            return star.copy(star.target(), star.excepts(), self.java.option(made.projectList()))

        def with_stars(node: Plan) -> Plan:
            if node.nodeName() != "Project":
                return node
            with rule(replaced) as each:
                return node.transformExpressions(each)

        return self.transform(plan, with_stars)

    def inlined(self, plan: Plan) -> Plan:
        """An analysed plan with those of its WITH clauses in their places that Spark's optimiser would put there: which
        are used once, or are deterministic."""
        if not plan.containsPattern(self.pattern(CTE)):
            return plan
        with self.active():
            return self._inliner.apply(plan)

    @cached_property
    def _inliner(self) -> Any:
        """Spark's rule, as it is in the optimiser: all of its flags are false, of which Spark 4.3 has one more."""
        name = "sql.catalyst.optimizer.InlineCTE"
        [constructor] = self.java.static("java.lang.Class", "forName")(f"{SPARK}.{name}").getConstructors()
        return self._class(name)(*[False] * constructor.getParameterCount())

    @in_its_session
    def without_duplicates(self, plan: Plan) -> Plan:
        """The plan with other columns for each relation that is in it a second time, by Spark's own rule."""
        return self._static(f"{ANALYSIS}.DeduplicateRelations", "apply")(plan)

    @in_its_session
    def parse_expression(self, text: str) -> Expression:
        """One expression; whatever follows it is an error. Raises: as :meth:`parse`."""
        with _clear_failures():
            return self._sql_parser.parseExpression(text)

    def resolved_expression(self, text: str) -> Expression:
        """An expression without columns, as this session resolves it: the names of its functions are those that stand
        here, also in a plan that another session analyses."""
        row = self.project([self.alias(self.parse_expression(text), "value")], self.one_row())
        return self.analyzed(self.frame(row)).projectList().head().child()

    @in_its_session
    def parse_name(self, text: str) -> list[str]:
        """The parts of a name."""
        return list(self.items(self._sql_parser.parseMultipartIdentifier(text)))

    @in_its_session
    def substituted(self, text: str) -> str:
        """The text that Spark's parser reads: ``${variables}`` are replaced by their values, if the session enables it.

        Positions in errors refer to this text.
        """
        return str(self._class("sql.internal.VariableSubstitution")().substitute(text))

    def identified(self, node: Plan) -> Plan:
        """Resolve ``IDENTIFIER(text)``: the relation of that name, or the query of a WITH clause."""
        return node.planBuilder().apply(self.seq(self._name_in(node.identifierExpr(), {})), node.children())

    def identifier(self, text: str, parameters: Mapping[str, Any]) -> tuple[str, str | None, str | None] | None:
        """What the expression in ``IDENTIFIER(text)`` names, as :meth:`name_of`."""
        return _name_of(self._name_in(self.parse_expression(text), parameters))

    def _name_in(self, expression: Expression, parameters: Mapping[str, Any]) -> list[str]:
        row = self.with_parameters(self.project([self.alias(expression, "name")], self.one_row()), parameters)
        return self.parse_name(str(self.frame(row).collect()[0][0]))

    def is_temporary_view(self, name: str, database: str | None = None) -> bool:
        """Whether a name is that of a temporary view; in Spark's database of global ones, of a global one."""
        return bool(self._temp_view(name, database, None).isDefined())

    def reads_a_changing_view(self, plan: Plan) -> bool:
        """Whether a parsed plan names a temporary view that is not deterministic for Spark, as those over scans."""
        found = (self._temp_view(*name) for name in map(self.name_of, self.relations(plan)) if name is not None)
        return any(not view.get().deterministic() for view in found if view.isDefined())

    def _temp_view(self, table: str, database: str | None, catalog: str | None) -> Any:
        if catalog is not None:
            return self.java.none
        if database is None:
            return self._catalog.getTempView(table)
        is_global = database.lower() == self._catalog.globalTempDatabase().lower()
        return self._catalog.getGlobalTempView(table) if is_global else self.java.none

    def looks_along_a_path(self) -> bool:
        """Whether this session looks for a table without a database in several ones (``SET PATH``, since Spark 4.3)."""
        return self._knows_path and self.spark.conf.get(_PATH_ENABLED) == "true"

    @cached_property
    def _knows_path(self) -> bool:
        return bool(self.spark.conf.isModifiable(_PATH_ENABLED))

    def is_temporary_function(self, name: str) -> bool:
        """Whether a name is that of a temporary function."""
        identifier = self._class("sql.catalyst.FunctionIdentifier")(name)
        return bool(self._catalog.isTemporaryFunction(identifier))

    def zoned_function(self, plan: Plan) -> str | None:
        """A Python function in an analysed plan that sees timestamps in the zone of the session that runs the plan: one
        over pandas or Arrow. None where there is none."""
        if not plan.containsPattern(self.pattern("PYTHON_UDF")):
            return None
        for expression in self.expressions(plan):
            if expression.nodeName() == "PythonUDF" and expression.evalType() != _BATCHED_UDF:
                types = [expression.dataType(), *(e.dataType() for e in self.items(expression.children()))]
                if any(re.search("timestamp(?!_ntz)", str(type.catalogString())) for type in types):
                    return str(expression.name())
        return None

    def has_variables(self) -> bool:
        """Whether the session has variables."""
        return not self._session.sessionState().catalogManager().tempVariableManager().isEmpty()

    def temporary_functions(self) -> list[str]:
        """The names of the session's temporary functions."""
        return [str(name.funcName()) for name in self.items(self._catalog.listTemporaryFunctions())]

    @in_its_session
    def with_parameters(self, plan: Plan, values: Mapping[str, Any]) -> Plan:
        """The plan with its named parameters replaced by values: as typed literals, never as text."""
        if not values:
            return plan
        literals = [self.expression(self.value(value)) for value in values.values()]
        query = self._class(f"{ANALYSIS}.NameParameterizedQuery")(plan, self.seq(list(values)), self.seq(literals))
        return self._static(f"{ANALYSIS}.BindParameters", "apply")(query)

    def positions_by_parameter(self, plan: Plan) -> Iterator[str]:
        """The names of the parameters that ORDER BY, SORT BY and GROUP BY of a parsed plan consist of."""
        for node in self.nodes(plan) if self.may_shuffle(plan) else ():
            name, found = node.nodeName(), []
            if name == "Sort":
                found = [order.child() for order in self.items(node.order())]
            elif name == "Aggregate":
                found = list(self.items(node.groupingExpressions()))
            yield from (str(e.name()) for e in found if e.nodeName() == "NamedParameter")

    def one_row(self) -> Plan:
        """A relation of one row, of which no text can use anything; no job runs for it."""
        return self.parse("SELECT * FROM VALUES (1) AS __acid_one(__acid_only_this_row)").child()

    @cached_property
    def star(self) -> Expression:
        """All columns."""
        return self.parse("SELECT *").projectList().head()

    # --- plans to frames ---------------------------------------------------------------------------------------------

    def frame(self, plan: Plan) -> DataFrame:
        """A plan as a frame of this session; it is analysed here, a command is run.

        Raises:
            pyspark.errors.AnalysisException: As Spark.
        """
        return DataFrame(self._static("sql.classic.Dataset", "ofRows")(self._session, plan), self.spark)

    def moved(self, frame: DataFrame) -> DataFrame:
        """A frame of another session of the same Spark as one of this session."""
        return self.frame(self.analyzed(frame))

    def own(self, frame: DataFrame) -> DataFrame:
        """A frame as one of this session."""
        is_own = frame._jdf.sparkSession().equals(self._session)
        return frame if is_own else self.moved(frame)

    def explained(self, plan: Plan, mode: str) -> str:
        """EXPLAIN of a plan, also of a command, which is not run; ``mode`` as Spark's ``ExplainMode`` is called."""
        mode_of = self._static("sql.execution.ExplainMode", "fromString")
        command = self._class("sql.execution.command.ExplainCommand")(plan, mode_of(mode))
        return str(self.frame(command).collect()[0][0])

    @staticmethod
    def analyzed(frame: DataFrame) -> Plan:
        return frame._jdf.queryExecution().analyzed()

    @staticmethod
    def optimized(frame: DataFrame) -> Plan:
        return frame._jdf.queryExecution().optimizedPlan()

    def is_repeatable(self, plan: Plan, numbers: Collection[int]) -> bool:
        """Whether an analysed plan surely gives the same rows each time it is run.

        Not so if the rows come from elsewhere, are chosen or numbered in the order in which they happen to be read
        (LIMIT, windows, some aggregate functions), or are random.

        Args:
            plan: The plan.
            numbers: Those of the leaves (:meth:`leaf`) that stand for files which do not change.
        """
        return plan.deterministic() and all(
            node.nodeName() in _REPEATABLE or self.leaf_number(node) in numbers for node in self.nodes(plan)
        )

    def changing_definitions(self, plan: Plan, numbers: Collection[int]) -> dict[int, str]:
        """The WITH clauses that a resolved plan reads, and that may give other rows each time (:meth:`is_repeatable`,
        with its arguments): their names, by a number that each copy of a clause has for itself."""
        if not plan.containsPattern(self.pattern(CTE)):
            return {}
        definitions: dict[int, Plan] = {}
        read: set[int] = set()
        for node in self.nodes(plan):
            if node.nodeName() == "WithCTE":
                definitions |= {one.id(): one.child() for one in self.items(node.cteDefs())}
                read |= self._definitions_read(node.plan())
        reads = {number: self._definitions_read(child) for number, child in definitions.items()}
        changing = {number for number, child in definitions.items() if not self.is_repeatable(child, numbers)}
        for _ in definitions:
            read |= {other for number in read for other in reads.get(number, ())}
            changing |= {number for number, others in reads.items() if others & changing}
        named = {number: definitions[number] for number in read & changing}
        return {n: str(child.alias()).lower() for n, child in named.items() if child.nodeName() == "SubqueryAlias"}

    def _definitions_read(self, plan: Plan) -> set[int]:
        return {int(node.cteId()) for node in self.nodes(plan) if node.nodeName() == "CTERelationRef"}

    # --- looking into plans ------------------------------------------------------------------------------------------

    def transform(self, plan: Plan, function: Callable[[Plan], Plan]) -> Plan:
        """The plan with each node, also those of subqueries, replaced by what a function makes of it, leaves first."""
        with rule(function) as each:
            return plan.transformUpWithSubqueries(each)

    def nodes(self, plan: Plan) -> list[Plan]:
        """All nodes of a plan and of its subqueries, leaves first."""
        found: list[Plan] = []

        def keep(node: Plan) -> Plan:
            found.append(node)
            return node

        self.transform(plan, keep)
        return found

    def relations(self, plan: Plan) -> Iterator[Plan]:
        """The relations that a parsed plan names: ``UnresolvedRelation`` and, for ``IDENTIFIER(…)``,
        ``PlanWithUnresolvedIdentifier`` nodes."""
        for node in self.nodes(plan):
            relation = node.relation() if node.nodeName() == "RelationTimeTravel" else node
            if relation.nodeName() in ("UnresolvedRelation", "PlanWithUnresolvedIdentifier"):
                yield relation

    def groups_by_subqueries(self, plan: Plan) -> bool:
        """Whether a parsed plan has a subquery in a GROUP BY."""
        if not plan.containsPattern(self.pattern(SUBQUERY)) or not plan.containsPattern(self.pattern(AGGREGATE)):
            return False
        pattern = self.pattern(SUBQUERY)
        aggregates = (node for node in self.nodes(plan) if node.nodeName() == "Aggregate")
        grouping = (e for node in aggregates for e in self.items(node.groupingExpressions()))
        return any(e.containsPattern(pattern) for e in grouping)

    def table_functions(self, plan: Plan) -> list[str]:
        """The functions that a parsed plan has in the place of relations, in lower case."""
        return [self.function_of(node) for node in self.nodes(plan) if node.nodeName() == TABLE_FUNCTION]

    def function_of(self, node: Plan) -> str:
        """The name of the function of a :data:`TABLE_FUNCTION`, in lower case."""
        return ".".join(map(str, self.items(node.name()))).lower()

    def constants_of(self, node: Plan) -> list[int | str | None] | None:
        """The arguments of such a function: whole numbers, texts and NULL; None where there are others."""
        found: list[int | str | None] = []
        for argument in self.items(node.functionArgs()):
            if argument.nodeName() != "Literal":
                return None
            value = argument.value()
            if isinstance(value, bool) or str(argument.dataType().typeName()) not in _CONSTANTS:
                return None
            found.append(value if value is None or isinstance(value, int) else str(value.toString()))
        return found

    @classmethod
    def name_of(cls, relation: Plan) -> tuple[str, str | None, str | None] | None:
        """Table, database and catalog that an ``UnresolvedRelation`` names; None for a name of more parts."""
        return _name_of(list(cls.items(relation.multipartIdentifier())))

    def expressions(self, plan: Plan) -> Iterator[Expression]:
        """All expressions in a plan and in its subqueries, each before its parts."""
        for node in self.nodes(plan):
            for expression in self.items(node.expressions()):
                yield from parts_of(expression)

    def hides_columns(self, plan: Plan) -> bool:
        """Whether a plan is one of :meth:`project` with hidden columns."""
        return plan.nodeName() == "Project" and bool(plan.getTagValue(self._hidden_output).isDefined())

    def hidden_below(self, query: Plan, text: str) -> list[Expression]:
        """The columns that the star of an analysed ``SELECT *`` leaves out.

        Such as the keys of the sides of a NATURAL JOIN, which ``t.*`` has. Spark's column about files (``_metadata``)
        is one of them only if its name is in ``text``.
        """
        below = self.items(self.without_definitions(query).child().metadataOutput())
        return [a for a in below if a.name() != "_metadata" or "_METADATA" in text.upper()]

    def may_shuffle(self, plan: Plan) -> bool:
        """Whether there is a step other than a join in a plan for which Spark may send rows to
        ``spark.sql.shuffle.partitions`` tasks."""
        return bool(plan.containsAnyPattern(self._shuffling))

    def joins(self, plan: Plan) -> bool:
        """Whether there is a join in a plan."""
        return bool(plan.containsPattern(self.pattern(JOIN)))

    def rearranges(self, plan: Plan) -> bool:
        """Whether there is a step in a plan that skips rows, or sends them to as many tasks as somebody likes."""
        if self._knows_offset:
            return bool(plan.containsAnyPattern(self._rearranging))
        return bool(plan.containsPattern(self.pattern(REPARTITION))) or self.skips_rows(plan)

    @staticmethod
    def default_parallelism(spark: SparkSession) -> int:
        """The number of tasks of rows that nothing else divides (``spark.sql.leafNodeDefaultParallelism``)."""
        session: Any = spark._jsparkSession
        return int(session.leafNodeDefaultParallelism())

    def skips_rows(self, plan: Plan) -> bool:
        """Whether there is an OFFSET in a plan."""
        if self._knows_offset:
            return bool(plan.containsPattern(self.pattern(_OFFSET)))
        return any(node.nodeName() == "Offset" for node in self.nodes(plan))

    @cached_property
    def _knows_offset(self) -> bool:
        known = self._static("sql.catalyst.trees.TreePattern", "values")().mkString(",")
        return _OFFSET in known.split(",")

    @cached_property
    def _rearranging(self) -> Any:
        return self.seq(map(self.pattern, (REPARTITION, _OFFSET)))

    @cached_property
    def _shuffling(self) -> Any:
        return self.seq(map(self.pattern, SHUFFLING))

    @staticmethod
    def leaf_number(node: Plan) -> int | None:
        """The number of such a relation; None for any other node."""
        return node.rdd().id() if node.nodeName() == "LogicalRDD" else None

    @classmethod
    def leaves(cls, plan: Plan) -> Iterator[Plan]:
        """The nodes of a plan without children, those of subqueries left out."""
        return cls.items(plan.collectLeaves())

    @classmethod
    def base_relations(cls, plan: Plan) -> Iterator[Any]:
        """The ``BaseRelation`` of each ``LogicalRelation`` that a plan reads, those of subqueries left out."""
        for leaf in cls.leaves(plan):
            if leaf.nodeName().startswith("LogicalRelation") or leaf.getClass().getSimpleName() == "LogicalRelation":
                yield leaf.relation()


@contextmanager
def _clear_failures() -> Iterator[None]:
    """Raises: UnsupportedError where Spark's parser fails instead of refusing the text."""
    try:
        yield
    except (ParseException, NumberFormatException, Py4JJavaError) as e:
        if isinstance(e, ParseException) and _MARKER not in str(e):
            raise
        raise UnsupportedError(
            "Spark's parser cannot read this",
            hint="A parameter (:name) stands where any expression may: in no type, interval, TABLESAMPLE or ESCAPE.",
        ) from e


def _name_of(parts: Sequence[str]) -> tuple[str, str | None, str | None] | None:
    if len(parts) > 3:
        return None
    table, database, catalog = [*reversed(parts), None, None][:3]
    return str(table), database, catalog


def parts_of(expression: Expression) -> Iterator[Expression]:
    """An expression and all that it is composed of."""
    stack = [expression]
    while stack:
        part = stack.pop()
        yield part
        stack += Catalyst.items(part.children())


def conjuncts_of(condition: Expression) -> Iterator[Expression]:
    """The conditions that AND puts together, in their order."""
    stack = [condition]
    while stack:
        part = stack.pop()
        if part.nodeName() == "And":
            stack += (part.right(), part.left())
        else:
            yield part
