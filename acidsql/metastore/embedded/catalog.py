"""The catalog: databases, tables, partitions. Each function is a step inside a transaction of the database."""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, and_, bindparam, delete, exists, insert, select, update
from sqlalchemy import Table as Entity

from acidsql.errors import AlreadyExists, AnalysisError, DatabaseNotFound, PartitionNotFound, TableNotFound
from acidsql.metastore.embedded import constraints, dropped_places, moves, places, schema
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.schema import (
    BUCKETING_COLS,
    COLUMNS_V2,
    DATABASE_PARAMS,
    DBS,
    PARTITIONS,
    RENAME_JOURNAL,
    TABLE_PARAMS,
    TBLS,
)
from acidsql.metastore.model import DEFAULT_DATABASE, Column, ConstraintKind, Database, Partition, Table
from acidsql.partition_names import check_database_name, check_table_name, parse_partition_name, partition_name

DATABASE_NOT_EMPTY = 10226

_DATABASE = select(DBS.c.DB_ID, DBS.c.DB_LOCATION_URI, DBS.c.DESC).where(DBS.c.NAME == bindparam("name"))
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

# --- databases -------------------------------------------------------------------------------------------------------


def create_database(db: Connection, database: Database) -> None:
    """Raises: AlreadyExists, AnalysisError for a name that is none."""
    check_database_name(database.name)
    if db.execute(_DATABASE, {"name": database.name}).first() is not None:
        raise AlreadyExists(f"Database {database.name} already exists")
    places.check_database(db, database.location)
    row = {"NAME": database.name, "DB_LOCATION_URI": database.location, "DESC": database.comment}
    _insert(db, DATABASE_PARAMS, _parameter_rows("DB_ID", _insert_one(db, DBS, row), database.parameters))


def get_database(db: Connection, name: str) -> Database:
    """Raises: DatabaseNotFound."""
    row = db.execute(_DATABASE, {"name": name}).first()
    if row is None:
        raise DatabaseNotFound(f"Database does not exist: {name}")
    database_id, location, comment = row
    p = DATABASE_PARAMS.c
    parameters = db.execute(select(p.PARAM_KEY, p.PARAM_VALUE).where(p.DB_ID == database_id).order_by(p.PARAM_KEY))
    return Database(name, location, comment, {r[0]: r[1] for r in parameters})


def list_databases(db: Connection) -> list[str]:
    """Names, in their order."""
    return list(db.execute(select(DBS.c.NAME).order_by(DBS.c.NAME)).scalars())


def drop_database(db: Connection, name: str) -> None:
    """Forget an empty database. Raises: DatabaseNotFound, AnalysisError."""
    database_id = _database_id(db, name)
    if name == DEFAULT_DATABASE:
        raise AnalysisError(f"Can not drop {DEFAULT_DATABASE} database", code=40000)
    tables = list_tables(db, name)
    if tables:
        raise AnalysisError(
            f"Database {name} is not empty. One or more tables exist: {', '.join(tables[:5])}",
            code=DATABASE_NOT_EMPTY,
            hint="Drop its tables first, or use DROP DATABASE … CASCADE.",
        )
    db.execute(delete(DATABASE_PARAMS).where(DATABASE_PARAMS.c.DB_ID == database_id))
    db.execute(delete(DBS).where(DBS.c.DB_ID == database_id))


def _database_id(db: Connection, name: str) -> int:
    row = db.execute(_DATABASE, {"name": name}).first()
    if row is None:
        raise DatabaseNotFound(f"Database does not exist: {name}")
    return int(row[0])


# --- tables ----------------------------------------------------------------------------------------------------------


def create_table(db: Connection, table: Table) -> None:
    """Raises: DatabaseNotFound, AlreadyExists (also for its place), AnalysisError for a name that is none."""
    check_table_name(table.name)
    database_id = _database_id(db, table.database)
    if db.execute(_TABLE_ID, {"database": table.database, "table": table.name}).first() is not None:
        raise AlreadyExists(f"Table {table.full_name} already exists")
    _take_place(db, table)
    table_id = _insert_one(db, TBLS, {"DB_ID": database_id, "TBL_NAME": table.name, **_table_row(table)})
    _insert_parts(db, table_id, table)


def _take_place(db: Connection, table: Table, table_id: int | None = None) -> None:
    """Give a table its place; ``table_id`` where it is known already. Raises: AlreadyExists where it is not free."""
    places.check_table(db, table.location, table_id)
    dropped_places.take(db, table.database, table.name, [table.location])


def find_table(db: Connection, database: str, name: str) -> Table | None:
    """The table, None where it or its database is not there."""
    row = db.execute(_TABLE, {"database": database, "table": name}).first()
    if row is None:
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
    )


def get_table(db: Connection, database: str, name: str) -> Table:
    """Raises: TableNotFound."""
    table = find_table(db, database, name)
    if table is None:
        raise TableNotFound(f"Table not found {database}.{name}")
    return table


def list_tables(db: Connection, database: str, *, views_only: bool = False) -> list[str]:
    """Names of tables and views, in their order. Raises: DatabaseNotFound."""
    query = select(TBLS.c.TBL_NAME).where(TBLS.c.DB_ID == _database_id(db, database)).order_by(TBLS.c.TBL_NAME)
    if views_only:
        query = query.where(TBLS.c.VIEW_EXPANDED_TEXT.is_not(None))
    return list(db.execute(query).scalars())


