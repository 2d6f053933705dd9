"""ALTER TABLE … RENAME TO, RENAME TO PARTITION and SET LOCATION."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.ddl.alter import REFUSED_BY_HIVE, acid_table, with_ddl_time
from acidsql.commands.ddl.created_directory import created_directories, remove_empty
from acidsql.commands.ddl.partitions import one_partition, spec_values, whole_name
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.transaction.locking import name_lock
from acidsql.commands.transaction.run import write_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.compactor.dropped import free_place, free_places
from acidsql.compactor.rename_journal import carry_out_announced, finish_moves, new_move, take_back
from acidsql.errors import AcidError, AlreadyExists, AnalysisError, UnsupportedError
from acidsql.format.data_files import require_there
from acidsql.format.foreign import directory_summary
from acidsql.metastore.model import DirectoryMove, LockComponent, LockType, Partition, Table
from acidsql.partition_names import other_spellings, parse_partition_name, table_directory
from acidsql.plan.snapshot import new_partition, partition_names
from acidsql.sql.statements import RenamePartition, RenameTable, SetLocation, Span
from acidsql.valid_ids import ValidWriteIdList

logger = logging.getLogger(__name__)


# --- RENAME TO -------------------------------------------------------------------------------------------------------


def rename_table(env: Environment, statement: RenameTable, parameters: Mapping[str, Any]) -> DataFrame:
    """RENAME TO, also into another database. An unqualified name is in the current database, as in Hive.

    1. Determine the new location: a directory at its default location follows the name, any other stays.
    2. Lock the table EXCLUSIVE, as Hive does, and the new name EXCL_WRITE; look the table up again, and allocate a
       write id.
    3. Rename it in the metastore. A Hive Metastore moves the directory as well; on the embedded store the move is
       recorded in the same step, and carried out here, or by the next session that looks up the table
       (:mod:`acidsql.compactor.rename_journal`).
    4. Commit. Statements that waited for the old name find no table.

    A DataFrame over the old name fails when it is read: its files have moved, and no later table of that name reuses
    their names. Therefore a directory in which an earlier table had files is not reused: the table gets a new one with
    a suffix.
    """
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    span = statement.new_name.span
    try:
        _renamed(env, table, statement, is_locked=False)  # an invalid statement opens no transaction
    except AcidError as e:
        raise with_location(span, e) from e
    locks = [
        LockComponent(LockType.EXCLUSIVE, table.database, table.name),
        LockComponent(LockType.SHARED_READ, env.database_of(statement.new_name)),
        name_lock(env.database_of(statement.new_name), statement.new_name.table.lower()),
    ]
    with write_transaction(env, locks) as txn:
        txn.revalidate(table)
        try:
            target = _renamed(env, table, statement, is_locked=True)
            write_id = txn.allocate_write_id(table)
            _rename(env, table, target, write_id, txn.valid_write_ids(table))
        except AcidError as e:
            raise with_location(span, e) from e
    return env.nothing()


def _renamed(env: Environment, table: Table, statement: RenameTable, *, is_locked: bool) -> Table:
    """The table with its new name and location.

    Without the lock on the name a directory there may be that of a statement that is creating a table of this name.

    Raises:
        DatabaseNotFound: When the new database does not exist.
        AlreadyExists: When the new name or location is taken.
    """
    database, name = env.database_of(statement.new_name), statement.new_name.table.lower()
    home = env.metastore.get_database(database)
    if env.metastore.find_table(database, name) is not None:
        raise AlreadyExists(f"Unable to alter table. new table {database}.{name} already exists", code=REFUSED_BY_HIVE)
    location = table.location
    usual = fs.join(env.metastore.get_database(table.database).location, table_directory(table.name))
    moves_here = not env.metastore.capabilities.owns_directories
    if moves_here and _is_same(location, usual) and fs.renames_in_one_step(location):
        filesystem, _ = fs.resolve(location)
        new = _unused(env, fs.resolve(fs.join(home.location, table_directory(name)))[1])
        if filesystem.root == fs.resolve(new)[0].root:
            require_there(*fs.resolve(location))
            location = new
            if is_locked:
                free_places(env.metastore, [table.location, new])
                if not remove_empty(env.metastore, new):
                    message = f"New location for this table {database}.{name} already exists : {new}"
                    raise AlreadyExists(f"Unable to alter table. {message}", code=REFUSED_BY_HIVE)
    return replace(table, database=database, name=name, location=location)


def _unused(env: Environment, location: str) -> str:
    """The location, or one beside it: DataFrames and Spark's cache may refer to files with the same paths."""
    return f"{location}-{uuid.uuid4().hex[:8]}" if env.metastore.was_used(location) else location


