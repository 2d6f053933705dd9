"""The directory of a table, partition or database that a statement makes, and takes back when it fails."""

from __future__ import annotations

import logging

from acidsql import fs
from acidsql.errors import AcidError
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)


class NewDirectory:
    """A directory that is made before the metastore knows its owner, and that another session may make just as well.

    1. :meth:`make` it, unless it exists: that it can be made is known before anything is registered.
    2. After the registration :meth:`make` it again: a failed statement of another session may have removed it, being
       empty and nobody's, in between.
    3. After an error :meth:`take_back` removes it only where this statement made it, it is empty, and the metastore
       knows no owner; nobody can become one meanwhile. A Hive Metastore cannot be asked: there it stays, empty.

    Args:
        metastore: The metastore.
        location: The directory.
    """

    def __init__(self, metastore: Metastore, location: str) -> None:
        self._metastore = metastore
        self._fs, self.path = fs.resolve(location)
        self._was_missing = False

    def make(self) -> None:
        """Make it, unless it exists. Raises: StorageError."""
        if not self._fs.exists(self.path):
            self._was_missing = True
            self._fs.mkdirs(self.path)

    def take_back(self) -> None:
        """Remove it where nobody has anything of it. That it cannot be removed is no other error than the first one."""
        if not self._was_missing:
            return
        try:
            with self._metastore.alone():
                if not self._metastore.has_owner(self.path):
                    self._fs.delete_if_empty(self.path)
        except AcidError as e:
            logger.warning("the empty directory %s stays: %s", self.path, e)
