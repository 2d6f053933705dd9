"""``acidsql dump PATH``: the contents of an ACID file or directory as JSON lines, without Spark, Java or metastore."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from acidsql.format.directory import AcidDirectory, AcidState, acid_state
from acidsql.format.names import DeltaName, is_hidden, parse_directory
from acidsql.format.orc import read_events
from acidsql.fs import FileStatus, FileSystem, join, resolve
from acidsql.valid_ids import NO_OPEN_ID, ValidTxnList, ValidWriteIdList

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def dump(path: str, out: SupportsWrite[str]) -> None:
    """Print a file, a base or delta directory, or a table directory.

    A file and a base or delta directory are printed event by event, with the names of the file's columns; a file
    without ACID columns is printed row by row. For a table directory, partitioned or not, the state is printed: a line
    for each directory and file below it with its kind (``base``, ``delta``, ``delete_delta``, ``original``,
    ``obsolete``), its number of data files and their bytes. Without a metastore it is unknown which transactions are
    open or aborted: all write ids in the names count as committed.

    Raises:
        FileNotFoundError: When ``path`` does not exist.
        CorruptFile: When a file or a name is invalid.
        StorageError: When something cannot be read.
    """
    fs, root = resolve(path)
    entry = _entry(fs, root)
    if entry is None:
        raise FileNotFoundError(f"{path} does not exist")
    is_table = entry.is_dir and parse_directory(entry.name) is None
    for line in _state(fs, root) if is_table else _events(fs, entry):
        out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def _entry(fs: FileSystem, path: str) -> FileStatus | None:
    """The file or directory at a path; None if it does not exist."""
    parent, _, name = path.rpartition("/")
    if not name:
        return FileStatus(path, name, True, 0, 0)
    return next((e for e in fs.list(parent or "/") if e.name == name), None)


def _events(fs: FileSystem, entry: FileStatus) -> Iterator[dict[str, Any]]:
    """The events of a file, or of the files of a base or delta directory."""
    for file in _walk(fs, entry):
        if file.length or not entry.is_dir:
            for event in read_events(fs, file.path):
                yield event.to_dict()


# --- state -----------------------------------------------------------------------------------------------------------


def _state(fs: FileSystem, root: str) -> Iterator[dict[str, Any]]:
    txns = ValidTxnList(NO_OPEN_ID)
    for directory in _state_directories(fs, root):
        state = acid_state(fs, directory, ValidWriteIdList("", NO_OPEN_ID), txns)
        for line in _lines(fs, state):
            yield {**line, "path": _below(root, line["path"])}


def _state_directories(fs: FileSystem, path: str) -> Iterator[str]:
    """The directories that hold bases and deltas: the table's own, or those of its partitions (``p=1/q=2``)."""
    entries = [e for e in fs.list(path) if not is_hidden(e.name)]
    partitions = [e for e in entries if e.is_dir and "=" in e.name]
    if not partitions:
        yield path
    for partition in partitions:
        yield from _state_directories(fs, partition.path)


def _lines(fs: FileSystem, state: AcidState) -> Iterator[dict[str, Any]]:
    for directory in [*([state.base] if state.base else []), *state.deltas]:
        files = directory.files
        yield _line(_kind(directory), directory.path, len(files), sum(f.length for f in files))
    for file in state.originals:
        yield _line("original", file.path, 1, file.length)
    for path in state.obsolete:
        yield _line("obsolete", path, *_size(fs, path))


def _kind(directory: AcidDirectory) -> str:
    if isinstance(directory.name, DeltaName):
        return "delete_delta" if directory.name.is_delete else "delta"
    return "base"


def _line(kind: str, path: str, files: int, size: int) -> dict[str, Any]:
    return {"kind": kind, "path": path, "files": files, "bytes": size}


def _size(fs: FileSystem, path: str) -> tuple[int, int]:
    """Data files and their bytes, of a directory or of a single file."""
    entry = _entry(fs, path)
    files = [] if entry is None else list(_walk(fs, entry))
    return len(files), sum(f.length for f in files)


def _walk(fs: FileSystem, entry: FileStatus) -> Iterator[FileStatus]:
    """The file itself, or all visible files below a directory."""
    if not entry.is_dir:
        yield entry
        return
    for below in fs.list(entry.path):
        if not is_hidden(below.name):
            yield from _walk(fs, below)


def _below(root: str, path: str) -> str:
    """A path relative to the table's directory."""
    return path[len(join(root, "")) :]
