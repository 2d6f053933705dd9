"""Hive's bucket of a row, as an expression that Spark evaluates in the JVM.

The rules are those of Hive's ``ObjectInspectorUtils``: ``hashCode`` for bucketing version 1, ``hashCodeMurmur`` for
version 2, and ``getBucketNumber``. Bytes are hashed by ``org.apache.hive.common.util.Murmur3`` itself, which stands in
every Spark beside its ORC, and by ``java.util.Arrays``. Nothing here depends on Spark's ANSI mode: sums are made in 64
bits, and cast back to 32 as Java casts.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from acidsql.catalyst import JavaExpressions
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.metastore.model import BUCKETING_VERSION, Table
from acidsql.types import (
    LOCAL_TIMESTAMP,
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
)

_POSITIVE = 0x7FFFFFFF
_FLAG = 0x80000000
_FROM_ZERO = "syo9sB"
"""``Arrays.hashCode`` starts at 1, Hive's old hash of a string at 0: behind this text it stands at 0."""


def bucketing_version(table: Table) -> int:
    """The version of a table's hash.

    Raises:
        UnsupportedError: When the property is not one of Hive's versions.
    """
    text = table.parameters.get(BUCKETING_VERSION, "1")
    if text not in ("1", "2"):
        raise UnsupportedError(f"Table {table.full_name} has {BUCKETING_VERSION}={text}, which is not supported")
    return int(text)


def has_bucket_hash(type: HiveType) -> bool:
    """Whether a table can be bucketed by values of a type: not by one that Hive cannot read back."""
    return not contains(type, LOCAL_TIMESTAMP)


def bucket_number(spark: SparkSession, table: Table, frame: DataFrame) -> Column:
    """The number of the bucket that each row belongs to.

    Args:
        spark: The session of the frame; a timestamp's wall clock is that of its time zone as it is now.
        table: A table with bucket columns.
        frame: Columns ``c0…`` hold the values of ``table.columns``, in their order and of their types.

    Returns:
        An ``int`` from 0 to ``table.num_buckets - 1``, never NULL.

    Raises:
        AnalysisError: When the table is not bucketed, or a bucket column is not one of its data columns.
        UnsupportedError: When its bucketing version, or the type of a bucket column, has no hash here.
    """
    if not table.bucket_columns or table.num_buckets < 1:
        raise AnalysisError(f"Table {table.full_name} is not bucketed")
    places = {c.name: i for i, c in enumerate(table.columns)}
    values: list[tuple[Column, HiveType]] = []
    for name in table.bucket_columns:
        if name not in places:
            raise AnalysisError(f"Table {table.full_name} is bucketed by {name}, which is not a column of its files")
        values.append((frame[f"c{places[name]}"], parse_type(table.columns[places[name]].type)))
    hashed = BucketHash(spark, bucketing_version(table)).of_row(values)
    return hashed.bitwiseAND(F.lit(_POSITIVE)) % F.lit(table.num_buckets)


