"""Which cases of a test belong to the normal run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick_and_long(quick: Iterable[Any], rest: Iterable[Any]) -> list[Any]:
    """The first ones in each run, the rest with the long tests."""
    return [*quick, *(pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=pytest.mark.long) for c in rest)]


def first_quick(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """As many of the cases in each run, the others with the long tests."""
    listed = list(cases)
    return quick_and_long(listed[:quick], listed[quick:])
