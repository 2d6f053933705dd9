"""Spark's SQL suites as scripts: their views and tables become ACID tables, their queries are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from acidsql.errors import AcidError
from tests.oracle.answers import Refusal, Rows
from tests.oracle.twins import Twins

_MADE = re.compile(
    r"create\s+(?:or\s+replace\s+)?(?:(?:global\s+)?temp(?:orary)?\s+view|view|table)\s+(?:if\s+not\s+exists\s+)?"
    r"([\w.`]+)\s*(\([^()]*\))?\s*(?:using\s+\w+\s+)?as\s+(.*)",
    re.I | re.S,
)
_DROPPED = re.compile(r"drop\s+(?:view|table)\s+(?:if\s+exists\s+)?([\w.`]+)\s*$", re.I)
_QUERY = re.compile(r"\s*(?:select|with|from|table|values|\()", re.I)
_UNSTABLE = re.compile(
    r"\blimit\b|\boffset\b|tablesample|\b(?:first|last|any_value|first_value|last_value|nth_value|mode|max_by|min_by"
    r"|collect_\w+|array_agg|listagg|string_agg|rand|randn|uuid|current_\w+|now|monotonically_increasing_id|row_number"
    r"|ntile|lag|lead|spark_partition_id|input_file_\w+|percentile_approx|approx_\w+|cume_dist)\s*\(?",
    re.I,
)
"""What hangs on the order in which rows come: only the columns of such queries are compared."""


def statements(text: str) -> Iterator[str]:
    """The statements of a script: they end with a semicolon at the end of a line."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    for piece in re.split(r";[ \t]*(?:--[^\n]*)?(?:\n|$)", "\n".join(lines)):
        if piece.strip():
            yield piece.strip()


@dataclass
class Suite:
    """One script over the tables of a database.

    Attributes:
        compared: How many queries were asked of both sides.
        differences: What is not as it is over plain tables.
    """

    twins: Twins
    database: str
    compared: int = 0
    differences: list[str] = field(default_factory=list)
    _tables: list[str] = field(default_factory=list)
    _views: list[str] = field(default_factory=list)

    def run(self, text: str) -> None:
        """Carry out the whole script."""
        self.twins.use(self.database)
        try:
            for statement in statements(text):
                self._step(statement)
        finally:
            self._clean()
            self.twins.use("default")

    def _step(self, statement: str) -> None:
        if made := _MADE.fullmatch(statement):
            self._make(made[1].strip("`"), made[2] or "", made[3])
        elif dropped := _DROPPED.fullmatch(statement):
            self._drop(dropped[1].strip("`"))
        elif _QUERY.match(statement):
            self._compare(statement)

    def _make(self, name: str, columns: str, query: str) -> None:
        self._drop(name)
        try:
            frame = self.twins.plain.sql(query)
            if columns:
                names = [c.strip().strip("`").split()[0] for c in columns.strip("()").split(",")]
                frame = frame.toDF(*names)
            rows = frame.toArrow()
        except (PySparkException, AssertionError):
            return
        try:
            self._make_table(name, frame, rows)
        except (AcidError, PySparkException):  # a type that Hive does not have, or two columns of one name
            self._drop(name)
            for session in (self.twins.plain, self.twins.acid.spark):
                session.createDataFrame(rows).createOrReplaceTempView(name)
            self._views.append(name)

    def _make_table(self, name: str, frame: DataFrame, rows: object) -> None:
        schema: StructType = frame.schema
        ddl = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in schema)
        self._tables.append(name)
        self.twins.acid.sql(f"CREATE TRANSACTIONAL TABLE {name} ({ddl})")
        for _ in range(2):  # the first rows are deleted again: what is read is merged
            self.twins.acid.sql(f"DELETE FROM {name}")
            self.twins.acid.insert(self.twins.acid.spark.createDataFrame(rows), name)
        frame.write.format("parquet").saveAsTable(name)

    def _drop(self, name: str) -> None:
        if name in self._tables:
            self._tables.remove(name)
            self.twins.acid.sql(f"DROP TABLE IF EXISTS {name}")
            self.twins.plain.sql(f"DROP TABLE IF EXISTS {name}")
        if name in self._views:
            self._views.remove(name)
            for session in (self.twins.plain, self.twins.acid.spark):
                session.catalog.dropTempView(name)

    def _compare(self, query: str) -> None:
        ours, theirs = self.twins.both(query)
        self.compared += 1
        if isinstance(ours, Rows) and isinstance(theirs, Rows) and _UNSTABLE.search(query):
            ours, theirs = (Rows(a.columns, a.types, ()) for a in (ours, theirs))
        if ours != theirs and not (isinstance(ours, Refusal) and isinstance(theirs, Refusal) and _legacy(theirs)):
            self.differences.append(f"{query}\n  acidsql: {ours}\n  Spark:   {theirs}"[:1500])

    def _clean(self) -> None:
        for name in [*self._tables, *self._views]:
            self._drop(name)


def _legacy(refusal: Refusal) -> bool:
    """Errors from before conditions had names tell no kind."""
    return refusal.condition.startswith("_LEGACY") or refusal.condition.endswith("Exception")
