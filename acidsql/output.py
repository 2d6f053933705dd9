"""Results as text: tables for people; csv, tsv and JSON lines for programs.

Spark itself converts the values to text, so that they are printed as Spark does (session time zone, all digits of a
decimal) without going through Python types. Structs, maps and arrays are printed as JSON, binary values in hex.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from html import escape
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, VariantType

from acidsql.errors import AcidError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

ERRORS = (AcidError, PySparkException, Py4JError)
"""What an invalid or failed statement raises."""

_ERROR_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_KEEP_NULLS = {"ignoreNullFields": "false"}

TextRow = tuple[str | None, ...]


class Format(Enum):
    """How a result is printed."""

    TABLE = "table"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"


@contextmanager
def without_error_log() -> Iterator[None]:
    """Keep PySpark from logging the errors that it raises (as JSON with a stack trace): the caller prints them."""
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def describe(error: BaseException) -> str:
    """The text of an error for the user: the message with position and hint, without a Python or Java stack trace."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString())
    text = str(error) or type(error).__name__
    if isinstance(error, AnalysisException) and not isinstance(error, ParseException):
        return text.partition(";\n")[0]  # the rest is Spark's plan, with internal names
    return text


def text_rows(frame: DataFrame) -> Iterator[TextRow]:
    """The rows of a result as strings, None for NULL; all are fetched at once."""
    yield from (tuple(row) for row in _as_text(frame).collect())


def write_result(frame: DataFrame, format: Format, out: SupportsWrite[str], *, header: bool = True) -> int:
    """Print a result; one without columns prints nothing. Csv, tsv and JSON are written partition by partition.

    Returns:
        The number of rows.
    """
    if not frame.columns:
        return 0
    return _WRITERS[format](frame, out, header)


def format_table(columns: Sequence[str], rows: Iterable[TextRow]) -> str:
    """Rows as a bordered text table, one line per row; line breaks and tabs in values are escaped."""
    cells = [[_one_line(v) for v in row] for row in [tuple(columns), *rows]]
    widths = [max(_width(row[i]) for row in cells) for i in range(len(columns))]
    rule = "+" + "+".join("-" * (w + 2) for w in widths) + "+"
    lines = [
        "| " + " | ".join(v + " " * (w - _width(v)) for v, w in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], *([rule] if lines[1:] else [])])


def html_table(columns: Sequence[str], rows: Iterable[TextRow], *, more: bool = False) -> str:
    """Rows as an HTML table; ``more`` adds a note that rows were omitted."""
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    body = "".join("<tr>" + "".join(_html_cell(v) for v in row) + "</tr>" for row in rows)
    note = "<p><em>More rows are not shown.</em></p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _html_cell(value: str | None) -> str:
    return "<td><em>NULL</em></td>" if value is None else f"<td>{escape(value)}</td>"


# --- values ----------------------------------------------------------------------------------------------------------


def _as_text(frame: DataFrame) -> DataFrame:
    """The same rows with every column as a string; columns are taken by position, since names may be duplicated."""
    numbered = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])
    return numbered.select(*[_text(F.col(f.name), f.dataType).alias(f.name) for f in numbered.schema.fields])


def _text(column: Column, type: DataType) -> Column:
    if isinstance(type, (StructType, MapType, ArrayType, VariantType)):
        return F.to_json(column, _KEEP_NULLS)
    return F.hex(column) if isinstance(type, BinaryType) else column.cast("string")


def _one_line(value: str | None) -> str:
    if value is None:
        return "NULL"
    return value.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def _width(text: str) -> int:
    """The width of a text on a terminal: wide East Asian characters take two columns, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text if not unicodedata.combining(c))


# --- formats ---------------------------------------------------------------------------------------------------------


def _write_table(frame: DataFrame, out: SupportsWrite[str], header: bool) -> int:
    rows = list(text_rows(frame))
    lines = format_table(frame.columns, rows).split("\n")
    out.write("\n".join(lines if header else [lines[0], *lines[3:]]) + "\n")
    return len(rows)


def _write_lines(frame: DataFrame, out: SupportsWrite[str], header: bool, line: Callable[[TextRow], str]) -> int:
    if header:
        out.write(line(tuple(frame.columns)) + "\n")
    count = 0
    for row in _as_text(frame).toLocalIterator():
        out.write(line(tuple(row)) + "\n")
        count += 1
    return count


def csv_line(row: TextRow) -> str:
    """A line of csv (RFC 4180): NULL is an empty field, the empty string is ``""``."""
    return ",".join("" if v is None else f'"{v.replace(chr(34), chr(34) * 2)}"' if _quoted(v) else v for v in row)


def _quoted(value: str) -> bool:
    return not value or any(c in value for c in ',"\r\n')


def tsv_line(row: TextRow) -> str:
    r"""A line of tsv as in Hive's text files: NULL is ``\N``; backslash, tab and line breaks are escaped."""
    return "\t".join("\\N" if v is None else _one_line(v.replace("\\", "\\\\")) for v in row)


def _write_csv(frame: DataFrame, out: SupportsWrite[str], header: bool) -> int:
    return _write_lines(frame, out, header, csv_line)


def _write_tsv(frame: DataFrame, out: SupportsWrite[str], header: bool) -> int:
    return _write_lines(frame, out, header, tsv_line)


def _write_json(frame: DataFrame, out: SupportsWrite[str], header: bool) -> int:
    """One JSON object per line. Binary values are base64, as in Spark's ``to_json``."""
    numbered = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])
    fields = [F.col(f"c{i}").alias(name) for i, name in enumerate(frame.columns)]
    count = 0
    for row in numbered.select(F.to_json(F.struct(*fields), _KEEP_NULLS)).toLocalIterator():
        out.write(f"{row[0]}\n")
        count += 1
    return count


_WRITERS: dict[Format, Callable[[DataFrame, SupportsWrite[str], bool], int]] = {
    Format.TABLE: _write_table,
    Format.CSV: _write_csv,
    Format.TSV: _write_tsv,
    Format.JSON: _write_json,
}