def _is_same(one: str, other: str) -> bool:
    return fs.resolve(one)[1] == fs.resolve(other)[1]


def _rename(env: Environment, table: Table, target: Table, write_id: int, write_ids: ValidWriteIdList) -> None:
    """Step 3. An error restores the old name and location, unless the rename is known to be complete."""
    metastore = env.metastore
    now = with_ddl_time(finish_moves(metastore, metastore.get_table(table.database, table.name)))
    move = new_move(table.location, target.location) if target.location != table.location else None
    renamed = replace(now, database=target.database, name=target.name, location=target.location)
    try:
        metastore.rename_table(table.database, table.name, renamed, write_id=write_id, write_ids=write_ids, move=move)
        if move is not None:
            carry_out_announced(metastore, renamed, move)
    except BaseException:
        if move is not None:
            _rename_back(env, now, renamed, move)
        raise
    if move is not None:
        _forget(env, renamed, move)


def _rename_back(env: Environment, old: Table, new: Table, move: DirectoryMove) -> None:
    """Undo a rename whose directory was not moved. If that fails too, the next session completes the move.

    Nobody looks the table up between the two: he would find the move in the journal, and carry it out again.
    """
    with suppress(AcidError), env.metastore.alone():
        current = env.metastore.find_table(new.database, new.name)
        if current is not None and move in current.moves:
            take_back(move)
            env.metastore.rename_table(new.database, new.name, old)


def _forget(env: Environment, table: Table, move: DirectoryMove) -> None:
    """Delete a completed journal entry. A failure is only logged: the next session deletes it."""
    try:
        env.metastore.forget_moves(replace(table, moves=(move,)))
    except AcidError as e:
        logger.warning("the journal keeps a finished rename of %s for now: %s", table.full_name, e)


# --- RENAME TO PARTITION ---------------------------------------------------------------------------------------------


def rename_partition(env: Environment, statement: RenamePartition, parameters: Mapping[str, Any]) -> DataFrame:
    """PARTITION (…) RENAME TO PARTITION (…), in the phases of :func:`rename_table`.

    The whole table is locked EXCLUSIVE: writers waiting for some of its partitions must not miss this one. A directory
    that another partition had is not reused: the path is spelt differently (``p=%31`` for ``p=1``), which every reader
    of the format takes for the same partition.
    """
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    span = statement.new_partition.span
    name, old = one_partition(env, table, statement.partition, parameters)
    new_name = whole_name(table, statement.new_partition, spec_values(env, table, statement.new_partition, parameters))
    _renamed_partition(env, table, old, new_name, span, is_locked=False)  # an invalid statement opens no transaction
    with write_transaction(env, [LockComponent(LockType.EXCLUSIVE, table.database, table.name)]) as txn:
        txn.revalidate(table, [old])
        target = _renamed_partition(env, table, old, new_name, span, is_locked=True)
        txn.allocate_write_id(table)
        write_ids = txn.valid_write_ids(table)
        try:
            _rename_partition(env, table, name, (old, target), write_ids)
        except AcidError as e:
            raise with_location(span, e) from e
    return env.nothing()


