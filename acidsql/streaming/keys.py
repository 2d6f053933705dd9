"""Keys of rows that arrive, as the table holds them: only then are they equal to those that are there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acidsql.errors import UnsupportedError
from acidsql.metastore.model import Table
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.failures import failing_with
from acidsql.plan.text import literal, quote
from acidsql.types import (
    LOCAL_TIMESTAMP,
    Array,
    Char,
    HiveType,
    Primitive,
    Struct,
    Varchar,
    contains,
    parse_type,
    to_hive,
    to_spark,
)

_NOT_IN_ORC = {
    "date": "CAST({0} AS date) BETWEEN DATE'1582-10-05' AND DATE'1582-10-14'",
    LOCAL_TIMESTAMP: "unix_micros({0}) BETWEEN unix_micros(TIMESTAMP'1582-10-04 00:00:00Z')"
    " AND unix_micros(TIMESTAMP'1582-10-16 00:00:00Z')"
    " OR unix_micros({0}) % 1000000 <> 0 AND abs(unix_micros({0})) < 15 * 3600 * 1000000L"
    " AND pmod(floor(unix_micros({0}) / 1000000), 60) IN (29, 59)",
    "timestamp": "{0} >= TIMESTAMP_NTZ'1582-10-05' AND {0} < TIMESTAMP_NTZ'1582-10-15'"
    " OR extract(SECOND FROM {0}) % 1 <> 0 AND floor(extract(SECOND FROM {0})) IN (29, 59)"
    " AND {0} BETWEEN TIMESTAMP_NTZ'1969-12-31 09:00:00' AND TIMESTAMP_NTZ'1970-01-01 15:00:00'",
}
"""Days and times that ORC stores as later ones (docs/limits.md): a fraction of the last second before 1970, in whatever
zone the writer is (of whole minutes, or in Liberia's), and the ten days that the Gregorian reform left out."""


def not_in_orc(value: str, type: HiveType, depth: int = 0) -> str | None:
    """A condition that is true for a value with a day or a time in it that ORC stores as a later one.

    Args:
        value: An expression.
        type: The type that it is stored as.
        depth: In how many arrays it is.

    Returns:
        The condition; None for types without such values.
    """
    if isinstance(type, Struct):
        made = [not_in_orc(f"({value}).{quote(name)}", field, depth) for name, field in type.fields]
        return " OR ".join(f"({one})" for one in made if one is not None) or None
    if isinstance(type, Array):
        element = f"e{depth}"
        inside = not_in_orc(element, type.element, depth + 1)
        return None if inside is None else f"exists({value}, {element} -> {inside})"
    if not isinstance(type, Primitive) or type.name not in _NOT_IN_ORC:
        return None
    given = f"CAST({value} AS timestamp_ntz)" if type.name == "timestamp" else value
    return f"({_NOT_IN_ORC[type.name].format(given)})"


def with_keys_as_stored(
    rows: DataFrame, table: Table, keys: dict[str, str], *, all_in_files: bool = False
) -> DataFrame:
    """Rows with the values of their keys as they are in the table once they have been stored; an error when the rows
    are read for one that is stored as another value: decimals that are rounded, texts that are too long, texts that
    name the default partition, the second of two moments with one wall clock, times that ORC does not have.

    Args:
        rows: The rows.
        table: The table.
        keys: Names of the columns in ``rows``, by their names in the table.
        all_in_files: Whether those of partitions are kept in files, too.

    Raises:
        UnsupportedError: When a type is one inside of which values are stored as others.
    """
    types = {c.name: parse_type(c.type) for c in table.all_columns}
    partitions = {c.name for c in table.partition_keys}
    made: dict[str, str] = {}
    for name, given in keys.items():
        value, type = quote(given), types[name]
        shown = f"CAST({value} AS string)"
        refused = failing_with(f"concat({literal(f'A key does not fit into {name}, ')}, {shown})")
        if isinstance(type, Struct | Array):
            for inside in ("char", "varchar", "timestamp", LOCAL_TIMESTAMP):
                if contains(type, inside):
                    raise UnsupportedError(f"{name} cannot be a key: it has a {inside} inside")
        if isinstance(type, Char):
            bare = f"rtrim(CAST({value} AS string))"
            made[given] = f"if(length({bare}) > {type.length}, {refused}, rpad({bare}, {type.length}, ' '))"
        elif isinstance(type, Varchar):
            text = f"CAST({value} AS string)"
            cut, rest = (f"substring({text}, {part})" for part in (f"1, {type.length}", f"{type.length + 1}"))
            made[given] = f"if({value} IS NULL OR rtrim({rest}) = '', {cut}, {refused})"
        else:
            spark, own = to_spark(type, plain_strings=True), rows.schema[given].dataType.simpleString()
            if spark != own:
                stored = f"CAST({value} AS {spark})"
                made[given] = f"if({value} IS NULL OR CAST({stored} AS {own}) = {value}, {stored}, {refused})"
            elif to_hive(type) == "timestamp":
                again = f"CAST(CAST({value} AS timestamp_ntz) AS {spark})"
                made[given] = f"if({value} IS NULL OR {again} = {value}, {value}, {refused})"
            lost = not_in_orc(made.get(given, value), type) if all_in_files or name not in partitions else None
            if lost is not None:
                made[given] = f"if({lost}, {refused}, {made.get(given, value)})"
        if name in partitions and (isinstance(type, Varchar | Char) or to_hive(type) == "string"):
            kept = made.get(given, value)
            lost = f"{kept} IN ('', '{DEFAULT_PARTITION}') OR NOT is_valid_utf8({kept})"
            made[given] = f"if({lost}, {refused}, {kept})"
    return rows.withColumns({name: F.expr(text) for name, text in made.items()}) if made else rows
