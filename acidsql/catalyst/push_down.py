"""Conditions as a search argument of the ORC reader.

For an ACID file orc-core looks the columns of a search argument up inside ``row``, by their bare names, while Spark
pushes ``row.<name>``, which finds nothing there. So Spark's own translation is asked for, over a flat schema, and
handed to the reader as the options that orc-core itself reads. Spark must push nothing of its own for such a scan, or
it would overwrite them: :mod:`acidsql.plan.files` sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from acidsql.catalyst.builder import Expression
from acidsql.catalyst.java import Java
from acidsql.catalyst.plans import Catalyst, parts_of
from acidsql.format.calendar import REFORM_DAY

_SOURCES = "org.apache.spark.sql.execution.datasources"
_FIRST_UNORDERED = 0x80
"""A text that is not UTF-8 stands in the statistics with U+FFFD in the place of its bytes, which are all above ASCII:
they do not tell on which side it is of a constant with characters from here on. (From U+D800 on the orders differ, too:
orc-core compares UTF-16 units, and statistics are ordered by bytes.)"""
_ZONE = "java.util.TimeZone"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def reader_options(
    catalyst: Catalyst, schema: str, names: Sequence[str], conditions: Iterable[Expression], *, file_zone: str | None
) -> dict[str, str]:
    """Options of Spark's ORC reader that let it pass over what conditions rule out.

    Args:
        catalyst: A session of acidsql's own.
        schema: The columns that conditions may name, as the JSON of a ``StructType``.
        names: Their names.
        conditions: Conditions that all rows of use meet.
        file_zone: The default zone of the JVMs that read files; None for the driver's.

    Returns:
        The options; empty where nothing of the conditions can be pushed.
    """
    java = catalyst.java
    strategy = java.static(f"{_SOURCES}.DataSourceStrategy$", "MODULE$")
    with catalyst.active():
        filters = []
        for condition in conditions:
            translated = strategy.translateFilter(condition, False)
            if translated.isDefined() and _is_ordered(java, condition, file_zone):
                filters.append(translated.get())
        if not filters:
            return {}
        type = java.static("org.apache.spark.sql.types.DataType", "fromJson")(schema)
        search = _create_filter(catalyst, type, catalyst.seq(filters))
    if not search.isDefined():
        return {}
    conf = java.type("org.apache.hadoop.conf.Configuration")(False)
    array = java.static("org.apache.hadoop.util.StringUtils", "getStrings")(",".join(names))  # as orc-core splits them
    java.static("org.apache.orc.mapred.OrcInputFormat", "setSearchArgument")(conf, search.get(), array)
    return {key: conf.get(key) for key in ("orc.kryo.sarg", "orc.sarg.column.names")}


def _create_filter(catalyst: Catalyst, type: Any, filters: Any) -> Any:
    """``OrcFilters.createFilter``; since Spark 4.3 it has a third argument, which has a default."""
    create = catalyst.java.static(f"{_SOURCES}.orc.OrcFilters", "createFilter")
    if _takes_three(catalyst.java):
        return create(type, filters, catalyst.java.none)
    return create(type, filters)


@lru_cache(maxsize=2)
def _takes_three(java: Java) -> bool:
    """Looked for in the class itself, by one call to the JVM, once a session."""
    methods = java.static(f"{_SOURCES}.orc.OrcFilters$", "MODULE$").getClass().getMethods()
    return "createFilter$default$3" in str(java.static("scala.runtime.ScalaRunTime", "stringOf")(methods))


def _is_ordered(java: Java, condition: Expression, file_zone: str | None) -> bool:
    """Whether the constants of a condition compare in orc-core as they do in Spark; a NULL among them is not pushed."""
    for expression in parts_of(condition):
        name = expression.nodeName()
        if name == "Literal":
            value, text = expression.value(), expression.toString()
            if value is None or not _is_ordered_text(text):
                return False
            if _is_date(expression, text) and not _are_days(java, [value], file_zone):
                return False
        elif name == "InSet":
            text = expression.toString()
            if expression.hasNull() or not _is_ordered_text(text):
                return False
            if _is_date(expression.child(), text):
                days = expression.hset().mkString(",").split(",")
                if not _are_days(java, map(int, days), file_zone):
                    return False
    return True


def _is_ordered_text(text: str) -> bool:
    return all(ord(c) < _FIRST_UNORDERED for c in text)


def _is_date(expression: Expression, text: str) -> bool:
    """Whether an expression is a day, whose text is given: Spark is asked only where it looks like one."""
    return _DAY.search(text) is not None and bool(expression.dataType().typeName() == "date")


def _are_days(java: Java, days: Iterable[int], file_zone: str | None) -> bool:
    """Whether days reach orc-core as what they are.

    They do as a ``java.sql.Date``: a moment, the driver's midnight, of which the reader's zone may make another day.
    There is none for a day that the driver's zone skipped (2011-12-30 in Samoa). And a day before the Gregorian reform
    has another number in Bloom filters of most files than the one that orc-core asks them for.
    """
    zone = java.static(_ZONE, "getDefault")()
    if file_zone is not None and not zone.hasSameRules(java.static(_ZONE, "getTimeZone")(file_zone)):
        return False
    name = str(zone.getID())
    return all(day >= REFORM_DAY and _is_day(java, name, day) for day in days)


@lru_cache(maxsize=4096)
def _is_day(java: Java, zone: str, day: int) -> bool:
    """The default zone of the JVM is an argument because it can be changed."""
    date = java.static("org.apache.spark.sql.catalyst.util.DateTimeUtils", "toJavaDate")(day)
    return bool(date.toLocalDate().toEpochDay() == day)
