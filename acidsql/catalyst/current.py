"""What is current for a statement, the same in all of its plans and in whichever session they run."""

from __future__ import annotations

from typing import Any

from acidsql.catalyst.builder import Expression, Plan
from acidsql.catalyst.plans import Catalyst
from acidsql.catalyst.rules import rule
from acidsql.catalyst.sessions import ZONE

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"
_NANOS_DIGITS = 9


class CurrentValues:
    """The current time, zone, catalog and database: of a statement that makes several plans, some of them late.

    Does what Spark's ``ComputeCurrentTime`` and ``ReplaceCurrentLike`` do, which take for each plan the moment at which
    they look at it, and the database of the session that runs it: of acidsql's own ones it is always ``default``.
    """

    def __init__(self, catalyst: Catalyst, database: str | None = None) -> None:
        """``catalyst`` is the user's session, ``database`` the current one where it is not that of the session."""
        self._catalyst = catalyst
        self._database = database
        self._java = catalyst.java
        self._instant: Any = self._java.static("java.time.Instant", "now")()
        self._pattern: Any = self._java.constant(_PATTERNS, "CURRENT_LIKE")

    def fixed(self, plan: Plan) -> Plan:
        """An analysed plan with what is current as literals."""
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
        """The value of an expression itself, not of its parts; None for one that does not ask what is current."""
        name, catalog = expression.nodeName(), self._catalyst.spark.catalog
        if name == "CurrentDatabase":
            return self._database or catalog.currentDatabase()
        if name == "CurrentCatalog":
            return catalog.currentCatalog()
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
        return str(self._catalyst.spark.conf.get(ZONE))
