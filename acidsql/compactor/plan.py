"""The plan of a compaction: which files of a directory are merged into which.

The rules are those of Hive's ``Worker`` and ``CompactorUtil``, names and layouts those of ``AcidUtils``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from acidsql.format.delete_set import reach
from acidsql.format.directory import AcidDirectory, AcidFile, AcidState
from acidsql.format.inputs import InputFile, Original
from acidsql.format.names import MIN_LONG, BaseName, DeltaName, original_file, parse_bucket_file, parse_directory
from acidsql.format.originals import number_originals
from acidsql.format.rewrite import Rewrite
from acidsql.format.tail import OrcFooter
from acidsql.fs import FileSystem, join
from acidsql.metastore.model import CompactionType
from acidsql.types import Struct
from acidsql.valid_ids import ValidWriteIdList


class Layout(Enum):
    """The naming of compacted directories."""

    HIVE3 = "hive3"
    """``base_N``, ``delta_min_max``: visible with the rename. Every engine reads them."""
    HIVE4 = "hive4"
    """``base_N_v<txn>``, ``delta_min_max_v<txn>``: visible once the compactor's transaction is committed."""


@dataclass(frozen=True)
class NewDirectory:
    """A directory that a compaction writes.

    Attributes:
        name: Its name.
        rewrites: Its files, by bucket; their targets are names in it.
        holds_deletes: Whether they are files of delete events.
    """

    name: BaseName | DeltaName
    rewrites: tuple[Rewrite, ...]
    holds_deletes: bool = False


@dataclass(frozen=True)
class Subject:
    """The input of a compaction.

    Attributes:
        state: The directory, as :attr:`write_ids` see it.
        write_ids: The write ids of the compaction (:meth:`~acidsql.valid_ids.ValidWriteIdList.for_compaction`).
        row_type: The table's data columns.
        compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``.
        is_full_acid: Whether the files have events; those of an insert-only table have plain rows.
        footer_of: Reads the footer of a file.
    """

    state: AcidState
    write_ids: ValidWriteIdList
    row_type: Struct
    compression: str
    is_full_acid: bool
    footer_of: Callable[[AcidFile], OrcFooter]


def to_compact(fs: FileSystem, path: str, write_ids: ValidWriteIdList) -> ValidWriteIdList:
    """The write ids of a compaction of a directory: all below the smallest open one, excluding partial deltas.

    A delta with an open streaming writer may begin below that id. The range of the compacted directory must end before
    such a delta, or readers would consider it compacted.
    """
    names = [parse_directory(entry.name) for entry in fs.list(path) if entry.is_dir]
    deltas = [name for name in names if isinstance(name, DeltaName) and not name.visibility_txn]
    seen = write_ids.for_compaction()
    while cut := [d.min_write_id for d in deltas if d.min_write_id <= seen.high_watermark < d.max_write_id]:
        seen = write_ids.as_of(min(cut) - 1).for_compaction()
    return seen


def is_enough(state: AcidState, type: CompactionType) -> bool:
    """Whether there is anything to compact (``QueryCompactor.Util.isEnoughToCompact``)."""
    count = len(state.deltas)
    if type is CompactionType.MAJOR:
        return bool(state.originals) or count + (state.base is not None) > 1
    return count > 1 and not (count == 2 and len(state.delete_deltas) == 1)


def plan(subject: Subject, type: CompactionType, layout: Layout, txn_id: int) -> list[NewDirectory]:
    """The directories that a compaction writes, for a state that passes :func:`is_enough`.

    Args:
        subject: The input.
        type: MAJOR or MINOR.
        layout: The naming of the directories.
        txn_id: The compactor's transaction.

    Raises:
        UnsupportedError: When a file has no bucket number in its name.
    """
    visibility = txn_id if layout is Layout.HIVE4 else 0
    if type is CompactionType.MAJOR:
        return [_major(subject, visibility)]
    return _minor(subject, visibility)


def needs_one_rename(directories: Sequence[NewDirectory], layout: Layout) -> bool:
    """Whether several directories must become visible together, which the layout cannot ensure.

    A compacted delta hides all deltas of its range, with inserts and with deletes. Between the renames of two
    directories without a transaction in their names, a reader would see deleted rows or miss existing ones.
    """
    return layout is Layout.HIVE3 and len(directories) > 1


def _major(subject: Subject, visibility: int) -> NewDirectory:
    state = subject.state
    directories: list[tuple[AcidDirectory | None, Sequence[AcidFile]]] = [(d, d.files) for d in state.data_directories]
    if state.base is None:
        directories.insert(0, (None, state.originals))
    deletes = _by_bucket(_deletes(state.delete_deltas))
    inputs = _by_bucket(_inputs(subject, directories))
    name = BaseName(_last_write_id(subject, visibility) or MIN_LONG, visibility)
    return NewDirectory(name, _rewrites(subject, inputs, deletes, applies_deletes=True))


