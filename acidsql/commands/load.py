"""LOAD DATA: ORC files become part of a table as they are."""

from __future__ import annotations

import fnmatch
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.environment import Environment
from acidsql.commands.partitions import overlap, spec_values, whole_name
from acidsql.commands.places import at
from acidsql.commands.transaction import write_transaction
from acidsql.commands.type_changes import Verdict, judge
from acidsql.errors import AcidError, AnalysisError, CorruptFile, UnsupportedError
from acidsql.format.names import is_hidden, original_file, parse_original_file
from acidsql.format.tail import OrcFooter, read_footer
from acidsql.metastore.model import LockComponent, LockType, Operation
from acidsql.plan.bucketing import bucket_number
from acidsql.plan.staging import StagedDirectory
from acidsql.plan.target import Target
from acidsql.settings import XLOCK_IOW
from acidsql.sql.statements import LoadData
from acidsql.types import parse_type, to_spark

logger = logging.getLogger(__name__)

INVALID_PATH = 10027
ILLEGAL_PATH = 10028
NEED_PARTITION = 10062
ACID_FILE = 10413
INVALID_FILE_NAME = 30023
MAX_FILES = 4096
"""Each file gets a bucket number, which has 12 bits."""

_COPY_BYTES = 8 << 20
_PATTERN = frozenset("*?[")


@dataclass(frozen=True)
class _Source:
    """A file to be loaded, and the name that it will have."""

    status: fs.FileStatus
    footer: OrcFooter
    name: str


