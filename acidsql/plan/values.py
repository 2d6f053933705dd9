"""How a value passes between the user's Spark session and ORC, as SQL expressions.

An ORC ``timestamp`` is a wall clock; Spark's ``TIMESTAMP`` is an instant. Spark's ORC reader and writer go through the
JVM's default time zone, the user sees the session's: where the two differ, :func:`from_orc` and :func:`to_files` move
the value so that the wall clock stays (Hive's meaning of ``timestamp``). A ``timestamp with local time zone`` is an
instant in ORC too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from acidsql.catalyst import Java, can_store
from acidsql.errors import AnalysisError
from acidsql.format.writer_clocks import is_utc
from acidsql.metastore.model import Column
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.failures import failing
from acidsql.plan.fields import FieldsDiffer, with_fields_by_name
from acidsql.plan.text import literal, quote
from acidsql.types import (
    LOCAL_TIMESTAMP,
    WHOLE_NUMBERS,
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

CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The mark that Spark itself puts on the ``char`` columns of its own tables."""


@dataclass(frozen=True)
class Zones:
    """The two time zones that a timestamp passes: that of Spark's ORC reader and writer, and the session's.

    Attributes:
        jvm: The default zone of the JVMs that read and write files: those of the executors.
        session: The zone in which the user sees wall clocks.
        early_offset: What Java's old calendar adds to UTC in the JVM's zone before 1900, in microseconds.
    """

    jvm: str
    session: str
    early_offset: int = 0

    @property
    def same(self) -> bool:
        return self.jvm == self.session

    @property
    def of_files(self) -> Zones:
        """The zones of whoever sees the wall clocks as files hold them: they are not moved, so none gets lost."""
        return replace(self, session=self.jvm)

    @property
    def jvm_is_utc(self) -> bool:
        return is_utc(self.jvm)


_ZONE = "java.util.TimeZone"
_EARLY_MILLIS = -5_000_000_000_000
"""A moment before 1900 (of 1811), in milliseconds since 1970."""


def zones_of(spark: SparkSession, files: str | None) -> Zones:
    """The zones of a session as they are now.

    Args:
        spark: The session.
        files: The default zone of the executors; None for that of the driver, which is the same in local mode.
    """
    java = Java.of(spark)
    zone = java.static(_ZONE, "getDefault")() if files is None else java.static(_ZONE, "getTimeZone")(files)
    session = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    return Zones(zone.getID(), session, zone.getOffset(_EARLY_MILLIS) * 1000)


def has_wall_clock(type: HiveType) -> bool:
    """Whether values of a type hold wall clocks, which are moved between the zones."""
    return contains(type, "timestamp")


Leaf: TypeAlias = Callable[[str, HiveType], str]
"""Makes another expression of one whose type has no parts; it returns those that stay as they are unchanged."""


def with_leaves(expression: str, type: HiveType, leaf: Leaf) -> str:
    """The expression with every value in it, at any depth, replaced by what ``leaf`` makes of it."""
    if not _changes(type, leaf):
        return expression
    if isinstance(type, Array):
        return f"transform({expression}, e -> {with_leaves('e', type.element, leaf)})"
    if isinstance(type, Map):
        keys, values = f"map_keys({expression})", f"map_values({expression})"
        if _changes(type.value, leaf):
            values = f"transform({values}, e -> {with_leaves('e', type.value, leaf)})"
        if not _changes(type.key, leaf):
            return f"map_from_arrays({keys}, {values})"
        # two keys may become one, of which a session may want the last (spark.sql.mapKeyDedupPolicy)
        keys = f"transform({keys}, e -> {with_leaves('e', type.key, leaf)})"
        twice = failing("Two keys of a map are equal as they are stored: the same char, or the same local time")
        unique = f"CASE WHEN size(array_distinct(k)) < size(k) THEN CAST({twice} AS boolean) ELSE true END"
        return f"transform(array({keys}), k -> CASE WHEN {unique} THEN map_from_arrays(k, {values}) END)[0]"
    if isinstance(type, Struct):
        fields = ", ".join(
            f"{literal(name)}, {with_leaves(f'({expression}).{quote(name)}', t, leaf)}" for name, t in type.fields
        )
        return f"if(({expression}) IS NULL, NULL, named_struct({fields}))"
    return leaf(expression, type)


