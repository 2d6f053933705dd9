"""The files that a job has written, and the bucket files that they become."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto

from acidsql import fs
from acidsql.errors import CorruptFile
from acidsql.format.bucket import decode, encode
from acidsql.format.flat import nest_deletes, nest_inserts, nest_rows
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.orc_statistics import integer_range
from acidsql.format.schema import EVENT_COLUMNS
from acidsql.format.tail import footer_of, read_tail
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import Change, RowCounts, Target

KEY, PLACE = "__acid_k", "__acid_place"
"""Directories of the job's output: the partition keys; which directory of events, and which bucket file in it."""
SINK_SHIFT = 32
"""A place has the number of a directory of events above these bits, and that of a bucket file in them. Two levels of
directories would cost one more of each: Hadoop starts a process for each directory on a local disk."""
DELETES, VERSIONS, INSERTS = 0, 1, 2
"""The directories of events, as the job numbers them."""
_THREADS = 4


class Content(Enum):
    """What the files of a job hold."""

    ROWS = auto()
    """Rows, as an insert-only table has them in its files."""
    EVENTS = auto()
    """Events, as a full-ACID table has them."""
    ROWS_OF_EVENTS = auto()
    """Rows that are inserted, of which files of events are made."""
    FLAT_EVENTS = auto()
    """Events with the table's columns beside the event columns, of which files of events are made."""


@dataclass(frozen=True)
class JobFile:
    """A file of a job.

    Attributes:
        path: Where it is.
        partition: The partition that its rows are of, empty for a table without.
        sink: Which directory of events it belongs to.
        number: The number of the bucket file that it becomes.
    """

    path: str
    partition: str
    sink: int
    number: int


def job_files(target: Target, staging: Staging, output: str, *, shuffled: bool) -> Iterator[JobFile]:
    """The files that a job has written.

    Args:
        target: The table.
        staging: The staging area.
        output: The directory that Spark was given.
        shuffled: Whether there is a directory for each place; otherwise each task was a writer of inserts.

    Raises:
        CorruptFile: When there is anything else.
        AcidError: When the bucket property cannot hold the number of one (``BucketCodec``).
    """
    for path, above in _part_files(output, staging.fs):
        values = dict(name.partition("=")[::2] for name in above)
        # Spark escapes the values of partition directories as Hive does (it took the code over from there)
        keys = enumerate(target.table.partition_keys)
        partition = "/".join(f"{key.name}={values[f'{KEY}{i}']}" for i, key in keys)
        sink, number = divmod(int(values[PLACE]), 1 << SINK_SHIFT) if shuffled else (INSERTS, _task_number(path))
        encode(number, target.statement_id)
        yield JobFile(path, partition, sink, number)


def collect(
    target: Target, staging: Staging, output: str, change: Change | None, content: Content, *, shuffled: bool
) -> RowCounts:
    """Make a job's files the bucket files of the staged directories.

    Args:
        target, staging, output, shuffled: As for :func:`job_files`.
        change: What happened to all rows; None where each sink tells it of its own.
        content: What the files hold.

    Raises:
        CorruptFile: When a file is not what the job was to write.
    """
    names: dict[int, BaseName | DeltaName] = {DELETES: target.deletes, VERSIONS: target.inserts}
    names[INSERTS] = target.inserts if change is not None else target.next.inserts
    columns = [name for name, _ in row_type_of(target.table).fields]

    def finished(file: JobFile) -> tuple[str, int]:
        """The file that is moved, and its rows."""
        if content in (Content.ROWS, Content.EVENTS):
            return file.path, rows_of(staging.fs, file.path, file.number if content is Content.EVENTS else None)
        made = f"{file.path}-nested"
        if content is Content.ROWS_OF_EVENTS:
            bucket = encode(file.number, target.statement_id)
            return made, nest_rows(staging.fs, file.path, made, columns, write_id=target.write_id, bucket=bucket)
        nest = nest_deletes if file.sink == DELETES else nest_inserts
        return made, nest(staging.fs, file.path, made, columns, file.number)

    written = dict.fromkeys(names, 0)
    files = [*job_files(target, staging, output, shuffled=shuffled)]
    with ThreadPoolExecutor(min(_THREADS, max(1, len(files))), "acidsql-files") as pool:
        for file, (path, rows) in zip(files, pool.map(finished, files), strict=True):
            if rows:
                directory = staging.directory(file.partition, names[file.sink])
                staging.fs.rename(path, directory.bucket(file.number))
                staging.wrote(directory, rows)
                written[file.sink] += rows
    staging.fs.delete(output)
    updated = written[VERSIONS]
    return RowCounts(written[INSERTS], updated, written[DELETES] - updated)


def rows_of(filesystem: fs.FileSystem, path: str, number: int | None) -> int:
    """The number of rows in a file.

    Args:
        filesystem: The file system of ``path``.
        path: The file.
        number: That of the bucket file that it becomes; None if it has no events.

    Raises:
        CorruptFile: When its events belong to another bucket file: readers look for delete events by its number.
    """
    with filesystem.open_read(path) as file:
        tail = read_tail(file, path)
    rows = footer_of(tail, path).row_count
    if rows and number is not None:
        found = integer_range(tail, EVENT_COLUMNS.index("bucket") + 1)
        if found is None or {decode(prop).writer_id for prop in found} != {number}:
            raise CorruptFile(f"Events of {path}, written as bucket {number}, have bucket properties {found}")
    return rows


def _part_files(output: str, filesystem: fs.FileSystem) -> Iterator[tuple[str, list[str]]]:
    """Part files of a Spark write with the ``name=value`` directories above them.

    Raises:
        CorruptFile: When there is anything else: what the job wrote must not be left behind.
    """

    def walk(path: str, above: list[str]) -> Iterator[tuple[str, list[str]]]:
        for entry in filesystem.list(path):
            if entry.is_dir:
                yield from walk(entry.path, [*above, entry.name])
            elif entry.name.startswith("part-"):
                yield entry.path, above
            elif not entry.name.startswith(("_", ".")):
                raise CorruptFile(f"A Spark job has written {entry.path}: its files are called part-…")

    yield from walk(output, [])


def _task_number(path: str) -> int:
    match = re.match(r"part-(\d+)-", path.rpartition("/")[2])
    assert match is not None
    return int(match[1])
