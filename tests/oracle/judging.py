"""How hypothesis runs the random tests here: drawn anew each time, but where CI is set."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def many() -> int:
    """How many examples a long test looks at."""
    return int(os.environ.get("ACIDSQL_TEST_QUERIES", "500"))


def for_each(drawn: SearchStrategy[T], examples: int, check: Callable[[T], None]) -> None:
    """Check as many drawn examples; the smallest one that fails is told."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(drawn)
    def run(example: T) -> None:
        check(example)

    run()
