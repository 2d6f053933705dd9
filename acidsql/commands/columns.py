"""The columns that a statement declares."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from acidsql.commands.environment import Environment
from acidsql.commands.places import at
from acidsql.errors import AcidError, AnalysisError, UnsupportedError
from acidsql.metastore.model import Column
from acidsql.plan.scan import RAW_KEY, ROW_ID
from acidsql.sql.statements import ColumnDef, Span
from acidsql.types import Array, Char, HiveType, Map, Struct, Varchar, contains, parse_type, to_hive, to_spark


def check_names(definitions: Sequence[ColumnDef], taken: Collection[str] = ()) -> None:
    """Every name is new, and not one of our own.

    Raises:
        AnalysisError: For a name that is there already (Hive 10036), or is reserved.
    """
    seen = set(taken)
    for definition in definitions:
        name = definition.name.text.lower()
        if name in seen:
            raise at(
                definition.name.span, AnalysisError(f"Duplicate column name: {name}", code=10036, sqlstate="42000")
            )
        if name.upper() == ROW_ID or name.startswith(RAW_KEY):
            raise at(definition.name.span, AnalysisError(f"{name} is a reserved column name"))
        seen.add(name)


def declared_columns(env: Environment, definitions: Sequence[ColumnDef]) -> tuple[Column, ...]:
    """The columns as the metastore keeps them.

    Raises:
        ParseError: When a type is none.
        UnsupportedError: When a type is one that this version does not write.
    """
    return tuple(_column(env, d) for d in definitions)


def _column(env: Environment, definition: ColumnDef) -> Column:
    try:
        type = parse_type(definition.type.text)
        _refuse_nested_lengths(type)
    except AcidError as e:
        raise e.inside(definition.type.source, definition.type.start, definition.type.end) from e
    default = definition.default.text if definition.default else None
    column = Column(definition.name.text.lower(), to_hive(type), definition.comment, default, definition.not_null)
    if definition.default is not None:
        _check_default(env, definition.default, type)
    return column


def _check_default(env: Environment, default: Span, type: HiveType) -> None:
    """Spark must be able to analyse the default; its own error passes through."""
    env.spark.sql(f"SELECT CAST(({default.text}\n) AS {to_spark(type, plain_strings=True)})")


def _refuse_nested_lengths(type: HiveType, nested: bool = False) -> None:
    if isinstance(type, Char | Varchar) and nested:
        raise UnsupportedError("char and varchar inside other types come in a later version; use string")
    if contains(type, "timestamp with local time zone"):
        raise UnsupportedError(
            "timestamp with local time zone comes in a later version (Hive 4 cannot read it back itself)"
        )
    if isinstance(type, Array):
        _refuse_nested_lengths(type.element, True)
    elif isinstance(type, Map):
        _refuse_nested_lengths(type.key, True)
        _refuse_nested_lengths(type.value, True)
    elif isinstance(type, Struct):
        for _, t in type.fields:
            _refuse_nested_lengths(t, True)
