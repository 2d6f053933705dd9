"""What acidsql asks of a file system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, Protocol


@dataclass(frozen=True)
class FileStatus:
    """One entry of a directory listing.

    Attributes:
        path: Full path, in the file system's own form.
        name: Last component of the path.
        is_dir: Whether it is a directory.
        length: Size in bytes, 0 for a directory.
        modified_ns: Time of last modification, nanoseconds since 1970.
        number: By which a local disk knows it as long as it exists, whatever its path (``st_ino``); 0 elsewhere.
    """

    path: str
    name: str
    is_dir: bool
    length: int
    modified_ns: int
    number: int = 0


class FileSystem(Protocol):
    """What a file system can do.

    Every method raises :class:`~acidsql.errors.StorageError` when the file system refuses, and ``FileNotFoundError``
    where the path does not exist, unless it says otherwise.

    To rename a directory is one step on local disks and on HDFS. An object store (``s3a://`` and the like) has no
    directories: it copies file after file, others see that half done, and an error leaves parts of it in both places.
    So only what no snapshot sees may be renamed, and whoever cleans up after an error looks in both places.

    What is written on a local disk survives a power cut only after :meth:`sync`, and so does the new name after a
    rename. Other file systems make names durable themselves: HDFS by its edit log, object stores by their answer.

    Attributes:
        root: Scheme and authority (``hdfs://host:8020``), empty for the local one. A rename does not leave them.
    """

    @property
    def root(self) -> str: ...

    def list(self, path: str) -> list[FileStatus]:
        """The entries of a directory, including hidden ones, sorted by name; empty if it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        ...

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        """Create a directory and its parents; no effect if it already exists.

        Args:
            path: The directory.
            durable: Whether a power cut must not undo it; False where the caller syncs, or where it does not matter.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory; the target must not exist, and its parent must. Never moves into a directory."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file or a whole directory; nothing happens where it is gone already."""
        ...

    def delete_if_empty(self, path: str) -> bool:
        """Remove a directory if it is empty; returns whether it was removed. Files added concurrently are kept."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file."""
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a new file, creating its parent directory if missing. It is durable after :meth:`sync`."""
        ...

    def open_read(self, path: str) -> BinaryIO:
        """A file opened for reading at any offset."""
        ...

    def open_write(self, path: str) -> BinaryIO:
        """Open a new file for writing and create missing parent directories; durable after :meth:`sync`.

        Raises:
            StorageError: Also when the file exists already; some file systems report this only on close.
        """
        ...

    def sync(self, trees: Iterable[str] = (), directories: Iterable[str] = ()) -> None:
        """Make durable what is at some paths; what a Hadoop file system has closed is as durable as it makes it.

        Args:
            trees: Directories with all that is below them: contents of files, and names. A tree's own name is in its
                parent, which is one of ``directories`` once the tree is at its place.
            directories: Directories whose names are made durable: what was created in them, or renamed into them.
        """
        ...
