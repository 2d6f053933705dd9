"""ALTER TABLE … RENAME TO, RENAME TO PARTITION, SET LOCATION: other names and other places."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.ddl.alter import REFUSED_BY_HIVE, acid_table, with_ddl_time
from acidsql.commands.ddl.new_directory import NewDirectory
from acidsql.commands.ddl.partitions import one_partition, spec_values, whole_name
from acidsql.commands.ddl.rename_journal import carry_out_announced, finish_moves, new_move
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.transaction.write_transaction import WriteTransaction, write_transaction
from acidsql.compactor.dropped import free_place, free_places
from acidsql.errors import AcidError, AlreadyExists, AnalysisError, UnsupportedError
from acidsql.format.directory import directory_summary
from acidsql.metastore.model import DirectoryMove, LockComponent, LockType, Partition, Table
from acidsql.partition_names import table_directory
from acidsql.plan.snapshot import new_partition, partition_names
from acidsql.sql.statements import RenamePartition, RenameTable, SetLocation, Span
from acidsql.valid_ids import ValidWriteIdList

logger = logging.getLogger(__name__)


# --- RENAME TO -------------------------------------------------------------------------------------------------------


def rename_table(env: Environment, statement: RenameTable, parameters: Mapping[str, Any]) -> DataFrame:
    """RENAME TO, also into another database. A name without a database is one of the current database, as in Hive.

    1. Look where the table is to be: the directory of one that is at its usual place follows its name, all others stay.
    2. Lock the table EXCLUSIVE, as Hive does, look again, and take a write id.
    3. Rename it in the metastore. A Hive Metastore moves the directory as well; on the embedded store that is announced
       in the same step, and done here, or by whoever looks for the table next
       (:mod:`acidsql.commands.ddl.rename_journal`).
    4. Commit. Whoever waited for the old name finds no table.

    A DataFrame over the old name fails when it is read: its files are elsewhere, and no later table of that name has
    files that are called like them. So a directory in which an earlier table had its files is not taken again: the
    table gets one beside it.
    """
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    span = statement.new_name.span
    try:
        _renamed(env, table, statement)  # a mistake in the statement opens no transaction
    except AcidError as e:
        raise with_location(span, e) from e
    locks = [
        LockComponent(LockType.EXCLUSIVE, table.database, table.name),
        LockComponent(LockType.SHARED_READ, env.database_of(statement.new_name)),
    ]
    with write_transaction(env, locks) as txn:
        txn.revalidate(table)
        try:
            target = _renamed(env, table, statement)
            write_id = txn.allocate_write_id(table)
            _rename(env, table, target, write_id, txn.valid_write_ids(table))
        except AcidError as e:
            raise with_location(span, e) from e
    return env.nothing()


def _renamed(env: Environment, table: Table, statement: RenameTable) -> Table:
    """The table under its new name and at its new place.

    Raises:
        DatabaseNotFound: When the new database is not there.
        AlreadyExists: When the new name or place is taken.
    """
    database, name = env.database_of(statement.new_name), statement.new_name.table.lower()
    home = env.metastore.get_database(database)
    if env.metastore.find_table(database, name) is not None:
        raise AlreadyExists(f"Unable to alter table. new table {database}.{name} already exists", code=REFUSED_BY_HIVE)
    location = table.location
    usual = fs.join(env.metastore.get_database(table.database).location, table_directory(table.name))
    moves_here = not env.metastore.capabilities.owns_directories
    if moves_here and _is_same(location, usual) and fs.renames_in_one_step(location):
        filesystem, new = fs.resolve(fs.join(home.location, table_directory(name)))
        if env.metastore.was_used(new):  # DataFrames and Spark's cache may know files of the same names there
            new = f"{new}-{uuid.uuid4().hex[:8]}"
        if filesystem.root == fs.resolve(location)[0].root:
            location = new
            free_places(env.metastore, [table.location, new])
            if filesystem.exists(new):
                message = f"New location for this table {database}.{name} already exists : {new}"
                raise AlreadyExists(f"Unable to alter table. {message}", code=REFUSED_BY_HIVE)
    return replace(table, database=database, name=name, location=location)


def _is_same(one: str, other: str) -> bool:
    return fs.resolve(one)[1] == fs.resolve(other)[1]


def _rename(env: Environment, table: Table, target: Table, write_id: int, write_ids: ValidWriteIdList) -> None:
    """Step 3. After an error the table has its old name and place again, unless it is known to be wholly renamed."""
    metastore = env.metastore
    now = with_ddl_time(finish_moves(metastore, metastore.get_table(table.database, table.name)))
    move = new_move(table.location, target.location) if target.location != table.location else None
    made = replace(now, database=target.database, name=target.name, location=target.location)
    try:
        metastore.rename_table(table.database, table.name, made, write_id=write_id, write_ids=write_ids, move=move)
        if move is not None:
            carry_out_announced(metastore, made, move)
    except BaseException:
        if move is not None:
            _rename_back(env, now, made, move)
        raise
    if move is not None:
        _forget(env, made, move)


def _rename_back(env: Environment, old: Table, new: Table, move: DirectoryMove) -> None:
    """Undo a rename whose directory did not follow. Where that fails too, the next one who looks goes on with it."""
    with suppress(AcidError):
        there = env.metastore.find_table(new.database, new.name)
        if there is not None and move in there.moves:
            carry_out_announced(env.metastore, new, move, back=True)
            env.metastore.rename_table(new.database, new.name, old)


def _forget(env: Environment, table: Table, move: DirectoryMove) -> None:
    """The entry says where a directory was; that it stays for the next one who looks is no reason to fail."""
    try:
        env.metastore.forget_moves(replace(table, moves=(move,)))
    except AcidError as e:
        logger.warning("the journal keeps a finished rename of %s for now: %s", table.full_name, e)


# --- RENAME TO PARTITION ---------------------------------------------------------------------------------------------


def rename_partition(env: Environment, statement: RenamePartition, parameters: Mapping[str, Any]) -> DataFrame:
    """PARTITION (…) RENAME TO PARTITION (…): the phases of :func:`rename_table` for one partition.

    The whole table is locked EXCLUSIVE: who waits to write to some of its partitions must not miss this one.
    """
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    span = statement.new_partition.span
    name, old = one_partition(env, table, statement.partition, parameters)
    new_name = whole_name(table, statement.new_partition, spec_values(env, table, statement.new_partition, parameters))
    _renamed_partition(env, table, old, name, new_name, span)  # a mistake in the statement opens no transaction
    with write_transaction(env, [LockComponent(LockType.EXCLUSIVE, table.database, table.name)]) as txn:
        txn.revalidate(table, [old])
        target = _renamed_partition(env, table, old, name, new_name, span)
        txn.allocate_write_id(table)
        write_ids = txn.valid_write_ids(table)
        try:
            _rename_partition(env, table, name, (old, target), write_ids)
        except AcidError as e:
            raise with_location(span, e) from e
    return env.nothing()


def _renamed_partition(
    env: Environment, table: Table, old: Partition, old_name: str, new_name: str, span: Span
) -> Partition:
    """The partition under its new name, and at its new place where the old one is the usual one."""
    if env.metastore.list_partitions(table.database, table.name, [new_name]):
        raise with_location(span, AlreadyExists(f"Partition already exists: {new_name}"))
    target = new_partition(table, new_name)
    if env.metastore.capabilities.owns_directories:
        return target
    usual = new_partition(table, old_name).location
    if not (_is_same(old.location, usual) and fs.renames_in_one_step(usual)):
        return replace(target, location=old.location)
    free_place(env.metastore, target.location)
    filesystem, path = fs.resolve(target.location)
    if filesystem.list(path):
        raise with_location(span, _partition_directory_exists(path))
    return target


def _partition_directory_exists(path: str) -> AlreadyExists:
    message = f"New location for this partition already exists : {path}"
    return AlreadyExists(f"Unable to rename partition. {message}", code=REFUSED_BY_HIVE)


def _rename_partition(
    env: Environment, table: Table, name: str, partitions: tuple[Partition, Partition], write_ids: ValidWriteIdList
) -> None:
    """After an error the partition has its old values and place again, unless it is known to be wholly renamed."""
    metastore, (old, new) = env.metastore, partitions
    finish_moves(metastore, metastore.get_table(table.database, table.name))
    moved = not metastore.capabilities.owns_directories and new.location != old.location
    move = new_move(old.location, new.location) if moved else None
    if move is not None:
        filesystem, path = fs.resolve(new.location)
        if filesystem.exists(path) and not filesystem.delete_if_empty(path):
            raise _partition_directory_exists(path)
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
    with suppress(AcidError):
        now = env.metastore.get_table(table.database, table.name)
        if move not in now.moves:
            return
        old, new = partitions
        carry_out_announced(env.metastore, table, move, back=True)
        env.metastore.rename_partition(partition_names(table, new), old)


# --- SET LOCATION ----------------------------------------------------------------------------------------------------


def set_location(env: Environment, statement: SetLocation, parameters: Mapping[str, Any]) -> DataFrame:
    """SET LOCATION of a table or of one partition. No file is moved: what is at the new place is what there is then.

    1. Check the place: it holds nothing, or what this table wrote; no other part of the table is there.
    2. Lock the table EXCLUSIVE, as Hive does; whoever writes has ended.
    3. See that aborted writers have left nothing (the embedded store; a Hive Metastore does not tell): the cleaner
       would look for it at the new place and forget it, and who came back to the old place would read it.
    4. Take a write id, hand the table or partition to the metastore, and commit.

    The place of a table with partitions is where new ones will be; those that are there stay where they are. A Hive
    Metastore decides by its own rules which places it takes for a managed table; for a partition there is none but the
    usual one (see :func:`acidsql.commands.partitions.add_partitions`).
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
        directory = NewDirectory(env.metastore, path)
        try:
            directory.make()
            if partition is not None:
                env.metastore.alter_partition(replace(partition, location=path))
            else:
                now = env.metastore.get_table(table.database, table.name)
                changed = with_ddl_time(replace(now, location=path))
                env.metastore.alter_table(changed, write_id=write_id, write_ids=write_ids)
            directory.make()
        except BaseException as e:
            directory.take_back()
            if isinstance(e, AcidError):
                raise with_location(span, e) from e
            raise
    return env.nothing()


