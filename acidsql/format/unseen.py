"""What others have done to a directory, unseen by a snapshot: read off the names of what is in it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from acidsql.format.directory import data_format, parse_listed
from acidsql.format.names import BaseName, DeltaName, is_hidden
from acidsql.fs import FileSystem
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True)
class Snapshot:
    """The transactions, and the write ids of a table, that are committed for it."""

    txns: ValidTxnList
    write_ids: ValidWriteIdList

    def has(self, name: BaseName | DeltaName) -> bool:
        """Whether a directory is committed: by its compaction's transaction, or by its last write id."""
        txn = name.visibility_txn
        return self.txns.is_valid(txn) if txn else self.write_ids.is_valid(name.max_write_id)


def removed_rows(
    fs: FileSystem,
    path: str,
    unseen: Collection[int],
    seen: Snapshot,
    now: Snapshot,
    *,
    or_added: bool = False,
    or_compacted: bool = False,
) -> int | None:
    """A write id that has deleted or replaced rows of a directory, or may have; None where all have only added rows.

    Args:
        fs: The file system of ``path``.
        path: The directory that holds bases, deltas and original files.
        unseen: Write ids that were committed since the snapshot, all of whose files are there, or were compacted since.
        seen: What the snapshot sees.
        now: What is committed by now: bases of those who were killed have replaced nothing.
        or_added: Whether one that has added rows counts, too.
        or_compacted: Whether a base that was compacted since counts: a rebalance gives rows other ids.
    """
    named = _named(fs, path)
    bases = [
        name
        for name, base in named
        if isinstance(name, BaseName) and now.has(name) and not (seen.has(name) and _was_there(fs, name, base))
    ]
    if or_compacted and (compacted := [base.write_id for base in bases if base.visibility_txn]):
        return compacted[0]
    deltas = [name for name, _ in named if isinstance(name, DeltaName)]
    for write_id in sorted(unseen):
        covering = [one for one in deltas if one.min_write_id <= write_id <= one.max_write_id]
        if any(or_added or one.is_delete for one in covering):
            return write_id
        if any(base.write_id == write_id and not base.visibility_txn for base in bases):
            return write_id
        # its own files are gone, and what has been compacted since does not tell what was deleted
        if not covering and any(base.write_id >= write_id for base in bases):
            return write_id
    return None


def hidden_by(fs: FileSystem, path: str, write_id: int, committed: ValidWriteIdList) -> int | None:
    """The write id of a base that hides what an open transaction writes into a directory under its own write id, which
    no compaction passes; None where there is none.

    Args:
        fs: The file system of ``path``.
        path: The directory.
        write_id: The transaction's.
        committed: What has been committed by now: other bases, of those who were killed, hide nothing.
    """
    bases = (name.write_id for name, _ in _named(fs, path) if isinstance(name, BaseName))
    return max((base for base in bases if base > write_id and committed.is_valid(base)), default=None)


def _named(fs: FileSystem, path: str) -> list[tuple[BaseName | DeltaName | None, str]]:
    return [(parse_listed(one), one.path) for one in fs.list(path) if one.is_dir and not is_hidden(one.name)]


def _was_there(fs: FileSystem, name: BaseName, base: str) -> bool:
    """Whether a base whose write id a snapshot sees was there at it: Hive 3's compactor makes one for it later."""
    return name.visibility_txn != 0 or data_format(fs, base) != "compacted"
