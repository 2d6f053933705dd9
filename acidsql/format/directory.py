"""The state of an ACID directory: which base, deltas and original files a snapshot reads.

This is ``getAcidState`` of Hive's ``AcidUtils``, step by step, over one listing of the directory. Files of a directory
are looked at only once it is chosen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from acidsql.errors import CorruptFile, SnapshotTooOld
from acidsql.format import names
from acidsql.format.data_files import (
    AcidFile,
    DirectoryGone,
    acid_file,
    as_far_as_written,
    may_be_streamed,
    still_there,
    visible,
    walk,
)
from acidsql.format.names import BaseName, DeltaName
from acidsql.fs import FileStatus, FileSystem, join
from acidsql.valid_ids import RangeResponse, ValidTxnList, ValidWriteIdList

__all__ = ["AcidDirectory", "AcidFile", "AcidState", "acid_state", "parse_listed", "qualifies"]

T = TypeVar("T")
_ATTEMPTS = 5
"""Times that a directory is listed again from which others remove something meanwhile."""


@dataclass(frozen=True)
class AcidDirectory:
    """A base or delta that the snapshot reads.

    Attributes:
        name: What its name says.
        path: Full path.
        files: Its data files by path: bucket files, and files without ACID columns as LOAD DATA leaves them. Those in
            directories below it (union all, export) count as its own.
        has_version_file: Whether ``_orc_acid_version`` is in it: since Hive 3 there are no update events then.
    """

    name: BaseName | DeltaName
    path: str
    files: tuple[AcidFile, ...]
    has_version_file: bool = False


@dataclass(frozen=True)
class AcidState:
    """What a snapshot reads of a table or partition directory, and what is obsolete.

    Attributes:
        path: The directory.
        base: The base, None where there is none.
        deltas: Insert and delete deltas in the order of Hive: wider ranges first, then by statement.
        originals: Files from before the table was transactional, by path; none where there is a base.
        obsolete: Directories and files that the base or a compacted delta replaces.
        aborted: Directories that only aborted transactions wrote.
        aborted_write_ids: The write ids of the aborted directories.
        has_partial_aborts: Whether a delta that is read holds rows of aborted write ids beside others.
        passed_over: Compacted bases that were passed over because the state is to tell changes.
        unseen: Bases and compacted deltas that the snapshot does not see: they may have replaced what it does see.
    """

    path: str
    base: AcidDirectory | None = None
    deltas: tuple[AcidDirectory, ...] = ()
    originals: tuple[AcidFile, ...] = ()
    obsolete: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    aborted_write_ids: frozenset[int] = frozenset()
    has_partial_aborts: bool = False
    passed_over: tuple[BaseName, ...] = ()
    unseen: tuple[BaseName | DeltaName, ...] = ()

    @property
    def insert_deltas(self) -> tuple[AcidDirectory, ...]:
        """The deltas that hold rows."""
        return tuple(d for d in self.deltas if not _is_delete(d.name))

    @property
    def data_directories(self) -> tuple[AcidDirectory, ...]:
        """The base and the deltas that hold rows."""
        return (*([self.base] if self.base else []), *self.insert_deltas)

    @property
    def files(self) -> tuple[AcidFile, ...]:
        """All files that are read, those of delete events included."""
        directories = (*self.data_directories, *self.delete_deltas)
        return (*(file for directory in directories for file in directory.files), *self.originals)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read rows from."""
        return not self.originals and not any(d.files for d in self.data_directories)

    @property
    def delete_deltas(self) -> tuple[AcidDirectory, ...]:
        """The deltas that hold delete events."""
        return tuple(d for d in self.deltas if _is_delete(d.name))


def acid_state(
    fs: FileSystem,
    path: str,
    valid_write_ids: ValidWriteIdList,
    valid_txns: ValidTxnList,
    *,
    any_file_name: bool = False,
    is_pinned: bool = False,
    changes_since: int | None = None,
) -> AcidState:
    """The state of a table (or partition) directory for a snapshot; empty if the directory does not exist.

    Args:
        fs: The file system of ``path``.
        path: The directory that holds bases, deltas and original files.
        valid_write_ids: The write ids of the table that the snapshot sees.
        valid_txns: The transactions that it sees; compacted directories of others (``_v<txn>``) are passed over.
        any_file_name: Whether files of any name count, as in an insert-only table; in another one only those with a
            bucket number in their names are data.
        is_pinned: Whether an open transaction has kept the cleaner away since the snapshot was taken. Then all that it
            needs is there, although a base that was compacted meanwhile is not for it: one without a transaction in its
            name is seen before its time.
        changes_since: Pass over compacted bases of this write id or a later one: what they have replaced tells what
            changed since then, as long as it is there (:mod:`acidsql.format.history`).

    Raises:
        SnapshotTooOld: Where it is not pinned, when the files that the snapshot needs were compacted away (Hive 10327).
        CorruptFile: When a directory name, ``_metadata_acid`` or a side file is invalid.
        DirectoryGone: When a directory in it is removed, or moved together with it, while it is listed.
    """

    def look() -> AcidState:
        return _Selection(fs, path, valid_write_ids, valid_txns, any_file_name, is_pinned, changes_since).state()

    return look() if is_pinned else look_again(fs, path, look)


