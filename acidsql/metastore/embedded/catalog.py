"""The tables and partitions of the catalog."""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, delete, exists, or_, select, update

from acidsql.errors import AlreadyExists, PartitionNotFound, TableNotFound
from acidsql.metastore.embedded import (
    components,
    constraints,
    dropped_places,
    moves,
    partition_creators,
    places,
    schema,
    txns,
    versions,
    write_ids,
)
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.changes import EmbeddedChanges
from acidsql.metastore.embedded.databases import database_id_of, insert_one, insert_rows, parameter_rows
from acidsql.metastore.embedded.schema import (
    BUCKETING_COLS,
    COLUMNS_V2,
    DBS,
    PARTITIONS,
    RENAME_JOURNAL,
    TABLE_PARAMS,
    TBLS,
    TXNS,
)
from acidsql.metastore.model import (
    Column,
    ConstraintKind,
    DroppedDirectory,
    Import,
    Partition,
    Table,
    TxnState,
    WrittenBy,
)
from acidsql.partition_names import check_table_name, parse_partition_name, partition_name
from acidsql.valid_ids import ValidWriteIdList

_TABLE = (
    select(TBLS, exists().where(RENAME_JOURNAL.c.TBL_ID == TBLS.c.TBL_ID).label("IS_MOVING"))
    .join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
    .where(DBS.c.NAME == bindparam("database"), TBLS.c.TBL_NAME == bindparam("table"))
)
_TABLE_ID = _TABLE.with_only_columns(TBLS.c.TBL_ID)
_COLUMNS = (
    select(
        COLUMNS_V2.c.IS_PARTITION_KEY,
        COLUMNS_V2.c.COLUMN_NAME,
        COLUMNS_V2.c.TYPE_NAME,
        COLUMNS_V2.c.COMMENT,
        COLUMNS_V2.c.DEFAULT_VALUE,
        COLUMNS_V2.c.NOT_NULL,
        COLUMNS_V2.c.DEFAULT_NAME,
        COLUMNS_V2.c.NOT_NULL_NAME,
    )
    .where(COLUMNS_V2.c.TBL_ID == bindparam("id"))
    .order_by(COLUMNS_V2.c.INTEGER_IDX)
)
_PARAMETERS = (
    select(TABLE_PARAMS.c.PARAM_KEY, TABLE_PARAMS.c.PARAM_VALUE)
    .where(TABLE_PARAMS.c.TBL_ID == bindparam("id"))
    .order_by(TABLE_PARAMS.c.PARAM_KEY)
)
_BUCKET_COLUMNS = (
    select(BUCKETING_COLS.c.BUCKET_COL_NAME)
    .where(BUCKETING_COLS.c.TBL_ID == bindparam("id"))
    .order_by(BUCKETING_COLS.c.INTEGER_IDX)
)

_IS_NEW = TBLS.c.CREATING_TXN.is_not(None)
_UNFINISHED = (
    select(DBS.c.NAME, TBLS.c.TBL_NAME, TBLS.c.LOCATION, TBLS.c.CREATING_TXN, TBLS.c.MAKES_DIRECTORY)
    .join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
    .where(_IS_NEW, ~exists().where(TXNS.c.TXN_ID == TBLS.c.CREATING_TXN, TXNS.c.TXN_STATE == TxnState.OPEN.value))
)

_PARTS_OF_PARTITIONS = (PARTITIONS, schema.PARTITION_CREATORS, schema.PARTITION_PARAMS, schema.TAB_COL_STATS)

# --- tables ----------------------------------------------------------------------------------------------------------


def insert_table(
    db: Connection, table: Table, *, creating_txn: int | None = None, makes_directory: bool = False
) -> None:
    """Register a table; for a transaction alone, if one is given, until it is committed.

    Raises:
        DatabaseNotFound, AlreadyExists (also for its place), AnalysisError for a name that is not valid.
    """
    check_table_name(table.name)
    database_id = database_id_of(db, table.database)
    if db.execute(_TABLE_ID, {"database": table.database, "table": table.name}).first() is not None:
        raise AlreadyExists(f"Table {table.full_name} already exists")
    _take_place(db, table)
    owner = {"DB_ID": database_id, "CREATING_TXN": creating_txn, "MAKES_DIRECTORY": makes_directory}
    table_id = insert_one(db, TBLS, {**owner, "TBL_NAME": table.name, **_table_row(table)})
    versions.set_new_version(db, table_id)
    _insert_parts(db, table_id, table)


