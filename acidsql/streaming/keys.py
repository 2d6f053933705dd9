"""Keys of rows that arrive, as the table holds them: only then are they equal to those that are there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acidsql.metastore.model import Table
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.text import literal, quote
from acidsql.types import Char, Varchar, parse_type, to_hive, to_spark

_CLOCKS = {"date": "date", "timestamp": "timestamp_ntz"}
_NOT_IN_ORC = {
    "date": "{0} BETWEEN DATE'1582-10-05' AND DATE'1582-10-14'",
    "timestamp": "({0} >= TIMESTAMP_NTZ'1582-10-05' AND {0} < TIMESTAMP_NTZ'1582-10-15')"
    " OR ({0} > TIMESTAMP_NTZ'1969-12-31 23:59:59' AND {0} < TIMESTAMP_NTZ'1970-01-01')",
}
"""Days and times that ORC stores as later ones (docs/limits.md)."""


def with_keys_as_stored(rows: DataFrame, table: Table, keys: dict[str, str]) -> DataFrame:
    """Rows with the values of their keys as they are in the table once they have been stored; an error when the rows
    are read for one that is stored as another value: decimals that are rounded, texts that are too long, texts that
    name the default partition, the second of two moments with one wall clock, times that ORC does not have.

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
            if to_hive(type) in _NOT_IN_ORC and name not in partitions:
                kept = made.get(given, value)
                lost = _NOT_IN_ORC[to_hive(type)].format(f"CAST({kept} AS {_CLOCKS[to_hive(type)]})")
                made[given] = f"if({lost}, {refused}, {kept})"
        if name in partitions and (isinstance(type, Varchar) or to_hive(type) == "string"):
            kept = made.get(given, value)
            made[given] = f"if({kept} IN ('', '{DEFAULT_PARTITION}'), {refused}, {kept})"
    return rows.withColumns({name: F.expr(text) for name, text in made.items()}) if made else rows
