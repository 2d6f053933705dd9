"""Expressions that call Java: what Spark's SQL has no function for, within generated code and without a Spark job."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession

from acidsql.errors import UnsupportedError

_TYPES = {
    "boolean": "BooleanType",
    "tinyint": "ByteType",
    "int": "IntegerType",
    "bigint": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "string": "StringType",
    "binary": "BinaryType",
}


class JavaExpressions:
    """Builds Catalyst's ``StaticInvoke``, ``Invoke`` and ``Cast`` over columns.

    Types are Spark's (``int``, ``binary``), or the name of a Java class for what only another call takes. A call with a
    NULL among its arguments is NULL.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark._jvm
        if jvm is None:
            raise UnsupportedError("acidsql needs a classic Spark session with its own JVM, not Spark Connect")
        self._jvm: Any = jvm
        self._session: Any = spark._jsparkSession
        self._expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self._columns = jvm.org.apache.spark.sql.classic.ExpressionUtils

    def static(self, owner: str, method: str, type: str, *arguments: Column) -> Column:
        """``owner.method(arguments)``, a static method of a public class."""
        place = (self._class(owner), self._type(type), method)
        invoke = self._expressions.objects.StaticInvoke
        return self._column(invoke(*place, *self._call(arguments), self._none))

    def call(self, target: Column, method: str, type: str, *arguments: Column) -> Column:
        """``target.method(arguments)``, on the object by which Spark holds the value, or that another call answered."""
        place = (self._expression(target), method, self._type(type))
        return self._column(self._expressions.objects.Invoke(*place, *self._call(arguments)))

    def text(self, value: Column) -> Column:
        """A ``java.lang.String`` that a call answered as a value of Spark's."""
        return self.static("org.apache.spark.unsafe.types.UTF8String", "fromString", "string", value)

    def cast(self, value: Column, type: str) -> Column:
        """A cast as Java's, in every ANSI mode: a whole number wraps around, or becomes its big-endian bytes."""
        expressions = self._expressions
        made = expressions.Cast(self._expression(value), self._type(type), self._none, expressions.EvalMode.LEGACY())
        return self._column(made)

    @property
    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()

    def _class(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name)

    def _type(self, name: str) -> Any:
        types = self._jvm.org.apache.spark.sql.types
        return getattr(types.DataTypes, _TYPES[name]) if name in _TYPES else types.ObjectType(self._class(name))

    def _call(self, arguments: tuple[Column, ...]) -> tuple[Any, ...]:
        """What both kinds of call end with: the arguments, their declared types, and three properties.

        NULL in, NULL out; the answer may be NULL; the same arguments give the same answer.
        """
        to_seq = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq
        return to_seq([self._expression(a) for a in arguments]), to_seq([]), True, True, True

    def _expression(self, column: Column) -> Any:
        return self._session.expression(column._jc)

    def _column(self, expression: Any) -> Column:
        return Column(self._columns.column(expression))
