"""Plans with subqueries: over leaves that hide how their rows are made.

What is built on a scan is not deterministic for Spark, so that it neither drops nor doubles it, and pushes nothing
below it. But what its optimiser makes of subqueries depends on whether they are deterministic, and not only how fast
that is: ``NOT IN`` forgets NULLs, a condition over a column that is a subquery changes its meaning, aggregates with
DISTINCT lose rows. So in a plan with subqueries a scan is a leaf, as a table of Spark's own: an RDD (:func:`as_leaf`),
which is deterministic for Spark, and of which it knows the size.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

from acidsql.catalyst.builder import Expression, Plan
from acidsql.catalyst.java import SPARK, Java
from acidsql.catalyst.plans import SUBQUERY, Catalyst, conjuncts_of, parts_of
from acidsql.catalyst.rules import rule

FILES = "acidsql.files"
"""The option of the reader that every scan of acidsql's has."""
_PREDICATES = ("InSubquery", "Exists")
_BESIDE = "__acid_beside_"
"""Prefix of the columns that carry a condition over one side of a join."""
_EXPRESSIONS = f"{SPARK}.sql.catalyst.expressions"
_EXECUTION = f"{SPARK}.sql.execution"
_TENTH = "apply$default$10"


def has_subqueries(catalyst: Catalyst, plan: Plan) -> bool:
    """Whether a plan has a subquery in an expression, but for those that scans in temporary views have."""
    pattern, stack = catalyst.pattern(SUBQUERY), [plan]
    while stack:
        node = stack.pop()
        if not node.containsPattern(pattern) or _is_scanning_view(node):
            continue
        if any(expression.containsPattern(pattern) for expression in Catalyst.items(node.expressions())):
            return True
        stack += Catalyst.items(node.children())
    return False


def as_leaf(catalyst: Catalyst, plan: Plan, needed: Collection[int], name: str) -> Plan:
    """The rows of a plan as a leaf of other plans; what joins in it broadcast is read now.

    Args:
        catalyst: The session that plans it.
        plan: An analysed plan.
        needed: Positions of the columns that are read; the others are NULL.
        name: What it is called in Spark's plans.
    """
    output = Catalyst.output(plan)
    read = [output[i] for i in needed]
    with catalyst.active():
        execution = catalyst.frame(catalyst.project(read, plan))._jdf.queryExecution()
        session = execution.sparkSession()
        # not as Spark plans a query: its adaptive execution would run the stages of shuffles now
        prepare = catalyst.java.static(f"{_EXECUTION}.QueryExecution", "prepareExecutedPlan")
        rdd = prepare(session, execution.sparkPlan()).execute().setName(name)
        leaf = _of_rdd(catalyst.java, rdd, catalyst.seq(read), session, execution.optimizedPlan().stats())
    if len(needed) == len(output):
        return leaf
    found = dict(zip(needed, Catalyst.output(leaf), strict=True))
    create = catalyst.java.static(f"{_EXPRESSIONS}.Literal$", "MODULE$").create
    columns = [
        found.get(i) or catalyst.alias(create(None, attribute.dataType()), attribute.name())
        for i, attribute in enumerate(output)
    ]
    return catalyst.project(columns, leaf)


def closed(catalyst: Catalyst, plan: Plan) -> Plan:
    """A plan of which no others than its own columns can be named.

    Spark looks for columns of ``orderBy`` and ``filter`` in what is below a ``SELECT``, too.
    """
    output = Catalyst.output(plan)
    return catalyst.project(catalyst.renamed(output, output), catalyst.named("__acid_answer", [], plan))


def _of_rdd(java: Java, rdd: Any, columns: Any, session: Any, statistics: Any) -> Plan:
    """Spark's ``LogicalRDD``; Spark 4.3 has one argument more."""
    made = java.static(f"{_EXECUTION}.LogicalRDD$", "MODULE$")
    anywhere = getattr(made, "apply$default$3")()
    first = (columns, rdd, anywhere, java.nothing, False, java.none)
    further = [getattr(made, _TENTH)(*first)] if _has_tenth(java) else []
    return made.apply(*first, session, java.option(statistics), java.none, *further)


@lru_cache(maxsize=2)
def _has_tenth(java: Java) -> bool:
    methods = java.static(f"{_EXECUTION}.LogicalRDD$", "MODULE$").getClass().getMethods()
    return f".{_TENTH}(" in str(java.static("scala.runtime.ScalaRunTime", "stringOf")(methods))


def with_views_as_leaves(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan in which temporary views over scans are leaves, too; as the plan's own tables are."""

    def changed(node: Plan) -> Plan:
        if not _is_scanning_view(node):
            return node
        output = Catalyst.output(node)
        leaf = as_leaf(catalyst, node, range(len(output)), "temporary view")
        return catalyst.project(catalyst.same(Catalyst.output(leaf), output), leaf)

    return catalyst.transform(plan, changed)


def _is_scanning_view(node: Plan) -> bool:
    """Whether a node is a temporary view with scans of acidsql's."""
    if node.nodeName() != "View" or not node.isTempView() or node.deterministic():
        return False
    relations = Catalyst.base_relations(node)
    return any(r.getClass().getSimpleName() == "HadoopFsRelation" and r.options().contains(FILES) for r in relations)


def with_subqueries_beside(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose outermost join takes what its condition says of one side from a column of that side.

    For a join of ours: Spark's own answer for what it cannot move below a join is wrong.
    """
    if not has_subqueries(catalyst, plan):
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
    of_its_kind = catalyst.java.type(f"{SPARK}.sql.catalyst.plans.logical.Join")
    joined = of_its_kind(made["left"], made["right"], join.joinType(), condition, join.hint())
    return catalyst.project(Catalyst.output(join), joined)
