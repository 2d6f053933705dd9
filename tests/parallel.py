"""How the tests are dealt out to the workers of pytest-xdist: by file, and the long ones first.

A worker has one Spark and one HDFS for its whole run, so what needs HDFS stays together on one worker. What needs Spark
comes first: the short files of the other tests even out the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

_FIRST = (
    *("tests/hdfs", "tests/faults", "tests/soak", "tests/spark", "tests/isolation", "tests/smoke"),
    "tests/metastore",
)
_TOGETHER = ("tests/hdfs",)


_LINES = pytest.StashKey[list[str]]()


def tell(config: pytest.Config, lines: Iterable[str]) -> None:
    """Add lines to the summary of the run, from whatever process."""
    output = getattr(config, "workeroutput", None)
    known = config.stash.setdefault(_LINES, []) if output is None else output.setdefault("lines", [])
    known.extend(line for line in lines if line not in known)


def told(config: pytest.Config) -> list[str]:
    """What was added."""
    return config.stash.get(_LINES, [])


def rank(nodeid: str) -> int:
    """Where a test comes in a run: small numbers first."""
    return next((i for i, folder in enumerate(_FIRST) if nodeid.startswith(f"{folder}/")), len(_FIRST))


def scope(nodeid: str) -> str:
    """The tests of one scope run on one worker, one after the other."""
    return next((folder for folder in _TOGETHER if nodeid.startswith(f"{folder}/")), nodeid.split("::", 1)[0])


def scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

    config.option.loadscopereorder = False
    return ByFile(config, log)
