"""The directory of a table, partition or database that a statement creates, and removes if it fails."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from acidsql import fs
from acidsql.errors import AcidError
from acidsql.metastore.model import Table
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)


class CreatedDirectory:
    """A directory that is created before its owner is registered, and that another session may create as well.

    1. :meth:`make` it, unless it exists, so that creation errors occur before anything is registered.
    2. After the registration :meth:`make` it again: a failed statement of another session may have removed it in
       between, as an empty directory without owner.
    3. After an error :meth:`take_back` removes it only if this statement created it, it is empty, and the metastore has
       no owner for it; no owner can be registered meanwhile. With a Hive Metastore, which has no call for that, the
       empty directory stays.

    Args:
        metastore: The metastore.
        location: The directory.
    """

    def __init__(self, metastore: Metastore, location: str) -> None:
        self._metastore = metastore
        self._fs, self.path = fs.resolve(location)
        self._was_missing = False

    def make(self) -> None:
        """Create it, unless it exists. Raises: StorageError."""
        if not self._fs.exists(self.path):
            self._was_missing = True
            self._fs.mkdirs(self.path)

    @property
    def is_own(self) -> bool:
        """Whether this statement has created it."""
        return self._was_missing

    def take_back(self) -> None:
        """Remove it if no one else uses it. A failure is only logged, so that the original error is raised."""
        if not self._was_missing:
            return
        try:
            remove_empty(self._metastore, self.path)
        except AcidError as e:
            logger.warning("the empty directory %s could not be removed: %s", self.path, e)


def remove_empty(metastore: Metastore, path: str) -> bool:
    """Remove a directory that is empty and nobody's; no owner can be registered meanwhile.

    Returns:
        Whether there is none now.

    Raises:
        StorageError: When it cannot be removed.
    """
    filesystem = fs.resolve(path)[0]
    with metastore.alone():
        return not filesystem.exists(path) or (not metastore.has_owner(path) and filesystem.delete_if_empty(path))


@contextmanager
def created_directories(metastore: Metastore, locations: Iterable[str], *, of: Table | None = None) -> Iterator[None]:
    """The directories of what the block registers: created before it and checked after it; removed if it fails.

    Args:
        metastore: The metastore.
        locations: The directories.
        of: The table whose partitions they are: somebody else may have made one, or one above it, and not have synced
            its name yet.

    Raises:
        StorageError: When one cannot be created.
    """
    directories = [CreatedDirectory(metastore, location) for location in locations]
    try:
        for directory in directories:
            directory.make()
        if of is not None and directories:
            filesystem, root = fs.resolve(of.location)
            parents = (d.path.rpartition("/")[0] for d in directories if d.path.startswith(f"{root}/"))
            filesystem.sync(directories=dict.fromkeys(above for parent in parents for above in fs.up_to(parent, root)))
        yield
        for directory in directories:
            directory.make()
    except BaseException:
        for directory in directories:
            directory.take_back()
        raise
