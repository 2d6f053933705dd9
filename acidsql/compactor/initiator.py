"""The initiator: looks at what was written lately, and asks for the compactions that are due (Hive's ``Initiator``)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acidsql import fs
from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.overrides import pool_of, threshold_of
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
        share: Deltas of more bytes than this part of the base: major.
    """

    deltas: int
    share: float

    @classmethod
    def of(cls, table: Table, settings: Settings) -> Thresholds:
        """Those of a table: its own properties go before the settings.

        Raises:
            InvalidValue: When one of its properties is none of the setting.
        """
        return cls(
            threshold_of(DELTA_NUM_THRESHOLD, table, settings), threshold_of(DELTA_PCT_THRESHOLD, table, settings)
        )


def type_due(state: AcidState, thresholds: Thresholds) -> CompactionType | None:
    """Which compaction a directory needs, None for none (``Initiator.determineCompactionType``)."""
    base = _size([state.base]) if state.base is not None else sum(f.length for f in state.originals)
    deltas = _size(state.deltas)
    has_no_base = base == 0 and deltas > 0
    if not has_no_base:
        is_replaced = deltas == 0 and any("base_" in path.rpartition("/")[2] for path in state.obsolete)
        if is_replaced or (base > 0 and deltas / base > thresholds.share):
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
    """Asks for what is due.

    1. Take the tables and partitions that committed transactions have written to, or that too many aborted ones have.
    2. Leave out those that opt out, are waited for already, or failed several times in a row.
    3. Look at the directory, and choose by Hive's thresholds.
    """

    def __init__(self, context: WorkerContext, name: str) -> None:
        """``name`` is the initiator's own, ``host-…``."""
        self._context = context
        self._name = name

    def run(self) -> int:
        """One round; how many compactions it asked for."""
        settings, asked = self._context.settings, 0
        age = settings.value(ABORTED_TXN_AGE)
        candidates = self._context.metastore.find_potential_compactions(
            aborted_threshold=settings.value(ABORTED_TXN_THRESHOLD), aborted_age_ms=int(age * 1000) or None
        )
        for candidate in candidates:
            try:
                asked += self.ask(candidate)
            except Exception as e:  # one table that cannot be read must not keep the others waiting
                ours = isinstance(e, AcidError)
                logger.warning("%s could not be looked at for compaction: %s", _name(candidate), e, exc_info=not ours)
                self._did_not_initiate(candidate, e.message if isinstance(e, AcidError) else repr(e))
        return asked

    def ask(self, candidate: CompactionCandidate) -> bool:
        """Ask for the compaction that is due of one table or partition, if one is; whether it did."""
        context, metastore = self._context, self._context.metastore
        table = metastore.find_table(candidate.database, candidate.table)
        if table is None or not table.is_transactional or opts_out(table.parameters):
            return False
        database = metastore.get_database(candidate.database)
        if opts_out(database.parameters):
            return False
        if table.partition_keys and candidate.partition is None:  # a write whose partitions have other entries
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
            found = metastore.list_partitions(table.database, table.name, [candidate.partition])
            if not found:
                return None
            location = found[0].location
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
