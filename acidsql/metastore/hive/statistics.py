"""Statistics in a Hive Metastore: what ANALYZE finds, and what later writes make of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, TypeVar

from hive_metastore import ttypes

from acidsql.errors import AcidError, NoSuchTransaction, TransactionAborted
from acidsql.metastore.hive import translate
from acidsql.metastore.hive.catalog import ALL, HiveCatalog
from acidsql.metastore.hive.column_statistics import from_thrift, to_thrift
from acidsql.metastore.model import (
    STATS_ACCURATE,
    ColumnStatistics,
    RowChange,
    Statistics,
    Table,
    TableChanges,
    accurate_statistics,
    row_count,
    set_row_count,
)
from acidsql.partition_names import partition_name
from acidsql.valid_ids import ValidWriteIdList

logger = logging.getLogger(__name__)

T = TypeVar("T")
_ENGINE = "hive"
"""Whose statistics they are: Hive 4 keeps Impala's apart."""
_AT_ONCE = 100
"""Statistics of so many partitions go in one request."""
_NO_NEW_STATISTICS = "DO_NOT_UPDATE_STATS"
"""Tells the server not to list the table's files at an ALTER."""


def _increment(place: Any, change: RowChange) -> int | None:
    """Carry on the number of rows of a Thrift table or partition, and say that no statistics of it are exact.

    Returns:
        How many there are more; None where there was no number.
    """
    parameters = place.parameters or {}
    parameters.pop(STATS_ACCURATE, None)
    rows = row_count(parameters)
    if change.overwrites or rows is not None:
        set_row_count(parameters, change.applied(rows or 0))
    place.parameters = parameters
    return None if rows is None else change.applied(rows) - rows


def _decrement(place: Any, more: int | None) -> None:
    """Undo an increment; a number that there was none before is none again."""
    parameters = place.parameters or {}
    rows = row_count(parameters)
    set_row_count(parameters, None if more is None or rows is None else rows - more)
    place.parameters = parameters


def _set_statistics(place: Any, found: Statistics, *, flag: bool) -> None:
    """Put numbers into a Thrift table or partition; ``flag``: say so where they are exact."""
    parameters = {**(place.parameters or {}), **found.parameters}
    if found.exact and flag:
        accurate = accurate_statistics(parameters)
        parameters[STATS_ACCURATE] = json.dumps({**accurate, "BASIC_STATS": "true"}, separators=(",", ":"))
    elif found.exact:
        parameters.pop(STATS_ACCURATE, None)
    place.parameters = parameters


def _no_new_statistics() -> Any:
    return ttypes.EnvironmentContext(properties={_NO_NEW_STATISTICS: "true"})


def _columns_to_thrift(columns: Sequence[ColumnStatistics]) -> list[Any]:
    return [made for made in map(to_thrift, columns) if made is not None]


def _is_exact(place: Any) -> bool:
    """Whether the server has left the word that the number of rows is exact."""
    return "BASIC_STATS" in accurate_statistics(place.parameters or {})


