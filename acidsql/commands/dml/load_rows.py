"""LOAD DATA by INSERT: for files that cannot be used unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acidsql import fs
from acidsql.commands.dml.insert_clause import InsertClause
from acidsql.commands.dml.load_files import at_path, plain_footer, source_files
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.metastore.model import Column, Table
from acidsql.plan.changes import ChangeSet
from acidsql.plan.text import quote
from acidsql.settings import DYNAMIC_PARTITION_MODE, Settings
from acidsql.sql.statements import Insert, LoadData
from acidsql.types import Char, Decimal, Primitive, Struct, Varchar, parse_type, to_spark

_HIVE = "org.apache.hadoop.hive."
FORMATS: Mapping[tuple[str, str], str] = {
    (f"{_HIVE}ql.io.orc.OrcInputFormat", f"{_HIVE}ql.io.orc.OrcSerde"): "orc",
    (f"{_HIVE}ql.io.parquet.MapredParquetInputFormat", f"{_HIVE}ql.io.parquet.serde.ParquetHiveSerDe"): "parquet",
    ("org.apache.hadoop.mapred.TextInputFormat", f"{_HIVE}serde2.lazy.LazySimpleSerDe"): "text",
}
"""The supported formats, by Hive's classes."""

_DELIMITER, _NULL = "\x01", "\\N"
"""Hive's defaults in text files; the clause cannot set others."""


def loads_rows(statement: LoadData, table: Table) -> bool:
    """Whether Hive turns a LOAD into an INSERT (``LoadSemanticAnalyzer``): some partition key has no value, or the
    statement declares the format of the files.
    """
    spec = statement.partition
    dynamic = bool(table.partition_keys) and (spec is None or any(value is None for _, value in spec.keys))
    return dynamic or statement.input_format is not None


class LoadRowsCommand:
    """LOAD DATA of files whose rows are inserted, as Hive does it.

    1. Resolve the table and the PARTITION clause; keys without a value come from the last columns of the files. List
       the files.
    2. Read them as ORC, or in the format of INPUTFORMAT and SERDE. Columns are matched by name if they have the names
       of the table's columns, else by position.
    3. Insert the rows as INSERT does from its transaction on, also with OVERWRITE.
    4. Keep the source files, as Hive does.
    """

    def __init__(self, env: Environment, statement: LoadData, parameters: Mapping[str, Any], table: Table) -> None:
        self.env = env
        self.statement = statement
        self.table = table
        self.format = _format(statement)
        # Hive allows dynamic partitions for such a LOAD regardless of the session's setting
        settings = Settings({**env.settings, DYNAMIC_PARTITION_MODE.name: "nonstrict"})
        insert = Insert(
            statement.span,
            statement.table,
            statement.path.span,
            overwrite=statement.overwrite,
            partition=statement.partition,
        )
        self.insert = InsertClause(replace(env, settings=settings), insert, parameters, table)

    def run(self) -> None:
        """All phases."""
        frame = self._frame(self._files())

        def load(txn: WriteTransaction) -> None:
            txn.lock(self.insert.locks())
            txn.revalidate(self.table)
            staging = txn.stage(self.table)
            self.insert.write(self._changes(frame), txn, staging)
            self.insert.publish(txn, staging)

        in_transaction(self.env, load)

    def _changes(self, frame: DataFrame) -> ChangeSet:
        return self.insert.stored(frame).moved(self.env.writing)

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do."""
        found = self._files()
        changes = self._changes(self._frame(found))
        files = [f"the rows of {status.path}" for status in found[1]]
        writes = [self.insert.directory]
        return [Explained(self.table, self.insert.locks(), (), changes.frame, writes=writes, files=files)]

    # --- files -------------------------------------------------------------------------------------------------------

    def _files(self) -> tuple[fs.FileSystem, list[fs.FileStatus]]:
        with at_path(self.statement):
            return source_files(self.statement, self.table)

    def _frame(self, found: tuple[fs.FileSystem, list[fs.FileStatus]]) -> DataFrame:
        """The rows of the files, with columns in the order of the table."""
        filesystem, files = found
        with at_path(self.statement):
            if self.format == "text":
                return self._of_text(files)
            if self.format == "parquet":
                return self._ordered(self._read(files))
            alike: dict[Struct, list[fs.FileStatus]] = {}
            for status in files:
                alike.setdefault(plain_footer(filesystem, status).row_type, []).append(status)
            return reduce(DataFrame.union, [self._ordered(self._read(some)) for some in alike.values()])

    def _read(self, files: Sequence[fs.FileStatus]) -> DataFrame:
        reader = self.env.own_spark.read.option("__globPaths__", "false").format(self.format)
        return reader.load([fs.spark_path(f.path) for f in files])

    def _ordered(self, frame: DataFrame) -> DataFrame:
        """Raises: AnalysisError when the files do not have as many columns as the table."""
        wanted, names = [c.name for c in self.insert.columns], [c.lower() for c in frame.columns]
        if len(names) != len(wanted):
            message = (
                f"{self.statement.path.value} has {len(names)} columns; {self.table.full_name} takes {len(wanted)}"
            )
            raise AnalysisError(
                message, hint=f"The columns are {', '.join(wanted)}: partition keys without a value come last."
            )
        if sorted(names) == sorted(wanted):
            return frame.toDF(*names).select(*[quote(name) for name in wanted])
        return frame

    def _of_text(self, files: Sequence[fs.FileStatus]) -> DataFrame:
        """Text as Hive's ``LazySimpleSerDe`` reads it: missing fields and values that do not fit are NULL."""
        parts = F.split(F.col("value"), _DELIMITER, -1)
        columns = self.insert.columns
        texts = [F.nullif(F.get(parts, F.lit(i)), F.lit(_NULL)).alias(f"v{i}") for i in range(len(columns))]
        return self._read(files).select(*texts).selectExpr(*[self._value(c, f"v{i}") for i, c in enumerate(columns)])

    def _value(self, column: Column, text: str) -> str:
        type = parse_type(column.type)
        if isinstance(type, Char | Varchar):
            return f"left({text}, {type.length}) AS {text}"
        if type == Primitive("string"):
            return text
        if type == Primitive("boolean"):
            return f"CASE upper({text}) WHEN 'TRUE' THEN true WHEN 'FALSE' THEN false END AS {text}"
        if isinstance(type, Decimal) or (isinstance(type, Primitive) and type.name != "binary"):
            return f"try_cast({text} AS {to_spark(type)}) AS {text}"
        raise UnsupportedError(f"Column {column.name} of type {column.type} cannot be read from text files")


def _format(statement: LoadData) -> str:
    """The format of the clause. Raises: UnsupportedError for an unsupported one."""
    if statement.input_format is None or statement.serde is None:
        return "orc"
    given = (statement.input_format.value.lower(), statement.serde.value.lower())
    found = next((f for classes, f in FORMATS.items() if (classes[0].lower(), classes[1].lower()) == given), None)
    if found is None:
        known = "; ".join(f"INPUTFORMAT '{one}' SERDE '{other}'" for one, other in FORMATS)
        problem = UnsupportedError("Files of this format are not supported", hint=f"Supported are {known}.")
        raise with_location(statement.input_format.span, problem)
    return found