def _take_place(db: Connection, table: Table, table_id: int | None = None) -> None:
    """Give a table its place; ``table_id`` where it is known already. Raises: AlreadyExists where it is not free."""
    places.check_table(db, table.location, table_id)
    dropped_places.take(db, table.database, table.name, [table.location])


def drop_unfinished(db: Connection) -> None:
    """Drop the tables whose transactions have ended without a commit.

    Their directories go with them; of one that was there before it goes what the transaction has put into it.
    """
    for database, name, location, txn_id, makes_directory in db.execute(_UNFINISHED).all():
        if not makes_directory:
            write_id = write_ids.of_txn(db, txn_id, database, name)
            dropped_places.drop(db, [location], made_by=WrittenBy(txn_id, write_id))
        drop_table(db, database, name, keep_files=not makes_directory)


def find_table(db: Connection, database: str, name: str, *, viewer: int | None = None) -> Table | None:
    """The table, None where it or its database does not exist.

    For a ``viewer``, a transaction or 0, a table does not exist that another one is creating.
    """
    row = db.execute(_TABLE, {"database": database, "table": name}).first()
    if row is None or (viewer is not None and row.CREATING_TXN not in (None, viewer)):
        return None
    key = {"id": row.TBL_ID}
    columns: tuple[list[Column], list[Column]] = ([], [])
    for is_key, column, type, comment, default, not_null, *names in db.execute(_COLUMNS, key):
        columns[is_key].append(Column(column, type, comment, default, not_null, *names))
    bucketed = row.NUM_BUCKETS > 0
    return Table(
        database=database,
        name=name,
        location=row.LOCATION,
        columns=tuple(columns[False]),
        partition_keys=tuple(columns[True]),
        parameters={r[0]: r[1] for r in db.execute(_PARAMETERS, key)},
        comment=row.COMMENT,
        bucket_columns=tuple(db.execute(_BUCKET_COLUMNS, key).scalars()) if bucketed else (),
        num_buckets=row.NUM_BUCKETS,
        table_type=row.TBL_TYPE,
        owner=row.OWNER,
        created_at=row.CREATE_TIME,
        view_text=row.VIEW_EXPANDED_TEXT,
        view_original=row.VIEW_ORIGINAL_TEXT,
        table_constraints=constraints.find(db, row.TBL_ID),
        moves=moves.of_table(db, row.TBL_ID) if row.IS_MOVING else (),
        version=row.TBL_VERSION or 0,
        id=row.TBL_ID,
    )


def get_table(db: Connection, database: str, name: str, *, viewer: int | None = None) -> Table:
    """As :func:`find_table`. Raises: TableNotFound."""
    table = find_table(db, database, name, viewer=viewer)
    if table is None:
        raise TableNotFound(f"Table not found {database}.{name}")
    return table


def _names_in(db: Connection, database: str, viewer: int) -> Select[Any]:
    """A query of the names of tables and views that a transaction sees, in their order. Raises: DatabaseNotFound."""
    seen = or_(~_IS_NEW, TBLS.c.CREATING_TXN == viewer)
    of_database = TBLS.c.DB_ID == database_id_of(db, database)
    return select(TBLS.c.TBL_NAME).where(of_database, seen).order_by(TBLS.c.TBL_NAME)


def alter_table(db: Connection, table: Table) -> None:
    """Replace the description of a table. Raises: TableNotFound, AlreadyExists."""
    old, table_id = get_table(db, table.database, table.name), table_id_of(db, table.database, table.name)
    if old.location != table.location:
        dropped_places.leave(db, table.database, table.name, [old.location])
        _take_place(db, table, table_id)
    if replace(table, parameters=old.parameters, comment=old.comment, moves=old.moves) != old:
        versions.set_new_version(db, table_id)  # properties alone say nothing of rows: Hive keeps statistics in them
    db.execute(update(TBLS).where(TBLS.c.TBL_ID == table_id).values(_table_row(table)))
    _delete_parts(db, table_id)
    _insert_parts(db, table_id, table)


