"""Structs whose fields are in a different order than in the column's type.

INSERT matches fields by position, as it matches columns. UPDATE, MERGE and INSERT BY NAME match them by name, at every
depth, as Spark does (``TableOutputResolver``). Fields without explicit names, as in ``struct(1, 2)``, are always
matched by position.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from acidsql.plan.text import literal, quote
from acidsql.types import Array, HiveType, Map, Struct


class FieldsDiffer(Exception):
    """Raised when the fields of a struct differ from those of its column."""


def with_fields_by_name(expression: str, source: DataType, target: HiveType, depth: int = 0) -> str:
    """An expression for the same value with the fields of all structs in the order of the target type.

    Args:
        expression: The value, as SQL.
        source: Its type.
        target: The type of the column.
        depth: The number of arrays and maps that contain the value.

    Returns:
        ``expression`` itself if the order is right already.

    Raises:
        FieldsDiffer: When the fields of a struct differ from those of its column.
    """
    if isinstance(source, StructType) and isinstance(target, Struct):
        return _struct(expression, source, target, depth)
    item = f"__acid_item{depth}"
    if isinstance(source, ArrayType) and isinstance(target, Array):
        ordered = with_fields_by_name(item, source.elementType, target.element, depth + 1)
        return expression if ordered == item else f"transform({expression}, {item} -> {ordered})"
    if isinstance(source, MapType) and isinstance(target, Map):
        names = (f"{item}.key", f"{item}.value")
        key = with_fields_by_name(names[0], source.keyType, target.key, depth + 1)
        value = with_fields_by_name(names[1], source.valueType, target.value, depth + 1)
        if (key, value) == names:
            return expression
        entry = f"named_struct('key', {key}, 'value', {value})"
        return f"map_from_entries(transform(map_entries({expression}), {item} -> {entry}))"
    return expression


def _struct(expression: str, source: StructType, target: Struct, depth: int) -> str:
    given = [name.lower() for name in source.names]
    wanted = [name.lower() for name, _ in target.fields]
    if len(set(given)) < len(given) or sorted(given) != sorted(wanted):
        if given != [f"col{i + 1}" for i in range(len(wanted))]:
            raise FieldsDiffer(
                f"its fields are {', '.join(source.names)}, not {', '.join(n for n, _ in target.fields)}"
            )
        given = wanted
    places = [given.index(name) for name in wanted]
    names = [f"{expression}.{quote(source.names[place])}" for place in places]
    ordered = [
        with_fields_by_name(name, source.fields[place].dataType, type, depth)
        for name, place, (_, type) in zip(names, places, target.fields, strict=True)
    ]
    if places == sorted(places) and ordered == names:
        return expression
    fields = ", ".join(f"{literal(name)}, {value}" for (name, _), value in zip(target.fields, ordered, strict=True))
    return f"if({expression} IS NULL, NULL, named_struct({fields}))"