def _changes(type: HiveType, leaf: Leaf) -> bool:
    """Whether anything in values of the type is changed."""
    if isinstance(type, Array):
        return _changes(type.element, leaf)
    if isinstance(type, Map):
        return _changes(type.key, leaf) or _changes(type.value, leaf)
    if isinstance(type, Struct):
        return any(_changes(t, leaf) for _, t in type.fields)
    return leaf("e", type) != "e"


def _moved(expression: str, source: str, target: str) -> str:
    """A timestamp carried from one zone's wall clock to another's."""
    return f"to_utc_timestamp({_wall_clock(expression, source)}, {literal(target)})"


def _wall_clock(expression: str, zone: str) -> str:
    """The local time in a zone, as if it were UTC."""
    return f"from_utc_timestamp({expression}, {literal(zone)})"


def from_orc(expression: str, type: HiveType, zones: Zones) -> str:
    """A value that Spark's ORC reader gave, as the user sees it: wall clocks kept, ``char`` padded to its length."""

    def leaf(value: str, type: HiveType) -> str:
        if isinstance(type, Char):
            return f"rpad({value}, {type.length}, ' ')"
        if type == Primitive("timestamp") and not zones.same:
            return _moved(value, zones.jvm, zones.session)
        if type == Primitive(LOCAL_TIMESTAMP) and not zones.jvm_is_utc:
            return _instant(value, zones)
        return value

    return with_leaves(expression, type, leaf)


def _instant(value: str, zones: Zones) -> str:
    """An instant before 1900 as it was: Spark's reader takes Java's old calendar for what the user meant by it.

    It keeps the wall clock that the old calendar shows in the JVM's zone, and so moves the instant where the new one
    knows another offset of that time (``RebaseDateTime``).
    """
    clock = f"unix_micros(from_utc_timestamp({value}, {literal(zones.jvm)}))"
    moved = f"timestamp_micros({clock} - {zones.early_offset}L)"
    return f"CASE WHEN {value} < timestamp '1900-01-01 00:00:00Z' THEN {moved} ELSE {value} END"


def to_files(expression: str, type: HiveType, zones: Zones) -> str:
    """A value of the user's session as it is stored in files, for Spark's ORC writer.

    Fails for a local time that does not exist in the JVM's zone (in the gap when daylight saving time begins).
    """
    failure = failing(
        f"A timestamp's local time does not exist in {zones.jvm}, the time zone of the JVMs that write files: start"
        " them with -Duser.timezone=UTC (spark.driver.extraJavaOptions, spark.executor.extraJavaOptions)"
    )

    def leaf(value: str, type: HiveType) -> str:
        if type != Primitive("timestamp") or zones.same:
            return value
        moved = _moved(value, zones.session, zones.jvm)
        is_lost = f"{_wall_clock(moved, zones.jvm)} <> {_wall_clock(value, zones.session)}"
        return f"CASE WHEN {is_lost} THEN CAST({failure} AS timestamp) ELSE {moved} END"

    return with_leaves(expression, type, leaf)


def from_files(expression: str, column: Column, zones: Zones) -> str:
    """What :func:`to_files` made of a column's value, as it was before."""

    def leaf(value: str, type: HiveType) -> str:
        return value if type != Primitive("timestamp") or zones.same else _moved(value, zones.jvm, zones.session)

    return with_leaves(expression, parse_type(column.type), leaf)


def only_driver_writes(type: HiveType) -> bool:
    """Whether the driver has to write all values of a type.

    Spark's ORC writer has no instants, and of a map with dates in its keys it writes the last entry only: it puts the
    entries into an ``OrcMap``, whose order takes all ``DaysWritable`` for equal.
    """
    return contains(type, LOCAL_TIMESTAMP) or _has_keys_with_dates(type)


def _has_keys_with_dates(type: HiveType) -> bool:
    if isinstance(type, Map):
        return type.key == Primitive("date") or _has_keys_with_dates(type.value)
    if isinstance(type, Array):
        return _has_keys_with_dates(type.element)
    return isinstance(type, Struct) and any(_has_keys_with_dates(field) for _, field in type.fields)


