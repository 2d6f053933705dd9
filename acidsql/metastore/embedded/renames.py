"""Other names for tables and partitions. All that is stored under the old name moves to the new one.

The transaction tables follow as in Hive's ``OnRenameFunction``: components, completed components, locks, write sets,
compactions, and for tables the write ids. Other than in Hive, a lock that is waited for stays on the name that it was
asked for: who waits looks that up again, and would else write to one table or partition with the lock on another.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, Connection, and_, delete, insert, select, update
from sqlalchemy import Table as Entity

from acidsql.errors import AlreadyExists, PartitionNotFound
from acidsql.metastore.embedded import catalog, components, dropped_places, moves, partition_creators, schema, versions
from acidsql.metastore.embedded.changes import EmbeddedChanges
from acidsql.metastore.embedded.databases import database_id_of
from acidsql.metastore.embedded.schema import (
    NEXT_WRITE_ID,
    PARTITION_PARAMS,
    PARTITIONS,
    TAB_COL_STATS,
    TBLS,
    TXN_TO_WRITE_ID,
)
from acidsql.metastore.model import DirectoryMove, LockState, Partition, Table
from acidsql.partition_names import check_table_name, partition_name
from acidsql.valid_ids import ValidWriteIdList

_WITH_PARTITIONS: tuple[tuple[Entity, str], ...] = (
    (schema.COMPLETED_TXN_COMPONENTS, "CTC"),
    (schema.WRITE_SET, "WS"),
    (schema.COMPACTION_QUEUE, "CQ"),
    (schema.COMPLETED_COMPACTIONS, "CC"),
)
"""Tables that name a database, a table and a partition, and the prefix of those columns; HIVE_LOCKS and
TXN_COMPONENTS have rules of their own."""
_L = schema.HIVE_LOCKS.c
_IS_HELD = _L.HL_LOCK_STATE == LockState.ACQUIRED.value


def _require(db: Connection, table_id: int, table: Table, name: str) -> None:
    p = PARTITIONS.c
    if db.execute(select(p.PART_ID).where(p.TBL_ID == table_id, p.PART_NAME == name)).first() is None:
        raise PartitionNotFound(f"Partition not found in {table.full_name}: {name}")


def _place(db: Connection, table_id: int, name: str) -> str:
    p = PARTITIONS.c
    return str(db.execute(select(p.LOCATION).where(p.TBL_ID == table_id, p.PART_NAME == name)).scalar_one())


def _move_partitions(db: Connection, table_id: int, old: str, new: str) -> None:
    """Change the places of the partitions that are below a table's old one."""
    prefix = old.rstrip("/") + "/"
    if new.rstrip("/") + "/" == prefix:
        return
    p = PARTITIONS.c
    places = db.execute(select(p.PART_ID, p.LOCATION).where(p.TBL_ID == table_id)).all()
    for part_id, location in places:
        if location.startswith(prefix):
            moved = f"{new.rstrip('/')}/{location[len(prefix) :]}"
            db.execute(update(PARTITIONS).where(p.PART_ID == part_id).values(LOCATION=moved))


def _rename_write_ids(db: Connection, old: Table, new: Table) -> None:
    w, n = TXN_TO_WRITE_ID.c, NEXT_WRITE_ID.c
    names = {w.T2W_DATABASE: new.database, w.T2W_TABLE: new.name}
    _set(db, TXN_TO_WRITE_ID, _is(w.T2W_DATABASE, w.T2W_TABLE, old), names)
    following = [db.execute(select(n.NWI_NEXT).where(_is(n.NWI_DATABASE, n.NWI_TABLE, t))).scalar() for t in (old, new)]
    known = [int(one) for one in following if one is not None]
    if not known:
        return
    db.execute(delete(NEXT_WRITE_ID).where(_is(n.NWI_DATABASE, n.NWI_TABLE, new)))
    db.execute(insert(NEXT_WRITE_ID), {"NWI_DATABASE": new.database, "NWI_TABLE": new.name, "NWI_NEXT": max(known)})


def _is(of_database: Column[str], of_table: Column[str], table: Table) -> ColumnElement[bool]:
    return and_(of_database == table.database, of_table == table.name)


def _set(db: Connection, entity: Entity, which: ColumnElement[bool], values: dict[Column[str], str]) -> None:
    db.execute(update(entity).where(which).values({column.name: value for column, value in values.items()}))


