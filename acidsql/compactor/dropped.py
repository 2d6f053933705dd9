"""Removal of the directories of dropped tables and partitions, whatever is killed.

A store that does not touch files forgets a table or partition and records its directory in one step
(:meth:`~acidsql.metastore.protocol.Catalog.dropped_directories`). From then on it is dropped, and what is left to do is
done by whoever comes first: the statement that dropped it, one that needs the place, or the housekeeper.

1. Put the directory aside: rename it to a hidden name that nothing else has, while nobody else changes the store and
   the record says that it still stands there. So that happens once, and what others make there later is not touched.
2. Record that; the place is free from now on. The store gives it to nobody before.
3. Remove what was put aside, and forget the record.

Where a rename is not one step (an object store), the files are removed in step 1 already.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from acidsql import fs
from acidsql.errors import AcidError
from acidsql.format.names import STAGING_PREFIX
from acidsql.metastore.model import DroppedDirectory
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)

TRIES = 10
"""Two that remove the same files get in each other's way, and each may end early."""


def free_place(metastore: Metastore, location: str) -> None:
    """:func:`free_places` of one."""
    free_places(metastore, [location])


def free_places(metastore: Metastore, locations: Iterable[str]) -> None:
    """Have no directory of what was dropped stand at some places, above or below them.

    Raises:
        StorageError: When one cannot be moved.
    """
    paths = [fs.absolute(one) for one in locations]
    for dropped in metastore.dropped_directories():
        if any(fs.overlap(fs.absolute(dropped.location), path) for path in paths):
            _free(metastore, dropped)
            _remove(metastore, dropped)


def remove_dropped(metastore: Metastore) -> None:
    """Remove the directories of all that was dropped. What cannot be removed is invisible, and waits for the next."""
    for dropped in metastore.dropped_directories():
        try:
            _free(metastore, dropped)
        except AcidError as e:
            logger.warning("the files of what was dropped stay in %s for now: %s", dropped.location, e)
        else:
            _remove(metastore, dropped)


def _aside(dropped: DroppedDirectory) -> str:
    """The hidden name beside its place."""
    return fs.join(fs.absolute(dropped.location).rpartition("/")[0], f"{STAGING_PREFIX}{dropped.token}")


def _free(metastore: Metastore, dropped: DroppedDirectory) -> None:
    """Steps 1 and 2."""
    if dropped.is_aside:
        return
    with metastore.alone():
        if any(d.id == dropped.id and not d.is_aside for d in metastore.dropped_directories()):
            _put_aside(fs.absolute(dropped.location), _aside(dropped))
    metastore.set_aside(dropped)


def _put_aside(path: str, aside: str) -> None:
    """Where something has the hidden name already, somebody was killed right after the rename."""
    filesystem = fs.resolve(path)[0]
    if filesystem.exists(aside) or not filesystem.exists(path):
        return
    if fs.renames_in_one_step(path):
        filesystem.rename(path, aside)
    else:
        filesystem.delete(path)


def _remove(metastore: Metastore, dropped: DroppedDirectory) -> None:
    """Step 3."""
    aside = _aside(dropped)
    filesystem = fs.resolve(aside)[0]
    try:
        for _ in range(TRIES):
            filesystem.delete(aside)
            if not filesystem.exists(aside):
                metastore.forget_dropped(dropped)
                return
    except AcidError as e:
        logger.warning("the files of what was dropped stay in %s for now: %s", aside, e)
