"""How a value passes between the user's Spark session and ORC, as SQL expressions.

An ORC ``timestamp`` is a wall clock; Spark's ``TIMESTAMP`` is an instant. Spark's ORC reader and writer go through the
JVM's default time zone, the user sees the session's: where the two differ, :func:`from_orc` and :func:`to_orc` move the
value so that the wall clock stays (Hive's meaning of ``timestamp``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from acidsql.errors import AnalysisError
from acidsql.metastore.model import Column
from acidsql.types import (
    Array,
    Char,
    Decimal,
    HiveType,
    Map,
    Primitive,
    Struct,
    Varchar,
    contains,
    parse_type,
    to_hive,
    to_spark,
)

_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The mark that Spark itself puts on the ``char`` columns of its own tables."""


def quote(name: str) -> str:
    """A name in back-quotes, as Spark SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string literal of Spark SQL that means exactly ``text``."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True)
class Zones:
    """The two time zones that a timestamp passes: the JVM's default one and the session's."""

    jvm: str
    session: str

    @property
    def same(self) -> bool:
        return self.jvm == self.session


def zones_of(spark: SparkSession) -> Zones:
    """The zones of a session as they are now."""
    jvm = spark._jvm
    if jvm is None:
        raise AnalysisError("acidsql needs a classic Spark session: one with a JVM of its own, not Spark Connect")
    return Zones(jvm.java.util.TimeZone.getDefault().getID(), spark.conf.get("spark.sql.session.timeZone") or "UTC")


def _moved(expression: str, type: HiveType, source: str, target: str) -> str:
    """The expression with each timestamp in it carried from one zone's wall clock to another's."""
    if not contains(type, "timestamp"):
        return expression
    if isinstance(type, Array):
        return f"transform({expression}, e -> {_moved('e', type.element, source, target)})"
    if isinstance(type, Map):
        keys = f"transform(map_keys({expression}), e -> {_moved('e', type.key, source, target)})"
        values = f"transform(map_values({expression}), e -> {_moved('e', type.value, source, target)})"
        return f"map_from_arrays({keys}, {values})"
    if isinstance(type, Struct):
        fields = ", ".join(
            f"{literal(name)}, {_moved(f'({expression}).{quote(name)}', t, source, target)}" for name, t in type.fields
        )
        return f"if(({expression}) IS NULL, NULL, named_struct({fields}))"
    return f"to_utc_timestamp(from_utc_timestamp({expression}, {literal(source)}), {literal(target)})"


def from_orc(expression: str, type: HiveType, zones: Zones) -> str:
    """A value that Spark's ORC reader gave, as the user sees it: wall clocks kept, ``char`` padded to its length."""
    if isinstance(type, Char):
        return f"rpad({expression}, {type.length}, ' ')"
    return expression if zones.same else _moved(expression, type, zones.jvm, zones.session)


def to_orc_job(expression: str, type: HiveType, zones: Zones) -> str:
    """The value to hand to Spark's ORC writer."""
    return expression if zones.same else _moved(expression, type, zones.session, zones.jvm)


def to_orc_driver(expression: str, type: HiveType) -> str:
    """The value to hand to the driver's own ORC writer, which takes wall clocks (``timestamp_ntz``)."""
    if not contains(type, "timestamp"):
        return expression
    return f"CAST({expression} AS {to_spark(_naive(type), plain_strings=True)})"


def key_text(expression: str, type: HiveType) -> str:
    """The text by which a partition key's value stands in a path, as in Hive; NULL for NULL and the empty string.

    Hive drops the zeros at the end of a decimal's fraction and pads a ``char``; another text were another partition.
    """
    text = f"CAST({expression} AS string)"
    if isinstance(type, Char):
        text = f"rpad({text}, {type.length}, ' ')"
    elif isinstance(type, Decimal) and type.scale:
        text = f"regexp_replace({text}, '[.]?0+$', '')"
    return f"nullif({text}, '')"


def from_key_text(expression: str, type: HiveType) -> str:
    """A partition key's value from its text in the path; text that is not of the key's type is NULL, as in Hive."""
    if isinstance(type, Char):
        return f"rpad({expression}, {type.length}, ' ')"
    target = to_spark(type, plain_strings=True)
    return expression if target == "string" else f"try_cast({expression} AS {target})"


