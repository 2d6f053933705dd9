"""Staging and publishing: what a statement writes is invisible until it is moved to its place, directory by directory.

A statement writes below ``_tmp_<transaction>_<uuid>`` in the table's directory, a name that every engine skips.
:meth:`Staging.publish` renames each finished directory to its final name; the write id is still open then, so nobody
sees it before the commit. :meth:`Staging.discard` removes whatever of it is there, staged or published.

That is why it need not be one step. An object store renames a directory file by file (see
:class:`acidsql.fs.protocol.FileSystem`), as Hive's own direct inserts write theirs file by file into the final
directory: what counts is that the commit comes after the last file, and that readers choose directories by their write
id alone. An error in the middle leaves files in both places, and both are what :meth:`Staging.discard` removes; what a
killed process leaves belongs to a write id that the metastore will count as aborted. The cleaner removes the staging
directory of a transaction that has ended before it forgets the transaction: whoever was only suspended, and goes on
then, has nothing left to publish.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from acidsql import fs
from acidsql.errors import AcidError, StorageError, UnsupportedError
from acidsql.format.data_files import require_there
from acidsql.format.names import BaseName, DeltaName, bucket_file, is_hidden, original_file, staging_name
from acidsql.format.orc import read_keys
from acidsql.format.schema import KEY_COLUMNS, VERSION_FILE, VERSION_FILE_CONTENT
from acidsql.metastore.model import RowChange, Table
from acidsql.row_set import RowSet

_SEEN_SECONDS = 1.0
"""How often a transaction looks whether its table's directory is still there."""


@dataclass(frozen=True)
class StagedDirectory:
    """A directory of events on its way: where it is written, and below which partition it will stand.

    ``partition`` is a partition name (``p=1/q=even``), empty for a table without partitions.
    """

    partition: str
    name: BaseName | DeltaName
    path: str
    events: bool = True
    """Whether its files hold events; bare rows otherwise, as those of insert-only tables."""

    def bucket(self, number: int) -> str:
        """Path of a bucket's file in it."""
        return fs.join(self.path, bucket_file(number) if self.events else original_file(number))


@dataclass(frozen=True)
class StagedPart:
    """What another process has staged for a transaction: its directory, and the directories of events in it, with the
    number of their events."""

    path: str
    directories: tuple[tuple[StagedDirectory, int], ...]


