"""The data files of an ACID table, as a listing of its directories shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from acidsql.errors import CorruptFile
from acidsql.format import names
from acidsql.format.names import BaseName, DeltaName
from acidsql.fs import FileStatus, FileSystem


@dataclass(frozen=True)
class AcidFile:
    """A data file. Of length 0 it holds no rows; readers pass over it.

    Attributes:
        path: Full path.
        name: Last component of the path.
        bucket_id: The bucket number in its name, -1 where the name has none.
        length: Size in bytes; of a streamed file that is still being written, as far as it is finished.
        modified_ns: Time of last modification, nanoseconds since 1970.
        is_prefix: Whether more (or, on HDFS, seemingly less) than ``length`` bytes are there: a writer is at work.
    """

    path: str
    name: str
    bucket_id: int
    length: int
    modified_ns: int
    is_prefix: bool = False


def visible(fs: FileSystem, path: str) -> Iterator[FileStatus]:
    """The entries of a directory but the hidden ones."""
    return (entry for entry in fs.list(path) if not names.is_hidden(entry.name))


def walk(fs: FileSystem, entries: Iterable[FileStatus]) -> Iterator[FileStatus]:
    """All files among some entries, and below them."""
    for entry in entries:
        if names.is_hidden(entry.name):
            continue
        if entry.is_dir:
            yield from walk(fs, fs.list(entry.path))
        else:
            yield entry


def may_be_streamed(name: BaseName | DeltaName) -> bool:
    """Whether side files count in a directory (``ParsedDeltaLight.mayContainSideFile``)."""
    return (
        isinstance(name, DeltaName)
        and not name.is_delete
        and name.min_write_id != name.max_write_id
        and not name.visibility_txn
    )


def as_far_as_written(fs: FileSystem, file: AcidFile) -> AcidFile:
    """A streamed file as far as its side file says that it is written (``AcidUtils.getLogicalLength``).

    Raises:
        CorruptFile: When the side file says nothing: whatever is read then may be less than what was committed.
    """
    side = names.side_file(file.path)
    try:
        content = fs.read_bytes(side)
    except FileNotFoundError:  # the writer has closed the file since the listing
        return file
    whole = len(content) // 8 * 8  # the last number may be half written
    length = int.from_bytes(content[whole - 8 : whole], "big", signed=True) if whole else -1
    if length < 0:
        raise CorruptFile(f"{side} exists, but contains no length", hint="Run the statement again later.")
    return file if length == file.length > 0 else replace(file, length=length, is_prefix=True)


def acid_file(entry: FileStatus) -> AcidFile:
    """A listed file as a data file."""
    return AcidFile(entry.path, entry.name, names.parse_bucket_id(entry.name), entry.length, entry.modified_ns)
