"""Crash-safe removal of the directories of dropped tables and partitions.

A store that does not manage files removes a table or partition and records its directory in one step
(:meth:`~acidsql.metastore.protocol.Catalog.dropped_directories`). From then on it is dropped, and the rest is done by
whichever comes first: the statement that dropped it, one that needs the location, or the housekeeper.

1. Rename the directory to a unique hidden name, while the store is locked against changes and the record says that the
   directory is still in place. So this happens once, and directories created there later are not touched.
2. Sync the rename and record it; from now on the location is free. The store does not reuse it before.
3. Remove the renamed directory, and delete the record.

Where a rename is not atomic (an object store), step 1 already removes the files. It does so, too, with those of a table
that was never finished in a directory that had been there before it: the directory stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from acidsql import fs
from acidsql.errors import AcidError
from acidsql.format.names import STAGING_PREFIX, staging_txn, write_ids_of
from acidsql.metastore.model import DroppedDirectory, WrittenBy
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)

TRIES = 10
"""Concurrent removals of the same files interfere, and each may fail early."""
AT_ONCE = 100
"""Maximum number of directories renamed under one lock of the store."""


def free_place(metastore: Metastore, location: str) -> None:
    """:func:`free_places` of one."""
    free_places(metastore, [location])


def free_places(metastore: Metastore, locations: Iterable[str]) -> None:
    """Remove directories of dropped tables and partitions at, above or below some locations.

    Raises:
        StorageError: When one cannot be moved.
    """
    dropped = metastore.dropped_directories()
    paths = [fs.absolute(one) for one in locations] if dropped else []
    _remove_all(metastore, [d for d in dropped if any(fs.overlap(_place(d), path) for path in paths)], is_needed=True)


def remove_dropped(metastore: Metastore) -> None:
    """Remove the directories of everything dropped. What cannot be removed is invisible, and retried later."""
    _remove_all(metastore, metastore.dropped_directories(), is_needed=False)


def _place(dropped: DroppedDirectory) -> str:
    return fs.absolute(dropped.location)


def _aside(dropped: DroppedDirectory) -> str:
    """The hidden name next to its location."""
    return fs.join(_place(dropped).rpartition("/")[0], f"{STAGING_PREFIX}{dropped.token}")


def _remove_all(metastore: Metastore, dropped: Sequence[DroppedDirectory], *, is_needed: bool) -> None:
    """All steps. ``is_needed``: a directory that stays in place is an error."""
    for start in range(0, len(dropped), AT_ONCE):
        some = dropped[start : start + AT_ONCE]
        problems = _free(metastore, some)
        removed = [d for d in some if d not in problems and _is_removed(d)]
        if removed:
            metastore.forget_dropped(removed)
        if problems and is_needed:
            raise next(iter(problems.values()))


def _free(metastore: Metastore, dropped: Sequence[DroppedDirectory]) -> dict[DroppedDirectory, AcidError]:
    """Steps 1 and 2; returns the directories that stay in place, with the errors."""
    problems = {}
    if all(d.is_aside for d in dropped):
        return {}
    with metastore.alone():
        standing = {d for d in metastore.dropped_directories() if not d.is_aside}
        for one in standing.intersection(dropped):
            try:
                if one.made_by is None:
                    _put_aside(_place(one), _aside(one))
                else:
                    _remove_files(_place(one), one.made_by)
            except AcidError as e:
                logger.warning("dropped files could not be removed yet from %s: %s", one.location, e)
                problems[one] = e
    _sync([d for d in dropped if d not in problems])
    metastore.set_aside([d for d in dropped if d not in problems])
    return problems


def _put_aside(path: str, aside: str) -> None:
    """If the hidden name already exists, a session was killed right after the rename."""
    filesystem = fs.resolve(path)[0]
    if filesystem.exists(aside) or not filesystem.exists(path):
        return
    if fs.renames_in_one_step(path):
        try:
            filesystem.rename(path, aside)
        except AcidError as e:  # its parent is read-only, or it is a mount point
            logger.info("%s is removed in place: %s", path, e)
        else:
            return
    filesystem.delete(path)


def _remove_files(path: str, made_by: WrittenBy) -> None:
    """Remove what a transaction has put into a directory, and nothing else.

    What is staged goes first: whoever is about to publish it, however long it was suspended, then cannot do so.

    Raises:
        StorageError: When something cannot be removed.
    """
    filesystem = fs.resolve(path)[0]
    for entry in filesystem.list(path):
        if staging_txn(entry.name) == made_by.txn_id:
            filesystem.delete(entry.path)
    if made_by.write_id is not None:
        _remove_written(filesystem, path, made_by.write_id)


def _remove_written(filesystem: fs.FileSystem, path: str, write_id: int) -> None:
    """Remove what was published under a write id, and the directories of partitions that have nothing else."""
    for entry in filesystem.list(path):
        if not entry.is_dir:
            continue
        if write_ids_of(entry.name) == {write_id}:
            filesystem.delete(entry.path)
        elif "=" in entry.name:
            _remove_written(filesystem, entry.path, write_id)
            filesystem.delete_if_empty(entry.path)  # also where the statement itself has removed what it published


def _sync(dropped: Iterable[DroppedDirectory]) -> None:
    """Sync the renames before the store records them. Raises: StorageError.

    Otherwise the directories could reappear after a power failure, at a location that may be reused by then.
    """
    changed = dict.fromkeys(_place(d) if d.made_by is not None else _place(d).rpartition("/")[0] for d in dropped)
    for directory in changed:
        filesystem = fs.resolve(directory)[0]
        if filesystem.exists(directory):
            filesystem.sync(directories=[directory])


def _is_removed(dropped: DroppedDirectory) -> bool:
    """Step 3, except for the record."""
    aside = _aside(dropped)
    filesystem = fs.resolve(aside)[0]
    try:
        for _ in range(TRIES):
            filesystem.delete(aside)
            if not filesystem.exists(aside):
                return True
    except AcidError as e:
        logger.warning("dropped files could not be removed yet from %s: %s", aside, e)
    return False