def drop_table(db: Connection, database: str, name: str, *, keep_files: bool) -> None:
    """Remove a table and what the transaction tables record of it; locks stay, and its next write id.

    A table created under the name later counts on from there: its directories never have the names of the dropped
    one's, which a DataFrame may still look for. Its directory, and those of partitions elsewhere, are recorded
    as dropped unless the files are kept.

    Raises:
        TableNotFound: When it does not exist.
    """
    table_id = table_id_of(db, database, name)
    home = db.execute(select(TBLS.c.LOCATION).where(TBLS.c.TBL_ID == table_id)).scalar_one()
    below = f"{home.rstrip('/')}/"
    elsewhere = [place for _, place in _partition_rows(db, table_id, None) if not place.startswith(below)]
    dropped_places.leave(db, database, name, [home, *elsewhere])
    if not keep_files:
        dropped_places.drop(db, [home, *elsewhere])
    _delete_parts(db, table_id)
    moves.forget_all(db, table_id)
    constraints.forget(db, table_id, is_dropped=True)
    for part in _PARTS_OF_PARTITIONS:
        db.execute(delete(part).where(part.c.TBL_ID == table_id))
    db.execute(delete(TBLS).where(TBLS.c.TBL_ID == table_id))
    forget_name(db, database, name)


def forget_name(db: Connection, database: str, name: str) -> None:
    """Forget what the transaction tables record under the name of a table that is not there; locks stay."""
    components.forget_ended(db, database, name)
    for table, of_database, of_table in (
        (schema.COMPLETED_TXN_COMPONENTS, "CTC_DATABASE", "CTC_TABLE"),
        (schema.TXN_TO_WRITE_ID, "T2W_DATABASE", "T2W_TABLE"),
        (schema.WRITE_SET, "WS_DATABASE", "WS_TABLE"),
        (schema.COMPACTION_QUEUE, "CQ_DATABASE", "CQ_TABLE"),
        (schema.COMPLETED_COMPACTIONS, "CC_DATABASE", "CC_TABLE"),
    ):
        db.execute(delete(table).where(table.c[of_database] == database, table.c[of_table] == name))


def table_id_of(db: Connection, database: str, name: str) -> int:
    """The number of a table in the catalog. Raises: TableNotFound."""
    found = db.execute(_TABLE_ID, {"database": database, "table": name}).scalar()
    if found is None:
        raise TableNotFound(f"Table not found {database}.{name}")
    return int(found)


def _table_row(table: Table) -> dict[str, object]:
    return {
        "TBL_TYPE": table.table_type,
        "OWNER": table.owner,
        "CREATE_TIME": table.created_at,
        "LOCATION": table.location,
        "NUM_BUCKETS": table.num_buckets,
        "COMMENT": table.comment,
        "VIEW_ORIGINAL_TEXT": table.view_original,
        "VIEW_EXPANDED_TEXT": table.view_text,
    }


def _insert_parts(db: Connection, table_id: int, table: Table) -> None:
    insert_rows(
        db,
        COLUMNS_V2,
        [*_column_rows(table_id, table.columns, False), *_column_rows(table_id, table.partition_keys, True)],
    )
    insert_rows(db, TABLE_PARAMS, parameter_rows("TBL_ID", table_id, table.parameters))
    insert_rows(
        db,
        BUCKETING_COLS,
        [
            {"TBL_ID": table_id, "INTEGER_IDX": n, "BUCKET_COL_NAME": column}
            for n, column in enumerate(table.bucket_columns)
        ],
    )
    constraints.put(db, table_id, table)


def _delete_parts(db: Connection, table_id: int) -> None:
    for part in (COLUMNS_V2, TABLE_PARAMS, BUCKETING_COLS):
        db.execute(delete(part).where(part.c.TBL_ID == table_id))
    constraints.forget(db, table_id)