class Staging:
    """The directories that the statements of one transaction write to one table.

    Args:
        table: The table.
        txn_id: The transaction.
        sync: Whether what is published survives a power cut (rule 9).

    Raises:
        DirectoryGone: When the table's directory is away, now or at a call of :meth:`directory`.
    """

    def __init__(self, table: Table, txn_id: int, *, sync: bool = True) -> None:
        self.table = table
        self.fs, self._root = fs.resolve(table.location)
        self._sync = sync
        self._events = table.is_full_acid
        """Whether its files hold events; those of an insert-only table have bare rows."""
        self.path = fs.join(self._root, staging_name(txn_id))
        self._directories: dict[tuple[str, BaseName | DeltaName], StagedDirectory] = {}
        self.without_rows: set[str] = set()
        """The names of partitions that are going to be there although nothing is written to them."""
        self._published: list[str] = []
        self._taken: list[str] = []
        """Directories of other processes, for which this one answers."""
        self.registered: Mapping[str, str] = {}
        """Where the partitions are, by name, that were registered when it was published, or have been since."""
        self.made: frozenset[str] = frozenset()
        """The names of those that were registered for it, or that no transaction had committed: they stay where what it
        has published is removed again."""
        self._rows: Counter[StagedDirectory] = Counter()
        self._seen_at = -math.inf
        self._require_root()

    def wrote(self, directory: StagedDirectory, events: int) -> None:
        """Count the events of a file that is in a staged directory."""
        self._rows[directory] += events

    def handed_over(self) -> StagedPart:
        """All of it for the process that publishes it; this one is done with it."""
        return StagedPart(self.path, tuple((d, self._rows[d]) for d in self._directories.values()))

    def take(self, part: StagedPart) -> None:
        """Publish, or discard, what another process has staged, too: directories of other names than those of here."""
        self._taken.append(part.path)
        for directory, events in part.directories:
            key = (directory.partition, directory.name)
            assert key not in self._directories, f"{directory.name} of {directory.partition!r} was staged twice"
            self._directories[key] = directory
            self._rows[directory] += events

    @property
    def changes(self) -> dict[str, RowChange]:
        """What was written, by partition."""
        made = dict.fromkeys(self.partitions, RowChange())
        for place in self._directories.values():
            seen, rows, name = made[place.partition], self._rows[place], place.name
            if isinstance(name, DeltaName) and name.is_delete:
                seen = replace(seen, deleted=seen.deleted + rows)
            else:
                overwrites = seen.overwrites or isinstance(name, BaseName)
                seen = replace(seen, inserted=seen.inserted + rows, overwrites=overwrites)
            made[place.partition] = seen
        return made

    @property
    def partitions(self) -> list[str]:
        """Names of the partitions written to, sorted."""
        return sorted({d.partition for d in self._directories.values()} | self.without_rows)

    def deleted_rows(self) -> RowSet:
        """The rows that the staged events delete. To be asked before it is published."""
        made = RowSet()
        for place in self._directories.values():
            if isinstance(place.name, DeltaName) and place.name.is_delete:
                for file in self.fs.list(place.path):
                    if not is_hidden(file.name):
                        keys = read_keys(self.fs, file.path)
                        made |= RowSet.of(place.partition, *(keys[name].to_numpy() for name in KEY_COLUMNS))
        return made

    def directory(self, partition: str, name: BaseName | DeltaName) -> StagedDirectory:
        """The staged directory of that name, made with its version file at the first call."""
        key = (partition, name)
        if key not in self._directories:
            self._require_root()
            # not below the partition's name: to make and remove its directory takes as long as to write a small file
            path = fs.join(self.path, f"{name}-{len(self._directories)}" if partition else str(name))
            if self._events:
                self.fs.write_bytes(fs.join(path, VERSION_FILE), VERSION_FILE_CONTENT)
            else:
                self.fs.mkdirs(path, durable=False)
            self._directories[key] = StagedDirectory(partition, name, path, self._events)
        return self._directories[key]

    def _require_root(self) -> None:
        """Look whether the table's directory is there: a new one would be in the way of what comes back."""
        now = time.monotonic()
        if now - self._seen_at > _SEEN_SECONDS:
            require_there(self.fs, self._root)
            self._seen_at = now

    def publish(self, locations: Mapping[str, str] | None = None) -> None:
        """Move every directory to its place.

        1. Make the contents durable, all in one pass: files of the driver's and of Spark's tasks alike.
        2. Rename each directory.
        3. Make the new names durable, and with them those of the directories above, up to the table's: whoever made a
           partition's directory may not have done so yet.

        Args:
            locations: Where registered partitions are, by name: it need not be their usual place below the table.

        Raises:
            StorageError: When one cannot be moved, or something of that name is there: a write id was used twice.
            UnsupportedError: When a partition is on another file system than its table.
        """
        written = set(self.partitions)
        self.registered = {name: place for name, place in (locations or {}).items() if name in written}
        if self._sync:
            self.fs.sync(trees=[d.path for d in self._directories.values()])
        named: dict[str, None] = {}
        for directory in self._directories.values():
            parent = self._parent(directory.partition, locations or {})
            above = fs.up_to(parent, self._root)
            if directory.partition and not self.fs.exists(parent):
                self.fs.mkdirs(parent, durable=len(above) == 1)
            named |= dict.fromkeys(above)
            target = fs.join(parent, str(directory.name))
            if self.fs.exists(target):
                raise StorageError(f"Cannot publish {target}: it already exists, a write id was used twice")
            self._published.append(target)  # before the rename: an error of it does not tell whether it was done
            try:
                self.fs.rename(directory.path, target)
            except FileNotFoundError:
                if not self.fs.exists(directory.path):
                    raise
                # whoever had made it, by ADD PARTITION, has failed and taken it back
                self.fs.mkdirs(parent, durable=self._sync)
                self.fs.rename(directory.path, target)
        if self._sync:
            self.fs.sync(directories=named)
        for path in (self.path, *self._taken):
            self.fs.delete(path)

    def _parent(self, partition: str, locations: Mapping[str, str]) -> str:
        """The directory of a partition, or of the table."""
        if partition not in locations:
            return fs.join(self._root, partition) if partition else self._root
        filesystem, path = fs.resolve(locations[partition])
        if filesystem.root != self.fs.root:
            raise UnsupportedError(f"Partition {partition} is in {path}, on another file system than its table")
        return path

    @property
    def is_published(self) -> bool:
        """Whether something of it may have been moved to its place."""
        return bool(self._published)

    @property
    def published_file(self) -> str | None:
        """A data file in a directory that was moved to its place; None where there is none."""
        listed = (entry for directory in self._published for entry in self.fs.list(directory))
        return next((entry.path for entry in listed if not entry.is_dir and not is_hidden(entry.name)), None)

    def discard(self) -> bool:
        """Remove everything, staged or published.

        The directory of a partition stays, as in Hive: by now it may be registered, and Hive fails on a partition whose
        directory is not there; or another writer may be about to publish into it.

        Returns:
            Whether all of it is gone, as far as can be told: where its parent is not there, a directory may have moved
            with it. What is left belongs to an aborted write id and is invisible.
        """
        gone = [self._delete(path) for path in [*self._published, self.path, *self._taken]]
        return all(gone) and all(self._is_there(path.rpartition("/")[0]) for path in self._published)

    def discard_staged(self) -> None:
        """Remove what is staged and not published: a reader has never seen it."""
        for path in (self.path, *self._taken):
            self._delete(path)

    def _is_there(self, path: str) -> bool:
        try:
            return self.fs.exists(path)
        except AcidError:
            return False

    def _delete(self, path: str) -> bool:
        """Remove a directory; whether it is gone."""
        try:
            self.fs.delete(path)
        except AcidError:
            return False
        return True
