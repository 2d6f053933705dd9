"""One current time for all plans of a statement."""

from __future__ import annotations

from typing import Any

from acidsql.catalyst.plans import Catalyst, Expression, Plan, rule

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"
_NANOS_DIGITS = 9


class CurrentTime:
    """The current time, once and for all: of a statement that makes several plans, some of them late.

    Does what Spark's ``ComputeCurrentTime`` does, which takes for each plan the moment at which it looks at it.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._java = catalyst.java
        self._instant: Any = self._java.static("java.time.Instant", "now")()
        self._pattern: Any = self._java.static(_PATTERNS, "CURRENT_LIKE")()

    def fixed(self, plan: Plan) -> Plan:
        """An analysed plan with today's date, the current time and the current zone as literals."""
        return self._catalyst.transform(plan, self._fixed_node) if self._is_in(plan) else plan

    def _is_in(self, tree: Any) -> bool:
        return bool(tree.containsPattern(self._pattern))

    def _fixed_node(self, node: Plan) -> Plan:
        if not any(self._is_in(expression) for expression in self._catalyst.items(node.expressions())):
            return node
        with rule(self._fixed_expression) as each:
            return node.transformExpressions(each)

    def _fixed_expression(self, expression: Expression) -> Expression:
        value = self._value(expression) if self._is_in(expression) else None
        if value is None:
            return expression
        return self._java.static(f"{_EXPRESSIONS}.Literal", "create")(value, expression.dataType())

    def _value(self, expression: Expression) -> Any:
        """The value of an expression itself, not of its parts; None for one that is none of the current time."""
        name = expression.nodeName()
        if name in ("CurrentTimestamp", "Now"):
            return self._instant
        if name == "CurrentDate":
            return self._java.static("java.time.LocalDate", "ofInstant")(self._instant, expression.zoneId())
        if name == "LocalTimestamp":
            return self._java.static("java.time.LocalDateTime", "ofInstant")(self._instant, expression.zoneId())
        if name == "CurrentTimeZone":
            return self._zone
        if name == "CurrentTime":
            zone = self._java.static("java.time.ZoneId", "of")(self._zone)
            time = self._java.static("java.time.LocalTime", "ofInstant")(self._instant, zone)
            unit = 10 ** (_NANOS_DIGITS - expression.precision())
            return time.withNano(time.getNano() // unit * unit)
        return None

    @property
    def _zone(self) -> str:
        return str(self._catalyst.spark.conf.get("spark.sql.session.timeZone"))