class HiveStatistics(HiveCatalog):
    """The part of :class:`~acidsql.metastore.protocol.Catalog` about statistics, over Thrift."""

    def _put_statistics(self, raw: Any, write_id: int, write_ids: ValidWriteIdList) -> None:
        if self._is_hive4:  # it judges statistics by the write id of the table, not by that of the request
            raw.writeId = write_id
        self._put(raw.dbName, raw.tableName, raw, write_id, write_ids, _no_new_statistics())

    @contextmanager
    def carried_on(self, changes: Sequence[TableChanges]) -> Iterator[None]:
        """Tell what a commit changes, which is the block.

        As Hive, statistics first: whoever gathers them meanwhile does not see the transaction's rows, and must not have
        the last word. Where the commit is refused they are taken back; not where the process is killed in between.
        """
        told: list[tuple[TableChanges, Mapping[str, int | None]]] = []
        is_asked = False
        try:
            for made in changes:
                told.append((made, self.carry_on(made)))
            is_asked = True
            yield
        except AcidError as e:
            if not is_asked or isinstance(e, NoSuchTransaction | TransactionAborted):
                with self.on_behalf_of(0):  # the transaction is over
                    for made, more in reversed(told):
                        self._take_back(made, more)
            raise

    def carry_on(self, made: TableChanges) -> dict[str, int | None]:
        """As Hive's ``StatsTask`` ends a statement, but with the word that nothing is known.

        After a major compaction Hive 4 declares the number of rows that stands there exact, without having counted
        (``StatsUpdater``): so it is kept right, as Hive keeps it.

        Also where the statistics do not hold as it is: the write id that is left there keeps an ANALYZE that runs
        meanwhile, and does not see this transaction, from declaring its own exact (``ObjectStore``). Hive 3.1 answers
        no query on a transactional table from statistics.

        Returns:
            How many rows there are more, by the names of places; None where there was no number.
        """
        if not self._is_hive4:
            return {}
        return self._changed(made, lambda name, place: _increment(place, made.rows[name]))

    def _take_back(self, made: TableChanges, more: Mapping[str, int | None]) -> None:
        """Undo :meth:`carry_on`. The transaction has lost its locks: the table may be another one by now."""
        table = made.table
        try:
            if more and self._raw_table(table.database, table.name).createTime == table.created_at:
                self._changed(made, lambda name, place: _decrement(place, more.get(name)))
        except AcidError as e:
            logger.warning("the number of rows of %s counts what was not committed: %s", table.full_name, e)

    def _changed(self, made: TableChanges, change: Callable[[str, Any], T]) -> dict[str, T]:
        """Change properties of what a transaction has written to, under its write id."""
        table, places = made.table, self._places(made.table, list(made.rows))
        changed = {name: change(name, place) for name, place in places.items()}
        if table.partition_keys:
            self._alter_partitions(table, list(places.values()), made.write_id, made.write_ids)
        else:
            self._put_statistics(places[""], made.write_id, made.write_ids)
        return changed

    def _named_partitions(self, table: Table, names: Sequence[str]) -> dict[str, Any]:
        """Thrift partitions by name."""
        found = self._call(lambda c: c.get_partitions_by_names(table.database, table.name, list(names)))
        keys = [k.name for k in table.partition_keys]
        return {partition_name(keys, partition.values): partition for partition in found}

    def _alter_partitions(
        self, table: Table, partitions: list[Any], write_id: int, write_ids: ValidWriteIdList
    ) -> None:
        context, database, name = _no_new_statistics(), table.database, table.name
        if not self._is_hive4:
            self._call(lambda c: c.alter_partitions_with_environment_context(database, name, partitions, context))
            return
        request = ttypes.AlterPartitionsRequest(
            catName=translate.CATALOG,
            dbName=database,
            tableName=name,
            partitions=partitions,
            environmentContext=context,
            writeId=write_id,
            validWriteIdList=write_ids.to_text(),
        )
        self._call(lambda c: c.alter_partitions_req(request))

    def set_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, found: Mapping[str, Statistics]
    ) -> None:
        """As Hive's ``BasicStatsTask`` ends an ANALYZE.

        Hive 4 takes the flag away again where the write id that the last writer left is not one that ``write_ids`` sees
        (``ObjectStore``), and every later writer takes it away; so what is flagged is what is counted. To Hive 3.1
        nothing is said to be exact: it has no such rule.

        Statistics of columns come last, as in Hive. By them the server says that they are exact, too; where the rows
        are not, or it is Hive 3.1, that is taken back.
        """
        self._require_owner()
        partitions = self._named_partitions(table, [n for n in found if n]) if table.partition_keys else {}
        for name, partition in partitions.items():
            _set_statistics(partition, found[name], flag=self._is_hive4)
        if partitions:
            self._alter_partitions(table, list(partitions.values()), write_id, write_ids)
        if "" in found:
            raw = self._raw_table(table.database, table.name)
            _set_statistics(raw, found[""], flag=self._is_hive4)
            self._put_statistics(raw, write_id, write_ids)
        columns = {name: made for name, one in found.items() if (made := _columns_to_thrift(one.columns))}
        if table.partition_keys:
            columns.pop("", None)  # Hive merges those of all partitions when it is asked
        if columns:
            self._set_column_statistics(table, write_id, write_ids, columns)

    def _set_column_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, columns: Mapping[str, list[Any]]
    ) -> None:
        inexact = [name for name, place in self._places(table, columns).items() if not _is_exact(place)]
        made = [
            ttypes.ColumnStatistics(
                statsDesc=ttypes.ColumnStatisticsDesc(
                    isTblLevel=not name,
                    dbName=table.database,
                    tableName=table.name,
                    partName=name or None,
                    catName=translate.CATALOG,
                ),
                statsObj=objects,
                engine=_ENGINE,
            )
            for name, objects in columns.items()
        ]
        for some in (made[at : at + _AT_ONCE] for at in range(0, len(made), _AT_ONCE)):
            request = ttypes.SetPartitionsStatsRequest(
                colStats=some,
                needMerge=False,
                engine=_ENGINE,
                writeId=write_id if self._is_hive4 else None,
                validWriteIdList=write_ids.to_text() if self._is_hive4 else None,
            )
            self._call(methodcaller("set_aggr_stats_for", request))
        places = self._places(table, inexact)
        for place in places.values():
            place.parameters.pop(STATS_ACCURATE, None)
        if not table.partition_keys:
            for place in places.values():
                self._put_statistics(place, write_id, write_ids)
        elif places:
            self._alter_partitions(table, list(places.values()), write_id, write_ids)

    def _places(self, table: Table, names: Collection[str]) -> dict[str, Any]:
        """Thrift partitions by name; by the empty name the table."""
        if not names:
            return {}
        if table.partition_keys:
            return self._named_partitions(table, list(names))
        return {"": self._raw_table(table.database, table.name)}

    def partition_parameters(
        self, database: str, table: str, names: Sequence[str] | None = None
    ) -> dict[str, Mapping[str, str]]:
        raw = self._raw_table(database, table)
        keys = [k.name for k in raw.partitionKeys or ()]
        if names is None:
            listed = self._call(lambda c: c.get_partitions(database, table, ALL))
        else:
            listed = self._call(lambda c: c.get_partitions_by_names(database, table, list(names)))
        return {partition_name(keys, one.values): dict(one.parameters or {}) for one in listed}

    def column_statistics(self, table: Table, partition: str | None = None) -> list[ColumnStatistics]:
        """Those that Hive or acidsql gathered; of a table with partitions, as the server merges them."""
        names = [c.name for c in table.columns]
        asked = {"dbName": table.database, "tblName": table.name, "colNames": names, "engine": _ENGINE}
        asked["catName"] = translate.CATALOG
        if not table.partition_keys:
            request = ttypes.TableStatsRequest(**asked)
            found = self._call(lambda c: c.get_table_statistics_req(request)).tableStats
        elif partition is not None:
            request = ttypes.PartitionsStatsRequest(**asked, partNames=[partition])
            found = self._call(lambda c: c.get_partitions_statistics_req(request)).partStats.get(partition, [])
        else:
            known = self.list_partitions(table.database, table.name)
            keys = [k.name for k in table.partition_keys]
            request = ttypes.PartitionsStatsRequest(**asked, partNames=[partition_name(keys, p.values) for p in known])
            found = self._call(lambda c: c.get_aggr_stats_for(request)).colStats if known else []
        return [one for one in map(from_thrift, found) if one is not None]