def _last_write_id(subject: Subject, visibility: int) -> int:
    """The write id that the name of a compacted directory ends with; 0 where there are original files only.

    With a transaction in the name it is Hive's: the high watermark, which an aborted transaction may have allocated.
    Without one that name is also the name of that transaction's own INSERT OVERWRITE, whose statement, if only
    suspended, or a cleaner with an old listing, may still remove it. So it is the last write id that has been merged:
    nobody removes what a committed transaction has published.
    """
    if visibility:
        return subject.write_ids.high_watermark
    state = subject.state
    deltas = [d.name.max_write_id for d in state.deltas if isinstance(d.name, DeltaName)]
    base = state.base.name if state.base is not None else None
    return max([*deltas, base.write_id if isinstance(base, BaseName) else 0])


def _minor(subject: Subject, visibility: int) -> list[NewDirectory]:
    """One directory for inserts and one for deletes, with the same range, so that each hides what it replaces."""
    state = subject.state
    first = min(d.name.min_write_id for d in state.deltas if isinstance(d.name, DeltaName))
    last = _last_write_id(subject, visibility)
    directories = []
    deletes = _by_bucket(_deletes(state.delete_deltas))
    if state.insert_deltas:
        inputs = _by_bucket(_inputs(subject, [(d, d.files) for d in state.insert_deltas]))
        name = DeltaName(first, last, visibility_txn=visibility)
        # What a transaction has deleted of its own: no name tells readers that those deletes came later
        applied = deletes if first == last else {}
        directories.append(NewDirectory(name, _rewrites(subject, inputs, applied, applies_deletes=bool(applied))))
    if state.delete_deltas:
        name = DeltaName(first, last, visibility_txn=visibility, is_delete=True)
        directories.append(
            NewDirectory(name, _rewrites(subject, {}, deletes, applies_deletes=False), holds_deletes=True)
        )
    return directories


def _rewrites(
    subject: Subject, inputs: dict[int, list[InputFile]], deletes: dict[int, list[InputFile]], *, applies_deletes: bool
) -> tuple[Rewrite, ...]:
    """One file per bucket that has any row or, in a minor compaction, any event."""
    return tuple(
        Rewrite(
            target=f"bucket_{bucket:05d}" if subject.is_full_acid else original_file(bucket),
            row_type=subject.row_type,
            compression=subject.compression,
            write_ids=subject.write_ids,
            inputs=tuple(inputs.get(bucket, ())),
            deletes=tuple(deletes.get(bucket, ())),
            applies_deletes=applies_deletes,
            has_events=subject.is_full_acid,
        )
        for bucket in sorted(inputs or deletes)
    )


def _by_bucket(files: Iterable[tuple[int, InputFile]]) -> dict[int, list[InputFile]]:
    buckets: dict[int, list[InputFile]] = defaultdict(list)
    for bucket, file in files:
        buckets[bucket].append(file)
    return buckets


def _deletes(directories: Iterable[AcidDirectory]) -> Iterator[tuple[int, InputFile]]:
    for directory in directories:
        for file in directory.files:
            if file.length:
                yield file.bucket_id, InputFile(file.path, reach(directory.name, deletes=True))


def _inputs(
    subject: Subject, directories: Iterable[tuple[AcidDirectory | None, Sequence[AcidFile]]]
) -> Iterator[tuple[int, InputFile]]:
    """The files with rows, by bucket, in the order of their write ids."""
    for directory, listed in directories:
        name = directory.name if directory is not None else None
        files = [file for file in listed if file.length]
        if not subject.is_full_acid:
            for file in files:
                yield max(0, file.bucket_id), _input(file, 0)
            continue
        bare = [f for f in files if directory is None or _is_bare(subject, f)]
        originals = {o.file.path: o for o in number_originals(bare, name, lambda f: subject.footer_of(f).stripes)}
        for file in files:
            source = originals.get(file.path)
            original = None if source is None else Original(source.write_id, source.bucket, source.first_row_id)
            yield file.bucket_id, _input(file, reach(name), original)


def _is_bare(subject: Subject, file: AcidFile) -> bool:
    """Whether a file in a base or delta has no event columns, as after LOAD DATA (``isRawFormat``)."""
    return parse_bucket_file(file.name) is None and not subject.footer_of(file).is_acid


def _input(file: AcidFile, row_reach: int, original: Original | None = None) -> InputFile:
    return InputFile(file.path, row_reach, file.length if file.is_prefix else None, original)


def targets_in(directory: str, rewrites: Iterable[Rewrite]) -> Iterator[tuple[str, Rewrite]]:
    """The full path of each new file."""
    return ((join(directory, one.target), one) for one in rewrites)
