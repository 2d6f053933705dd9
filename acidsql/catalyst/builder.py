"""Putting logical plans and expressions together: each is an object of the JVM, as Spark's own rules make them.

Nothing here is resolved or looked up by name: :class:`acidsql.catalyst.plans.Catalyst` lets Spark do so.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_timestamp_ntz_preferred

from acidsql.catalyst.active import in_its_session
from acidsql.catalyst.java import SPARK, Java
from acidsql.errors import InvalidValue, require_unicode

ANALYSIS = "sql.catalyst.analysis"
MAX_RESULT_SIZE = "spark.driver.maxResultSize"
_EXPRESSIONS = "sql.catalyst.expressions"
_LOGICAL = "sql.catalyst.plans.logical"

_EPOCH = datetime.datetime(1970, 1, 1)

_ALL_TASKS = 1 << 30
"""More tasks than any plan has."""

_SCHEMAS = 512
"""So many schemas are kept."""

Plan: TypeAlias = Any
"""A ``LogicalPlan`` in the JVM."""
Expression: TypeAlias = Any
"""A Catalyst ``Expression`` in the JVM."""

Expressions: TypeAlias = tuple[Expression, ...] | list[Expression] | Any
"""Several of them, in Python or as a Scala ``Seq``."""


class PlanBuilder:
    """Builds the logical plans and expressions of a session.

    Attributes:
        spark: The session.
        held: What others keep for as long as this object lives, by their names: plans and frames of it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.java = Java.of(spark)
        self.spark = spark
        self.held: dict[str, Any] = {}
        self._session: Any = spark._jsparkSession
        self._structs: dict[tuple[tuple[str, str], ...], Expression] = {}
        self._schemas: dict[str, str] = {}

    @property
    def max_result_bytes(self) -> int:
        """What the tasks of a job may hand over to the driver before Spark ends the job; 0 where there is no limit."""
        return int(self._spark_conf.getSizeAsBytes(MAX_RESULT_SIZE, "1g"))

    @cached_property
    def _spark_conf(self) -> Any:
        return self.spark.sparkContext._jsc.sc().conf()

    def _class(self, name: str) -> Any:
        """A class below ``org.apache.spark``."""
        return self.java.type(f"{SPARK}.{name}")

    def _static(self, owner: str, member: str) -> Any:
        """A static member of such a class."""
        return self.java.static(f"{SPARK}.{owner}", member)

    def pattern(self, name: str) -> Any:
        """A pattern that plans are asked for, as Spark calls it."""
        return self.java.constant(f"{SPARK}.sql.catalyst.trees.TreePattern", name)

    def _logical(self, name: str) -> Any:
        return self._class(f"{_LOGICAL}.{name}")

    def _expression(self, name: str) -> Any:
        return self._class(f"{_EXPRESSIONS}.{name}")

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
        if not isinstance(hidden, tuple | list) or hidden:
            made.setTagValue(self._hidden_output, self._seq(hidden))
        return made

    def _seq(self, expressions: Expressions) -> Any:
        return self.seq(expressions) if isinstance(expressions, tuple | list) else expressions

    @cached_property
    def _hidden_output(self) -> Any:
        return self._static(f"{_LOGICAL}.Project", "hiddenOutputTag")()

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
        made = self._class(f"{ANALYSIS}.UnresolvedInlineTable")(inner.names(), self.seq(map(self.seq, rows)))
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
        """At most so many rows of each task, whichever come first.

        Spark counts the rows in a variable that has a number of its own in each query, and so compiles the code around
        it anew each time. So the limit stands alone: what is below it is code that Spark knows from the last time.
        """
        return self._logical("LocalLimit")(self.literal(rows), self._logical("Repartition")(_ALL_TASKS, False, plan))

    def in_one_task(self, plan: Plan) -> Plan:
        """A shuffle of all rows to a single task."""
        return self._logical("Repartition")(1, True, plan)

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

    def same(self, columns: Sequence[Expression], others: Sequence[Expression]) -> list[Expression]:
        """As :meth:`renamed`, with the marks of the others; and columns that may be NULL where they may."""
        nullable, made = self._expression("KnownNullable"), []
        for given, wanted in zip(columns, others, strict=True):
            value = nullable(given) if wanted.nullable() and not given.nullable() else given
            marks = self.java.option(wanted.metadata())
            made.append(self._alias(value, wanted.name(), wanted.exprId(), wanted.qualifier(), marks))
        return made

    def _alias(
        self, expression: Expression, name: str, identity: Any, qualifier: Any = None, marks: Any = None
    ) -> Expression:
        java, names = self.java, self.java.nothing if qualifier is None else qualifier
        given = java.none if marks is None else marks
        return self._expression("Alias")(expression, name, identity, names, given, java.nothing)

    def distinct(self, plan: Plan) -> Plan:
        return self._logical("Distinct")(plan)

    def number(self, alias: Expression) -> Expression:
        """The column that ``expression AS name`` makes, before the expression is resolved, which is going to be an int.

        Args:
            alias: What :meth:`alias` made.
        """
        type, reference = self._static("sql.types.DataTypes", "IntegerType"), self._expression("AttributeReference")
        return reference(alias.name(), type, True, self._no_metadata, alias.exprId(), self.java.nothing)

    @cached_property
    def _no_metadata(self) -> Any:
        return self._static("sql.types.Metadata", "empty")()

    def unresolved(self, *name: str) -> Expression:
        """A column by its name, and a field in it by more, which the analyser looks up."""
        return self._class("sql.catalyst.analysis.UnresolvedAttribute")(self.seq(name))

    def literal(self, value: bool | int | str) -> Expression:
        """A value as Spark types it: a whole number is an ``int`` where it fits."""
        return self._static(f"{_EXPRESSIONS}.Literal$", "MODULE$").apply(value)

    def date(self, days: int) -> Expression:
        """The day so many days after 1970-01-01."""
        return self._expression("Literal")(days, self._static("sql.types.DataTypes", "DateType"))

    def value(self, value: Any) -> Column:
        """A value of Python's as a typed literal; a column stays what it is, and a time without a zone is one of the
        zone of this process, as for Spark.

        Spark would make a ``java.sql.Date`` or ``Timestamp`` of a day or a time: there is none for the days that the
        Gregorian reform left out, nor for those that the JVM's zone skipped, and an older time becomes another one.

        Raises:
            InvalidValue: For a number above 64 bits, and a text that is not valid Unicode: Java has none.
        """
        if isinstance(value, str):
            require_unicode(value, "the text")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidValue(f"{value} is no bigint", hint="A Decimal may have 38 digits.")
        if isinstance(value, datetime.datetime):
            return F.lit(value) if value.tzinfo is None and is_timestamp_ntz_preferred() else self._instant(value)
        if isinstance(value, datetime.date):
            return self.column(self.date((value - _EPOCH.date()).days))
        if isinstance(value, list):
            return F.array(*map(self.value, value))
        return F.lit(value)

    def _instant(self, value: datetime.datetime) -> Column:
        offset = value.utcoffset()
        if offset is None:
            seconds = int(time.mktime(value.timetuple()))
        else:
            seconds = (value.replace(tzinfo=None, microsecond=0) - _EPOCH - offset) // datetime.timedelta(seconds=1)
        instant = self.java.static("java.time.Instant", "ofEpochSecond")(seconds, value.microsecond * 1000)
        return self.column(self.literal(instant))

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

    def either(self, one: Expression, other: Expression) -> Expression:
        """``one OR other``."""
        return self._expression("Or")(one, other)

    def both(self, conditions: Sequence[Expression]) -> Expression:
        """All conditions, combined with AND; at least one. However many they are, Spark's rules do not go deep."""
        if len(conditions) == 1:
            return conditions[0]
        half = len(conditions) // 2
        return self._expression("And")(self.both(conditions[:half]), self.both(conditions[half:]))

    @in_its_session
    def expression(self, column: Column) -> Expression:
        return self._session.expression(column._jc)

    def column(self, expression: Expression) -> Column:
        return Column(self._static("sql.classic.ExpressionUtils", "column")(expression))

    @in_its_session
    def schema(self, ddl: str) -> str:
        """The JSON of the ``StructType`` for columns in DDL."""
        if ddl not in self._schemas:
            if len(self._schemas) >= _SCHEMAS:
                self._schemas.clear()
            self._schemas[ddl] = str(self._static("sql.types.StructType", "fromDDL")(ddl).json())
        return self._schemas[ddl]

    def leaf(self, schema: str) -> tuple[Plan, int]:
        """A relation that stands for another: its columns, no rows, and the number by which its copies are known.

        Args:
            schema: The columns, as the JSON of Spark's ``StructType``.
        """
        rdd = self.spark.sparkContext._jsc.emptyRDD().rdd()
        type = self._static("sql.types.DataType", "fromJson")(schema)
        plan = self._session.internalCreateDataFrame(rdd, type, False).queryExecution().analyzed()
        return plan, rdd.id()

    @classmethod
    def output(cls, plan: Plan) -> list[Expression]:
        """The columns of a plan, as attributes."""
        return list(cls.items(plan.output()))
