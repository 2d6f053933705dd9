"""Directories that follow a name: from the old place of a table or partition to the new one, whatever is killed.

The embedded store knows names and places, the file system has the directories, and no step changes both. So the store
goes first, and says in the same step that a directory is still on its way: its journal holds where it is and where it
belongs (:attr:`~acidsql.metastore.model.Table.moves`). Then the directory is renamed, which is one step, and then the
journal forgets it. Whoever finds such an entry when he looks for the table does the rest of the work himself: the move
cannot be half done, and it makes no difference who does it, or how many do at once. No state loses rows:

* before the first step: all is as it was;
* after it: the table has its new name; the first one who looks for it moves the directory before he looks into it;
* after the rename: the directory is where the store says; the entry has nothing left to say.

The directory is renamed while nobody else changes the store and the entry is there. So whoever was slow, and meets the
old place again when the move has long been done, leaves alone what somebody else has made there meanwhile.

Only the store writes the journal: nothing that a user can set makes a session move a directory (rule 10). And an entry
counts only while it leads to the place that the store has for the table, or for one of its partitions.

A Hive Metastore moves directories itself and has no such journal.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from acidsql import fs
from acidsql.errors import AcidError
from acidsql.metastore.model import DirectoryMove, Table
from acidsql.metastore.protocol import Metastore


def new_move(source: str, target: str) -> DirectoryMove:
    """An entry for the journal."""
    return DirectoryMove(source, target, uuid.uuid4().hex)


def carry_out(move: DirectoryMove) -> None:
    """Rename the directory, unless that is done already, and make it durable. Raises: StorageError.

    The target was free when the move was announced: where it is there, it is the directory, and what is at the source
    by now is another one.
    """
    filesystem, source = fs.resolve(move.source)
    target = fs.resolve(move.target)[1]
    if not filesystem.exists(target):
        if not filesystem.exists(source):
            return
        filesystem.mkdirs(target.rpartition("/")[0])
        try:
            filesystem.rename(source, target)
        except (AcidError, FileNotFoundError):
            if not filesystem.exists(target):  # else another one was faster
                raise
    # Before the journal forgets it, and also where another one has renamed it: he may not have come this far.
    parents = [path.rpartition("/")[0] for path in (target, source)]
    filesystem.sync(directories=[parent for parent in parents if filesystem.exists(parent)])


def take_back(move: DirectoryMove) -> None:
    """Rename it back, where it was renamed. Raises: StorageError."""
    carry_out(replace(move, source=move.target, target=move.source))


def finish_moves(metastore: Metastore, table: Table) -> Table:
    """Bring what is on its way to its place; the table without such entries."""
    if not table.moves:
        return table
    with metastore.alone():
        now = metastore.get_table(table.database, table.name)
        places = {now.location}
        if now.moves and now.partition_keys:
            places |= {p.location for p in metastore.list_partitions(now.database, now.name)}
        for move in now.moves:
            if move.target in places:
                carry_out(move)
    metastore.forget_moves(now)
    return replace(now, moves=())


def finish_all_moves(metastore: Metastore) -> bool:
    """:func:`finish_moves` of all tables; whether there was any."""
    tables = [metastore.find_table(d, t) for d in metastore.list_databases() for t in metastore.list_tables(d)]
    moving = [table for table in tables if table is not None and table.moves]
    for table in moving:
        finish_moves(metastore, table)
    return bool(moving)


def carry_out_announced(metastore: Metastore, table: Table, move: DirectoryMove, *, back: bool = False) -> None:
    """Carry out a move, or take it back, where the journal still has it for a table. Raises: StorageError."""
    with metastore.alone():
        if move in metastore.get_table(table.database, table.name).moves:
            if back:
                take_back(move)
            else:
                carry_out(move)
