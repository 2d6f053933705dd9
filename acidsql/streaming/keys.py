"""Keys of rows that arrive, as the table holds them: only then are they equal to those that are there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acidsql.metastore.model import Table
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.text import literal, quote
from acidsql.types import Char, HiveType, Varchar, parse_type, to_hive, to_spark


def _is_text(type: HiveType) -> bool:
    return isinstance(type, Char | Varchar) or to_hive(type) == "string"


def with_keys_as_stored(rows: DataFrame, table: Table, keys: dict[str, str]) -> DataFrame:
    """Rows with the values of their keys as they are in the table once they have been stored; an error when the rows
    are read for one that is stored as another value: decimals that are rounded, texts that are too long, texts that
    name the default partition, the second of two moments with one wall clock.

    Args:
        rows: The rows.
        table: The table.
        keys: Names of the columns in ``rows``, by their names in the table.
    """
    types = {c.name: parse_type(c.type) for c in table.all_columns}
    partitions = {c.name for c in table.partition_keys}
    made: dict[str, str] = {}
    for name, given in keys.items():
        value, type = quote(given), types[name]
        refused = f"raise_error(concat({literal(f'A key does not fit into {name}, ')}, CAST({value} AS string)))"
        if isinstance(type, Char):
            bare = f"rtrim(CAST({value} AS string))"
            made[given] = f"if(length({bare}) > {type.length}, {refused}, rpad({bare}, {type.length}, ' '))"
        elif isinstance(type, Varchar):
            text = f"CAST({value} AS string)"
            cut, rest = (f"substring({text}, {part})" for part in (f"1, {type.length}", f"{type.length + 1}"))
            made[given] = f"if(rtrim({rest}) = '', {cut}, {refused})"
        else:
            spark, own = to_spark(type, plain_strings=True), rows.schema[given].dataType.simpleString()
            if spark != own:
                stored = f"CAST({value} AS {spark})"
                made[given] = f"if({value} IS NULL OR CAST({stored} AS {own}) = {value}, {stored}, {refused})"
            elif to_hive(type) == "timestamp":
                again = f"CAST(CAST({value} AS timestamp_ntz) AS {spark})"
                made[given] = f"if({value} IS NULL OR {again} = {value}, {value}, {refused})"
        if name in partitions and _is_text(type):
            kept = made.get(given, value)
            made[given] = f"if(rtrim(CAST({value} AS string)) IN ('', '{DEFAULT_PARTITION}'), {refused}, {kept})"
    return rows.withColumns({name: F.expr(text) for name, text in made.items()}) if made else rows