def _renamed_partition(
    env: Environment, table: Table, old: Partition, new_name: str, span: Span, *, is_locked: bool
) -> Partition:
    """The partition with its new name, and its new location if the old one is the default.

    Without the lock on the table a directory there may be that of a statement that is adding this partition.

    Raises:
        AlreadyExists: When there is such a partition, or its directory has files.
    """
    if env.metastore.list_partitions(table.database, table.name, [new_name]):
        raise with_location(span, AlreadyExists(f"Partition already exists: {new_name}"))
    target = new_partition(table, new_name)
    if env.metastore.capabilities.owns_directories:
        return target
    if not (_is_usual(table, old) and fs.renames_in_one_step(table.location)):
        return replace(target, location=old.location)
    require_there(*fs.resolve(old.location))
    target = replace(target, location=_unused_partition(env, table, new_name, span))
    if is_locked:
        free_place(env.metastore, target.location)
        if not remove_empty(env.metastore, target.location):
            message = f"New location for this partition already exists : {fs.resolve(target.location)[1]}"
            error = AlreadyExists(f"Unable to rename partition. {message}", code=REFUSED_BY_HIVE)
            raise with_location(span, error)
    return target


def _is_usual(table: Table, partition: Partition) -> bool:
    """Whether a partition's path below the table's says which partition it is, however that is spelt."""
    home = f"{table.location.rstrip('/')}/"
    try:
        pairs = parse_partition_name(partition.location.removeprefix(home))
    except AnalysisError:
        return False
    values = tuple(value for _, value in pairs)
    return partition.location.startswith(home) and values == partition.values


def _unused_partition(env: Environment, table: Table, name: str, span: Span) -> str:
    """The place of a partition; if another partition had it, the same path spelt in another way.

    DataFrames and Spark's cache may refer to files of that one by the same paths: partitions that one statement wrote
    have files of the same names.
    """
    for spelling in chain([name], other_spellings(name)):
        location = fs.join(table.location, spelling)
        if not env.metastore.was_used(location, within=table.location):
            return location
    problem = f"The directory of partition {name} was used too often: DataFrames may still refer to its files"
    raise with_location(span, UnsupportedError(problem, hint="INSERT OVERWRITE … SELECT writes the rows there."))


def _rename_partition(
    env: Environment, table: Table, name: str, partitions: tuple[Partition, Partition], write_ids: ValidWriteIdList
) -> None:
    """An error restores the old values and location, unless the rename is known to be complete."""
    metastore, (old, new) = env.metastore, partitions
    finish_moves(metastore, metastore.get_table(table.database, table.name))
    moved = not metastore.capabilities.owns_directories and new.location != old.location
    move = new_move(old.location, new.location) if moved else None
    try:
        metastore.rename_partition(name, new, move=move, write_ids=write_ids)
        if move is not None:
            carry_out_announced(metastore, table, move)
    except BaseException:
        if move is not None:
            _rename_partition_back(env, table, partitions, move)
        raise
    if move is not None:
        _forget(env, table, move)


def _rename_partition_back(
    env: Environment, table: Table, partitions: tuple[Partition, Partition], move: DirectoryMove
) -> None:
    """As :func:`_rename_back`."""
    old, new = partitions
    with suppress(AcidError), env.metastore.alone():
        if move in env.metastore.get_table(table.database, table.name).moves:
            take_back(move)
            env.metastore.rename_partition(partition_names(table, new), old)


# --- SET LOCATION ----------------------------------------------------------------------------------------------------