def to_orc_driver(expression: str, type: HiveType) -> str:
    """The value to hand to the driver's own ORC writer.

    It takes wall clocks as ``timestamp_ntz``, and of instants the microseconds since 1970. The session's zone must be
    that of the files, so that the cast moves no clock.
    """
    if contains(type, LOCAL_TIMESTAMP):
        return with_leaves(expression, type, _for_driver)
    if not contains(type, "timestamp"):
        return expression
    return f"CAST({expression} AS {to_spark(_naive(type), plain_strings=True)})"


def from_orc_driver(expression: str, type: HiveType) -> str:
    """What :func:`to_orc_driver` made of a value, as it was before; a ``char`` is padded."""

    def leaf(value: str, type: HiveType) -> str:
        if type == Primitive(LOCAL_TIMESTAMP):
            return f"timestamp_micros({value})"
        if isinstance(type, Char):
            return f"rpad({value}, {type.length}, ' ')"
        return f"CAST({value} AS timestamp)" if type == Primitive("timestamp") else value

    return with_leaves(expression, type, leaf)


def _for_driver(value: str, type: HiveType) -> str:
    if type == Primitive(LOCAL_TIMESTAMP):
        return f"unix_micros({value})"
    return f"CAST({value} AS timestamp_ntz)" if type == Primitive("timestamp") else value


def key_text(expression: str, type: HiveType) -> str:
    """A partition key's value as text for paths, as in Hive; NULL for the default partition.

    The default partition has NULL, the empty string and its own name: if one directory had several texts, the files of
    one would replace those of another. As in Hive, trailing zeros of a decimal's fraction are dropped and a ``char`` is
    padded; a different text would be a different partition. A text that is not valid UTF-8 fails: no directory has such
    a name.
    """
    text = f"CAST({expression} AS string)"
    if isinstance(type, Char):
        text = f"rpad({text}, {type.length}, ' ')"
    elif isinstance(type, Decimal) and type.scale:
        text = f"regexp_replace({text}, '[.]?0+$', '')"
    if isinstance(type, Char | Varchar) or type == Primitive("string"):
        failure = failing("A partition key is not valid UTF-8")
        text = f"if(coalesce(is_valid_utf8({text}), true), {text}, {failure})"
    return f"nullif(nullif({text}, ''), {literal(DEFAULT_PARTITION)})"


def typed_key(value: str, type: HiveType, cast: str) -> str:
    """A constant of PARTITION (…) in its key's type; an integer by its text, as Spark does: 1.6 is not partition 1.

    Args:
        value: The constant.
        type: The key's type.
        cast: ``CAST``, or ``try_cast`` for NULL instead of an error; that gives NULL as well for a decimal with more
            digits than the key's.
    """
    spark_type = to_spark(type, plain_strings=True)
    if isinstance(type, Primitive) and type.name in WHOLE_NUMBERS:
        return f"{cast}(CAST({value} AS string) AS {spark_type})"
    typed = f"{cast}({value} AS {spark_type})"
    if cast == "try_cast" and isinstance(type, Decimal):
        exact = f"try_cast(CAST({value} AS string) AS decimal(38, {38 - type.precision + type.scale}))"
        return f"CASE WHEN {typed} <> {exact} THEN NULL ELSE {typed} END"
    return typed


def from_key_text(expression: str, type: HiveType) -> str:
    """A partition key's value from its text in the path; text that is not of the key's type is NULL, as in Hive."""
    if isinstance(type, Char):
        return f"rpad({expression}, {type.length}, ' ')"
    target = to_spark(type, plain_strings=True)
    return expression if target == "string" else f"try_cast({expression} AS {target})"


