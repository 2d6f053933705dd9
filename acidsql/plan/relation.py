"""One occurrence of a table in a statement: a leaf while names are resolved, then the scan of a snapshot.

A statement is analysed and optimised over leaves that have a table's columns and no rows. What Spark's own optimiser
pushes down to a leaf, from whatever clause, is what may prune the table's partitions and files there; nothing of it is
read from the user's text. Then the leaves of the *analysed* plan, not of the optimised one, are replaced by scans that
have the same columns, so that each expression is analysed once, and times are the same in both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from acidsql.catalyst import Catalyst, Expression, InternalSessions, Plan, conjuncts_of, parts_of
from acidsql.metastore.model import Column, Table
from acidsql.plan.feed import CHANGE_COLUMNS
from acidsql.plan.feed_history import Changes
from acidsql.plan.scan import FILE_VALUE, RAW_KEY, ROW_ID, ROW_ID_TYPE, ROW_IS_DELETED, ScanColumns
from acidsql.plan.text import quote
from acidsql.plan.values import CHAR_TYPE, Zones, has_wall_clock
from acidsql.types import contains, parse_type, to_hive, to_spark


@dataclass
class Relation:
    """A table at one place.

    Attributes:
        table: The table.
        version: The write id of VERSION AS OF.
        columns: Which columns the scan is to have.
        leaf: The plan that stands for it until there is a snapshot.
        number: By which copies of the leaf are known.
        visible: How many of the leaf's columns a star stands for; the others come behind them.
        is_target: Whether it is the table that the statement changes.
        conditions: What each copy of the leaf in the optimised plan is filtered by, with that copy; None for one that
            is read whole. Not known before :func:`find_conditions`.
        needed: Columns that are read of it in the optimised plan, in lower case, as far as they are known.
        needs_all: Whether others may be read, too.
        changes: Which changes of it are read, in the place of its rows.
        only: Names of the partitions that are read at most.
    """

    table: Table
    version: int | None
    columns: ScanColumns
    leaf: Plan
    number: int
    visible: int
    is_target: bool = False
    conditions: list[Occurrence] | None = None
    needed: frozenset[str] = frozenset()
    needs_all: bool = True
    changes: Changes | None = None
    only: frozenset[str] | None = None

    @property
    def needed_positions(self) -> list[int]:
        """Those of the leaf's columns that are read; what the others are makes no difference to the statement."""
        return [i for i, name in enumerate(self.attributes) if self.needs_all or name.lower() in self.needed]

    @cached_property
    def attributes(self) -> Mapping[str, Expression]:
        """The leaf's columns by name, in their order."""
        return {a.name(): a for a in Catalyst.output(self.leaf)}


@dataclass(frozen=True)
class Occurrence:
    """A copy of a leaf in the optimised plan, and the conditions that its rows meet."""

    conditions: tuple[Expression, ...]
    leaf: Plan

    def over(self, names: Iterable[str]) -> list[Expression]:
        """The conditions over some of its columns alone, which give the same answer whenever they are asked."""
        wanted = set(names)
        return [c for c in self.conditions if _references(c) <= wanted and _is_plain(c)]


def _references(using: Expression | Plan) -> set[str]:
    """The names of the columns, all of them of one leaf, that a condition or a node uses; the user spelled them."""
    return {a.name().lower() for a in Catalyst.items(using.references().toSeq())}


_NOT_PLAIN = ("Exists", "InSubqueryExec", "ListQuery", "OuterReference", "ScalaUDAF", "UserDefinedPythonFunction")


def _is_plain(condition: Expression) -> bool:
    """Whether a condition is a function of the row alone: no subquery, nothing random, no code of the user's."""
    if not condition.deterministic():
        return False
    for expression in parts_of(condition):
        name = expression.nodeName()
        if name.endswith(("Subquery", "SubqueryExpression", "UDF")) or name in _NOT_PLAIN:
            return False
    return True


def relation(
    sessions: InternalSessions,
    table: Table,
    zones: Zones,
    *,
    version: int | None = None,
    row_id: bool = False,
    is_deleted: bool = False,
    is_target: bool = False,
    secret: str = "",
) -> Relation:
    """A leaf for a table.

    Args:
        sessions: The statement is analysed in the user's session.
        table: The table.
        zones: The zones that timestamps pass.
        version: The write id of VERSION AS OF.
        row_id: Whether the text may name ROW__ID.
        is_deleted: Whether it may name ROW__IS__DELETED.
        is_target: Whether rows of it are going to be changed: then it has their identity, their partition as path text,
            and the wall clocks of timestamps as files hold them, under names that no text can know.
        secret: Makes those names.
    """
    with_id = (row_id or is_target) and not table.is_insert_only
    files = [i for i, c in enumerate(table.columns) if has_wall_clock(parse_type(c.type))]
    columns = ScanColumns(
        row_id=with_id,
        is_deleted=is_deleted,
        raw_keys=f"{RAW_KEY}{secret}_" if is_target else None,
        file_values=tuple(files) if is_target and not zones.same else (),
        file_value_prefix=f"{FILE_VALUE}{secret}_",
    )
    leaf, number = sessions.user.leaf(_schema(sessions.own, table, columns))
    return Relation(table, version, columns, leaf, number, len(table.all_columns), is_target)