class BucketHash:
    """Hive's hash of values in one bucketing version: columns of type ``int`` that are never NULL."""

    def __init__(self, spark: SparkSession, version: int) -> None:
        self._spark = spark
        self._java = JavaExpressions(spark)
        self._zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
        self._leaf = self._murmur_leaf if version == 2 else self._old_leaf

    def of_row(self, values: list[tuple[Column, HiveType]]) -> Column:
        """The hash of several values together (``getBucketHashCode``)."""
        total = F.lit(0)
        for value, type in values:
            total = self._next(total, self.of(value, type))
        return total

    def of(self, value: Column, type: HiveType) -> Column:
        """The hash of a value; 0 for NULL.

        Raises:
            UnsupportedError: When Hive's hash of the type is not known here (timestamp with local time zone).
        """
        return F.coalesce(self._of_some(value, type), F.lit(0))

    def _of_some(self, value: Column, type: HiveType) -> Column:
        if isinstance(type, Array):
            return F.aggregate(value, F.lit(0), lambda r, e: self._next(r, self.of(e, type.element)))
        if isinstance(type, Map):
            return self._map(value, type)
        if isinstance(type, Struct):
            fields = self.of_row([(value.getField(name), t) for name, t in type.fields])
            return F.when(value.isNotNull(), fields)
        return self._leaf(value, type)

    def _map(self, value: Column, type: Map) -> Column:
        """A sum over the entries. In version 2 Hive hashes the keys by murmur, but the values as in version 1."""
        old = BucketHash(self._spark, 1)

        def add(total: Column, entry: Column) -> Column:
            key, item = self.of(entry["key"], type.key), old.of(entry["value"], type.value)
            return self._int(total.cast("bigint") + key.bitwiseXOR(item))

        return F.aggregate(F.map_entries(value), F.lit(0), add)

    def _next(self, total: Column, hashed: Column) -> Column:
        return self._int(total.cast("bigint") * F.lit(31) + hashed)

    # --- version 2 ---------------------------------------------------------------------------------------------------

    def _murmur_leaf(self, value: Column, type: Primitive | Decimal | Char | Varchar) -> Column:
        if isinstance(type, Primitive) and type.name in ("boolean", "tinyint"):
            return self._int(value)
        return self.murmur(self._bytes(value, type))

    def murmur(self, data: Column) -> Column:
        """Murmur3 of bytes with Hive's seed."""
        return self._java.static("org.apache.hive.common.util.Murmur3", "hash32", "int", data)

    def _bytes(self, value: Column, type: Primitive | Decimal | Char | Varchar) -> Column:
        """What murmur reads of a value."""
        java = self._java
        if isinstance(type, Decimal):
            unscaled = java.call(self._stripped(value), "unscaledValue", "java.math.BigInteger")
            return java.call(unscaled, "toByteArray", "binary")
        if isinstance(type, Char | Varchar) or type.name == "string":
            return self._text(value, type)
        if type.name == "float":  # Hive converts the bits to a float, as if they were a number, and takes that one's
            return java.cast(self._float_bits(self._float_bits(value).cast("float")), "binary")
        if type.name == "double":
            return java.cast(self._double_bits(self._double_bits(value).cast("double")), "binary")
        if type.name == "binary":  # the whole buffer of a BytesWritable, which grows to half as much again as it needs
            size = F.shiftright(F.octet_length(value).cast("bigint") * F.lit(3), 1)
            return java.static("java.util.Arrays", "copyOf", "binary", value, self._int(size))
        if type.name == "timestamp":
            return self._timestamp_bytes(value)
        return java.cast(F.unix_date(value) if type.name == "date" else self._whole_number(value, type), "binary")

    def _timestamp_bytes(self, value: Column) -> Column:
        """``TimestampWritableV2``: seconds, then where they need it the reversed nanoseconds and the seconds' rest.

        Four bytes of seconds, whose first bit says that something follows; the nine digits of the nanoseconds from
        behind, below 0 when a third number follows; the seconds' upper bits where 31 are too few.
        """

        def rest(clock: Column) -> Column:
            seconds, micros, nanos = clock["seconds"], clock["micros"], clock["nanos"]
            is_long = (seconds < F.lit(0)) | (seconds > F.lit(_POSITIVE))
            low = seconds.bitwiseAND(F.lit(_POSITIVE))
            long = F.concat(
                _four_bytes(low.bitwiseOR(F.lit(_FLAG))),
                _variable_length(-nanos - F.lit(1)),
                _variable_length(F.shiftright(seconds, 31)),
            )
            short = F.concat(_four_bytes(low.bitwiseOR(F.lit(_FLAG))), _variable_length(nanos))
            return F.when(is_long, long).when(micros != F.lit(0), short).otherwise(_four_bytes(low))

        # the wall clock as an instant of UTC
        local = F.from_utc_timestamp(value, self._zone)
        seconds = F.unix_seconds(local)
        micros = F.unix_micros(local) - seconds * F.lit(1_000_000)
        reversed_nanos = F.reverse(F.lpad(micros.cast("string"), 6, "0")).cast("bigint")  # the other three digits are 0
        clock = F.struct(seconds.alias("seconds"), micros.alias("micros"), reversed_nanos.alias("nanos"))
        return F.unhex(_let(clock, rest))

    # --- version 1 ---------------------------------------------------------------------------------------------------

    def _old_leaf(self, value: Column, type: Primitive | Decimal | Char | Varchar) -> Column:
        if isinstance(type, Decimal):
            return self._java.call(self._stripped(value), "hashCode", "int")
        if isinstance(type, Char | Varchar):
            return self._array_hash(self._text(value, type))
        if type.name == "string":
            return self._array_hash(self._text(F.concat(F.lit(_FROM_ZERO), value), type))
        if type.name == "binary":
            return self._array_hash(value)
        if type.name == "float":
            return self._float_bits(value)
        if type.name == "double":
            return self._folded(self._double_bits(value))
        if type.name == "bigint":
            return self._folded(value)
        if type.name == "date":
            return F.unix_date(value)
        if type.name == "timestamp":
            return self._old_timestamp(value)
        return self._int(self._whole_number(value, type))

    def _old_timestamp(self, value: Column) -> Column:
        """The old ``TimestampWritable``: seconds and nanoseconds of a ``java.sql.Timestamp`` made from the text.

        Hence an instant of the JVM's own time zone, and before 1582 a Julian day.
        """
        java, kind = self._java, "java.sql.Timestamp"
        text = java.call(value.cast("string"), "toString", "java.lang.String")
        moment = java.static(kind, "valueOf", kind, text)
        millis = java.call(moment, "getTime", "bigint")
        seconds = java.static("java.lang.Math", "floorDiv", "bigint", millis, F.lit(1000).cast("bigint"))
        return self._folded(F.shiftleft(seconds, 30).bitwiseOR(java.call(moment, "getNanos", "int")))

    def _array_hash(self, data: Column) -> Column:
        return self._java.static("java.util.Arrays", "hashCode", "int", data)

    def _folded(self, value: Column) -> Column:
        return self._int(F.shiftrightunsigned(value, 32).bitwiseXOR(value))

    # --- both --------------------------------------------------------------------------------------------------------

    def _int(self, value: Column) -> Column:
        return self._java.cast(value, "int")

    def _text(self, value: Column, type: HiveType) -> Column:
        return self._java.cast(F.rtrim(value) if isinstance(type, Char) else value, "binary")

    def _float_bits(self, value: Column) -> Column:
        return self._java.static("java.lang.Float", "floatToIntBits", "int", value)

    def _double_bits(self, value: Column) -> Column:
        return self._java.static("java.lang.Double", "doubleToLongBits", "bigint", value)

    def _stripped(self, value: Column) -> Column:
        """A decimal as ``BigDecimal``, without zeros at the end of its fraction; 100 stays 100, not 1E2."""
        java, kind = self._java, "java.math.BigDecimal"
        short = java.call(java.call(value, "toJavaBigDecimal", kind), "stripTrailingZeros", kind)
        return java.call(short, "setScale", kind, F.greatest(java.call(short, "scale", "int"), F.lit(0)))

    def _whole_number(self, value: Column, type: Primitive) -> Column:
        if type.name not in ("boolean", "tinyint", "smallint", "int", "bigint"):
            raise UnsupportedError(f"Hive's bucket hash of type {type.name} is not supported")
        return value


def _variable_length(value: Column) -> Column:
    """Hadoop's ``VLong`` in hexadecimal digits: one byte, or a byte for the length and the sign, and the bytes."""
    is_short = (value >= F.lit(-112)) & (value <= F.lit(127))
    is_negative = value < F.lit(0)
    digits = F.hex(F.when(is_negative, F.bitwise_not(value)).otherwise(value))
    size = F.shiftright(F.length(digits) + F.lit(1), 1)
    head = F.when(is_negative, F.lit(-120)).otherwise(F.lit(-112)) - size
    return F.when(is_short, _byte(value)).otherwise(F.concat(_byte(head), F.lpad(digits, size * F.lit(2), F.lit("0"))))


def _byte(value: Column) -> Column:
    """The lowest eight bits in two hexadecimal digits."""
    return F.lpad(F.hex(value.cast("bigint").bitwiseAND(F.lit(0xFF))), 2, "0")


def _four_bytes(value: Column) -> Column:
    return F.lpad(F.hex(value), 8, "0")


def _let(value: Column, body: Callable[[Column], Column]) -> Column:
    """What ``body`` makes of a value that is computed once."""
    return F.element_at(F.transform(F.array(value), body), 1)