def look_again(fs: FileSystem, path: str, look: Callable[[], T]) -> T:
    """Look at a directory that no transaction pins: the cleaner may remove what a compaction has replaced meanwhile.

    Raises:
        DirectoryGone: When it is gone itself, or changes at each look.
    """
    for _ in range(_ATTEMPTS):
        try:
            return look()
        except DirectoryGone:
            if not fs.exists(path):
                raise
    return look()


def qualifies(delete_delta: DeltaName, data_dir: BaseName | DeltaName | None) -> bool:
    """Whether a delete delta can hold deletes of rows in ``data_dir`` (None: original files).

    A delete never hides a row that was written under a larger write id, or by a later statement of its transaction
    (``VectorizedOrcAcidRowBatchReader``, ``isQualifiedDeleteDeltaForSplit``). A directory without a statement's number
    is a compacted one, or of a writer that had one statement: it may hold the deletes of all of a transaction's
    statements. Hive takes it for the first one, and shows what later ones have deleted.
    """
    began = (data_dir.min_write_id, data_dir.first_statement) if isinstance(data_dir, DeltaName) else (0, 0)
    return began < (delete_delta.max_write_id, delete_delta.last_statement)


@dataclass(frozen=True)
class _Base:
    name: BaseName
    path: str


@dataclass(frozen=True)
class _Delta:
    name: DeltaName
    path: str

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Hive's ``ParsedDelta.compareTo``: wider before narrower, compacted before single statements."""
        return self.name.min_write_id, -self.name.max_write_id, self.name.statement_id, self.path


