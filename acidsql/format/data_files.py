"""The data files of an ACID table, as a listing of its directories shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from acidsql.errors import CorruptFile, StorageError
from acidsql.format import names
from acidsql.format.names import BaseName, DeltaName
from acidsql.fs import FileStatus, FileSystem


@dataclass(frozen=True)
class AcidFile:
    """A data file. One of length 0 has no rows and is skipped by readers.

    Attributes:
        path: Full path.
        name: Last component of the path.
        bucket_id: The bucket number in its name, -1 where the name has none.
        length: Size in bytes; of a file with an open streaming writer that of the finished part.
        modified_ns: Time of last modification, nanoseconds since 1970.
        is_prefix: Whether the file has more (or, on HDFS, apparently fewer) than ``length`` bytes: it is being written.
        number: As of :class:`~acidsql.fs.FileStatus`.
    """

    path: str
    name: str
    bucket_id: int
    length: int
    modified_ns: int
    is_prefix: bool = False
    number: int = 0

    @property
    def identity(self) -> tuple[str, int, int, int]:
        """What differs for another file, or other content. Partitions are renamed, so that a path is not enough, and
        two files that one statement writes may have one length and one time."""
        return self.path, self.length, self.modified_ns, self.number


def visible(fs: FileSystem, path: str) -> Iterator[FileStatus]:
    """The visible entries of a directory."""
    return (entry for entry in fs.list(path) if not names.is_hidden(entry.name))


class DirectoryGone(StorageError):
    """A reader finds a directory no longer: readers take no locks."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} does not exist: it was renamed, moved or dropped in the meantime",
            hint="Run it again. Is its disk mounted? If a partition's was deleted by hand, use DROP PARTITION.",
        )


def still_there(fs: FileSystem, path: str) -> list[FileStatus]:
    """What there is in a directory that its parent has listed: nothing is another answer than that it is gone.

    Raises:
        DirectoryGone: When it is gone.
    """
    found = fs.list(path)
    if not found and not fs.exists(path):
        raise DirectoryGone(path)
    return found


def require_there(fs: FileSystem, path: str) -> None:
    """Check that the directory of a table or partition is where the metastore says.

    One that is away for now, as of a disk that is not mounted, would look as if it had nothing in it.

    Raises:
        DirectoryGone: When it is not.
    """
    if not fs.exists(path):
        raise DirectoryGone(path)


def walk(fs: FileSystem, entries: Iterable[FileStatus]) -> Iterator[FileStatus]:
    """All files among some entries, and below them. Raises: DirectoryGone."""
    for entry in entries:
        if names.is_hidden(entry.name):
            continue
        if entry.is_dir:
            yield from walk(fs, still_there(fs, entry.path))
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
    """A streamed file up to the length in its side file (``AcidUtils.getLogicalLength``).

    Raises:
        CorruptFile: When the side file has no length: committed rows could be missed.
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
    bucket = names.parse_bucket_id(entry.name)
    return AcidFile(entry.path, entry.name, bucket, entry.length, entry.modified_ns, number=entry.number)
