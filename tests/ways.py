"""Which tests ``make test`` runs in one of two ways only: each by turns, so that both ways are taken by half of them.

A test with Spark that runs once for the driver's writer and once for the job's, or once for each layout of compacted
files, costs twice the time and mostly finds the same. Which way a case goes follows from its name: it is the same in
each run. The others have the marker ``long``; ``ACIDSQL_TEST_WAYS=all`` leaves them in.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable

import pytest

_WAYS = (("driver", "job"), ("hive3", "hive4"))
_FOLDERS = ("tests/spark/", "tests/hdfs/")
_NAMED = re.compile(r"(?P<test>[^\[]*)\[(?P<case>.*)\]", re.DOTALL)


class OneWay:
    """Marks the other way before pytest chooses by markers."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if os.environ.get("ACIDSQL_TEST_WAYS") == "all":
            return
        left_out = others(item.nodeid for item in items)
        for item in items:
            if item.nodeid in left_out:
                item.add_marker(pytest.mark.long)


def others(nodeids: Iterable[str]) -> set[str]:
    """Of the cases that come in two ways, the ids of those which a run leaves out."""
    known = {nodeid for nodeid in nodeids if nodeid.startswith(_FOLDERS)}
    return {nodeid for nodeid in known if any(_is_other(nodeid, pair, known) for pair in _WAYS)}


def _is_other(nodeid: str, pair: tuple[str, str], known: set[str]) -> bool:
    named = _NAMED.fullmatch(nodeid)
    if named is None:
        return False
    words = named["case"].split("-")
    for i, word in enumerate(words):
        if word in pair:
            first, second = (f"{named['test']}[{'-'.join([*words[:i], way, *words[i + 1 :]])}]" for way in pair)
            if {first, second} <= known:
                return nodeid != (first, second)[zlib.crc32(first.encode()) % 2]
    return False
