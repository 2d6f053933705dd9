"""Spark's own SQL suites, with ACID tables in the place of their views."""

from __future__ import annotations

import pytest

from tests.oracle import sparks_texts
from tests.oracle.sql_suites import Suite
from tests.oracle.twins import Twins
from tests.services.maven import DownloadError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

QUICK = ["natural-join", "subquery/in-subquery/in-nullability"]
SUBQUERIES = {
    "exists-subquery": [
        *(
            "exists-aggregate",
            "exists-basic",
            "exists-count-bug",
            "exists-cte",
            "exists-having",
            "exists-outside-filter",
        ),
        *("exists-in-join-condition", "exists-joins-and-set-ops", "exists-orderby-limit", "exists-within-and-or"),
    ],
    "in-subquery": [
        *("in-basic", "in-count-bug", "in-group-by", "in-having", "in-joins", "in-limit", "in-multiple-columns"),
        *("in-null-semantics", "in-order-by", "in-set-operations", "in-subquery-in-join-condition", "in-with-cte"),
        *("nested-not-in", "not-in-group-by", "not-in-joins", "not-in-unit-tests-multi-column", "simple-in"),
        *("not-in-unit-tests-multi-column-literal", "not-in-unit-tests-single-column-literal"),
        "not-in-unit-tests-single-column",
    ],
    "scalar-subquery": [
        *("nested-scalar-subquery-count-bug", "scalar-subquery-count-bug", "scalar-subquery-group-by"),
        *("scalar-subquery-predicate", "scalar-subquery-select", "scalar-subquery-set-op"),
    ],
    "negative-cases": ["invalid-correlation", "subq-input-typecheck"],
}
LONG = [f"subquery/{folder}/{name}" for folder, names in SUBQUERIES.items() for name in names]
LONG += ["cte-nested", "subquery/resolution-edge-cases", "subquery/subquery-in-from", "subquery/subquery-nested-data"]
LONG += ["subquery/subquery-offset", "cte", "cte-recursion", "join-lateral", "inner-join", "outer-join", "cross-join"]
LONG += ["join-resolution-edge-cases", "join-empty-relation", "alias-resolution-edge-cases", "table-aliases"]
LONG += ["columnresolution", "columnresolution-negative", "column-resolution-aggregate", "column-resolution-sort"]
LONG += ["group-by", "group-by-alias", "group-by-all", "group-by-filter", "group-by-ordinal", "group-analytics"]
LONG += ["grouping_set", "having", "having-and-order-by-recursive-type-name-resolution", "order-by", "order-by-alias"]
LONG += ["order-by-all", "order-by-nulls-ordering", "order-by-ordinal", "replacing-missing-expression-with-alias"]
LONG += [
    "order-by-and-having-on-top-of-aggregate-with-join",
    "pipe-operators",
    "pivot",
    "unpivot",
    "window",
    "window-with-aggregates",
]
LONG += ["name-precedence-in-order-by-and-having-with-conflicting-attributes", "selectExcept", "struct", "limit"]
LONG += ["except", "except-all", "intersect-all", "union", "using-join", "null-handling", "pred-pushdown", "count"]
LONG += ["identifier-clause", "tablesample-negative", "non-excludable-rule", "extract-value-resolution-edge-cases"]
LONG += ["higher-order-functions", "generators", "percentiles", "named-function-arguments", "sql-session-variables"]


def run(twins: Twins, name: str) -> None:
    try:
        text = sparks_texts.texts("sql-tests/inputs").get(name)
    except DownloadError as e:
        pytest.skip(f"NO SUITE OF SPARK'S WAS RUN, its texts cannot be had: {e}")
    if text is None:
        pytest.skip(f"Spark {sparks_texts.LOCK.stem} has no suite {name}")
    suite = Suite(twins, "suites")
    suite.run(text)
    assert not suite.differences, f"{len(suite.differences)} differ:\n" + "\n".join(suite.differences[:20])
    assert suite.compared


@pytest.fixture(scope="module")
def twins(empty_twins: Twins) -> Twins:
    empty_twins.database("suites")
    return empty_twins


@pytest.mark.parametrize("name", QUICK)
def test_a_suite_of_sparks_answers_as_over_its_own_tables(twins: Twins, name: str) -> None:
    run(twins, name)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_each_suite_of_sparks_answers_as_over_its_own_tables(twins: Twins, name: str) -> None:
    run(twins, name)