class _Selection:
    """One run of ``getAcidState``: gathers candidates, then picks."""

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        valid_write_ids: ValidWriteIdList,
        valid_txns: ValidTxnList,
        any_file_name: bool,
        is_pinned: bool,
        changes_since: int | None,
    ) -> None:
        self._changes_since = changes_since
        self._passed_over: list[BaseName] = []
        self._unseen: list[BaseName | DeltaName] = []
        self._fs = fs
        self._path = path
        self._any_file_name = any_file_name
        self._is_pinned = is_pinned
        self._write_ids = valid_write_ids
        self._txns = valid_txns
        self._obsolete: list[str] = []
        self._aborted: list[str] = []
        self._aborted_write_ids: set[int] = set()
        self._has_partial_aborts = False
        self._unusable: list[_Delta] = []

    def state(self) -> AcidState:
        bases: list[_Base] = []
        deltas: list[_Delta] = []
        others: list[FileStatus] = []
        for entry in visible(self._fs, self._path):
            name = parse_listed(entry) if entry.is_dir else None
            write_id = names.manifests_write_id(entry.name) if entry.is_dir else None
            if write_id is not None:
                self._pass_over_manifests(write_id, entry.path)
            elif name is None:
                others.append(entry)
            elif self._is_visible(name, entry.path):
                if isinstance(name, BaseName):
                    base = _Base(name, entry.path)
                    if self._hides_changes(base):
                        self._passed_over.append(name)
                    else:
                        bases.append(base)
                else:
                    deltas.append(_Delta(name, entry.path))
        chosen = self._choose_base(bases)
        if chosen is None:
            originals = sorted((f for entry in others for f in self._originals(entry)), key=lambda f: f.path)
        else:
            originals = []
            self._obsolete.extend(entry.path for entry in others)
        usable = list(self._with_valid_ids(deltas))
        if not self._is_pinned:
            self._check_unusable(usable, chosen)
        kept = self._choose_deltas(usable, chosen)
        return AcidState(
            path=self._path,
            base=None if chosen is None else self._directory(chosen),
            deltas=tuple(self._directory(d) for d in kept),
            originals=tuple(originals),
            obsolete=tuple(self._obsolete),
            aborted=tuple(self._aborted),
            aborted_write_ids=frozenset(self._aborted_write_ids),
            has_partial_aborts=self._has_partial_aborts,
            passed_over=tuple(self._passed_over),
            unseen=tuple(self._unseen),
        )

    def _is_visible(self, name: BaseName | DeltaName, path: str) -> bool:
        """Whether the compactor that made the directory committed for this snapshot (``isDirUsable``)."""
        if name.visibility_txn == 0 or self._txns.is_valid(name.visibility_txn):
            return True
        if self._txns.is_aborted(name.visibility_txn):
            self._aborted.append(path)
        else:
            self._unseen.append(name)
        return False

    def _pass_over_manifests(self, write_id: int, path: str) -> None:
        """Hive's cleaner takes what a running statement has there for an old file, and loses that statement's rows."""
        if self._write_ids.is_aborted(write_id):
            self._aborted.append(path)
        elif self._write_ids.is_valid(write_id):  # its statement is over
            self._obsolete.append(path)

    # --- base ---

    def _choose_base(self, bases: list[_Base]) -> _Base | None:
        best: _Base | None = None
        for base in bases:
            write_id = base.name.write_id
            if self._write_ids.is_aborted(write_id) and not self._is_compacted(base):
                self._aborted.append(base.path)
                self._aborted_write_ids.add(write_id)
            elif best is None or best.name.write_id < write_id or self._replaces_twin(base, best):
                if self._is_valid_base(base):
                    if best is not None:
                        self._obsolete.append(best.path)
                    best = base
                else:
                    self._unseen.append(base.name)
            else:
                self._obsolete.append(base.path)
        if best is None and bases and not self._is_pinned:
            oldest = min(bases, key=lambda b: b.name.write_id)
            if self._is_compacted(oldest):
                raise self._too_old(oldest)
        return best

    def _replaces_twin(self, base: _Base, best: _Base) -> bool:
        return best.name.write_id == base.name.write_id and self._is_compacted(base)

    def _is_valid_base(self, base: _Base) -> bool:
        """Hive's ``isValidBase``, but for a base whose own write id is the smallest open one.

        Hive takes that base for valid; it can only come from an INSERT OVERWRITE that is not committed, which nobody
        but its own transaction may see (and to that one its write id is not open).
        """
        write_id, ids = base.name.write_id, self._write_ids
        if write_id == names.MIN_LONG or (ids.min_open is not None and write_id < ids.min_open):
            return True
        if ids.is_valid_base(write_id) == ids.is_valid(write_id):
            return ids.is_valid(write_id)  # the same answer for both kinds of base: no need to find out which it is
        return ids.is_valid_base(write_id) if self._is_compacted(base) else ids.is_valid(write_id)

    def _hides_changes(self, base: _Base) -> bool:
        since = self._changes_since
        return since is not None and base.name.write_id >= since and self._is_compacted(base)

    def _is_compacted(self, base: _Base) -> bool:
        """Whether a compactor made the base, not INSERT OVERWRITE or TRUNCATE (``isCompactedBase``)."""
        return base.name.visibility_txn > 0 or data_format(self._fs, base.path) == "compacted"

    def _too_old(self, oldest: _Base | _Delta) -> SnapshotTooOld:
        what = "base" if isinstance(oldest, _Base) else "delta"
        open_ids = ", ".join(map(str, self._write_ids.open_ids)) or "none"
        return SnapshotTooOld(
            f"Not enough history for {self._path}: the snapshot sees write ids up to {self._write_ids.high_watermark} "
            f"(open: {open_ids}), but the oldest {what} is {oldest.path}",
            hint="Run the statement again on a new snapshot.",
        )

    # --- deltas ---

    def _with_valid_ids(self, deltas: list[_Delta]) -> Iterator[_Delta]:
        for delta in deltas:
            first, last = delta.name.min_write_id, delta.name.max_write_id
            aborted = self._write_ids.range_aborted(first, last)
            if aborted is RangeResponse.ALL:
                self._aborted.append(delta.path)
                self._aborted_write_ids.update(range(first, last + 1))
                continue
            self._has_partial_aborts |= aborted is RangeResponse.SOME
            if self._write_ids.range_valid(first, last) is RangeResponse.NONE:
                continue
            if self._any_file_name and not self._is_resolved(first, last):
                self._unusable.append(delta)
                continue
            yield delta

    def _is_resolved(self, first: int, last: int) -> bool:
        """Whether none of some write ids is open or yet to come.

        The rows of an insert-only table do not tell whose they are: a compacted delta holds those of all its write ids.
        """
        ids = self._write_ids
        return last <= ids.high_watermark and not any(first <= one <= last for one in ids.open_ids)

    def _check_unusable(self, usable: Sequence[_Delta], base: _Base | None) -> None:
        """Deltas merged by a compaction must still exist for a snapshot from before it."""
        for wide in self._unusable:
            first = max(wide.name.min_write_id, base.name.write_id + 1 if base is not None else 0)
            last = wide.name.max_write_id
            is_there = any(first <= d.name.min_write_id and d.name.max_write_id <= last for d in usable)
            if not is_there and self._write_ids.range_valid(first, last) is not RangeResponse.NONE:
                raise self._too_old(wide)

    def _choose_deltas(self, deltas: Iterable[_Delta], base: _Base | None) -> list[_Delta]:
        """Walk the deltas from wide to narrow and keep what brings write ids that are not covered yet."""
        kept: list[_Delta] = []
        covered = base.name.write_id if base else 0
        statement = names.NO_STATEMENT
        for delta in sorted(deltas, key=lambda d: d.order):
            name = delta.name
            if name.max_write_id > covered:
                if self._write_ids.range_valid(covered + 1, name.max_write_id) is not RangeResponse.NONE:
                    kept.append(delta)
                    covered, statement = name.max_write_id, name.statement_id
            elif (name.max_write_id == covered and statement >= 0) or (kept and _are_twins(kept[-1].name, name)):
                kept.append(delta)  # a further statement of one transaction, or inserts and deletes of one range
            else:
                self._obsolete.append(delta.path)
        return kept

    # --- files ---

    def _directory(self, found: _Base | _Delta) -> AcidDirectory:
        """A base or delta with its data files."""
        listed = still_there(self._fs, found.path)
        below = list(walk(self._fs, listed))
        sides = {f.path for f in below if names.is_side_file(f.name)} if may_be_streamed(found.name) else set()
        files = (acid_file(f) for f in below if not names.is_side_file(f.name))
        chosen = [f for f in files if self._any_file_name or f.bucket_id >= 0]
        written = (as_far_as_written(self._fs, f) if names.side_file(f.path) in sides else f for f in chosen)
        has_version_file = any(entry.name == names.ACID_VERSION_FILE for entry in listed)
        return AcidDirectory(found.name, found.path, tuple(sorted(written, key=lambda f: f.path)), has_version_file)

    def _originals(self, entry: FileStatus) -> Iterator[AcidFile]:
        if not entry.is_dir:
            yield acid_file(entry)
            return
        for below in still_there(self._fs, entry.path):
            if names.is_hidden(below.name):
                continue
            if below.is_dir and parse_listed(below) is not None:
                raise CorruptFile(
                    f"{below.path} is an ACID directory inside {entry.path}, which is not one",
                    hint="Is this the directory of a partitioned table, declared without PARTITIONED BY?",
                )
            yield from self._originals(below)


