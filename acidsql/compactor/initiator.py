"""The initiator: checks recently written tables, and requests the compactions that are due (Hive's ``Initiator``)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acidsql import fs
from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.overrides import pool_of, threshold_of
from acidsql.compactor.rename_journal import find_table
from acidsql.compactor.version import VERSION
from acidsql.errors import AcidError
from acidsql.format.directory import AcidDirectory, AcidState, acid_state
from acidsql.metastore.model import CompactionCandidate, CompactionRequest, CompactionType, Table, is_marked
from acidsql.settings import (
    ABORTED_TXN_AGE,
    ABORTED_TXN_THRESHOLD,
    DELTA_NUM_THRESHOLD,
    DELTA_PCT_THRESHOLD,
    FAILED_COMPACTS_RETRY,
    FAILED_COMPACTS_THRESHOLD,
    Settings,
)

logger = logging.getLogger(__name__)

NO_AUTO_COMPACTION = "no_auto_compaction"


@dataclass(frozen=True)
class Thresholds:
    """When a compaction is due.

    Attributes:
        deltas: More deltas than this: minor.
        ratio: Deltas of more bytes than this fraction of the base: major.
    """

    deltas: int
    ratio: float

    @classmethod
    def of(cls, table: Table, settings: Settings) -> Thresholds:
        """The thresholds of a table: its properties override the settings.

        Raises:
            InvalidValue: When one of its properties has an invalid value.
        """
        return cls(
            threshold_of(DELTA_NUM_THRESHOLD, table, settings), threshold_of(DELTA_PCT_THRESHOLD, table, settings)
        )


def type_due(state: AcidState, thresholds: Thresholds) -> CompactionType | None:
    """The compaction that a directory needs, or None (``Initiator.determineCompactionType``)."""
    base = _size([state.base]) if state.base is not None else sum(f.length for f in state.originals)
    deltas = _size(state.deltas)
    has_no_base = base == 0 and deltas > 0
    if not has_no_base:
        is_replaced = deltas == 0 and any("base_" in path.rpartition("/")[2] for path in state.obsolete)
        if is_replaced or (base > 0 and deltas / base > thresholds.ratio):
            return CompactionType.MAJOR
    if len(state.deltas) > thresholds.deltas:
        return CompactionType.MAJOR if has_no_base else CompactionType.MINOR
    return None


def _size(directories: Iterable[AcidDirectory]) -> int:
    return sum(file.length for directory in directories for file in directory.files)


def opts_out(parameters: Mapping[str, str]) -> bool:
    """Whether ``NO_AUTO_COMPACTION`` is set to true, in any letter case."""
    return is_marked(parameters, NO_AUTO_COMPACTION)


class Initiator:
    """Requests due compactions.

    1. Get the tables and partitions that committed transactions, or too many aborted ones, have written to.
    2. Skip those that opt out, are already queued, or failed several times in a row.
    3. List the directory, and decide by Hive's thresholds.
    """

    def __init__(self, context: WorkerContext, name: str) -> None:
        """``name`` is that of the initiator, ``host-…``."""
        self._context = context
        self._name = name

    def run(self) -> int:
        """Run one round; returns how many compactions it requested."""
        settings, asked = self._context.settings, 0
        age = settings.value(ABORTED_TXN_AGE)
        candidates = self._context.metastore.find_potential_compactions(
            aborted_threshold=settings.value(ABORTED_TXN_THRESHOLD), aborted_age_ms=int(age * 1000) or None
        )
        for candidate in candidates:
            try:
                asked += self.ask(candidate)
            except Exception as e:  # a table that cannot be read must not block the others
                ours = isinstance(e, AcidError)
                logger.warning("%s could not be checked for compaction: %s", _name(candidate), e, exc_info=not ours)
                self._did_not_initiate(candidate, e.message if isinstance(e, AcidError) else repr(e))
        return asked

    def ask(self, candidate: CompactionCandidate) -> bool:
        """Request a compaction of one table or partition if one is due; returns whether it did."""
        context, metastore = self._context, self._context.metastore
        table = find_table(metastore, candidate.database, candidate.table)
        if table is None or not table.is_transactional or opts_out(table.parameters):
            return False
        database = metastore.get_database(candidate.database)
        if opts_out(database.parameters):
            return False
        if table.partition_keys and candidate.partition is None:  # the partitions of this write have their own entries
            return False
        threshold = context.settings.value(FAILED_COMPACTS_THRESHOLD)
        retry = context.settings.value(FAILED_COMPACTS_RETRY)
        place = (candidate.database, candidate.table, candidate.partition)
        if metastore.check_failed_compactions(*place, threshold, int(retry * 1000)):
            self._did_not_initiate(candidate, f"the last {threshold} compactions of it failed")
            return False
        type = self._due(candidate, table)
        if type is None:
            return False
        answer = metastore.compact(self._request(candidate, type, pool_of(table, database)))
        if answer.accepted:
            logger.info("compaction %s of %s is due: %s", answer.id, _name(candidate), type.name)
        return answer.accepted

    def _due(self, candidate: CompactionCandidate, table: Table) -> CompactionType | None:
        metastore = self._context.metastore
        location = table.location
        if candidate.partition is not None:
            partitions = metastore.list_partitions(table.database, table.name, [candidate.partition])
            if not partitions:
                return None
            location = partitions[0].location
        if candidate.too_many_aborts:
            return CompactionType.MAJOR
        txns = metastore.get_valid_txns()
        [write_ids] = metastore.get_valid_write_ids([table.full_name], txns)
        filesystem, path = fs.resolve(location)
        state = acid_state(filesystem, path, write_ids.for_compaction(), txns, any_file_name=table.is_insert_only)
        found_type = type_due(state, Thresholds.of(table, self._context.settings))
        return CompactionType.MINOR if found_type is None and candidate.has_old_abort else found_type

    def _did_not_initiate(self, candidate: CompactionCandidate, message: str) -> None:
        self._context.metastore.mark_did_not_initiate(self._request(candidate, CompactionType.MAJOR), message)

    def _request(
        self, candidate: CompactionCandidate, type: CompactionType, pool: str | None = None
    ) -> CompactionRequest:
        return CompactionRequest(
            candidate.database,
            candidate.table,
            candidate.partition,
            type,
            self._context.user,
            self._context.host,
            pool=pool,
            initiator=self._name,
            initiator_version=VERSION,
        )


def _name(candidate: CompactionCandidate) -> str:
    return ".".join(part for part in (candidate.database, candidate.table, candidate.partition) if part)