def with_char_types(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The frame with its ``char`` and ``varchar`` columns marked as such.

    Spark then pads what a ``char`` is compared with, as Hive does, and a table made of the frame keeps the lengths.
    """
    types = {c.name: parse_type(c.type) for c in columns}
    marks = {n: {CHAR_TYPE: to_hive(t)} for n, t in types.items() if contains(t, "char") or contains(t, "varchar")}
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


def bounded(expression: str, column: Column) -> str:
    """The value with every ``char`` in it padded; it fails with the column's name if a text in it is too long."""
    failure = failing(f"Value of column {column.name} exceeds the length of its type {column.type}")
    return with_leaves(
        expression, parse_type(column.type), lambda value, type: bounded_text(value, type, otherwise=failure)
    )


def bounded_text(expression: str, type: HiveType, otherwise: str = "NULL") -> str:
    """A text as ``char`` or ``varchar``, by Spark's rule: a ``char`` is padded, blanks beyond the length are cut.

    Args:
        expression: The text, or a value of another type, which is left alone.
        type: Its type.
        otherwise: The expression for a text that is too long.
    """
    if not isinstance(type, Char | Varchar):
        return expression
    fitting = (
        f"CASE WHEN {expression} IS NULL OR char_length({expression}) <= {type.length} THEN {expression}"
        f" WHEN char_length(rtrim({expression})) <= {type.length} THEN substring({expression}, 1, {type.length})"
        f" ELSE {otherwise} END"
    )
    return f"rpad({fitting}, {type.length}, ' ')" if isinstance(type, Char) else fitting


def typed_default(column: Column) -> str:
    """The expression of a column's DEFAULT in the column's type; NULL where there is none."""
    return f"CAST(({column.default or 'NULL'}\n) AS {to_spark(parse_type(column.type), plain_strings=True)})"


def default_value(column: Column) -> str:
    """The expression of a column's DEFAULT as it is stored, with the checks of its type."""
    return _not_null(bounded(typed_default(column), column), column)


def _not_null(expression: str, column: Column) -> str:
    if not column.not_null:
        return expression
    failure = failing(f"NULL value in column {column.name}, which is NOT NULL")
    return f"CASE WHEN {expression} IS NULL THEN {failure} ELSE {expression} END"


def _stored(expression: str, column: Column, type: HiveType, source: str) -> str:
    """One value turned into what its column holds, with the checks of Spark's ANSI store assignment."""
    target = to_spark(type, plain_strings=True)
    if source != target:
        expression = f"CAST({expression} AS {target})"
    return _not_null(bounded(expression, column), column)


class NotStorable(AnalysisError):
    """Raised when values of a type cannot be stored in a column."""

    def __init__(self, source: str, column: Column, why: str | None = None) -> None:
        super().__init__(
            f"Cannot store {source.upper()} in column {column.name} of type {column.type.upper()}"
            + ("" if why is None else f": {why}"),
            hint=f"Write an explicit cast: CAST(… AS {column.type}).",
        )
        self.target = column.name


def store_assignment(
    spark: SparkSession,
    frame: DataFrame,
    columns: Sequence[Column],
    first: int,
    *,
    zones: Zones,
    kept: Collection[int] = (),
    by_name: bool = True,
) -> list[str]:
    """Expressions that turn columns ``first…`` of a frame into values of table columns, as files hold them.

    Args:
        spark: A session of acidsql's own: in ANSI mode a value that does not fit is an error.
        frame: Holds one column per entry of ``columns``, in order, from position ``first`` on.
        columns: The target columns.
        first: Position of the first value in ``frame``.
        zones: The zones that timestamps pass.
        kept: Positions in ``columns`` of those whose values are of the table's types, and as files hold them already.
        by_name: Whether fields of structs are matched by name instead of by position.

    Returns:
        One SQL expression over ``frame`` per column.

    Raises:
        NotStorable: When a type cannot be stored in its column (Spark's ANSI store assignment rules).
    """
    names = [quote(name) for name in frame.columns[first : first + len(columns)]]
    fields, values = frame.schema.fields[first : first + len(columns)], names
    if by_name:
        given = zip(names, fields, columns, strict=True)
        values = [_with_fields_in_order(name, field.dataType, column) for name, field, column in given]
    if values != names:
        fields = frame.selectExpr(*values).schema.fields
    made = []
    for position, (value, field, column) in enumerate(zip(values, fields, columns, strict=True)):
        type = parse_type(column.type)
        source = field.dataType.simpleString()
        wanted = to_spark(type, plain_strings=True)
        if source != wanted and not can_store(spark, field.dataType, wanted):
            raise NotStorable(source, column)
        stored = _stored(value, column, type, source)
        made.append(stored if position in kept else to_files(stored, type, zones))
    return made


def _with_fields_in_order(value: str, source: DataType, column: Column) -> str:
    try:
        return with_fields_by_name(value, source, parse_type(column.type))
    except FieldsDiffer as e:
        raise NotStorable(source.simpleString(), column, str(e)) from e