def alter_table(db: Connection, table: Table) -> None:
    """Put a description in the place of the one of the same name. Raises: TableNotFound, AlreadyExists."""
    table_id = table_id_of(db, table.database, table.name)
    old = db.execute(select(TBLS.c.LOCATION).where(TBLS.c.TBL_ID == table_id)).scalar_one()
    if old != table.location:
        dropped_places.leave(db, table.database, table.name, [old])
        _take_place(db, table, table_id)
    db.execute(update(TBLS).where(TBLS.c.TBL_ID == table_id).values(_table_row(table)))
    _delete_parts(db, table_id)
    _insert_parts(db, table_id, table)


def drop_table(db: Connection, database: str, name: str, *, keep_files: bool) -> None:
    """Forget a table and whatever the transaction tables know of it; locks stay, and its next write id.

    A table made anew under the name counts on from there: its directories are never named as those of the dropped one
    were, which somebody's DataFrame may still look for. Its directory, and those of partitions elsewhere, are recorded
    as dropped unless the files are kept.

    Raises:
        TableNotFound: When it is not there.
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
    for part in (PARTITIONS, schema.PARTITION_PARAMS, schema.TAB_COL_STATS):
        db.execute(delete(part).where(part.c.TBL_ID == table_id))
    db.execute(delete(TBLS).where(TBLS.c.TBL_ID == table_id))
    for table, of_database, of_table in (
        (schema.TXN_COMPONENTS, "TC_DATABASE", "TC_TABLE"),
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
    _insert(
        db,
        COLUMNS_V2,
        [*_column_rows(table_id, table.columns, False), *_column_rows(table_id, table.partition_keys, True)],
    )
    _insert(db, TABLE_PARAMS, _parameter_rows("TBL_ID", table_id, table.parameters))
    _insert(
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
    return name or constraints.made_up_name(kind) if is_there else None


def _parameter_rows(key: str, id: int, parameters: Mapping[str, str]) -> list[dict[str, object]]:
    return [{key: id, "PARAM_KEY": k, "PARAM_VALUE": v} for k, v in parameters.items()]


def _insert(db: Connection, table: Entity, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        db.execute(insert(table), rows)


def _insert_one(db: Connection, table: Entity, row: Mapping[str, object]) -> int:
    """Insert a row; the id that it got."""
    key = db.execute(insert(table), row).inserted_primary_key
    assert key is not None  # every table here has one
    return int(key[0])


# --- partitions ------------------------------------------------------------------------------------------------------


def add_partitions(db: Connection, partitions: Sequence[Partition]) -> None:
    """Register partitions; those that are there already are left alone.

    Raises:
        TableNotFound, AnalysisError.
        AlreadyExists: When the place of one is another's.
    """
    by_table: dict[tuple[str, str], list[Partition]] = {}
    for partition in partitions:
        by_table.setdefault((partition.database, partition.table), []).append(partition)
    for (database, name), added in by_table.items():
        table_id = table_id_of(db, database, name)
        keys = [c.name for c in get_table(db, database, name).partition_keys]
        named = {partition_name(keys, p.values): p for p in reversed(added)}
        known = {p[0] for p in _partition_rows(db, table_id, list(named))}
        rows = [
            {"TBL_ID": table_id, "PART_NAME": n, "LOCATION": p.location} for n, p in named.items() if n not in known
        ]
        take_partition_places(db, table_id, database, name, {n: p.location for n, p in named.items() if n not in known})
        _insert(db, PARTITIONS, rows)


def take_partition_places(db: Connection, table_id: int, database: str, table: str, wanted: Mapping[str, str]) -> None:
    """Give partitions of a table their places, by their names. Raises: AlreadyExists where one is not free."""
    places.check_partitions(db, table_id, wanted)
    dropped_places.take(db, database, table, wanted.values())


def list_partitions(db: Connection, database: str, table: str, names: Sequence[str] | None) -> list[Partition]:
    """Partitions ordered by name; only those named, where names are given. Raises: TableNotFound."""
    rows = _partition_rows(db, table_id_of(db, database, table), names)
    return [
        Partition(database, table, tuple(value for _, value in parse_partition_name(name)), location)
        for name, location in rows
    ]


def drop_partitions(db: Connection, database: str, table: str, names: Sequence[str]) -> None:
    """Forget partitions, and record their directories as dropped. Raises: TableNotFound, PartitionNotFound.

    Components of aborted transactions stay until the cleaner finds that nothing is left of them.
    """
    table_id = table_id_of(db, database, table)
    known = dict(_partition_rows(db, table_id, names))
    missing = [n for n in names if n not in known]
    if missing:
        raise PartitionNotFound(f"Partition not found in {database}.{table}: {', '.join(missing[:5])}")
    home = db.execute(select(TBLS.c.LOCATION).where(TBLS.c.TBL_ID == table_id)).scalar_one()
    dropped_places.leave(db, database, table, [p for p in known.values() if not p.startswith(f"{home.rstrip('/')}/")])
    dropped_places.drop(db, known.values())
    known_by_name = (
        (schema.COMPLETED_TXN_COMPONENTS, "CTC"),
        (schema.COMPACTION_QUEUE, "CQ"),
        (schema.COMPLETED_COMPACTIONS, "CC"),
    )
    for some in batches(names):
        for part in (PARTITIONS, schema.PARTITION_PARAMS, schema.TAB_COL_STATS):
            db.execute(delete(part).where(part.c.TBL_ID == table_id, part.c.PART_NAME.in_(some)))
        for entity, prefix in known_by_name:
            c = entity.c
            of_table = and_(c[f"{prefix}_DATABASE"] == database, c[f"{prefix}_TABLE"] == table)
            db.execute(delete(entity).where(of_table, c[f"{prefix}_PARTITION"].in_(some)))


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
