"""What ANALYZE found, and how writes update it.

As in Hive a number of rows is a property of the table or partition; ``COLUMN_STATS_ACCURATE`` says what of it holds.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, delete, insert, or_, select

from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.catalog import table_id_of
from acidsql.metastore.embedded.changes import EmbeddedChanges
from acidsql.metastore.embedded.schema import (
    PARTITION_PARAMS,
    PARTITIONS,
    TAB_COL_STATS,
    TABLE_PARAMS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from acidsql.metastore.model import (
    NUM_ROWS,
    STATS_ACCURATE,
    ColumnStatistics,
    RowChange,
    Statistics,
    Table,
    TxnState,
    accurate_statistics,
    row_count,
    set_row_count,
)
from acidsql.valid_ids import ValidWriteIdList

_CARRIED = (STATS_ACCURATE, NUM_ROWS)

_T, _P, _S, _W = TABLE_PARAMS.c, PARTITION_PARAMS.c, TAB_COL_STATS.c, TXN_TO_WRITE_ID.c


def _exist(db: Connection, table: Table, changes: Mapping[str, RowChange]) -> bool:
    """Whether anything is known that a change of rows would make wrong."""
    table_id = table_id_of(db, table.database, table.name)
    if db.execute(select(_T.PARAM_KEY).where(_T.TBL_ID == table_id, _T.PARAM_KEY.in_(_CARRIED))).first() is not None:
        return True
    return any(
        db.execute(
            select(_P.PARAM_KEY).where(_P.TBL_ID == table_id, _P.PART_NAME.in_(some), _P.PARAM_KEY.in_(_CARRIED))
        ).first()
        is not None
        for some in batches([name for name in changes if name])
    )


def carry_on(db: Connection, table: Table, changes: Mapping[str, RowChange]) -> None:
    """The number of rows is carried on where ANALYZE has counted it; nothing is exact any longer."""
    if not _exist(db, table, changes):
        return
    table_id = table_id_of(db, table.database, table.name)
    of_table = _parameters(db, table_id, "")
    kept = _carried_on(of_table, changes.get("", RowChange()))
    if kept != of_table:
        _replace(db, table_id, "", kept)
    for some in batches([name for name in changes if name]):
        found = _parameters_of(db, table_id, some)
        made = {name: _carried_on(known, changes[name]) for name, known in found.items()}
        _replace_some(db, table_id, {name: one for name, one in made.items() if one != found[name]})


def _carried_on(known: Mapping[str, str], change: RowChange) -> dict[str, str]:
    """The properties after a change: with the number of rows where it was known, and nothing that is exact."""
    kept = {k: v for k, v in known.items() if k != STATS_ACCURATE}
    rows = row_count(known)
    if rows is not None:
        set_row_count(kept, change.applied(rows))
    return kept


def _writes_unseen(db: Connection, table: Table, write_id: int, seen: ValidWriteIdList) -> bool:
    """Whether write ids that are not aborted lie outside what was seen."""
    query = (
        select(_W.T2W_WRITEID)
        .join(TXNS, TXNS.c.TXN_ID == _W.T2W_TXNID, isouter=True)
        .where(
            _W.T2W_DATABASE == table.database,
            _W.T2W_TABLE == table.name,
            _W.T2W_WRITEID > (min(seen.exceptions, default=seen.high_watermark + 1) - 1),
            or_(TXNS.c.TXN_STATE.is_(None), TXNS.c.TXN_STATE != TxnState.ABORTED.value),
        )
    )
    return any(w != write_id and not seen.is_valid(w) for w in db.execute(query).scalars())


def _columns_of(accurate: Mapping[str, object]) -> dict[str, object]:
    found = accurate.get("COLUMN_STATS")
    return found if isinstance(found, dict) else {}


def _names(db: Connection, table_id: int) -> list[str]:
    return list(db.execute(select(PARTITIONS.c.PART_NAME).where(PARTITIONS.c.TBL_ID == table_id)).scalars())


def _parameters(db: Connection, table_id: int, name: str) -> dict[str, str]:
    if name:
        found = db.execute(select(_P.PARAM_KEY, _P.PARAM_VALUE).where(_P.TBL_ID == table_id, _P.PART_NAME == name))
    else:
        found = db.execute(select(_T.PARAM_KEY, _T.PARAM_VALUE).where(_T.TBL_ID == table_id))
    return {row[0]: row[1] for row in found}


def _parameters_of(db: Connection, table_id: int, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Those of some partitions, no more than a statement of the database takes."""
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    query = select(_P.PART_NAME, _P.PARAM_KEY, _P.PARAM_VALUE)
    for name, key, value in db.execute(query.where(_P.TBL_ID == table_id, _P.PART_NAME.in_(names))):
        found[name][key] = value
    return found


