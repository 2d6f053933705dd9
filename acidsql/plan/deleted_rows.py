"""The delete events of a snapshot, read on the driver: runs of row ids, cached by file since files never change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acidsql import fs
from acidsql.format.bucket import decode
from acidsql.format.directory import AcidDirectory, AcidFile, AcidState, qualifies
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.orc import read_keys
from acidsql.plan.cache import FileCache
from acidsql.plan.snapshot import TableSnapshot
from acidsql.row_set import runs
from acidsql.valid_ids import ValidWriteIdList

Ids = npt.NDArray[np.int64]
_ENTRY_BYTES, _RUN_BYTES = 1024, 600
"""What a file and each of its runs take in memory beside their numbers."""


@dataclass(frozen=True)
class Origin:
    """What row ids count in: rows of one origin differ in their row ids.

    Attributes:
        part: The number of their partition in the snapshot.
        write_id: The write id that inserted them.
        bucket: Their bucket property.
    """

    part: int
    write_id: int
    bucket: int


@dataclass(frozen=True)
class _Run:
    """Neighbouring events of a file that delete rows of one write id and bucket property."""

    write_id: int
    bucket: int
    row_ids: Ids
    deleted_by: Ids


def _bytes(runs: list[_Run]) -> int:
    arrays = [array for run in runs for array in (run.row_ids, run.deleted_by) if not _is_one(array)]
    return _ENTRY_BYTES + _RUN_BYTES * len(runs) + sum(array.nbytes for array in arrays)


def _is_one(numbers: Ids) -> bool:
    """Whether it is one number, in memory once."""
    return numbers.strides == (0,)


_runs = FileCache[list[_Run]](256 << 20, weigh=_bytes)


def deleted_rows(snapshot: TableSnapshot) -> dict[Origin, list[Ids]]:
    """The row ids that the delete events of a snapshot name, by their origin.

    Of a file of which the snapshot sees all events the arrays are the same objects each time, as files never change.
    """
    found: dict[Origin, list[Ids]] = {}
    for origin, row_ids, _ in delete_events(snapshot):
        found.setdefault(origin, []).append(row_ids)
    return found


def delete_events(snapshot: TableSnapshot) -> Iterator[tuple[Origin, Ids, Ids]]:
    """The delete events of a snapshot: an origin, the row ids, and the write ids that deleted them; never empty."""
    for number, part in enumerate(snapshot.partitions):
        for directory in part.state.delete_deltas:
            for file in directory.files:
                for run in _runs_of(file):
                    row_ids, deleted_by = _hidden(run, directory, part.state, snapshot.write_ids)
                    if len(row_ids):
                        yield Origin(number, run.write_id, run.bucket), row_ids, deleted_by


def _runs_of(file: AcidFile) -> list[_Run]:
    filesystem, path = fs.resolve(file.path)
    return _runs.get(file, lambda: list(_split(filesystem, path)))


def _split(filesystem: fs.FileSystem, path: str) -> Iterator[_Run]:
    keys = read_keys(filesystem, path)
    write_ids, buckets, row_ids, deleted_by = (keys.column(i).to_numpy().astype(np.int64) for i in range(4))
    for start, end in runs(write_ids, buckets):
        by = deleted_by[start:end]
        if (by == by[0]).all():
            by = np.broadcast_to(by[0], len(by))
        yield _Run(int(write_ids[start]), int(buckets[start]), row_ids[start:end], by)


def _hidden(run: _Run, directory: AcidDirectory, state: AcidState, valid: ValidWriteIdList) -> tuple[Ids, Ids]:
    """The row ids of a run whose events hide a row in this snapshot, and who deleted them."""
    name = directory.name
    assert isinstance(name, DeltaName)
    # A delete hides rows of directories that began before it only: see format.directory.qualifies. Rows older than the
    # delete are in such a directory by their own write id.
    if run.write_id >= name.max_write_id and not _reaches(name, run, state):
        return run.row_ids[:0], run.deleted_by[:0]
    if name.min_write_id == name.max_write_id:
        return run.row_ids, run.deleted_by
    seen = run.deleted_by <= valid.high_watermark
    seen &= ~np.isin(run.deleted_by, np.array(valid.exceptions, dtype=np.int64))
    return (run.row_ids, run.deleted_by) if seen.all() else (run.row_ids[seen], run.deleted_by[seen])


def _reaches(delete: DeltaName, run: _Run, state: AcidState) -> bool:
    if state.base is not None and isinstance(state.base.name, BaseName) and run.write_id <= state.base.name.write_id:
        return True
    statement = decode(run.bucket).statement_id
    for directory in state.insert_deltas:
        name = directory.name
        if isinstance(name, DeltaName) and name.min_write_id <= run.write_id <= name.max_write_id:
            if name.statement_id not in (statement, -1):
                continue
            if qualifies(delete, name):
                return True
    return False
