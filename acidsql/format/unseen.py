"""What others have done to a directory, unseen by a snapshot: read off the names of what is in it."""

from __future__ import annotations

from collections.abc import Collection

from acidsql.format.directory import data_format, parse_listed
from acidsql.format.names import BaseName, DeltaName, is_hidden
from acidsql.fs import FileSystem
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


def removed_rows(
    fs: FileSystem,
    path: str,
    unseen: Collection[int],
    seen: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    or_added: bool = False,
) -> int | None:
    """A write id that has deleted or replaced rows of a directory, or may have; None where all have only added rows.

    Args:
        fs: The file system of ``path``.
        path: The directory that holds bases, deltas and original files.
        unseen: Write ids that were committed since the snapshot, all of whose files are there, or were compacted since.
        seen: The write ids that the snapshot sees.
        txns: The transactions that it sees.
        or_added: Whether one that has added rows counts, too.
    """
    named = _named(fs, path)
    bases = [name for name, base in named if isinstance(name, BaseName) and not _is_seen(fs, name, base, seen, txns)]
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


def _is_seen(fs: FileSystem, name: BaseName, base: str, seen: ValidWriteIdList, txns: ValidTxnList) -> bool:
    """Whether a base was there at the snapshot: what has a lower write id is not in it, and is hidden."""
    if name.visibility_txn:
        return txns.is_valid(name.visibility_txn)
    return seen.is_valid(name.write_id) and data_format(fs, base) != "compacted"
