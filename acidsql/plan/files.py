"""Reading data files with Spark: the only module that passes paths to Spark's ORC reader."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from acidsql import fs
from acidsql.catalyst import FILES, Catalyst, Draft, Expression, file_scan, files_of, rows_in_memory
from acidsql.errors import UnsupportedError
from acidsql.format.data_files import AcidFile
from acidsql.metastore.model import Column
from acidsql.plan.text import quote, required
from acidsql.types import Decimal, HiveType, Primitive, field_names, parse_type, to_spark

PATH = "_metadata.file_path"
"""Spark's hidden column with the URL-encoded path of the file that a row comes from."""

AT = "__acid_at_"
"""Name of a column that is found by its position, without the position. No file may have a column of such a name: Spark
looks the names of predicates up in the file, and would pass over rows for what stands in another column."""

_ALIVE = "__acid_alive"
NEVER = "spark_partition_id() < 0"
"""Makes what it is part of non-deterministic."""

_FILE_DDL = "path string NOT NULL, modificationTime timestamp NOT NULL, length bigint NOT NULL, content binary"
"""A row for each file, as Spark wants it; of which nothing is read."""

_EVENT_DDL = (
    "operation int NOT NULL, originalTransaction bigint NOT NULL, bucket int NOT NULL, rowId bigint NOT NULL,"
    " currentTransaction bigint NOT NULL"
)
"""No writer leaves one out, and the code that Spark generates for what may be NULL is twice as long."""


def identity(files: Iterable[AcidFile]) -> dict[str, str]:
    """An option of the reader that tells other files with the same paths apart.

    Spark compares plans to find out what it has in its cache: of a scan's files only their paths.
    """
    listed = sorted(f.identity for f in files)
    return {FILES: hashlib.sha256(repr(listed).encode()).hexdigest()}


def events_of(
    own: Catalyst,
    paths: Sequence[str],
    columns: Sequence[tuple[str, str]],
    wanted: Sequence[str],
    *,
    present: int | None = None,
    options: Mapping[str, str] | None = None,
    visible: str | None = None,
    early: Sequence[Expression] = (),
    needed: Collection[str] = (),
    whole: bool = False,
) -> tuple[Draft, DataFrame]:
    """What is wanted of the events of some files, all of whose columns are kept alive up to the scan; and the scan.

    orc-core takes a scan for an ACID one by exactly the six event columns, and reads wrong columns when one is missing
    (Catalyst prunes what is not used) or another is there (a partition key would be one). So the filter over them names
    all six, in an expression that Catalyst does not know to be never evaluated. None of it reaches orc-core, as our
    sessions push nothing into the ORC reader.

    Args:
        own: A session of acidsql's own.
        paths: The files.
        columns: Names and Hive types to read of ``row``; names are those in the files.
        wanted: What to select, over the six columns and Spark's hidden ones.
        present: How many of the columns every file has; all, when left out.
        options: Options of the reader with a search of our own (:mod:`acidsql.catalyst.push_down`).
        visible: A predicate for the events that are wanted; all, when left out.
        early: Conditions over fields of ``row`` that no event has to be looked at for which does not meet them.
        needed: Columns that are probably read anyway.
        whole: Whether all of these columns are read, whichever are asked for: orc-core finds them by their positions.
    """
    for column, type in columns:
        if unreadable := [name for name in (column, *field_names(parse_type(type))) if "`" in name]:
            raise UnsupportedError(f"Spark's ORC reader cannot read {unreadable[0]}: the name contains a back-quote")
    fields = ", ".join(f"{quote(n)}: {to_spark(parse_type(t), plain_strings=True)}" for n, t in columns)
    found = [fs.spark_path(path) for path in paths]
    frame = file_scan(own, "orc", f"{_EVENT_DDL}, row struct<{fields}>", found, options or {})
    # a whole event is read, but of the row no more than one column that nobody asked for, unless all are needed
    known = columns[:present]
    read = [name for name, _ in columns] if whole else [_cheapest([c for c in known if c[0] in needed] or known)]
    is_null = " OR ".join(f"row.{quote(name)} IS NULL" for name in read)
    named = f"originalTransaction ^ rowId ^ currentTransaction ^ if({is_null}, operation, bucket) = 0L"
    # What names the columns is never evaluated: reading them row by row would cost more than all the rest of a scan.
    alive = f"if({NEVER}, {named}, {visible or 'true'}) AS {_ALIVE}"
    # A non-deterministic filter stays as it is and where it is: Spark pushes nothing below it, and takes no part of it
    # elsewhere. Of a deterministic one, which it combines with the user's conditions, it makes a second scan without a
    # filter for a correlated aggregate over no table (DecorrelateInnerQuery), and loses fields of structs between this
    # scan and a join above it (NestedColumnAliasing).
    rows = Draft.of(own, frame)
    if early:
        rows = rows.where(own.both(early))
    return rows.select(*wanted, alive).filter(f"NOT ({NEVER}) AND {_ALIVE}"), frame


