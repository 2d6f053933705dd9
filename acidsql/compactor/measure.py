"""Files and bytes before and after a compaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from acidsql import fs
from acidsql.compactor.plan import NewDirectory
from acidsql.format.data_files import AcidFile, walk
from acidsql.format.directory import AcidState
from acidsql.format.names import BaseName
from acidsql.format.rewrite import Rewritten
from acidsql.metastore.model import CompactionMetrics


def replaced_files(state: AcidState, *, by_base: bool) -> Iterator[AcidFile]:
    """The files that are obsolete after a new base, or (minor compaction) new deltas."""
    for directory in state.deltas:
        yield from directory.files
    if by_base:
        yield from state.base.files if state.base is not None else ()
        yield from state.originals


def measured(
    filesystem: fs.FileSystem, done: Rewritten, state: AcidState, directories: Sequence[NewDirectory], staging: str
) -> Rewritten:
    """The result of the tasks, with the files and bytes of the whole compaction.

    Args:
        filesystem: The file system of the table.
        done: The result of the tasks.
        state: The state before.
        directories: The new directories.
        staging: The directory that the new ones are in.
    """
    before = list(replaced_files(state, by_base=any(isinstance(one.name, BaseName) for one in directories)))
    after = [file for one in directories for file in walk(filesystem, filesystem.list(fs.join(staging, str(one.name))))]
    return replace(
        done,
        files_read=len(before),
        bytes_read=sum(file.length for file in before),
        files_written=len(after),
        bytes_written=sum(file.length for file in after),
    )


def metrics_of(done: Rewritten) -> CompactionMetrics:
    """The metrics as stored in the queue."""
    return CompactionMetrics(done.files_read, done.bytes_read, done.files_written, done.bytes_written, done.rows)
