"""Subqueries in the conditions of joins.

Spark's optimiser moves a condition over one side of a join below the join, where it becomes a filter, before it makes
joins of ``IN`` and ``EXISTS``. What stays in the condition it treats another way: ``NOT IN`` loses its meaning for NULL
there, and conditions of a subquery without columns get lost. Scans are not deterministic to it, and so are subqueries
over them, so that it would leave them where they are.
"""

from __future__ import annotations

from typing import Any

from acidsql.catalyst.builder import Expression, Plan
from acidsql.catalyst.java import SPARK
from acidsql.catalyst.plans import Catalyst, conjuncts_of, parts_of
from acidsql.catalyst.rules import rule

PREDICATES = ("IN_SUBQUERY", "EXISTS_SUBQUERY")
"""Spark's names of the subqueries that it makes joins of."""
_CATALYST = f"{SPARK}.sql.catalyst"
_NODES = ("InSubquery", "Exists")
_BESIDE = "__acid_beside_"
"""Prefix of the columns that carry a condition over one side of a join."""


def with_moved_subqueries(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose joins have subqueries where Spark would have them, were the tables its own."""
    if not _has_predicates(catalyst, plan):
        return plan
    move = catalyst.java.static(f"{_CATALYST}.optimizer.PushPredicateThroughJoin", "applyLocally")()

    def moved(node: Plan) -> Plan:
        if node.nodeName() == "Join" and _are_in(node) and move.isDefinedAt(node):
            return move.apply(node)
        return node

    with catalyst.active():
        return catalyst.transform(plan, moved)


def with_subqueries_beside(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose outermost join takes what its condition says of one side from a column of that side.

    For a join of ours: Spark's own answer for what it cannot move is wrong.
    """
    if not _has_predicates(catalyst, plan):
        return plan
    is_done = False

    def changed(node: Plan) -> Plan:
        nonlocal is_done
        if is_done or node.nodeName() != "Join":
            return node
        is_done = True
        return _beside(catalyst, node) if _are_in(node) else node

    with rule(changed) as each:
        return plan.transformDown(each)


def _has_predicates(catalyst: Catalyst, plan: Plan) -> bool:
    patterns = f"{_CATALYST}.trees.TreePattern"
    return any(plan.containsPattern(catalyst.java.constant(patterns, name)) for name in PREDICATES)


def _are_in(join: Plan) -> bool:
    """Whether the condition of a join has subqueries that Spark makes joins of."""
    condition = join.condition()
    return not condition.isEmpty() and _is_predicate(condition.get())


def _is_predicate(condition: Expression) -> bool:
    return any(part.nodeName() in _NODES for part in parts_of(condition))


def _beside(catalyst: Catalyst, join: Plan) -> Plan:
    sides = {"left": join.left(), "right": join.right()}
    columns: dict[str, list[Any]] = {side: [] for side in sides}
    kept = []
    for part in conjuncts_of(join.condition().get()):
        of = [side for side, plan in sides.items() if part.references().subsetOf(plan.outputSet())]
        if not (of and _is_predicate(part)):
            kept.append(part)
            continue
        alias = catalyst.alias(part, f"{_BESIDE}{len(kept)}")
        columns[of[0]].append(alias)
        kept.append(alias.toAttribute())
    made = {
        side: catalyst.project([*Catalyst.output(plan), *columns[side]], plan) if columns[side] else plan
        for side, plan in sides.items()
    }
    condition = catalyst.java.option(catalyst.both(kept))
    of_its_kind = catalyst.java.type(f"{_CATALYST}.plans.logical.Join")
    joined = of_its_kind(made["left"], made["right"], join.joinType(), condition, join.hint())
    return catalyst.project(Catalyst.output(join), joined)