def with_char_types(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The frame with its ``char`` columns marked as such: Spark then pads what they are compared with, as Hive does."""
    marks = {c.name: {_CHAR_TYPE: to_hive(type)} for c in columns if isinstance(type := parse_type(c.type), Char)}
    if not marks:
        return frame
    return frame.select(
        *[frame[quote(n)].alias(n, metadata=marks[n]) if n in marks else quote(n) for n in frame.columns]
    )


def _naive(type: HiveType) -> HiveType:
    """The type with wall clocks in place of instants."""
    if isinstance(type, Array):
        return Array(_naive(type.element))
    if isinstance(type, Map):
        return Map(_naive(type.key), _naive(type.value))
    if isinstance(type, Struct):
        return Struct(tuple((name, _naive(t)) for name, t in type.fields))
    return Primitive("timestamp_ntz") if type == Primitive("timestamp") else type


def _length_checked(expression: str, column: Column, length: int, pad: bool) -> str:
    """Spark's own rule for char and varchar: too long is an error, but trailing blanks beyond the length are cut."""
    message = literal(f"Value of column {column.name} exceeds the length of its type {column.type}")
    checked = (
        f"CASE WHEN {expression} IS NULL OR char_length({expression}) <= {length} THEN {expression}"
        f" WHEN char_length(rtrim({expression})) <= {length} THEN substring({expression}, 1, {length})"
        f" ELSE raise_error({message}) END"
    )
    return f"rpad({checked}, {length}, ' ')" if pad else checked


def _stored(name: str, column: Column, type: HiveType, source: str, ansi: bool) -> str:
    """One value turned into what its column holds, with the checks of Spark's ANSI store assignment."""
    expression = quote(name)
    target = to_spark(type, plain_strings=True)
    if source != target:
        if ansi:
            expression = f"CAST({expression} AS {target})"
        else:  # without ANSI mode a cast wraps around or gives NULL: neither may be stored
            message = literal(f"Value cannot be stored in column {column.name} {column.type} without losing data")
            attempt = f"try_cast({expression} AS {target})"
            expression = f"if({expression} IS NOT NULL AND {attempt} IS NULL, raise_error({message}), {attempt})"
    if isinstance(type, Char | Varchar):
        expression = _length_checked(expression, column, type.length, isinstance(type, Char))
    if column.not_null:
        message = literal(f"NULL value in column {column.name}, which is NOT NULL")
        expression = f"CASE WHEN {expression} IS NULL THEN raise_error({message}) ELSE {expression} END"
    return expression


class NotStorable(AnalysisError):
    """Raised when values of a type cannot be stored in a column."""

    def __init__(self, source: str, column: Column) -> None:
        super().__init__(
            f"Cannot store {source.upper()} in column {column.name} of type {column.type.upper()}",
            hint=f"Write an explicit cast: CAST(… AS {column.type}).",
        )
        self.target = column.name


def store_assignment(spark: SparkSession, frame: DataFrame, columns: Sequence[Column], first: int) -> list[str]:
    """Expressions that turn columns ``first…`` of a frame into values of table columns.

    Args:
        spark: The session.
        frame: Holds one column per entry of ``columns``, in order, from position ``first`` on.
        columns: The target columns.
        first: Position of the first value in ``frame``.

    Returns:
        One SQL expression over ``frame`` per column.

    Raises:
        NotStorable: When a type cannot be stored in its column (Spark's ANSI store assignment rules).
    """
    ansi = (spark.conf.get("spark.sql.ansi.enabled") or "true").lower() == "true"
    fields = frame.schema.fields[first : first + len(columns)]
    made = []
    for position, (field, column) in enumerate(zip(fields, columns, strict=True)):
        type = parse_type(column.type)
        source = field.dataType.simpleString()
        if source != to_spark(type, plain_strings=True) and not _assignable(spark, frame, first + position, type):
            raise NotStorable(source, column)
        made.append(_stored(frame.columns[first + position], column, type, source, ansi))
    return made


def _assignable(spark: SparkSession, frame: DataFrame, position: int, type: HiveType) -> bool:
    jvm = spark._jvm
    assert jvm is not None
    source = frame._jdf.schema().apply(position).dataType()
    target = jvm.org.apache.spark.sql.types.DataType.fromDDL(to_spark(type, plain_strings=True))
    return bool(jvm.org.apache.spark.sql.catalyst.expressions.Cast.canANSIStoreAssign(source, target))