def plain_scan(
    own: Catalyst, files: Sequence[AcidFile], columns: Sequence[Column], width: int, *, session: Any = None
) -> DataFrame:
    """The scan of files without event columns.

    Columns are found by their position and called :data:`AT` with it, whatever their names are in each of the files;
    those that a file does not have are NULL.

    Args:
        own: A session of acidsql's own.
        files: The files.
        columns: The columns of the table.
        width: The number of columns of the widest file: Spark wants to know of all of them.
        session: As for :func:`acidsql.catalyst.file_scan`.
    """
    types = [to_spark(parse_type(c.type), plain_strings=True) for c in columns]
    types += ["tinyint"] * (width - len(types))
    ddl = ", ".join(f"{AT}{i} {t}" for i, t in enumerate(types))
    options = {"orc.force.positional.evolution": "true", **identity(files)}
    return file_scan(own, "orc", ddl, [fs.spark_path(f.path) for f in files], options, session=session)


def plain_rows(
    own: Catalyst, files: Sequence[AcidFile], columns: Sequence[Column], width: int
) -> tuple[Draft, DataFrame]:
    """The rows of files without event columns, as ``c0…``, and their scan; arguments as :func:`plain_scan`."""
    frame = plain_scan(own, files, columns, width)
    named = [f"{AT}{i} AS c{i}" for i in range(len(columns))]
    return Draft.of(own, frame).select(*named, "_metadata"), frame


def parquet_rows(
    own: Catalyst, files: Sequence[AcidFile], columns: Sequence[Column], width: int
) -> tuple[Draft, DataFrame]:
    """The rows of Parquet files, as ``c0…``: in those Hive finds a column by its name. Arguments as above."""
    ddl = ", ".join(f"{quote(c.name)} {to_spark(parse_type(c.type), plain_strings=True)}" for c in columns)
    frame = file_scan(own, "parquet", ddl, [fs.spark_path(f.path) for f in files], identity(files))
    named = [f"{quote(c.name)} AS c{i}" for i, c in enumerate(columns)]
    return Draft.of(own, frame).select(*named, "_metadata"), frame


_WIDTHS = ("boolean", "tinyint", "smallint", "int", "date", "float", "bigint", "double")


def _cheapest(columns: Sequence[tuple[str, str]]) -> str:
    def width(type: HiveType) -> int:
        if isinstance(type, Primitive) and type.name in _WIDTHS:
            return _WIDTHS.index(type.name)
        return 50 if isinstance(type, Decimal) else 100

    return min(columns, key=lambda c: width(parse_type(c[1])))[0]


def with_file_values(
    rows: Draft,
    path: str,
    scan: DataFrame,
    values: Mapping[str, Sequence[int | str | None]],
    columns: Mapping[str, pa.DataType],
) -> Draft:
    """Add columns whose value is the same for all rows of a file.

    Args:
        rows: The rows.
        path: Its column with :data:`PATH`.
        scan: The scan that the rows are of.
        values: The values of each file, by its path as acidsql writes it.
        columns: Names and types of the new columns.
    """
    distinct = {tuple(v) for v in values.values()}
    if len(distinct) == 1:
        [only] = distinct
        literals = {n: F.lit(v).cast(_spark_name(t)) for (n, t), v in zip(columns.items(), only, strict=True)}
        return rows.with_columns(literals)
    table = []
    for url in files_of(scan):
        known = values[fs.absolute(unquote(url))]
        table += [[spelling, *known] for spelling in spellings(url)]
    return with_values(rows, table, {path: pa.string()}, columns, "a file")


def with_values(
    rows: Draft,
    table: Sequence[Sequence[int | str | None]],
    keys: Mapping[str, pa.DataType],
    columns: Mapping[str, pa.DataType],
    origin: str,
) -> Draft:
    """Add columns from a small table, by what a row has in common with one of its rows; it must have such a row.

    Args:
        rows: The rows.
        table: Values of the keys, which are never NULL, and then of the new columns.
        keys: Names and types of the columns of ``rows`` to compare.
        columns: Names and types of the new columns.
        origin: What ``rows`` has a row from, for the error of one that the table does not know.
    """
    types = [*keys.values(), *columns.values()]
    partner = {key: f"{key}_of" for key in keys}
    arrays = [pa.array([r[i] for r in table], type=t) for i, t in enumerate(types)]
    own = rows.catalyst
    small = rows_in_memory(own.spark, pa.table(arrays, names=[*partner.values(), *columns]))
    same = " AND ".join(f"{key} = {other}" for key, other in partner.items())
    joined = rows.join(Draft.of(own, small).broadcast(), same, "left")
    [first, *_] = partner.values()
    return joined.filter(required(f"{first} IS NOT NULL", f"acidsql: a row of {origin} that is not in the snapshot"))


def spellings(url: str) -> list[str]:
    """Spark writes the root of a local URI with one slash or with three, depending on who asks."""
    if not url.startswith("file:"):
        return [url]
    path = "/" + url[len("file:") :].lstrip("/")
    return [f"file:{path}", f"file://{path}"]


def _spark_name(type: pa.DataType) -> str:
    return "int" if pa.types.is_int32(type) else "string"


def no_rows_of(own: Catalyst, path: str, schema: StructType) -> DataFrame:
    """No rows, for which a file is looked for all the same.

    Args:
        own: A session of acidsql's own.
        path: The file.
        schema: The columns that there are no values of.
    """
    found = file_scan(own, "binaryFile", _FILE_DDL, [fs.spark_path(path)], {}).filter(NEVER)
    nothing = F.expr(f"if({NEVER}, NULL, NULL)")  # no condition over it is known to be false before it is evaluated
    return found.select(*[nothing.cast(field.dataType).alias(field.name) for field in schema.fields])