class LoadCommand:
    """LOAD DATA [LOCAL] INPATH … [OVERWRITE] INTO TABLE … [PARTITION (…)].

    1. Resolve the table and the partition; find the files that the path means: one file, the visible files of a
       directory, or those that a pattern fits.
    2. Read the footers: the files are ORC, hold no events, and have as many columns as the table, of types that it
       reads rightly. Constraints are not looked at, as in Hive. In a bucketed table each file is named after its
       bucket, and its rows belong there.
    3. Open a transaction; lock the table or partition as INSERT does (OVERWRITE: EXCLUSIVE).
    4. Allocate the write id, copy the files into a staged delta (OVERWRITE: base) as ``000000_0``, ``000001_0`` …, the
       names that Hive gives them.
    5. Publish by rename, register a new partition, commit.
    6. Without LOCAL the files are Hive's to move: remove them where they were. After an error before that they are
       there as they were.
    """

    def __init__(self, env: Environment, statement: LoadData, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.statement = statement
        self.table = env.get_table(statement.table)
        self.partition = self._partition(parameters)

    def _partition(self, parameters: Mapping[str, Any]) -> str:
        """Name of the partition; empty for a table without."""
        table, spec = self.table, self.statement.partition
        if spec is not None:
            return whole_name(table, spec, spec_values(self.env, table, spec, parameters))
        if table.partition_keys:
            message = "Need to specify partition columns because the destination table is partitioned"
            hint = "PARTITION (…) with a value for each key; INSERT … SELECT spreads rows over partitions."
            raise at(self.statement.table.span, AnalysisError(message, code=NEED_PARTITION, hint=hint))
        return ""

    def run(self) -> None:
        """All phases."""
        env, table = self.env, self.table
        try:
            sources = self._sources()
        except (AcidError, FileNotFoundError) as e:
            error = e if isinstance(e, AcidError) else _invalid(f"{e.filename} is gone")
            raise at(self.statement.path.span, error) from e
        with write_transaction(env, [self._lock()]) as txn:
            txn.confirm(table)
            target = Target(table, txn.allocate_write_id(table), overwrite=self.statement.overwrite)
            staging = txn.stage(table)
            directory = staging.directory(self.partition, target.inserts)
            for source in sources:
                _copy(source, directory, staging.fs)
                staging.wrote(directory, source.footer.row_count)
            txn.publish(table, staging)
        if not self.statement.local:
            _remove(sources)

    def _lock(self) -> LockComponent:
        kind, operation = LockType.SHARED_READ, Operation.INSERT
        if self.statement.overwrite:
            exclusive = self.env.settings.value(XLOCK_IOW)
            kind, operation = LockType.EXCLUSIVE if exclusive else LockType.EXCL_WRITE, Operation.UPDATE
        return LockComponent(kind, self.table.database, self.table.name, self.partition or None, operation)

    # --- files -------------------------------------------------------------------------------------------------------

    def _sources(self) -> list[_Source]:
        """The files, checked, by their names.

        Raises:
            AnalysisError: When there are none, or one does not fit.
        """
        filesystem, path = self._path()
        found = _files(filesystem, path)
        if not found:
            raise _invalid(f"No files matching path {path}")
        folder = next((f for f in found if f.is_dir), None)
        if folder is not None:
            raise _invalid(f"source contains directory: {folder.path}")
        if len(found) > MAX_FILES:
            raise UnsupportedError(f"{path} holds more than {MAX_FILES} files", hint="Load them in several statements.")
        sources = []
        for number, status in enumerate(sorted(found, key=lambda f: f.name)):
            footer = _footer(filesystem, status)
            self._check_columns(status, footer)
            sources.append(_Source(status, footer, self._name(number, status)))
        return sources

    def _path(self) -> tuple[fs.FileSystem, str]:
        text = self.statement.path.value
        location = fs.absolute(text) if self.statement.local else fs.qualify(text)
        filesystem, path = fs.resolve(location)
        if self.statement.local and filesystem.root:
            raise _illegal('Source file system should be "file" if "local" is specified')
        if not self.statement.local and filesystem.root != fs.resolve(self.table.location)[0].root:
            raise _illegal(f"Move from: {path} to: {self.table.location} is not valid")
        if overlap(path, fs.resolve(self.table.location)[1]):
            raise _illegal(f"{path} holds the files of {self.table.full_name}, or is among them")
        return filesystem, path

    def _check_columns(self, status: fs.FileStatus, footer: OrcFooter) -> None:
        table = self.table
        if footer.is_acid:
            message = f'"{status.path}" was created by Acid write - it cannot be loaded into another Acid table'
            raise AnalysisError(
                message, code=ACID_FILE, hint="CREATE TABLE … LOCATION takes in a whole table directory."
            )
        fields = footer.row_type.fields
        if len(fields) != len(table.columns):
            message = f"{status.path} has {len(fields)} columns, and {table.full_name} has {len(table.columns)}"
            raise AnalysisError(message, hint="Columns go by their position; a partition's values are not among them.")
        for (name, type), column in zip(fields, table.columns, strict=True):
            wanted = parse_type(column.type)
            if judge(type, wanted) is not Verdict.FINE:
                message = (
                    f"Column {name} of {status.path} is of type {to_spark(type)}, which column {column.name} of"
                    f" {table.full_name}, {column.type}, cannot take as it is"
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
            hint = (
                f"The number before _ is that of the bucket, of {table.num_buckets}; INSERT … SELECT finds it itself."
            )
            raise AnalysisError(message, code=INVALID_FILE_NAME, hint=hint)
        rows = self.env.spark.read.option("__globPaths__", "false").orc(fs.spark_path(status.path))
        types = [to_spark(parse_type(c.type), plain_strings=True) for c in table.columns]
        values = rows.toDF(*[f"v{i}" for i in range(len(types))])
        named = values.selectExpr(*[f"CAST(v{i} AS {type}) AS c{i}" for i, type in enumerate(types)])
        if named.filter(bucket_number(self.env.spark, table, named) != bucket).limit(1).collect():
            message = f"{status.path} holds rows that do not belong into bucket {bucket} of {table.full_name}"
            raise AnalysisError(message, code=INVALID_FILE_NAME, hint="INSERT … SELECT puts rows into their buckets.")
        return status.name


def _files(filesystem: fs.FileSystem, path: str) -> Sequence[fs.FileStatus]:
    """The visible files that a path means, and directories that are among them."""
    parent, _, name = path.rpartition("/")
    beside = filesystem.list(parent)
    exact = next((f for f in beside if f.name == name), None)
    if exact is not None:
        matching = [exact]
    else:
        matching = [f for f in beside if _PATTERN & set(name) and fnmatch.fnmatchcase(f.name, name)]
        matching = [f for f in matching if not is_hidden(f.name)]
    if len(matching) == 1 and matching[0].is_dir:
        return [f for f in filesystem.list(matching[0].path) if not is_hidden(f.name)]
    return matching


def _footer(filesystem: fs.FileSystem, status: fs.FileStatus) -> OrcFooter:
    try:
        return read_footer(filesystem, status.path)
    except CorruptFile as e:
        message = "The file that you are trying to load does not match the file format of the destination table."
        raise AnalysisError(f"Unable to load data to destination table. Error: {message}", hint=e.message) from e


def _copy(source: _Source, directory: StagedDirectory, target: fs.FileSystem) -> None:
    filesystem, path = fs.resolve(source.status.path)
    with filesystem.open_read(path) as file, target.open_write(fs.join(directory.path, source.name)) as copy:
        shutil.copyfileobj(file, copy, _COPY_BYTES)


def _remove(sources: Sequence[_Source]) -> None:
    """The rows are in the table: that a file cannot be removed is no reason to fail."""
    for source in sources:
        filesystem, path = fs.resolve(source.status.path)
        try:
            filesystem.delete(path)
        except AcidError as e:
            logger.warning("a file that was loaded stays where it was, %s: %s", path, e)


def _invalid(problem: str) -> AnalysisError:
    return AnalysisError(f"Invalid path: {problem}", code=INVALID_PATH)


def _illegal(problem: str) -> AnalysisError:
    return AnalysisError(f"Path is not legal: {problem}", code=ILLEGAL_PATH)


def load_data(env: Environment, statement: LoadData, parameters: Mapping[str, Any]) -> DataFrame:
    """LOAD DATA: ours for ACID tables, Spark's for its own."""
    if env.find_table(statement.table) is None and env.known_to_spark(statement.table):
        return env.sql(statement.span.text, parameters)
    LoadCommand(env, statement, parameters).run()
    return env.nothing()