def _replace_some(db: Connection, table_id: int, parameters: Mapping[str, Mapping[str, str]]) -> None:
    """Those of some partitions, as above."""
    db.execute(delete(PARTITION_PARAMS).where(_P.TBL_ID == table_id, _P.PART_NAME.in_(list(parameters))))
    rows = [
        {"TBL_ID": table_id, "PART_NAME": name, "PARAM_KEY": k, "PARAM_VALUE": v}
        for name, one in parameters.items()
        for k, v in one.items()
    ]
    if rows:
        db.execute(insert(PARTITION_PARAMS), rows)


def _replace(db: Connection, table_id: int, name: str, parameters: Mapping[str, str]) -> None:
    if name:
        db.execute(delete(PARTITION_PARAMS).where(_P.TBL_ID == table_id, _P.PART_NAME == name))
        place, key = PARTITION_PARAMS, {"TBL_ID": table_id, "PART_NAME": name}
    else:
        db.execute(delete(TABLE_PARAMS).where(_T.TBL_ID == table_id))
        place, key = TABLE_PARAMS, {"TBL_ID": table_id}
    rows = [{**key, "PARAM_KEY": k, "PARAM_VALUE": v} for k, v in parameters.items()]
    if rows:
        db.execute(insert(place), rows)


def _replace_columns(db: Connection, table_id: int, name: str, columns: Sequence[ColumnStatistics]) -> None:
    if not columns:
        return
    named = [c.column for c in columns]
    for some in batches(named):
        db.execute(delete(TAB_COL_STATS).where(_S.TBL_ID == table_id, _S.PART_NAME == name, _S.COLUMN_NAME.in_(some)))
    rows = [
        {
            "TBL_ID": table_id,
            "PART_NAME": name,
            "COLUMN_NAME": c.column,
            "COLUMN_TYPE": c.type,
            "NUM_NULLS": c.nulls,
            "NUM_DISTINCTS": c.distinct,
            "LOW_VALUE": c.low,
            "HIGH_VALUE": c.high,
            "AVG_COL_LEN": c.average_length,
            "MAX_COL_LEN": c.max_length,
            "NUM_TRUES": c.trues,
            "NUM_FALSES": c.falses,
        }
        for c in columns
    ]
    db.execute(insert(TAB_COL_STATS), rows)


class EmbeddedStatistics(EmbeddedChanges):
    """The part of :class:`~acidsql.metastore.protocol.Catalog` about statistics."""

    def set_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, found: Mapping[str, Statistics]
    ) -> None:
        """As the protocol says; columns that were not analysed keep theirs.

        Where others have written, or are writing, what ``write_ids`` does not see, nothing is exact.
        """
        with self._change() as db:
            table_id = table_id_of(db, table.database, table.name)
            exact = not _writes_unseen(db, table, write_id, write_ids)
            for name, one in found.items():
                known = _parameters(db, table_id, name)
                if not exact:
                    known.pop(STATS_ACCURATE, None)
                accurate = accurate_statistics(known)
                if one.exact and exact:
                    accurate["BASIC_STATS"] = "true"
                looked_at = {c.column: "true" for c in one.columns}
                if looked_at and exact:
                    accurate["COLUMN_STATS"] = {**_columns_of(accurate), **looked_at}
                made = {**known, **one.parameters}
                if accurate:
                    made[STATS_ACCURATE] = json.dumps(accurate, separators=(",", ":"), sort_keys=True)
                _replace(db, table_id, name, made)
                _replace_columns(db, table_id, name, one.columns)

    def partition_parameters(
        self, database: str, table: str, names: Sequence[str] | None = None
    ) -> dict[str, Mapping[str, str]]:
        with self._store.read() as db:
            table_id = table_id_of(db, database, table)
            listed: Iterable[str] = names if names is not None else _names(db, table_id)
            found: dict[str, Mapping[str, str]] = {}
            for some in batches(list(dict.fromkeys(listed))):
                found.update(_parameters_of(db, table_id, some))
            return found

    def column_statistics(self, table: Table, partition: str | None = None) -> list[ColumnStatistics]:
        with self._store.read() as db:
            table_id = table_id_of(db, table.database, table.name)
            query = (
                select(TAB_COL_STATS)
                .where(_S.TBL_ID == table_id, _S.PART_NAME == (partition or ""))
                .order_by(_S.COLUMN_NAME)
            )
            return [
                ColumnStatistics(
                    column=row.COLUMN_NAME,
                    type=row.COLUMN_TYPE,
                    nulls=row.NUM_NULLS,
                    distinct=row.NUM_DISTINCTS,
                    low=row.LOW_VALUE,
                    high=row.HIGH_VALUE,
                    average_length=row.AVG_COL_LEN,
                    max_length=row.MAX_COL_LEN,
                    trues=row.NUM_TRUES,
                    falses=row.NUM_FALSES,
                )
                for row in db.execute(query)
            ]
