"""Crash-safe renames of directories: from the old location of a table or partition to the new one.

The embedded store has names and locations, the file system has the directories, and no single step changes both. So the
store changes first, and records in the same step that a directory still has to be moved: its journal has the source and
the target (:attr:`~acidsql.metastore.model.Table.moves`). Then the directory is renamed, in one step, and then the
journal entry is deleted. Any session that finds such an entry when it looks up the table completes the move: the move
cannot be half done, and any number of sessions may attempt it at once. No state loses rows:

* before the first step nothing has changed;
* after it the table has its new name; the first session that looks it up moves the directory before listing it;
* after the rename the directory is where the store says; the entry is obsolete.

The directory is renamed while the store is locked against changes and has the entry. So a slow session, for which the
old location exists again long after the move, does not touch what another session created there.

Only the store writes the journal: nothing that a user can set makes a session move a directory (rule 10). And an entry
is valid only while its target is the location that the store has for the table, or for one of its partitions.

A Hive Metastore moves directories itself and has no such journal.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from acidsql import fs
from acidsql.errors import AcidError, StorageError, TableNotFound
from acidsql.format.foreign import has_files
from acidsql.metastore.model import DirectoryMove, Table
from acidsql.metastore.protocol import Metastore


def new_move(source: str, target: str) -> DirectoryMove:
    """An entry for the journal."""
    return DirectoryMove(source, target, uuid.uuid4().hex)


def carry_out(move: DirectoryMove) -> None:
    """Rename the directory, unless that is done already, and make it durable.

    The target did not exist when the move was recorded, and while the journal has the move nobody is given it, or the
    source: what that holds is the table's. But a statement that is not going to get a place there may make directories
    at or below the target, and a writer that was suspended may stage files at the source. So it is done where the
    source has no files; where it has, whatever is at the target is somebody else's.

    Raises:
        StorageError: When it cannot be renamed, or somebody has put something at the target.
    """
    filesystem, source = fs.resolve(move.source)
    target = fs.resolve(move.target)[1]
    if filesystem.exists(target) and not (filesystem.exists(source) and filesystem.delete_if_empty(target)):
        if has_files(filesystem, source):
            raise StorageError(f"{source} cannot be moved to {target}: there is something else by now")
    else:
        if not filesystem.exists(source):
            return
        filesystem.mkdirs(target.rpartition("/")[0])
        try:
            filesystem.rename(source, target)
        except (AcidError, FileNotFoundError):
            if not filesystem.exists(target):  # else another session was faster
                raise
    # Before the journal entry is deleted, also if another session renamed it: that one may not have synced yet.
    parents = [path.rpartition("/")[0] for path in (target, source)]
    filesystem.sync(directories=[parent for parent in parents if filesystem.exists(parent)])


def take_back(move: DirectoryMove) -> None:
    """Undo the rename if it was done. The store has to forget it in the same step. Raises: StorageError."""
    filesystem, source = fs.resolve(move.source)
    if not filesystem.exists(source) or (
        has_files(filesystem, fs.resolve(move.target)[1]) and not has_files(filesystem, source)
    ):
        carry_out(replace(move, source=move.target, target=move.source))


def find_table(metastore: Metastore, database: str, name: str) -> Table | None:
    """The table that has a name, with its files where the store says; None if there is none.

    Raises:
        StorageError: When a directory cannot be moved.
    """
    found = metastore.find_table(database, name)
    try:
        return None if found is None else finish_moves(metastore, found)
    except TableNotFound:  # since: its rename was undone, or it was dropped
        return None


def finish_moves(metastore: Metastore, table: Table) -> Table:
    """Complete the pending moves of a table; the table without its journal entries.

    Raises:
        StorageError: When a directory cannot be moved.
        TableNotFound: When the table is gone by now.
    """
    if not table.moves:
        return table
    with metastore.alone():
        now = metastore.get_table(table.database, table.name)
        locations = {now.location}
        if now.moves and now.partition_keys:
            locations |= {p.location for p in metastore.list_partitions(now.database, now.name)}
        for move in now.moves:
            if move.target in locations:
                carry_out(move)
        metastore.forget_moves(now)  # in the same step: another session may take the move back right after it
    return replace(now, moves=())


def finish_all_moves(metastore: Metastore) -> bool:
    """:func:`finish_moves` for all tables; whether any move was unfinished."""
    tables = [metastore.find_table(d, t) for d in metastore.list_databases() for t in metastore.list_tables(d)]
    moving = [table for table in tables if table is not None and table.moves]
    for table in moving:
        finish_moves(metastore, table)
    return bool(moving)


def carry_out_announced(metastore: Metastore, table: Table, move: DirectoryMove) -> None:
    """Carry out a move if the journal still has it for a table. Raises: StorageError."""
    with metastore.alone():
        if move in metastore.get_table(table.database, table.name).moves:
            carry_out(move)