class EmbeddedRenames(EmbeddedChanges):
    """The part of :class:`~acidsql.metastore.protocol.Catalog` that gives names and locations."""

    def rename_table(
        self,
        database: str,
        name: str,
        table: Table,
        *,
        write_id: int | None = None,
        write_ids: ValidWriteIdList | None = None,
        move: DirectoryMove | None = None,
    ) -> None:
        """Rename a table. Its files stay where they are: the caller moves them to the location that ``table`` has.

        The next write id is remembered under the old name too: a table created under it later counts on from there.
        Its directories then never have the names of the renamed one's, which a DataFrame may still look for.
        """
        with self._change() as db:
            check_table_name(table.name)
            old = catalog.get_table(db, database, name)
            table_id = catalog.table_id_of(db, database, name)
            database_id = database_id_of(db, table.database)
            if table.location != old.location:  # or the directory of a dropped partition would come along
                dropped_places.require_free(db, [old.location])
            if catalog.find_table(db, table.database, table.name) is not None:
                raise AlreadyExists(f"Table {table.full_name} already exists")
            # of statements that failed to create a table of the new name
            catalog.forget_name(db, table.database, table.name)
            own = TBLS.c.TBL_ID == table_id
            db.execute(update(TBLS).where(own).values(DB_ID=database_id, TBL_NAME=table.name))
            _rename_write_ids(db, old, table)
            catalog.alter_table(db, table)
            versions.set_new_version(db, table_id)
            _move_partitions(db, table_id, old.location, table.location)
            if table.location != old.location:
                moves.forget_leading_to(db, table_id, old.location)
            if move is not None:
                moves.store(db, table_id, move)
            for entity, prefix in _WITH_PARTITIONS:
                of_database, of_table = entity.c[f"{prefix}_DATABASE"], entity.c[f"{prefix}_TABLE"]
                _set(db, entity, _is(of_database, of_table, old), {of_database: table.database, of_table: table.name})
            components.rename_table(db, database, name, table.database, table.name)
            held = and_(_is(_L.HL_DB, _L.HL_TABLE, old), _IS_HELD)
            _set(db, schema.HIVE_LOCKS, held, {_L.HL_DB: table.database, _L.HL_TABLE: table.name})

    def rename_partition(
        self,
        name: str,
        partition: Partition,
        *,
        move: DirectoryMove | None = None,
        write_ids: ValidWriteIdList | None = None,
    ) -> None:
        """Rename a partition. Its files stay where they are: the caller moves them."""
        with self._change() as db:
            database, table = partition.database, partition.table
            owner = catalog.get_table(db, database, table)
            table_id = catalog.table_id_of(db, database, table)
            new = partition_name([k.name for k in owner.partition_keys], list(partition.values))
            if new != name and catalog.list_partitions(db, database, table, [new]):
                raise AlreadyExists(f"Partition already exists: {new}")
            _require(db, table_id, owner, name)
            old = _place(db, table_id, name)
            if partition.location != old:
                dropped_places.leave(db, database, table, [old])
                catalog.take_partition_places(db, table_id, database, table, {name: partition.location})
                moves.forget_leading_to(db, table_id, old)
            if move is not None:
                moves.store(db, table_id, move)
            db.execute(
                update(PARTITIONS)
                .where(PARTITIONS.c.TBL_ID == table_id, PARTITIONS.c.PART_NAME == name)
                .values(PART_NAME=new, LOCATION=partition.location)
            )
            partition_creators.forget(db, table_id, [name])
            for entity in (PARTITION_PARAMS, TAB_COL_STATS):
                same = and_(entity.c.TBL_ID == table_id, entity.c.PART_NAME == name)
                db.execute(update(entity).where(same).values(PART_NAME=new))
            for entity, prefix in _WITH_PARTITIONS:
                of_partition = entity.c[f"{prefix}_PARTITION"]
                of_table = _is(entity.c[f"{prefix}_DATABASE"], entity.c[f"{prefix}_TABLE"], owner)
                _set(db, entity, and_(of_table, of_partition == name), {of_partition: new})
            if new != name:
                components.rename_partition(db, database, table, name, new)
            held = and_(_is(_L.HL_DB, _L.HL_TABLE, owner), _L.HL_PARTITION == name, _IS_HELD)
            _set(db, schema.HIVE_LOCKS, held, {_L.HL_PARTITION: new})
            versions.set_new_version(db, table_id)

    def alter_partition(self, partition: Partition) -> None:
        with self._change() as db:
            owner = catalog.get_table(db, partition.database, partition.table)
            table_id = catalog.table_id_of(db, partition.database, partition.table)
            name = partition_name([k.name for k in owner.partition_keys], list(partition.values))
            _require(db, table_id, owner, name)
            old = _place(db, table_id, name)
            if partition.location != old:
                dropped_places.leave(db, owner.database, owner.name, [old])
                catalog.take_partition_places(db, table_id, owner.database, owner.name, {name: partition.location})
            same = and_(PARTITIONS.c.TBL_ID == table_id, PARTITIONS.c.PART_NAME == name)
            db.execute(update(PARTITIONS).where(same).values(LOCATION=partition.location))
            partition_creators.forget(db, table_id, [name])
            versions.set_new_version(db, table_id)

    def forget_moves(self, table: Table) -> None:
        with self._store.write() as db:
            moves.forget(db, table.moves)