def _column_rows(table_id: int, columns: Iterable[Column], are_keys: bool) -> list[dict[str, object]]:
    return [
        {
            "TBL_ID": table_id,
            "INTEGER_IDX": n,
            "IS_PARTITION_KEY": are_keys,
            "COLUMN_NAME": c.name,
            "TYPE_NAME": c.type,
            "COMMENT": c.comment,
            "DEFAULT_VALUE": c.default,
            "NOT_NULL": c.not_null,
            "DEFAULT_NAME": _name(c.default is not None, c.default_name, ConstraintKind.DEFAULT),
            "NOT_NULL_NAME": _name(c.not_null, c.not_null_name, ConstraintKind.NOT_NULL),
        }
        for n, c in enumerate(columns)
    ]


def _name(is_there: bool, name: str | None, kind: ConstraintKind) -> str | None:
    return name or constraints.generated_name(kind) if is_there else None


# --- partitions ------------------------------------------------------------------------------------------------------


def insert_partitions(
    db: Connection, partitions: Sequence[Partition], *, if_not_exists: bool = True, creating_txn: int = 0
) -> list[int]:
    """Register partitions; those that exist are left unchanged, if that is no error.

    Until it is committed, ``creating_txn`` is one of those who have made the ones that no transaction has committed.

    Returns:
        The ids of the tables of which some are new, or no transaction had committed them.

    Raises:
        TableNotFound, AnalysisError.
        AlreadyExists: When the place of one is another's, or one exists, or another transaction is making it.
    """
    by_table: dict[tuple[str, str], list[Partition]] = {}
    changed = []
    for partition in partitions:
        by_table.setdefault((partition.database, partition.table), []).append(partition)
    for (database, name), added in by_table.items():
        table_id = table_id_of(db, database, name)
        keys = [c.name for c in get_table(db, database, name).partition_keys]
        named = {partition_name(keys, p.values): p for p in reversed(added)}
        known = {n for n, _ in _partition_rows(db, table_id, list(named))}
        makers = partition_creators.find(db, table_id)
        existing = sorted(n for n in known if n not in makers or makers[n] - {creating_txn})
        if existing and not if_not_exists:
            raise AlreadyExists(f"Partition already exists: {', '.join(existing[:5])}")
        wanted = {n: p.location for n, p in named.items() if n not in known}
        take_partition_places(db, table_id, database, name, wanted)
        rows = [{"TBL_ID": table_id, "PART_NAME": n, "LOCATION": place} for n, place in wanted.items()]
        insert_rows(db, PARTITIONS, rows)
        uncommitted = [n for n in named if n in wanted or n in makers]
        if creating_txn:
            unnoted = [n for n in uncommitted if creating_txn not in makers.get(n, ())]
            partition_creators.add(db, table_id, unnoted, creating_txn)
        else:
            partition_creators.forget(db, table_id, uncommitted)
        if uncommitted:
            changed.append(table_id)
    return changed


def take_partition_places(db: Connection, table_id: int, database: str, table: str, wanted: Mapping[str, str]) -> None:
    """Give partitions of a table their places, by their names. Raises: AlreadyExists where one is not free."""
    places.check_partitions(db, table_id, wanted)
    dropped_places.take(db, database, table, wanted.values())


def list_partitions(db: Connection, database: str, table: str, names: Sequence[str] | None) -> list[Partition]:
    """Partitions ordered by name; only those named, where names are given. Raises: TableNotFound."""
    table_id = table_id_of(db, database, table)
    rows, makers = _partition_rows(db, table_id, names), partition_creators.find(db, table_id)
    return [
        Partition(
            database,
            table,
            tuple(value for _, value in parse_partition_name(name)),
            location,
            created_by=makers.get(name),
        )
        for name, location in rows
    ]


def _partition_rows(db: Connection, table_id: int, names: Sequence[str] | None) -> list[tuple[str, str]]:
    """Name and location of partitions, by name."""
    p = PARTITIONS.c
    query = select(p.PART_NAME, p.LOCATION).where(p.TBL_ID == table_id)
    if names is None:
        found = [(r[0], r[1]) for r in db.execute(query)]
    else:
        distinct = list(dict.fromkeys(names))
        found = [(r[0], r[1]) for some in batches(distinct) for r in db.execute(query.where(p.PART_NAME.in_(some)))]
    return sorted(found)


