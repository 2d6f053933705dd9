"""LOAD DATA: adds ORC files to a table unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.ddl.partitions import spec_values, whole_name
from acidsql.commands.ddl.type_changes import Verdict, judge
from acidsql.commands.dml.load_files import at_path, claimed_files, plain_footer, source_files
from acidsql.commands.dml.load_rows import LoadRowsCommand, loads_rows
from acidsql.commands.environment import Environment
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.context import StartOver, StatementContext, pause_before
from acidsql.commands.transaction.locking import insert_lock
from acidsql.commands.transaction.run import write_transaction
from acidsql.errors import AnalysisError, Deadlock, UnsupportedError
from acidsql.format.names import original_file, parse_original_file
from acidsql.format.tail import OrcFooter
from acidsql.metastore.model import LockComponent, Table
from acidsql.plan.bucketing import bucket_number
from acidsql.plan.staging import StagedDirectory
from acidsql.settings import SNAPSHOT_RETRIES
from acidsql.sql.statements import LoadData
from acidsql.types import parse_type, to_spark

INVALID_FILE_NAME = 30023
MAX_FILES = 4096
"""Each file gets a bucket number, which has 12 bits."""

_COPY_BYTES = 8 << 20


@dataclass(frozen=True)
class _Source:
    """A file to be loaded, and its name in the table."""

    status: fs.FileStatus
    footer: OrcFooter
    name: str


class LoadCommand:
    """LOAD DATA [LOCAL] INPATH … [OVERWRITE] INTO TABLE … [PARTITION (…)] of files that are used unchanged.

    1. Resolve the table and the partition; list the files of the path: one file, the visible files of a directory, or
       those that match a pattern.
    2. Read the footers: the files must be ORC without events, and have as many columns as the table, of compatible
       types. Constraints are not checked, as in Hive. In a bucketed table each file is named after its bucket and
       must only have rows of that bucket.
    3. Open a transaction; lock the table or partition as INSERT does (OVERWRITE: EXCLUSIVE).
    4. Allocate the write id, copy the files into a staged delta (OVERWRITE: base) with Hive's names ``000000_0``,
       ``000001_0`` ….
    5. Without LOCAL, rename each source file to a hidden name in its directory, so that a file named by several
       statements is loaded only once: the statements that come later fail.
    6. Publish by rename, register a new partition, commit.
    7. Delete the renamed files. An abort gives them their names back; if the outcome of the commit is unknown, or the
       process was killed, they keep the hidden names.
    """

    def __init__(self, env: Environment, statement: LoadData, parameters: Mapping[str, Any], table: Table) -> None:
        self.env = env
        self.statement = statement
        self.table = table
        spec = statement.partition
        self.partition = whole_name(table, spec, spec_values(env, table, spec, parameters)) if spec is not None else ""
        """Name of the partition; empty for a table without partition keys."""

    def run(self) -> None:
        """All phases, and once more where others have changed the place meanwhile, or it was in a deadlock."""
        for attempt in range(self.env.settings.value(SNAPSHOT_RETRIES)):
            try:
                self._load()
            except (StartOver, Deadlock):
                pause_before(attempt + 1)
                continue
            return
        self._load()

    def _load(self) -> None:
        env, table = self.env, self.table
        sources = self._found()
        with claimed_files() as claimed, write_transaction(env, [self._lock()]) as txn:
            txn.revalidate(table)
            # files are moved as they are
            target = txn.target(table, overwrite=self.statement.overwrite, compression="none")
            staging = txn.stage(table)
            directory = staging.directory(self.partition, target.inserts)
            for source in sources:
                with at_path(self.statement):
                    _copy(source, directory, staging.fs)
                staging.wrote(directory, source.footer.row_count)
            if not self.statement.local:
                with at_path(self.statement):
                    claimed.claim([source.status for source in sources], txn)
            txn.publish(table, staging)

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do."""
        kind = "base" if self.statement.overwrite else "delta"
        place = f"{kind} in {self.partition}" if self.partition else kind
        files = [f"{s.status.path} as {s.name}, {s.footer.row_count} rows" for s in self._found()]
        reason = "files are loaded unchanged"
        return [Explained(self.table, [self._lock()], (), None, writes=[place], files=files, no_plan=reason)]

    def _lock(self) -> LockComponent:
        return insert_lock(self.env, self.table, self.partition or None, overwrite=self.statement.overwrite)

    def _found(self) -> Sequence[_Source]:
        """The checked files; errors are located at the path."""
        with at_path(self.statement):
            return self._sources()

    # --- files -------------------------------------------------------------------------------------------------------

    def _sources(self) -> list[_Source]:
        """The checked files, sorted by name.

        Raises:
            AnalysisError: When there are none, or one cannot be loaded.
        """
        filesystem, found = source_files(self.statement, self.table)
        if len(found) > MAX_FILES:
            message = f"{self.statement.path.value} has more than {MAX_FILES} files"
            raise UnsupportedError(message, hint="Load them in several statements.")
        sources = []
        for number, status in enumerate(found):
            footer = plain_footer(filesystem, status)
            self._check_columns(status, footer)
            sources.append(_Source(status, footer, self._name(number, status)))
        return sources

    def _check_columns(self, status: fs.FileStatus, footer: OrcFooter) -> None:
        table = self.table
        fields = footer.row_type.fields
        if len(fields) != len(table.columns):
            message = f"{status.path} has {len(fields)} columns, and {table.full_name} has {len(table.columns)}"
            raise AnalysisError(message, hint="Columns are matched by position; files do not contain partition keys.")
        for (name, type), column in zip(fields, table.columns, strict=True):
            wanted = parse_type(column.type)
            if judge(type, wanted) is not Verdict.FINE:
                message = (
                    f"Column {name} of {status.path} is of type {to_spark(type)}, which column {column.name} of"
                    f" {table.full_name}, {column.type}, cannot read"
                )
                raise AnalysisError(message, hint="INSERT … SELECT casts values; LOAD DATA leaves files as they are.")

    def _name(self, number: int, status: fs.FileStatus) -> str:
        """The name that a file gets. Raises: AnalysisError for one that is not a bucket's (Hive 30023)."""
        table = self.table
        if not table.bucket_columns:
            return original_file(number)
        bucket = parse_original_file(status.name)
        if bucket is None or bucket >= table.num_buckets:
            message = (
                f"{status.name} file name is not valid in Load Data into Acid table {table.full_name}."
                "  Examples of valid names are: 00000_0, 00000_0_copy_1"
            )
            hint = f"The number before _ is the bucket, of {table.num_buckets}; INSERT … SELECT determines it itself."
            raise AnalysisError(message, code=INVALID_FILE_NAME, hint=hint)
        spark = self.env.writing.spark
        rows = spark.read.option("__globPaths__", "false").orc(fs.spark_path(status.path))
        types = [to_spark(parse_type(c.type), plain_strings=True) for c in table.columns]
        values = rows.toDF(*[f"v{i}" for i in range(len(types))])
        named = values.selectExpr(*[f"CAST(v{i} AS {type}) AS c{i}" for i, type in enumerate(types)])
        if named.filter(bucket_number(spark, table, named) != bucket).limit(1).collect():
            message = f"{status.path} has rows that do not belong to bucket {bucket} of {table.full_name}"
            raise AnalysisError(message, code=INVALID_FILE_NAME, hint="INSERT … SELECT puts rows into their buckets.")
        return status.name


def _copy(source: _Source, directory: StagedDirectory, target: fs.FileSystem) -> None:
    filesystem, path = fs.resolve(source.status.path)
    with filesystem.open_read(path) as file, target.open_write(fs.join(directory.path, source.name)) as copy:
        shutil.copyfileobj(file, copy, _COPY_BYTES)


def load_command(
    env: Environment, statement: LoadData, parameters: Mapping[str, Any]
) -> LoadCommand | LoadRowsCommand | None:
    """The command for an ACID table; None for a Spark table. Raises: AnalysisError for a view (Hive 10090)."""
    env.refuse_view(statement.table)
    if env.find_table(statement.table) is None and env.known_to_spark(statement.table):
        return None
    table = env.get_table(statement.table)
    make = LoadRowsCommand if loads_rows(statement, table) else LoadCommand
    return make(env, statement, parameters, table)


def load_data(env: Environment, statement: LoadData, parameters: Mapping[str, Any]) -> DataFrame:
    """LOAD DATA; Spark runs it for its own tables."""
    command = load_command(env, statement, parameters)
    if command is None:
        return env.sql(statement.span.text, parameters)
    command.run()
    return env.nothing()
