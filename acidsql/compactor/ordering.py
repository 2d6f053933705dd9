"""The ORDER BY of a rebalance compaction: sorts the rows of files by value.

Only the keys are in memory. They are compared as stored, to the nanosecond, and in Hive's order: NULL comes last
(``hive.default.nulls.last``; DESC: first), NaN is greater than all numbers, text is compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.errors import AnalysisError
from acidsql.format.orc_types import arrow_type
from acidsql.format.spread import Pieces, row_batches
from acidsql.fs import FileSystem
from acidsql.sql.tokens import Token, tokenize
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, Decimal, HiveType, Map, Primitive, Struct, to_hive

_HINT = "ORDER BY of a rebalance compaction allows columns, each with ASC or DESC and NULLS FIRST or NULLS LAST."
_TIMESTAMPS = (Primitive("timestamp"), Primitive(LOCAL_TIMESTAMP))
_FLOATS = (Primitive("float"), Primitive("double"))
_NS = 10**9

_Values: TypeAlias = "pa.Array | list[Any]"


@dataclass(frozen=True)
class SortItem:
    """One key.

    Attributes:
        column: Index of the column among the data columns.
        type: Its type.
        descending: DESC.
        nulls_first: Whether NULL comes first.
    """

    column: int
    type: HiveType
    descending: bool
    nulls_first: bool


def sort_items(clause: str, row_type: Struct, partition_keys: Sequence[str]) -> tuple[SortItem, ...]:
    """Parse a clause; partition columns are omitted, as all rows have the same value.

    Args:
        clause: The whole clause, ``ORDER BY a DESC, b``.
        row_type: The table's data columns.
        partition_keys: Names of the partition columns.

    Raises:
        ParseError: When it cannot be tokenised.
        AnalysisError: When it has anything but columns that can be ordered.
    """
    tokens = tokenize(clause)[:-1]
    if [t.word for t in tokens[:2]] != ["ORDER", "BY"]:
        raise _not_understood(clause)
    items: list[list[Token]] = [[]]
    for token in tokens[2:]:
        if token.word == ",":
            items.append([])
        else:
            items[-1].append(token)
    columns = {name.lower(): number for number, (name, _) in enumerate(row_type.fields)}
    constant = {name.lower() for name in partition_keys}
    keys: list[SortItem] = []
    for one in items:
        if not one or not one[0].is_name:
            raise _not_understood(clause)
        name, (descending, nulls_first) = one[0].name.lower(), _direction(one[1:], clause)
        if name in columns:
            keys.append(SortItem(columns[name], _ordered(row_type, columns[name]), descending, nulls_first))
        elif name not in constant:
            raise AnalysisError(f"Unknown column {one[0].name} in ORDER BY", code=10004, hint=_HINT)
    return tuple(keys)


def _direction(tokens: Sequence[Token], clause: str) -> tuple[bool, bool]:
    words = [t.word for t in tokens]
    descending = words[:1] == ["DESC"]
    rest = words[1:] if words[:1] in (["ASC"], ["DESC"]) else words
    if rest and rest not in (["NULLS", "FIRST"], ["NULLS", "LAST"]):
        raise _not_understood(clause)
    return descending, rest[1] == "FIRST" if rest else descending


def _ordered(row_type: Struct, column: int) -> HiveType:
    name, t = row_type.fields[column]
    if isinstance(t, (Array, Map, Struct)):
        raise AnalysisError(f"Rows cannot be ordered by column {name} of type {to_hive(t)}", hint=_HINT)
    return t


def _not_understood(clause: str) -> AnalysisError:
    return AnalysisError(f"A rebalance compaction cannot order rows by {clause[:200]!r}", hint=_HINT)


def in_order(fs: FileSystem, paths: Sequence[str], runs: Pieces, items: Sequence[SortItem]) -> Pieces:
    """The rows of files in the order of their values, all with the largest of their write ids, as in Hive.

    Their own write ids cannot be kept: a file is sorted by write id first. All readers of the new base see the largest
    one, since it was committed before.

    Args:
        fs: The file system.
        paths: The files.
        runs: All their rows; equal rows keep this order.
        items: The keys.
    """
    rows = runs.each()
    sizes = np.bincount(rows.files, minlength=len(paths))
    starts = np.cumsum(sizes) - sizes
    keys = _keys(fs, paths, items)
    place = np.empty(rows.rows, np.int64)
    place[starts[rows.files] + rows.firsts] = np.arange(rows.rows, dtype=np.int64)
    directions = [("place", "ascending")]
    columns: dict[str, pa.ChunkedArray] = {"place": pa.chunked_array([pa.array(place)])}
    for name, (column, direction) in reversed(keys.items()):
        columns[name] = column
        directions.insert(0, (name, direction))
    order = np.asarray(pc.sort_indices(pa.table(columns), sort_keys=directions))
    by_file = place[order]  # position of each row in the runs
    largest = np.full(len(order), rows.write_ids.max(initial=0), np.int64)
    return Pieces(rows.files[by_file], rows.firsts[by_file], rows.counts[by_file], largest)


def _keys(fs: FileSystem, paths: Sequence[str], items: Sequence[SortItem]) -> dict[str, tuple[pa.ChunkedArray, str]]:
    """The columns to sort by, file after file, with their directions, by unique names."""
    parts: dict[str, tuple[list[pa.Array], str]] = {}
    for path in paths if items else ():
        for batch in row_batches(fs, path):
            for number, item in enumerate(items):
                if isinstance(batch, list):
                    values: _Values = [row[item.column] for row in batch]
                else:
                    values = batch.flatten()[item.column]
                for part, (column, direction) in enumerate(_parts(values, item)):
                    parts.setdefault(f"{number}.{part}", ([], direction))[0].append(column)
    return {name: (pa.chunked_array(columns), direction) for name, (columns, direction) in parts.items()}


def _parts(values: _Values, item: SortItem) -> list[tuple[pa.Array, str]]:
    """The sort columns of one key: first whether it is null, then values without nulls."""
    direction = "descending" if item.descending else "ascending"
    numbers = _comparable(values, item.type)
    nulls = pc.is_null(numbers[0]).cast(pa.int8())
    columns = [(nulls, "descending" if item.nulls_first else "ascending")]
    if item.type in _FLOATS:
        columns.append((pc.fill_null(pc.is_nan(numbers[0]), False).cast(pa.int8()), direction))
    return columns + [(column, direction) for column in numbers]


def _comparable(values: _Values, t: HiveType) -> list[pa.Array]:
    if t in _TIMESTAMPS:
        return _seconds(values)
    if isinstance(values, list):
        stored = [None if v is None else Number(v) for v in values] if isinstance(t, Decimal) else values
        values = pa.array(stored, arrow_type(t))
    return [pc.utf8_rtrim(values, " ") if isinstance(t, Char) else values]


def _seconds(values: _Values) -> list[pa.Array]:
    """Timestamps as seconds and nanoseconds: stored values may exceed one 64-bit number."""
    if isinstance(values, list):
        pairs = [(None, None) if v is None else v for v in values]
        return [pa.array([pair[i] for pair in pairs], pa.int64()) for i in (0, 1)]
    ticks = values.cast(pa.int64())
    numbers = np.asarray(ticks.fill_null(0))
    mask = np.asarray(ticks.is_null())
    return [pa.array(part, mask=mask) for part in (numbers // _NS, numbers % _NS)]
