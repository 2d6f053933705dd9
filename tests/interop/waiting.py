"""Waiting for something that another process brings about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 60.0
T = TypeVar("T")


def until(condition: Callable[[], T], what: str) -> T:
    """The first true answer of a condition.

    Raises:
        AssertionError: When it did not come in time.
    """
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come within {PATIENCE:.0f} s"
        time.sleep(0.1)
    return found
