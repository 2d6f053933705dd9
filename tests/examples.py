"""How many examples the dearer random tests draw: few in the normal run, many times as many in ``make test-random``."""

from __future__ import annotations

import os

_TIMES = float(os.environ.get("ACIDSQL_TEST_EXAMPLES") or 1)


def examples(normal: int) -> int:
    """The number of examples: that of the normal run, times ``ACIDSQL_TEST_EXAMPLES``."""
    return max(1, round(normal * _TIMES))
