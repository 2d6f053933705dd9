"""What others have done to a directory, unseen by a snapshot: read off the names of what is in it."""

from __future__ import annotations

from collections.abc import Collection

from acidsql.format.directory import parse_listed
from acidsql.format.names import BaseName, DeltaName, is_hidden
from acidsql.fs import FileSystem


def removed_rows(fs: FileSystem, path: str, unseen: Collection[int]) -> int | None:
    """A write id that has deleted or replaced rows of a directory, or may have; None where all have only added rows.

    Args:
        fs: The file system of ``path``.
        path: The directory that holds bases, deltas and original files.
        unseen: Write ids that were committed since the snapshot, all of whose files are there, or were compacted since.
    """
    names = [parse_listed(entry) for entry in fs.list(path) if entry.is_dir and not is_hidden(entry.name)]
    deltas = [name for name in names if isinstance(name, DeltaName)]
    bases = [name for name in names if isinstance(name, BaseName)]
    for write_id in sorted(unseen):
        covering = [one for one in deltas if one.min_write_id <= write_id <= one.max_write_id]
        if any(one.is_delete for one in covering):
            return write_id
        if any(base.write_id == write_id and not base.visibility_txn for base in bases):
            return write_id
        # its own files are gone, and a base that is newer than the snapshot does not tell what was deleted
        if not covering and any(base.write_id >= write_id for base in bases):
            return write_id
    return None
