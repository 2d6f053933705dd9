"""Expressions that call Java: what Spark's SQL has no function for, within generated code and without a Spark job."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession

from acidsql.catalyst.java import Java

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
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
        self._java = Java.of(spark)
        self._session: Any = spark._jsparkSession

    def static(self, owner: str, method: str, type: str, *arguments: Column) -> Column:
        """``owner.method(arguments)``, a static method of a public class."""
        place = (self._class(owner), self._type(type), method)
        invoke = self._java.type(f"{_EXPRESSIONS}.objects.StaticInvoke")
        return self._column(invoke(*place, *self._call(arguments), self._java.none))

    def call(self, target: Column, method: str, type: str, *arguments: Column) -> Column:
        """``target.method(arguments)``, on the object by which Spark holds the value, or that another call answered."""
        place = (self._expression(target), method, self._type(type))
        invoke = self._java.type(f"{_EXPRESSIONS}.objects.Invoke")
        return self._column(invoke(*place, *self._call(arguments)))

    def text(self, value: Column) -> Column:
        """A ``java.lang.String`` that a call answered as a value of Spark's."""
        return self.static("org.apache.spark.unsafe.types.UTF8String", "fromString", "string", value)

    def cast(self, value: Column, type: str) -> Column:
        """A cast as Java's, in every ANSI mode: a whole number wraps around, or becomes its big-endian bytes."""
        legacy = self._java.static(f"{_EXPRESSIONS}.EvalMode", "LEGACY")()
        cast = self._java.type(f"{_EXPRESSIONS}.Cast")
        return self._column(cast(self._expression(value), self._type(type), self._java.none, legacy))

    def _class(self, name: str) -> Any:
        return self._java.static("java.lang.Class", "forName")(name)

    def _type(self, name: str) -> Any:
        if name in _TYPES:
            return self._java.static("org.apache.spark.sql.types.DataTypes", _TYPES[name])
        return self._java.type("org.apache.spark.sql.types.ObjectType")(self._class(name))

    def _call(self, arguments: tuple[Column, ...]) -> tuple[Any, ...]:
        """What both kinds of call end with: the arguments, their declared types, and three properties.

        NULL in, NULL out; the answer may be NULL; the same arguments give the same answer.
        """
        return self._java.seq(self._expression(a) for a in arguments), self._java.nothing, True, True, True

    def _expression(self, column: Column) -> Any:
        return self._session.expression(column._jc)

    def _column(self, expression: Any) -> Column:
        return Column(self._java.static("org.apache.spark.sql.classic.ExpressionUtils", "column")(expression))