def set_location(env: Environment, statement: SetLocation, parameters: Mapping[str, Any]) -> DataFrame:
    """SET LOCATION of a table or of one partition. No file is moved: the contents of the new location become the rows.

    1. Check the location: it must be empty or written by this table, and not in use by another part of the table.
    2. Lock the table EXCLUSIVE, as Hive does; current writers finish first.
    3. Check that aborted writers have left no files (embedded store only; a Hive Metastore has no call for that): the
       cleaner would look for them at the new location and drop its record, and they would be read again at the old
       location.
    4. Allocate a write id, store the table or partition in the metastore, and commit.

    The location of a table with partitions applies to new partitions; existing ones keep theirs. A Hive Metastore
    decides by its own rules which locations it allows for a managed table; for a partition it is only the default one
    (see :func:`acidsql.commands.partitions.add_partitions`).
    """
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    span, spec = statement.location.span, statement.partition
    path = fs.qualify(statement.location.value)
    name, partition = (None, None) if spec is None else one_partition(env, table, spec, parameters)
    with write_transaction(env, [LockComponent(LockType.EXCLUSIVE, table.database, table.name)]) as txn:
        txn.revalidate(table, None if partition is None else [partition])
        free_place(env.metastore, path)
        _check_nothing_aborted(env, table, name, statement.table.span)
        write_id = txn.allocate_write_id(table)
        write_ids = txn.valid_write_ids(table)
        _check_place(txn, table, partition, path, write_ids, span)
        try:
            with created_directories(env.metastore, [path]):
                if partition is not None:
                    env.metastore.alter_partition(replace(partition, location=path))
                else:
                    now = env.metastore.get_table(table.database, table.name)
                    changed = with_ddl_time(replace(now, location=path))
                    env.metastore.alter_table(changed, write_id=write_id, write_ids=write_ids)
        except AcidError as e:
            raise with_location(span, e) from e
    return env.nothing()


def _check_nothing_aborted(env: Environment, table: Table, partition: str | None, span: Span) -> None:
    """Raise if aborted writes or compactions may have left files in what moves; for some the partition is unknown."""
    if env.metastore.capabilities.runs_compactor:
        return
    name = table.full_name
    left = env.metastore.aborted_components(table=name) + env.metastore.aborted_compactions(table=name)
    if any(partition is None or one.partition in (None, partition) for one in left):
        message = f"Aborted transactions have left files of {name}, which must be removed before its location changes"
        hint = f"VACUUM {name} removes them once no older transaction is open; it may have to run more than once."
        raise with_location(span, AnalysisError(message, hint=hint, code=REFUSED_BY_HIVE))


def _check_place(
    txn: WriteTransaction,
    table: Table,
    partition: Partition | None,
    path: str,
    write_ids: ValidWriteIdList,
    span: Span,
) -> None:
    """Foreign files must not become rows of this table, nor files of one part rows of another."""
    metastore = txn.env.metastore
    filesystem = fs.resolve(path)[0]
    usual = None if partition is None else new_partition(table, partition_names(table, partition)).location
    is_usual = usual is not None and _is_same(path, usual)
    if partition is not None and metastore.capabilities.is_shared_with_hive and not is_usual:
        raise with_location(
            span, UnsupportedError("Hive keeps partitions of an ACID table below the table: LOCATION is not supported")
        )
    if filesystem.root != fs.resolve(table.location)[0].root and partition is not None:
        raise with_location(span, UnsupportedError(f"{path} is on another file system than the table"))
    known = metastore.list_partitions(table.database, table.name) if table.partition_keys else []
    others = [fs.resolve(p.location)[1] for p in known if partition is None or p.values != partition.values]
    if partition is not None:
        others += [] if is_usual else [fs.resolve(table.location)[1]]
        taken = any(fs.overlap(path, other) for other in others)
    elif table.partition_keys:  # partitions below their table are expected
        taken = any(f"{path.rstrip('/')}/".startswith(f"{other.rstrip('/')}/") for other in others)
    else:
        taken = not _is_same(path, table.location) and fs.overlap(path, fs.resolve(table.location)[1])
    if taken:
        message = f"Location {path} is not free: it is used by another part of {table.full_name}"
        raise with_location(span, AlreadyExists(message))
    if directory_summary(filesystem, path).max_write_id > write_ids.high_watermark:
        message = f"{path} has write ids that {table.full_name} never allocated: the files belong to another table"
        raise with_location(
            span, AnalysisError(message, hint="CREATE TABLE … LOCATION registers a directory with its files.")
        )