class EmbeddedCatalog(EmbeddedChanges):
    """The tables and partitions of :class:`~acidsql.metastore.protocol.Catalog`."""

    def create_table(
        self,
        table: Table,
        *,
        holds_rows: bool = False,
        imported: Import | None = None,
        at_commit: bool = False,
        makes_directory: bool = False,
    ) -> None:
        with self._change() as db:
            creating_txn = self._owner.txn_id if at_commit else None
            insert_table(db, table, creating_txn=creating_txn, makes_directory=makes_directory)
            if imported is not None:
                txns.start_above(db, imported.max_txn, self._now(db))
                if imported.write_ids.high_watermark > 0:
                    write_ids.seed(db, imported.write_ids, now=self._now(db))
                insert_partitions(db, imported.partitions)

    def discard_table(self, table: Table, txn_id: int) -> bool:
        """Whether it is gone: it is dropped when its transaction is aborted."""
        with self._store.read() as db:
            return find_table(db, table.database, table.name) is None

    def get_table(self, database: str, name: str) -> Table:
        with self._store.read() as db:
            return get_table(db, database, name, viewer=self._owner.txn_id)

    def find_table(self, database: str, name: str) -> Table | None:
        with self._store.read() as db:
            return find_table(db, database, name, viewer=self._owner.txn_id)

    def list_tables(self, database: str) -> list[str]:
        with self._store.read() as db:
            return list(db.execute(_names_in(db, database, self._owner.txn_id)).scalars())

    def latest_version(self) -> int | None:
        with self._store.read() as db:
            return versions.latest_version(db)

    def list_views(self, database: str) -> list[str]:
        with self._store.read() as db:
            names = _names_in(db, database, self._owner.txn_id)
            return list(db.execute(names.where(TBLS.c.VIEW_EXPANDED_TEXT.is_not(None))).scalars())

    def alter_table(
        self, table: Table, *, write_id: int | None = None, write_ids: ValidWriteIdList | None = None
    ) -> None:
        with self._change() as db:
            alter_table(db, table)

    def drop_table(self, database: str, name: str, *, keep_files: bool = False) -> None:
        with self._change() as db:
            drop_table(db, database, name, keep_files=keep_files)

    def dropped_directories(self) -> list[DroppedDirectory]:
        with self._store.read() as db:
            return dropped_places.dropped(db)

    def add_partitions(
        self, partitions: Sequence[Partition], *, with_rows: Sequence[Partition] = (), if_not_exists: bool = True
    ) -> None:
        if not partitions:
            return
        held = frozenset(with_rows)
        others = [p for p in partitions if p not in held]
        with self._change() as db:
            insert_partitions(db, others, if_not_exists=if_not_exists, creating_txn=self._owner.txn_id)
            for table_id in insert_partitions(db, with_rows, if_not_exists=if_not_exists):
                versions.set_new_version(db, table_id)

    def disown_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        with self._change() as db:
            partition_creators.disown(db, table_id_of(db, database, table), names, self._owner.txn_id)

    def list_partitions(self, database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        with self._store.read() as db:
            return list_partitions(db, database, table, names)

    def drop_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        """Components of aborted transactions stay until the cleaner finds that nothing is left of them."""
        with self._change() as db:
            table_id = table_id_of(db, database, table)
            known = dict(_partition_rows(db, table_id, names))
            missing = [n for n in names if n not in known]
            if missing:
                raise PartitionNotFound(f"Partition not found in {database}.{table}: {', '.join(missing[:5])}")
            dropped_places.leave(db, database, table, known.values())
            dropped_places.drop(db, known.values())
            versions.set_new_version(db, table_id)
            known_by_name = (
                (schema.COMPLETED_TXN_COMPONENTS, "CTC"),
                (schema.COMPACTION_QUEUE, "CQ"),
                (schema.COMPLETED_COMPACTIONS, "CC"),
            )
            for some in batches(names):
                for part in _PARTS_OF_PARTITIONS:
                    db.execute(delete(part).where(part.c.TBL_ID == table_id, part.c.PART_NAME.in_(some)))
                for entity, prefix in known_by_name:
                    c = entity.c
                    of_table = and_(c[f"{prefix}_DATABASE"] == database, c[f"{prefix}_TABLE"] == table)
                    db.execute(delete(entity).where(of_table, c[f"{prefix}_PARTITION"].in_(some)))
