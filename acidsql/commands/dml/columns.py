"""The columns that a statement declares, or that a query returns."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from pyspark.sql import types as spark_types

from acidsql.commands.dml.constraints import check_default
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AcidError, AnalysisError, UnsupportedError
from acidsql.metastore.model import Column
from acidsql.plan.scan import VIRTUAL_COLUMNS
from acidsql.plan.values import CHAR_TYPE
from acidsql.sql.statements import ColumnDef
from acidsql.types import (
    LOCAL_TIMESTAMP,
    Array,
    Decimal,
    HiveType,
    Map,
    Primitive,
    Struct,
    compared_name,
    contains,
    field_names,
    parse_type,
    to_hive,
)

logger = logging.getLogger(__name__)

CREATES_VOID = 10305
"""Hive's ``CTAS_CREATES_VOID_TYPE``."""

_OWN = "__acid_"
"""How names of columns begin that acidsql makes inside."""


def check_names(definitions: Sequence[ColumnDef], taken: Collection[str] = ()) -> None:
    """Check that every name is new and not reserved.

    Raises:
        AnalysisError: For a duplicate (Hive 10036) or reserved name.
    """
    seen = names_by_comparison(taken)
    for definition in definitions:
        name = definition.name.text.lower()
        try:
            check_name(name, seen)
        except AcidError as e:
            raise with_location(definition.name.span, e) from e
        seen[compared_name(name)] = name


def names_by_comparison(names: Iterable[str]) -> dict[str, str]:
    """Names by what Spark compares of them."""
    return {compared_name(name): name for name in names}


def check_name(name: str, taken: Mapping[str, str]) -> None:
    """Check that a column's name is not reserved, and that Spark tells it from others (:func:`names_by_comparison`).

    Raises:
        AnalysisError: For a duplicate (Hive 10036) or reserved name.
    """
    same = taken.get(compared_name(name))
    if same is not None:
        hint = None if same == name else f"Spark does not tell it from {same}."
        raise AnalysisError(f"Duplicate column name: {name}", code=10036, sqlstate="42000", hint=hint)
    if name.upper() in VIRTUAL_COLUMNS or name.startswith(_OWN):
        raise AnalysisError(f"{name} is a reserved column name")
    _refuse_back_quote(name)


def _refuse_back_quote(name: str) -> None:
    if "`" in name:
        raise UnsupportedError(f"The name {name} contains a back-quote, which Spark's ORC reader does not support")


def declared_columns(env: Environment, definitions: Sequence[ColumnDef]) -> tuple[Column, ...]:
    """The columns as the metastore stores them.

    Raises:
        ParseError: When a type is invalid.
        AnalysisError: When a default is invalid (Hive 10326).
    """
    return tuple(_column(env, d) for d in definitions)


def _column(env: Environment, definition: ColumnDef) -> Column:
    try:
        type = parse_type(definition.type.text)
        for name in field_names(type):
            _refuse_back_quote(name)
    except AcidError as e:
        raise e.inside(definition.type.source, definition.type.start, definition.type.end) from e
    default = definition.default.text if definition.default else None
    if definition.default is not None:
        check_default(env, definition.default, type)
    return Column(
        definition.name.text.lower(),
        to_hive(type),
        definition.comment,
        default,
        definition.not_null,
        definition.named("DEFAULT"),
        definition.named("NOT NULL"),
    )


def columns_of(schema: spark_types.StructType) -> tuple[Column, ...]:
    """The columns of a query as columns of a table: CREATE TABLE … AS.

    ``timestamp_ntz`` and ``timestamp`` are both Hive's ``timestamp``; char and varchar keep their lengths where Spark
    has kept them.

    Raises:
        AnalysisError: When two columns have one name (Hive 10036), one has a reserved name, or one is nothing but NULL
            (Hive 10305).
        UnsupportedError: When a type is one that Hive does not have.
    """
    made: list[Column] = []
    seen: dict[str, str] = {}
    for field in schema.fields:
        name = field.name.lower()
        check_name(name, seen)
        seen[compared_name(name)] = name
        kept = field.metadata.get(CHAR_TYPE)
        type = parse_type(kept) if kept else _hive_type(field.name, field.dataType)
        made.append(Column(name, to_hive(type), field.metadata.get("comment")))
    return tuple(made)


_PRIMITIVES: dict[type[spark_types.DataType], str] = {
    spark_types.BooleanType: "boolean",
    spark_types.ByteType: "tinyint",
    spark_types.ShortType: "smallint",
    spark_types.IntegerType: "int",
    spark_types.LongType: "bigint",
    spark_types.FloatType: "float",
    spark_types.DoubleType: "double",
    spark_types.StringType: "string",
    spark_types.BinaryType: "binary",
    spark_types.DateType: "date",
    spark_types.TimestampType: "timestamp",
    spark_types.TimestampNTZType: "timestamp",
}


def _hive_type(column: str, type: spark_types.DataType) -> HiveType:
    if isinstance(type, spark_types.NullType):
        raise AnalysisError(
            f"CREATE-TABLE-AS-SELECT creates a VOID type, please use CAST to specify the type, near field: {column}",
            code=CREATES_VOID,
        )
    if isinstance(type, spark_types.DecimalType):
        return Decimal(type.precision, type.scale)
    if isinstance(type, spark_types.ArrayType):
        return Array(_hive_type(column, type.elementType))
    if isinstance(type, spark_types.MapType):
        return Map(_hive_type(column, type.keyType), _hive_type(column, type.valueType))
    if isinstance(type, spark_types.StructType):
        return Struct(tuple((f.name, _hive_type(column, f.dataType)) for f in type.fields))
    if isinstance(type, spark_types.StringType) and "collate" in type.simpleString():
        message = f"Column {column} is of type {type.simpleString()}: Hive has no collations"
        raise UnsupportedError(message, hint="CAST it to STRING, which is compared byte by byte.")
    for known, name in _PRIMITIVES.items():
        if isinstance(type, known):
            return Primitive(name)
    raise UnsupportedError(f"Column {column} is of type {type.simpleString()}, which Hive does not support")


def warn_of_local_timestamps(columns: Sequence[Column]) -> None:
    """Log a warning for columns that Hive cannot read."""
    for column in columns:
        if contains(parse_type(column.type), LOCAL_TIMESTAMP):
            logger.warning(
                "Column %s is of type %s: Hive 4.0.1 cannot read tables with such columns, not even its own",
                column.name,
                column.type,
            )