def _is_delete(name: BaseName | DeltaName) -> bool:
    return isinstance(name, DeltaName) and name.is_delete


def _are_twins(one: DeltaName, other: DeltaName) -> bool:
    return (one.min_write_id, one.max_write_id, one.statement_id) == (
        other.min_write_id,
        other.max_write_id,
        other.statement_id,
    )


def parse_listed(entry: FileStatus) -> BaseName | DeltaName | None:
    """What a directory's name says.

    Raises:
        CorruptFile: When it starts like a base or delta and does not go on so. To read over it would lose its rows.
    """
    name = names.parse_directory(entry.name)
    if name is None and entry.name.startswith((names.BASE_PREFIX, names.DELTA_PREFIX, names.DELETE_DELTA_PREFIX)):
        raise CorruptFile(f"Not the name of a base or delta directory: {entry.path}")
    return name


def data_format(fs: FileSystem, base: str) -> str | None:
    """The ``dataFormat`` of a base's ``_metadata_acid``: ``compacted``, ``truncated`` or ``dropped``; None without it.

    Raises:
        CorruptFile: When its version or format is unknown, so that the meaning of the base is unknown.
    """
    path = join(base, names.METADATA_FILE)
    try:
        found = json.loads(fs.read_bytes(path))
        version, what = found["thisFileVersion"], found["dataFormat"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} is invalid: {e}") from e
    if version != "0" or what not in ("compacted", "truncated", "dropped"):
        raise CorruptFile(f"{path} has an unknown version or format: {version!r}, {what!r}")
    return str(what)
