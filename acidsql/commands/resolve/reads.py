"""What a statement reads: its tables as the snapshot has them, pruned by its conditions, and the scans of that."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from acidsql.catalyst import (
    Catalyst,
    HeldFiles,
    Plan,
    as_leaf,
    has_subqueries,
    with_subqueries_beside,
    with_views_as_leaves,
)
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.context import StatementContext
from acidsql.errors import AcidError
from acidsql.metastore.model import LockComponent, LockType, Operation, Partition, Table
from acidsql.plan.feed import changes_frame
from acidsql.plan.feed_history import TableHistory
from acidsql.plan.pruning import remaining
from acidsql.plan.relation import Relation, find_conditions, with_scans
from acidsql.plan.scan import snapshot_frame
from acidsql.plan.search import Search, is_searched, search_of, search_options
from acidsql.plan.snapshot import TableSnapshot, partition_names
from acidsql.settings import FETCH_DELETED
from acidsql.sql.statements import Span


@dataclass(frozen=True)
class Read:
    """One occurrence of a table that a statement reads, as its snapshot sees it.

    Attributes:
        table: The table; ``is_target``: whether it is the one that the statement changes.
        partitions: The partitions after pruning; None for a table without partition keys.
        search: The search argument that may skip stripes; None if no row is read.
        snapshot: Its files.
        history: What happened to it, where its changes are read.
    """

    table: Table
    is_target: bool
    partitions: tuple[Partition, ...] | None
    search: Search | None
    snapshot: TableSnapshot
    history: TableHistory | None = None


class StatementReads:
    """The relations of a statement's plans, from the conditions that Spark's optimiser pushes down to them to scans.

    Attributes:
        context: The statement: its snapshot, and what it has looked up.
        env: The session.
        relations: Each occurrence of an ACID table, as a leaf of the plans.
        held: The files of the scans, and whether anything still reads them.
    """

    def __init__(self, context: StatementContext) -> None:
        self.context = context
        self.env = context.env
        self.relations: list[Relation] = []
        self.held = HeldFiles(self.env.catalyst)
        self._zones = self.env.zones
        self._places: dict[int, Span] = {}
        self._looked_into: Plan = None
        self._read_for: Plan = None
        self._reads: dict[int, Read] = {}

    @property
    def catalyst(self) -> Catalyst:
        return self.env.catalyst

    @property
    def tables(self) -> list[Table]:
        """The ACID tables that are read, except the target of the statement."""
        return [r.table for r in self.relations if not r.is_target]

    def remaining(self, analysed: Plan, made: Relation) -> tuple[Partition, ...] | None:
        """The partitions of a relation after pruning by the conditions in a plan; None: it has no partition keys."""
        partitions = self.context.partitions(made.table)
        if partitions is None:
            return None
        keys = None if made.changes is None else made.changes.keys
        if keys and any(key.name not in keys for key in made.table.partition_keys):
            return partitions  # the two rows of an update may be in different ones
        if made.only is not None:
            partitions = tuple(p for p in partitions if partition_names(made.table, p) in made.only)
        self._find_conditions(analysed)
        return tuple(remaining(self.env.sessions, made, partitions))

    def _find_conditions(self, analysed: Plan) -> None:
        """Collect the conditions pushed down to the relations in a plan, replacing those of another plan."""
        if self._looked_into is not analysed:
            find_conditions(self.catalyst, analysed, self.relations)
            self._looked_into = analysed

    def scanned(self, analysed: Plan, *, is_our_join: bool = False) -> Plan:
        """The plan over scans of the snapshot.

        WITH clauses are put where Spark's optimiser puts them before there are scans in the plan, whose subqueries see
        scans as tables of Spark's own (:mod:`acidsql.catalyst.subqueries`).

        Args:
            analysed: The plan.
            is_our_join: Whether its outermost join is none of the user's.
        """
        by_number = {r.number: r for r in self.relations}
        if not by_number and not has_subqueries(self.catalyst, analysed):
            return analysed
        catalyst, scans, leaves = self.catalyst, dict[int, Plan](), dict[Hashable, Plan]()
        meant = with_subqueries_beside(catalyst, analysed) if is_our_join else analysed
        plan, is_as_looked_into = catalyst.inlined(meant), not is_our_join or meant.fastEquals(analysed)
        are_leaves = has_subqueries(catalyst, plan)

        def scan(number: int) -> Plan | None:
            made = by_number.get(number)
            if made is not None and number not in scans:  # copies of a leaf stay copies of one plan
                read = self.read(analysed, made)
                if not are_leaves:
                    scans[number] = self._scan(made, read)
                    return scans[number]
                positions = made.needed_positions if is_as_looked_into else range(len(made.attributes))
                kind = self._kind_of_leaf(made, read, positions)
                if kind not in leaves:
                    leaf = self._scan(made, read)
                    leaves[kind] = as_leaf(self.env.sessions.own, leaf, positions, made.table.full_name)
                scans[number] = leaves[kind]
            return scans.get(number)

        return with_scans(catalyst, with_views_as_leaves(catalyst, plan) if are_leaves else plan, scan)

    @staticmethod
    def _kind_of_leaf(made: Relation, read: Read, positions: Sequence[int]) -> Hashable:
        """What is the same for leaves that have the same rows and columns."""
        if read.history is not None or read.partitions is not None or is_searched(read.snapshot):
            return made.number  # conditions may leave out partitions, files, stripes, or rows
        return made.table.full_name, made.version, made.columns, tuple(positions)

    def read(self, analysed: Plan, made: Relation) -> Read:
        """The snapshot of a relation, pruned by the conditions in a plan."""
        if self._read_for is not analysed:
            self._reads, self._read_for = {}, analysed
        if made.number not in self._reads:
            self._reads[made.number] = self._looked_up(analysed, made)
        return self._reads[made.number]

    def _looked_up(self, analysed: Plan, made: Relation) -> Read:
        if self._looked_into is not analysed:
            made.conditions, made.needs_all = None, True
        partitions = self.remaining(analysed, made)
        try:
            if made.changes is not None:
                history = self.context.table_history(made.table, partitions, made.changes)
                return Read(made.table, made.is_target, partitions, None, history.snapshot, history)
            seen = self.context.table_snapshot(made.table, partitions, made.version)
        except AcidError as e:
            place = self._places.get(made.number)
            raise (e if place is None else with_location(place, e)) from e
        if is_searched(seen):
            self._find_conditions(analysed)
        return Read(made.table, made.is_target, partitions, search_of(made), seen)

    def reads(self, analysed: Plan) -> list[Read]:
        """The pruned snapshot of each relation in a plan, for EXPLAIN; always collects the conditions."""
        self._find_conditions(analysed)
        return [self.read(analysed, made) for made in self.relations if made.conditions or made.is_target]

    def _scan(self, made: Relation, read: Read) -> Plan:
        own = self.env.sessions.own
        if read.history is not None:
            plan = own.analyzed(changes_frame(own, read.history, self._zones))
            self.held.add(plan)
            return plan
        options, search = {}, Search()
        if read.search is not None and is_searched(read.snapshot):
            search = read.search
            options = search_options(self.env.sessions, made.table, search)
        frame = snapshot_frame(
            own,
            read.snapshot,
            self._zones,
            made.columns,
            options=options,
            conditions=search.conditions,
            needed=made.needed,
            deleted=made.columns.is_deleted and self._fetches_deleted(made.table),
            bound_to=self.context.own_file(made.table),
        )
        plan = own.analyzed(frame)
        self.held.add(plan)
        return plan

    def _fetches_deleted(self, table: Table) -> bool:
        """Whether ROW__IS__DELETED shows deleted rows, by the table's property or the session's setting."""
        settings = self.env.settings
        return settings.value(FETCH_DELETED) or table.parameters.get(FETCH_DELETED.name, "").lower() == "true"


def read_locks(tables: Iterable[Table]) -> list[LockComponent]:
    """SHARED_READ on every table that a writing statement reads."""
    distinct = {t.full_name: t for t in tables}
    return [
        LockComponent(LockType.SHARED_READ, t.database, t.name, operation=Operation.SELECT) for t in distinct.values()
    ]
