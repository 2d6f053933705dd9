"""Plans with subqueries, with what Spark's optimiser would do for tables of its own.

What is built on a scan is not deterministic for Spark, so that it neither drops nor doubles it, and pushes nothing
below it. But what its optimiser makes of subqueries and WITH clauses depends on whether they are deterministic, and not
only how fast that is: ``NOT IN`` in ``ON`` forgets NULLs, DISTINCT aggregates over subqueries lose rows, a condition
over a column that is a subquery changes its meaning, nested WITH clauses exchange columns. So its rules for these are
applied before there are scans in a plan, over leaves, which are deterministic. Only these: whatever comes later in its
optimiser must not be optimised a second time (a null-aware anti join over constants then lets all rows pass).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from acidsql.catalyst.builder import Expression, Plan
from acidsql.catalyst.java import SPARK
from acidsql.catalyst.plans import SUBQUERY, Catalyst, conjuncts_of, parts_of
from acidsql.catalyst.rules import rule

_CATALYST = f"{SPARK}.sql.catalyst"
_PATTERNS = f"{_CATALYST}.trees.TreePattern"
_OPTIMIZER = f"{_CATALYST}.optimizer"
_PREDICATES = ("InSubquery", "Exists")
_SUBQUERIES = ("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery")
_MOST_ROUNDS = 20
"""Each one moves conditions down by a step."""
_BESIDE = "__acid_beside_"
"""Prefix of the columns that carry a condition over one side of a join."""


def settled(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan over leaves, with its WITH clauses in their places, and conditions where Spark moves them if it
    has subqueries; its columns stay what they are."""
    made = catalyst.inlined(plan)
    if not _has(catalyst, made, SUBQUERY):
        return made
    with catalyst.active():
        moved = _moved(catalyst, made)
    return catalyst.project(catalyst.same(Catalyst.output(moved), Catalyst.output(plan)), moved)


def _has(catalyst: Catalyst, node: Any, pattern: str) -> bool:
    return bool(node.containsPattern(catalyst.java.constant(_PATTERNS, pattern)))


def _moved(catalyst: Catalyst, plan: Plan, *, is_correlated: bool = False) -> Plan:
    """A plan, and those of its subqueries, with conditions as far down as Spark puts them.

    Where a subquery refers to the query outside of it, they go no further than below their join: Spark takes such
    conditions out of the subquery before it moves any.
    """
    static, found = catalyst.java.static, list[bool]()

    def settle(expression: Expression) -> Expression:
        if expression.nodeName() not in _SUBQUERIES:
            return expression
        found.append(bool(expression.isCorrelated()))
        return expression.withNewPlan(_moved(catalyst, expression.plan(), is_correlated=found[-1]))

    with rule(settle) as each:
        plan = plan.transformAllExpressions(each)
    if is_correlated or any(found):
        with rule(partial(_with_moved_condition, catalyst)) as each:
            plan = plan.transformUp(each)
    else:
        plan = static(f"{_CATALYST}.analysis.EliminateSubqueryAliases", "apply")(plan)
        plan = static(f"{_CATALYST}.analysis.EliminateView", "apply")(plan)
        push = static(f"{_OPTIMIZER}.PushDownPredicates", "apply")
        for _ in range(_MOST_ROUNDS):
            pushed = push(plan)
            if pushed.fastEquals(plan):
                break
            plan = pushed
    with rule(partial(_without_distinct, catalyst)) as each:
        return plan.transformUp(each)


def _with_moved_condition(catalyst: Catalyst, node: Plan) -> Plan:
    """A join with its condition where Spark puts it, if that has subqueries."""
    if node.nodeName() != "Join":
        return node
    condition = node.condition()
    if condition.isEmpty() or not _is_predicate(condition.get()):
        return node
    move = catalyst.java.static(f"{_OPTIMIZER}.PushPredicateThroughJoin", "applyLocally")()
    return move.apply(node) if move.isDefinedAt(node) else node


def _without_distinct(catalyst: Catalyst, node: Plan) -> Plan:
    """An aggregation with subqueries in it, and DISTINCT, as Spark computes it, which does not find a subquery again
    that is not deterministic."""
    expressions = Catalyst.items(node.expressions()) if node.nodeName() == "Aggregate" else ()
    if not any(_has(catalyst, e, SUBQUERY) for e in expressions):
        return node
    return catalyst.java.static(f"{_OPTIMIZER}.RewriteDistinctAggregates", "apply")(node)


def with_subqueries_beside(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose outermost join takes what its condition says of one side from a column of that side.

    For a join of ours: Spark's own answer for what it cannot move below a join is wrong.
    """
    if not _has(catalyst, plan, SUBQUERY):
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