def changes_relation(sessions: InternalSessions, table: Table, changes: Changes) -> Relation:
    """A leaf for the changes of a table (:mod:`acidsql.plan.feed`)."""
    columns = ScanColumns()
    leaf, number = sessions.user.leaf(_schema(sessions.own, table, columns, CHANGE_COLUMNS))
    visible = len(table.all_columns) + len(CHANGE_COLUMNS)
    return Relation(table, None, columns, leaf, number, visible, changes=changes)


def _schema(own: Catalyst, table: Table, columns: ScanColumns, further: Sequence[tuple[str, str]] = ()) -> str:
    """The columns of a scan as the JSON of a ``StructType``: the table's own first, then the hidden ones."""
    types = [(c.name, parse_type(c.type)) for c in table.all_columns]
    ddl = [(name, to_spark(type, plain_strings=True)) for name, type in types]
    marks = {i: to_hive(t) for i, (_, t) in enumerate(types) if contains(t, "char") or contains(t, "varchar")}
    if columns.row_id:
        ddl.append((ROW_ID, ROW_ID_TYPE))
    if columns.is_deleted:
        ddl.append((ROW_IS_DELETED, "boolean"))
    ddl += [(name, "string") for name in columns.raw_key_names(len(table.partition_keys))]
    ddl += [(columns.file_value_prefix + str(i), ddl[i][1]) for i in columns.file_values]
    ddl += further
    text = ", ".join(f"{quote(name)} {type}" for name, type in ddl)
    return _json(own, text, tuple(marks.items()))


def column_schema(own: Catalyst, columns: Sequence[Column]) -> str:
    """Columns as the JSON of a ``StructType``."""
    types = [(c.name, to_spark(parse_type(c.type), plain_strings=True)) for c in columns]
    return own.schema(", ".join(f"{quote(name)} {type}" for name, type in types))


def _json(own: Catalyst, ddl: str, marks: Sequence[tuple[int, str]]) -> str:
    text = own.schema(ddl)
    if not marks:
        return text
    schema = json.loads(text)
    for position, type in marks:
        schema["fields"][position]["metadata"] = {CHAR_TYPE: type}
    return json.dumps(schema)


def find_conditions(catalyst: Catalyst, analysed: Plan, relations: Iterable[Relation]) -> None:
    """Find out what Spark's optimiser filters each relation by, wherever the condition stands in the text, and what it
    reads of it."""
    by_number = {r.number: r for r in relations}
    filtered: dict[int, list[Occurrence]] = {number: [] for number in by_number}
    needed: dict[int, set[str]] = {number: set() for number in by_number}
    chosen = dict.fromkeys(by_number, 0)
    seen = dict.fromkeys(by_number, 0)
    for node in catalyst.nodes(catalyst.optimized(catalyst.frame(analysed))):
        name = node.nodeName()
        if name == "LogicalRDD":
            number = Catalyst.leaf_number(node)
            if number in seen:
                seen[number] += 1
        elif name == "Filter" and node.child().nodeName() == "LogicalRDD":
            number = Catalyst.leaf_number(node.child())
            if number in filtered:
                filtered[number].append(Occurrence(tuple(conjuncts_of(node.condition())), node.child()))
                needed[number] |= _references(node)
        elif name in ("Aggregate", "Project"):
            below = node.child()
            below = below.child() if below.nodeName() == "Filter" else below
            number = Catalyst.leaf_number(below)
            if number in needed:
                needed[number] |= _references(node)
                chosen[number] += 1
    for number, known in by_number.items():
        whole = [Occurrence((), known.leaf)] * (seen[number] - len(filtered[number]))
        known.conditions = [*filtered[number], *whole]
        known.needed = frozenset(needed[number])
        known.needs_all = chosen[number] < seen[number]


def with_scans(catalyst: Catalyst, plan: Plan, scan: Callable[[int], Plan | None]) -> Plan:
    """The plan with leaves replaced by scans; a scan's columns become the leaf's, by position.

    It is not analysed again, since it is resolved already. So that this also holds for what is built on it, no table is
    twice in it: the analyser would put another plan in the place of the second one.

    Args:
        catalyst: The session that the plan was analysed in.
        plan: The plan.
        scan: The scan for a leaf's number; None for a leaf that is none of ours.
    """

    scans = 0

    def replaced(node: Plan) -> Plan:
        nonlocal scans
        number = Catalyst.leaf_number(node)
        made = None if number is None else scan(number)
        if made is None:
            return node
        scans += 1
        return catalyst.project(catalyst.renamed(Catalyst.output(made), Catalyst.output(node)), made)

    scanned = catalyst.transform(plan, replaced)
    if scans > 1:
        scanned = catalyst.without_duplicates(scanned)
    scanned.setAnalyzed()
    return scanned
