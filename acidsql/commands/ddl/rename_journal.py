"""Directories that follow a name: from the old place of a table or partition to the new one, whatever is killed.

The embedded store knows names and places, the file system has the directories, and no step changes both. So the store
goes first, and says in the same step that a directory is still on its way: a property of the table,
``acidsql.move.<id>``, holds where it is and where it belongs. Then the directory is renamed, which is one step, and
then the property goes. Whoever finds such a property when he looks for the table does the rest of the work himself: the
move cannot be half done, and it makes no difference who does it, or how many do at once. No state loses rows:

* before the first step: all is as it was;
* after it: the table has its new name; the first one who looks for it moves the directory before he looks into it;
* after the rename: the directory is where the store says; the property has nothing left to say.

The directory is renamed while nobody else changes the store and the property is there. So whoever was slow, and meets
the old place again when the move has long been done, leaves alone what somebody else has made there meanwhile.

A Hive Metastore moves directories itself and has no such property.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acidsql import fs
from acidsql.errors import AcidError
from acidsql.metastore.model import Table
from acidsql.metastore.protocol import Metastore

PREFIX = "acidsql.move."


@dataclass(frozen=True)
class Move:
    """A directory on its way.

    Attributes:
        source: Where it is, or was.
        target: Where it belongs.
        key: The property that says so.
    """

    source: str
    target: str
    key: str

    @staticmethod
    def of(source: str, target: str) -> Move:
        return Move(source, target, f"{PREFIX}{uuid.uuid4().hex}")

    def announced(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """Properties of a table that say that this is to be done."""
        return {**parameters, self.key: json.dumps([self.source, self.target])}

    def carry_out(self) -> None:
        """Rename the directory, unless that is done already. Raises: StorageError.

        The target was free when the move was announced: where it is there, it is the directory, and what is at the
        source by now is another one.
        """
        filesystem, source = fs.resolve(self.source)
        target = fs.resolve(self.target)[1]
        if filesystem.exists(target) or not filesystem.exists(source):
            return
        filesystem.mkdirs(target.rpartition("/")[0])
        try:
            filesystem.rename(source, target)
        except (AcidError, FileNotFoundError):
            if not filesystem.exists(target):  # else another one was faster
                raise

    def take_back(self) -> None:
        """Rename it back, where it was renamed. Raises: StorageError."""
        Move(self.target, self.source, self.key).carry_out()


def moves_of(table: Table) -> list[Move]:
    """The directories that are on their way, as the table's properties say."""
    found = [(json.loads(value), key) for key, value in table.parameters.items() if key.startswith(PREFIX)]
    return [Move(source, target, key) for (source, target), key in found]


def finish_moves(metastore: Metastore, table: Table) -> Table:
    """Bring what is on its way to its place; the table without such properties."""
    if not moves_of(table):
        return table
    with metastore.alone():
        moves = moves_of(metastore.get_table(table.database, table.name))
        for move in moves:
            move.carry_out()
    return forget_moves(metastore, table, moves)


def carry_out_announced(metastore: Metastore, table: Table, move: Move, *, back: bool = False) -> None:
    """Carry out a move, or take it back, where the table's properties still announce it. Raises: StorageError."""
    with metastore.alone():
        if move.key in metastore.get_table(table.database, table.name).parameters:
            if back:
                move.take_back()
            else:
                move.carry_out()


def forget_moves(metastore: Metastore, table: Table, done: Iterable[Move]) -> Table:
    """Take the properties of moves that are done from a table; the table as it is then."""
    keys = [move.key for move in done]
    if keys:
        metastore.unset_properties(table.database, table.name, keys)
    return metastore.get_table(table.database, table.name)
