"""Plans with subqueries, as Spark's optimiser leaves them over tables of its own.

What is built on a scan is not deterministic for Spark, so that it neither drops nor doubles it, and pushes nothing
below it. But what its optimiser makes of subqueries and WITH clauses depends on whether they are deterministic, and not
only how fast that is: ``NOT IN`` in ``ON`` forgets NULLs, DISTINCT aggregates over subqueries lose rows, a condition
over a column that is a subquery changes its meaning, nested WITH clauses exchange columns. So a plan that has any is
optimised before there are scans in it, over leaves, which are deterministic: then joins and aggregates stand in the
place of all that.
"""

from __future__ import annotations

from typing import Any

from acidsql.catalyst.active import active
from acidsql.catalyst.builder import Expression, Plan
from acidsql.catalyst.java import SPARK
from acidsql.catalyst.plans import CTE, SUBQUERY, Catalyst, conjuncts_of, parts_of
from acidsql.catalyst.rules import rule
from acidsql.catalyst.sessions import copied

LATERAL = "LATERAL_JOIN"

_LATER = {
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}
"""What finds its place where the plan is optimised again: it would be in the way of what is built on the plan."""
_CATALYST = f"{SPARK}.sql.catalyst"
_PATTERNS = f"{_CATALYST}.trees.TreePattern"
_PREDICATES = ("InSubquery", "Exists")
_BESIDE = "__acid_beside_"
"""Prefix of the columns that carry a condition over one side of a join."""


def settled(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan over leaves, optimised if it has subqueries or WITH clauses; its columns stay what they are."""
    if not any(plan.containsPattern(catalyst.java.constant(_PATTERNS, name)) for name in (SUBQUERY, CTE, LATERAL)):
        return plan
    copy = copied(catalyst.spark, _LATER)
    state: Any = copy._jsparkSession.sessionState()
    with active(copy):
        optimised = state.optimizer().execute(plan.clone())
    before, after = Catalyst.output(plan), Catalyst.output(optimised)
    return catalyst.project(catalyst.same(after, before), optimised)


def with_subqueries_beside(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose outermost join takes what its condition says of one side from a column of that side.

    For a join of ours: Spark's own answer for what it cannot move below a join is wrong.
    """
    if not plan.containsPattern(catalyst.java.constant(_PATTERNS, SUBQUERY)):
        return plan
    is_done = False

    def changed(node: Plan) -> Plan:
        nonlocal is_done
        if is_done or node.nodeName() != "Join":
            return node
        is_done = True
        condition = node.condition()
        return _beside(catalyst, node) if not condition.isEmpty() and _is_predicate(condition.get()) else node

    with rule(changed) as each:
        return plan.transformDown(each)


def _is_predicate(condition: Expression) -> bool:
    return any(part.nodeName() in _PREDICATES for part in parts_of(condition))


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
