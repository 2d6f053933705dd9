"""Removal of the directories of dropped tables and partitions, whatever is killed.

A store that does not touch files forgets a table or partition and records its directory in one step
(:meth:`~acidsql.metastore.protocol.Catalog.dropped_directories`). From then on it is dropped, and what is left to do is
done by whoever comes first: the statement that dropped it, one that needs the place, or the housekeeper.

1. Put the directory aside: rename it to a hidden name that nothing else has, while nobody else changes the store and
   the record says that it still stands there. So that happens once, and what others make there later is not touched.
2. Make that durable and record it; the place is free from now on. The store gives it to nobody before.
3. Remove what was put aside, and forget the record.

Where a rename is not one step (an object store), the files are removed in step 1 already.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from acidsql import fs
from acidsql.errors import AcidError
from acidsql.format.names import STAGING_PREFIX
from acidsql.metastore.model import DroppedDirectory
from acidsql.metastore.protocol import Metastore

logger = logging.getLogger(__name__)

TRIES = 10
"""Two that remove the same files get in each other's way, and each may end early."""
AT_ONCE = 100
"""The most directories that are put aside while nobody else changes the store."""


def free_place(metastore: Metastore, location: str) -> None:
    """:func:`free_places` of one."""
    free_places(metastore, [location])


def free_places(metastore: Metastore, locations: Iterable[str]) -> None:
    """Have no directory of what was dropped stand at some places, above or below them.

    Raises:
        StorageError: When one cannot be moved.
    """
    dropped = metastore.dropped_directories()
    paths = [fs.absolute(one) for one in locations] if dropped else []
    _remove_all(metastore, [d for d in dropped if any(fs.overlap(_place(d), path) for path in paths)], is_needed=True)


def remove_dropped(metastore: Metastore) -> None:
    """Remove the directories of all that was dropped. What cannot be removed is invisible, and waits for the next."""
    _remove_all(metastore, metastore.dropped_directories(), is_needed=False)


def _place(dropped: DroppedDirectory) -> str:
    return fs.absolute(dropped.location)


def _aside(dropped: DroppedDirectory) -> str:
    """The hidden name beside its place."""
    return fs.join(_place(dropped).rpartition("/")[0], f"{STAGING_PREFIX}{dropped.token}")


def _remove_all(metastore: Metastore, dropped: Sequence[DroppedDirectory], *, is_needed: bool) -> None:
    """All steps. ``is_needed``: one that stays where it is is an error."""
    for start in range(0, len(dropped), AT_ONCE):
        some = dropped[start : start + AT_ONCE]
        problems = _free(metastore, some)
        gone = [d for d in some if d not in problems and _is_removed(d)]
        if gone:
            metastore.forget_dropped(gone)
        if problems and is_needed:
            raise next(iter(problems.values()))


def _free(metastore: Metastore, dropped: Sequence[DroppedDirectory]) -> dict[DroppedDirectory, AcidError]:
    """Steps 1 and 2; what stays where it is, and why."""
    problems = {}
    if all(d.is_aside for d in dropped):
        return {}
    with metastore.alone():
        standing = {d for d in metastore.dropped_directories() if not d.is_aside}
        for one in standing.intersection(dropped):
            try:
                _put_aside(_place(one), _aside(one))
            except AcidError as e:
                logger.warning("the files of what was dropped stay in %s for now: %s", one.location, e)
                problems[one] = e
    _sync([d for d in dropped if d not in problems])
    metastore.set_aside([d for d in dropped if d not in problems])
    return problems


def _put_aside(path: str, aside: str) -> None:
    """Where something has the hidden name already, somebody was killed right after the rename."""
    filesystem = fs.resolve(path)[0]
    if filesystem.exists(aside) or not filesystem.exists(path):
        return
    if fs.renames_in_one_step(path):
        try:
            filesystem.rename(path, aside)
        except AcidError as e:  # its parent is read-only, or it is where another disk begins
            logger.info("%s is removed where it is: %s", path, e)
        else:
            return
    filesystem.delete(path)


def _sync(dropped: Iterable[DroppedDirectory]) -> None:
    """Make durable that directories have left their places, before the store says so. Raises: StorageError.

    After a power cut they would stand there again otherwise, in a place that may be somebody else's by then.
    """
    parents = dict.fromkeys(_place(d).rpartition("/")[0] for d in dropped)
    for parent in parents:
        filesystem = fs.resolve(parent)[0]
        if filesystem.exists(parent):
            filesystem.sync(directories=[parent])


def _is_removed(dropped: DroppedDirectory) -> bool:
    """Step 3, but for the record."""
    aside = _aside(dropped)
    filesystem = fs.resolve(aside)[0]
    try:
        for _ in range(TRIES):
            filesystem.delete(aside)
            if not filesystem.exists(aside):
                return True
    except AcidError as e:
        logger.warning("the files of what was dropped stay in %s for now: %s", aside, e)
    return False
