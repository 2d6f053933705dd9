"""Logical plans: parsed from the user's text, composed, analysed, and inspected.

Names are resolved by Spark itself. The user's text is parsed by Spark's own parser; ours are only the plans that are
put in the place of the relations in it, each below a ``SubqueryAlias`` with the table's full qualifier. So qualifiers,
aliases, scopes, stars and the places in Spark's errors are Spark's own. A plan is walked by a Python object that stands
for ``scala.PartialFunction`` (py4j's callback server, as ``foreachBatch`` uses it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from acidsql.catalyst.active import active, in_its_session
from acidsql.catalyst.java import SPARK, Java

_ANALYSIS = "sql.catalyst.analysis"
_EXPRESSIONS = "sql.catalyst.expressions"
_LOGICAL = "sql.catalyst.plans.logical"
_REPEATABLE = {
    *("Filter", "Generate", "Join", "LocalRelation", "OneRowRelation", "Project", "Range", "SubqueryAlias"),
    *("Union", "View", "WithCTE", "CTERelationDef", "CTERelationRef"),
}
"""Nodes that give the same rows whenever the nodes below them do."""
SHUFFLING, REPARTITION = ("AGGREGATE", "DISTINCT_LIKE", "JOIN", "SORT", "WINDOW"), "REPARTITION_OPERATION"
"""Spark's names of the steps for which rows may go from task to task, and of those that exist for that alone."""

Plan: TypeAlias = Any
"""A ``LogicalPlan`` in the JVM."""
Expression: TypeAlias = Any
"""A Catalyst ``Expression`` in the JVM."""

Expressions: TypeAlias = tuple[Expression, ...] | list[Expression] | Any
"""Several of them, in Python or as a Scala ``Seq``."""


def _unchanged(node: Any) -> Any:
    return node


_PATH_ENABLED = "spark.sql.path.enabled"


class _Function:
    """A Python function as a ``scala.PartialFunction`` that is defined everywhere; its first error is kept.

    So are its answers: when Python drops an object of the JVM, a thread of its own tells the JVM, and that may come
    before the JVM has looked up which object the answer names. It would be null.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function: Callable[[Any], Any] = function
        self._answers: list[Any] = []
        self.error: BaseException | None = None

    def forget(self) -> None:
        """Hold on to nothing: the JVM keeps this object until its next garbage collection, and with it whole plans."""
        self._function = _unchanged
        self._answers.clear()

    def applyOrElse(self, node: Any, default: Any) -> Any:
        if self.error is None:
            try:
                made = self._function(node)
                self._answers += (node, made)
                return made
            except BaseException as e:  # an exception must not pass through the JVM: it would lose its type
                self.error = e
        self._answers.append(node)
        return node

    def apply(self, node: Any) -> Any:
        return self.applyOrElse(node, None)

    def isDefinedAt(self, node: Any) -> bool:
        return True

    class Java:
        implements = ("scala.PartialFunction",)


_BATCHED_UDF = 100
"""Spark's ``PythonEvalType.SQL_BATCHED_UDF``: rows are pickled, a timestamp as an instant."""


@contextmanager
def rule(function: Callable[[Any], Any]) -> Iterator[_Function]:
    """A Python function for the JVM to apply to nodes; its error is raised at the end of the block."""
    made = _Function(function)
    try:
        yield made
    finally:
        made.forget()
    if made.error is not None:
        raise made.error