def _check_nothing_aborted(env: Environment, table: Table, partition: str | None, span: Span) -> None:
    """No aborted write or compaction may have left files of what moves. Of some it is not known in which partition."""
    if env.metastore.capabilities.runs_compactor:
        return
    name = table.full_name
    left = env.metastore.aborted_components(table=name) + env.metastore.aborted_compactions(table=name)
    if any(partition is None or one.partition in (None, partition) for one in left):
        message = f"Aborted transactions have left files of {name}, which must go before it gets another place"
        hint = f"VACUUM {name} removes them, once no transaction is open that is older; it may take more than one."
        raise with_location(span, AnalysisError(message, hint=hint, code=REFUSED_BY_HIVE))


def _check_place(
    txn: WriteTransaction,
    table: Table,
    partition: Partition | None,
    path: str,
    write_ids: ValidWriteIdList,
    span: Span,
) -> None:
    """Nobody else's files may become rows of this table, nor those of one part of it rows of another."""
    metastore = txn.env.metastore
    filesystem = fs.resolve(path)[0]
    usual = None if partition is None else new_partition(table, partition_names(table, partition)).location
    is_usual = usual is not None and _is_same(path, usual)
    if partition is not None and metastore.capabilities.is_shared_with_hive and not is_usual:
        raise with_location(
            span, UnsupportedError("A partition of an ACID table is below the table in Hive: it has no other place")
        )
    if filesystem.root != fs.resolve(table.location)[0].root and partition is not None:
        raise with_location(span, UnsupportedError(f"{path} is on another file system than the table"))
    known = metastore.list_partitions(table.database, table.name) if table.partition_keys else []
    others = [fs.resolve(p.location)[1] for p in known if partition is None or p.values != partition.values]
    if partition is not None:
        others += [] if is_usual else [fs.resolve(table.location)[1]]
        taken = any(fs.overlap(path, other) for other in others)
    elif table.partition_keys:  # that partitions are below their table is as it should be
        taken = any(f"{path.rstrip('/')}/".startswith(f"{other.rstrip('/')}/") for other in others)
    else:
        taken = not _is_same(path, table.location) and fs.overlap(path, fs.resolve(table.location)[1])
    if taken:
        message = f"Location {path} is not free: another part of {table.full_name} has its files there"
        raise with_location(span, AlreadyExists(message))
    if directory_summary(filesystem, path).max_write_id > write_ids.high_watermark:
        message = f"{path} holds write ids that {table.full_name} never gave out: the files are of another table"
        raise with_location(
            span, AnalysisError(message, hint="CREATE TABLE … LOCATION takes in a directory with its files.")
        )
