"""Spark's internals: its parser, analyser and optimiser as acidsql uses them.

This room alone touches what PySpark does not promise to keep (``_jdf``, plans, expressions, ORC filters). What it needs
is looked up once, when a session is connected: a Spark that lacks some of it is refused by name (:func:`check`).
"""

from acidsql.catalyst.active import active
from acidsql.catalyst.assignment import can_store
from acidsql.catalyst.builder import MAX_RESULT_SIZE, Expression, Plan
from acidsql.catalyst.check import check
from acidsql.catalyst.current import CurrentValues
from acidsql.catalyst.draft import Draft, union
from acidsql.catalyst.expressions import JavaExpressions
from acidsql.catalyst.held import HeldFiles, collect_garbage
from acidsql.catalyst.java import Java
from acidsql.catalyst.jobs import ended_with_the_call
from acidsql.catalyst.plans import TABLE_FUNCTION, Catalyst, conjuncts_of, parts_of
from acidsql.catalyst.push_down import reader_options
from acidsql.catalyst.scans import file_scan, files_of, max_scan_tasks
from acidsql.catalyst.sessions import (
    ZONE,
    InternalSessions,
    bytes_in_memory,
    copied,
    is_same_session,
    rows_in_memory,
    with_copied_lists,
)
from acidsql.catalyst.streams import QUERY_ID, streaming_frame
from acidsql.catalyst.subqueries import (
    FILES,
    as_leaf,
    closed,
    has_subqueries,
    with_subqueries_beside,
    with_views_as_leaves,
)

__all__ = [
    "FILES",
    "MAX_RESULT_SIZE",
    "QUERY_ID",
    "TABLE_FUNCTION",
    "ZONE",
    "Catalyst",
    "CurrentValues",
    "Draft",
    "Expression",
    "HeldFiles",
    "InternalSessions",
    "Java",
    "JavaExpressions",
    "Plan",
    "active",
    "as_leaf",
    "bytes_in_memory",
    "can_store",
    "check",
    "closed",
    "collect_garbage",
    "conjuncts_of",
    "copied",
    "ended_with_the_call",
    "file_scan",
    "files_of",
    "has_subqueries",
    "is_same_session",
    "max_scan_tasks",
    "parts_of",
    "reader_options",
    "rows_in_memory",
    "streaming_frame",
    "union",
    "with_copied_lists",
    "with_subqueries_beside",
    "with_views_as_leaves",
]