class Catalyst:
    """Spark's parser, analyser and optimiser in one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.java = Java.of(spark)
        gateway: Any = spark.sparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        self.spark = spark
        self._session: Any = spark._jsparkSession
        self._structs: dict[tuple[tuple[str, str], ...], Expression] = {}

    def active(self) -> AbstractContextManager[None]:
        """Make this session the active one of the thread for the duration of a block."""
        return active(self.spark)

    def _class(self, name: str) -> Any:
        """A class below ``org.apache.spark``."""
        return self.java.type(f"{SPARK}.{name}")

    def _static(self, owner: str, member: str) -> Any:
        """A static member of such a class."""
        return self.java.static(f"{SPARK}.{owner}", member)

    def _pattern(self, name: str) -> Any:
        """A pattern that plans are asked for, as Spark calls it."""
        return self._static("sql.catalyst.trees.TreePattern", name)()

    def _logical(self, name: str) -> Any:
        return self._class(f"{_LOGICAL}.{name}")

    def _expression(self, name: str) -> Any:
        return self._class(f"{_EXPRESSIONS}.{name}")

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
        """
        return self.substitute_with(self._sql_parser.parsePlan(text))

    @in_its_session
    def parse_with(self, text: str) -> Plan:
        """A text that is a WITH clause and any query; the clause is kept: see :meth:`under`."""
        return self._sql_parser.parsePlan(text)

    def under(self, with_clause: Plan, plan: Plan) -> Plan:
        """A plan that sees the names of a WITH clause, which are put into their places."""
        return self.substitute_with(with_clause.withNewChildren(self.seq([plan])))

    @in_its_session
    def substitute_with(self, plan: Plan) -> Plan:
        """The plan with the names of its WITH clauses replaced by their queries, by Spark's own rule."""
        return self._static(f"{_ANALYSIS}.CTESubstitution", "apply")(plan)

    @in_its_session
    def parse_expression(self, text: str) -> Expression:
        """One expression; whatever follows it is an error.

        Raises:
            pyspark.errors.ParseException: As Spark.
        """
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

    def is_temporary_view(self, name: str) -> bool:
        """Whether a name is that of a temporary view."""
        return bool(self._catalog.getTempView(name).isDefined())

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
        if not plan.containsPattern(self._pattern("PYTHON_UDF")):
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
        literals = [self.expression(value if isinstance(value, Column) else F.lit(value)) for value in values.values()]
        query = self._class(f"{_ANALYSIS}.NameParameterizedQuery")(plan, self.seq(list(values)), self.seq(literals))
        return self._static(f"{_ANALYSIS}.BindParameters", "apply")(query)

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

    @classmethod
    def name_of(cls, relation: Plan) -> tuple[str, str | None, str | None] | None:
        """Table, database and catalog that an ``UnresolvedRelation`` names; None for a name of more parts."""
        return _name_of(list(cls.items(relation.multipartIdentifier())))

    def expressions(self, plan: Plan) -> Iterator[Expression]:
        """All expressions in a plan and in its subqueries, each before its parts."""
        for node in self.nodes(plan):
            for expression in self.items(node.expressions()):
                yield from parts_of(expression)

    # --- putting plans together --------------------------------------------------------------------------------------

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala ``Seq``."""
        return self.java.seq(items)

    @staticmethod
    def items(sequence: Any) -> Iterator[Any]:
        """The items of a Scala ``Seq``."""
        for i in range(sequence.size()):
            yield sequence.apply(i)

    def named(self, name: str, qualifier: Sequence[str], plan: Plan) -> Plan:
        """``plan AS qualifier.name``."""
        identifier = self._class("sql.catalyst.AliasIdentifier")(name, self.seq(qualifier))
        return self._logical("SubqueryAlias")(identifier, plan)

    def project(self, columns: Expressions, plan: Plan, *, hidden: Expressions = ()) -> Plan:
        """SELECT; ``hidden`` columns of ``plan`` can be named, but a star does not include them."""
        made = self._logical("Project")(self._seq(columns), plan)
        if hidden:
            made.setTagValue(self._hidden_output(), self._seq(hidden))
        return made

    def _seq(self, expressions: Expressions) -> Any:
        return self.seq(expressions) if isinstance(expressions, tuple | list) else expressions

    def hides_columns(self, plan: Plan) -> bool:
        """Whether a plan is one of :meth:`project` with hidden columns."""
        return plan.nodeName() == "Project" and bool(plan.getTagValue(self._hidden_output()).isDefined())

    def _hidden_output(self) -> Any:
        return self._static(f"{_LOGICAL}.Project", "hiddenOutputTag")()

    def hidden_below(self, query: Plan, text: str) -> list[Expression]:
        """The columns that the star of an analysed ``SELECT *`` leaves out.

        Such as the keys of the sides of a NATURAL JOIN, which ``t.*`` has. Spark's column about files (``_metadata``)
        is one of them only if its name is in ``text``.
        """
        below = self.items(self.without_definitions(query).child().metadataOutput())
        return [a for a in below if a.name() != "_metadata" or "_METADATA" in text.upper()]

    def with_further(self, query: Plan, columns: Sequence[Expression]) -> Plan:
        """An analysed ``SELECT *`` with further columns of what it selects from."""
        if not columns:
            return query
        inner = self.without_definitions(query)
        made = self.project([*self.output(inner), *columns], inner.child())
        return made if inner is query else self._with_last(query, made)

    def with_values(self, query: Plan, values: Mapping[tuple[int, int], Expression]) -> Plan:
        """A parsed VALUES, perhaps below a WITH clause, with some values replaced, by the numbers of row and column."""
        inner = self.without_definitions(query)
        rows = [list(self.items(row)) for row in self.items(inner.rows())]
        for (row, column), value in values.items():
            rows[row][column] = value
        made = self._class(f"{_ANALYSIS}.UnresolvedInlineTable")(inner.names(), self.seq(map(self.seq, rows)))
        return made if inner is query else self._with_last(query, made)

    def _with_last(self, plan: Plan, child: Plan) -> Plan:
        """A plan with its last child replaced."""
        return plan.withNewChildren(self.seq([*list(self.items(plan.children()))[:-1], child]))

    @staticmethod
    def without_definitions(plan: Plan) -> Plan:
        """The query below the definitions of its WITH clause."""
        return plan.children().last() if plan.nodeName() == "WithCTE" else plan

    def filter(self, condition: Expression, plan: Plan) -> Plan:
        return self._logical("Filter")(condition, plan)

    def limited_in_tasks(self, rows: int, plan: Plan) -> Plan:
        """At most so many rows of each task, whichever come first."""
        return self._logical("LocalLimit")(self.literal(rows), plan)

    def in_one_task(self, plan: Plan) -> Plan:
        """A shuffle of all rows to a single task."""
        return self._logical("Repartition")(1, True, plan)

    def may_shuffle(self, plan: Plan) -> bool:
        """Whether there is a step in a plan for which Spark may send rows to ``spark.sql.shuffle.partitions`` tasks."""
        return bool(plan.containsAnyPattern(self._shuffling))

    def repartitions(self, plan: Plan) -> bool:
        """Whether there is a step in a plan that sends rows to as many tasks as somebody likes."""
        return bool(plan.containsPattern(self._pattern(REPARTITION)))

    @cached_property
    def _shuffling(self) -> Any:
        return self.seq(map(self._pattern, SHUFFLING))

    def join(self, left: Plan, right: Plan, kind: str, condition: Expression | None) -> Plan:
        """A join of a kind as Spark's ``JoinType`` spells it: ``inner``, ``left``, ``leftanti`` …."""
        type = self._static("sql.catalyst.plans.JoinType", "apply")(kind)
        hint = self._static(f"{_LOGICAL}.JoinHint", "NONE")()
        return self._logical("Join")(left, right, type, self.java.option(condition), hint)

    def broadcast(self, plan: Plan) -> Plan:
        """``plan`` with the hint that a join should broadcast it."""
        return self._logical("UnresolvedHint")("broadcast", self.java.nothing, plan)

    def union(self, plans: Sequence[Plan]) -> Plan:
        """UNION ALL, columns by position."""
        return self._logical("Union")(self.seq(plans), False, False)

    def alias(self, expression: Expression, name: str) -> Expression:
        """``expression AS name``."""
        return self._alias(expression, name, self._static(f"{_EXPRESSIONS}.NamedExpression", "newExprId")())

    def renamed(self, columns: Sequence[Expression], others: Sequence[Expression]) -> list[Expression]:
        """Columns with the names, qualifiers and identities of others, in the same order.

        They have the same types and marks.
        """
        pairs = zip(columns, others, strict=True)
        return [self._alias(given, wanted.name(), wanted.exprId(), wanted.qualifier()) for given, wanted in pairs]

    def _alias(self, expression: Expression, name: str, identity: Any, qualifier: Any = None) -> Expression:
        java, names = self.java, self.java.nothing if qualifier is None else qualifier
        return self._expression("Alias")(expression, name, identity, names, java.none, java.nothing)

    def one_row(self) -> Plan:
        """A relation of one row, of which no text can use anything; no job runs for it."""
        return self.parse("SELECT * FROM VALUES (1) AS __acid_one(__acid_only_this_row)").child()

    def distinct(self, plan: Plan) -> Plan:
        return self._logical("Distinct")(plan)

    @in_its_session
    def attribute(self, alias: Expression, type: str) -> Expression:
        """The column that ``expression AS name`` makes, before the expression is resolved.

        Args:
            alias: What :meth:`alias` made.
            type: The type that it is going to have, as Spark names it.
        """
        spark_type = self._static("sql.types.DataType", "fromDDL")(type)
        metadata = self._static("sql.types.Metadata", "empty")()
        reference = self._expression("AttributeReference")
        return reference(alias.name(), spark_type, True, metadata, alias.exprId(), self.java.nothing)

    def unresolved(self, *name: str) -> Expression:
        """A column by its name, and a field in it by more, which the analyser looks up."""
        return self._class("sql.catalyst.analysis.UnresolvedAttribute")(self.seq(name))

    def literal(self, value: bool | int | str) -> Expression:
        """A value as Spark types it: a whole number is an ``int`` where it fits."""
        return self._static(f"{_EXPRESSIONS}.Literal$", "MODULE$").apply(value)

    def date(self, days: int) -> Expression:
        """The day so many days after 1970-01-01."""
        return self._expression("Literal")(days, self._static("sql.types.DataTypes", "DateType"))

    def is_in(self, value: Expression, options: Sequence[Expression]) -> Expression:
        return self._expression("In")(value, self.seq(options))

    def between(self, value: Expression, least: Expression, most: Expression) -> Expression:
        """Whether a value is neither below the least nor above the most."""
        above = self._expression("GreaterThanOrEqual")(value, least)
        return self.both([above, self._expression("LessThanOrEqual")(value, most)])

    def case(self, cases: Sequence[tuple[Expression, Expression]], otherwise: Expression | None) -> Expression:
        """CASE WHEN … THEN … ELSE otherwise END."""
        pair = self.java.type("scala.Tuple2")
        pairs = [pair(condition, value) for condition, value in cases]
        return self._expression("CaseWhen")(self.seq(pairs), self.java.option(otherwise))

    def is_null(self, value: Expression) -> Expression:
        return self._expression("IsNull")(value)

    @cached_property
    def star(self) -> Expression:
        """All columns."""
        return self.parse("SELECT *").projectList().head()

    def nullable_struct(self, fields: tuple[tuple[str, str], ...]) -> Expression:
        """A struct of columns, by the names of its fields, which Spark takes for ones that may be NULL; at no cost."""
        made = self._structs.get(fields)
        if made is None:
            nullable = self._expression("KnownNullable")
            parts = [e for name, column in fields for e in (self.literal(name), nullable(self.unresolved(column)))]
            made = self._structs[fields] = self._expression("CreateNamedStruct")(self.seq(parts))
        return made

    def equal(self, one: Expression, other: Expression, *, null_safe: bool = False) -> Expression:
        return self._expression("EqualNullSafe" if null_safe else "EqualTo")(one, other)

    def unequal(self, one: Expression, other: Expression) -> Expression:
        return self._expression("Not")(self.equal(one, other))

    def both(self, conditions: Sequence[Expression]) -> Expression:
        """All conditions, combined with AND; at least one."""
        made = conditions[0]
        for condition in conditions[1:]:
            made = self._expression("And")(made, condition)
        return made

    @in_its_session
    def expression(self, column: Column) -> Expression:
        return self._session.expression(column._jc)

    def column(self, expression: Expression) -> Column:
        return Column(self._static("sql.classic.ExpressionUtils", "column")(expression))

    @in_its_session
    def schema(self, ddl: str) -> str:
        """The JSON of the ``StructType`` for columns in DDL."""
        return str(self._static("sql.types.StructType", "fromDDL")(ddl).json())

    def leaf(self, schema: str) -> tuple[Plan, int]:
        """A relation that stands for another: its columns, no rows, and the number by which its copies are known.

        Args:
            schema: The columns, as the JSON of Spark's ``StructType``.
        """
        rdd = self.spark.sparkContext._jsc.emptyRDD().rdd()
        type = self._static("sql.types.DataType", "fromJson")(schema)
        plan = self._session.internalCreateDataFrame(rdd, type, False).queryExecution().analyzed()
        return plan, rdd.id()

    @staticmethod
    def leaf_number(node: Plan) -> int | None:
        """The number of such a relation; None for any other node."""
        return node.rdd().id() if node.nodeName() == "LogicalRDD" else None

    @classmethod
    def leaves(cls, plan: Plan) -> Iterator[Plan]:
        """The nodes of a plan without children, those of subqueries left out."""
        return cls.items(plan.collectLeaves())

    @classmethod
    def output(cls, plan: Plan) -> list[Expression]:
        """The columns of a plan, as attributes."""
        return list(cls.items(plan.output()))


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
    """The conditions that AND puts together."""
    if condition.nodeName() == "And":
        yield from conjuncts_of(condition.left())
        yield from conjuncts_of(condition.right())
    else:
        yield condition
