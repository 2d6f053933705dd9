"""Tables of the same statements, compacted by Hive's worker and by acidsql's: the same files, event for event."""

from __future__ import annotations

from typing import Any

import pyorc
import pytest

from acidsql.format.names import DeltaName, parse_bucket_file, parse_directory
from acidsql.format.values import CONVERTERS
from acidsql.metastore.model import CompactionState as State
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.conftest import OpenAcid

OURS = "acidsql"
"""The pool of requests that Hive's worker does not take."""

SHAPES = [
    pytest.param("id int, v string, p int", "", "", id="plain"),
    pytest.param("id int, v string", "p int", "", id="partitioned"),
    pytest.param("id int, v string, p int", "", "(id) INTO 4 BUCKETS", id="by a number"),
    pytest.param("id int, v string, p int", "", "(v) INTO 3 BUCKETS", id="by a text"),
    pytest.param("id int, v string", "p int", "(v, id) INTO 5 BUCKETS", id="partitioned, by two columns"),
]

pytestmark = pytest.mark.usefixtures("compactor")

Events = list[tuple[Any, ...]]


def _write(t: SharedTable) -> None:
    """The same for each table of a shape: a table's write ids count from 1."""
    for number in range(0, 12, 3):
        rows = ", ".join(f"({i}, '{'żółć' if i % 5 else ''}{i}', {i % 2})" for i in range(number, number + 3))
        t.both.run(SIDES[number % 2], t.text(f"INSERT INTO {{t}} VALUES {rows}"))
    t.both.run(HIVE, t.text("DELETE FROM {t} WHERE id IN (1, 6)"))
    t.both.run(ACIDSQL, t.text("DELETE FROM {t} WHERE id IN (2, 9)"))
    t.both.run(ACIDSQL, t.text("INSERT INTO {t} VALUES (20, NULL, 0), (NULL, 'n', 1)"))
    t.agree()


def _contents(t: SharedTable) -> dict[tuple[str, str, bool, str], Events]:
    """What the compacted directories of a table hold: by partition, range, whether deletes, and bucket."""
    found: dict[tuple[str, str, bool, str], Events] = {}
    for path in sorted(t.directory.rglob("bucket_*")):
        name = parse_directory(path.parent.name)
        if name is None or not name.visibility_txn or parse_bucket_file(path.name) is None:
            continue
        place = str(path.parent.parent.relative_to(t.directory))
        deletes = isinstance(name, DeltaName) and name.is_delete
        with path.open("rb") as file:
            events = list(pyorc.Reader(file, converters=CONVERTERS))
        if events:
            found[place, path.parent.name.partition("_v")[0], deletes, path.name] = events
    return found


def _compact(both: Both, t: SharedTable, kind: str, tail: str = "") -> None:
    partitions = [f" PARTITION (p={p})" for p in (0, 1)] if t.keys else [""]
    for partition in partitions:
        both.run(HIVE, t.text(f"ALTER TABLE {{t}}{partition} COMPACT '{kind}'{tail}"))


@pytest.mark.parametrize("kind", ["major", "minor"])
@pytest.mark.parametrize(("columns", "keys", "buckets"), SHAPES)
def test_a_table_becomes_the_same_files(
    both: Both, open_acid: OpenAcid, columns: str, keys: str, buckets: str, kind: str
) -> None:
    theirs = both.table(columns, keys, by=HIVE, buckets=buckets)
    ours = both.table(columns, keys, by=HIVE, buckets=buckets)
    for t in (theirs, ours):
        _write(t)
    _compact(both, theirs, kind, " AND WAIT")
    _compact(both, ours, kind, f" POOL '{OURS}'")
    worker = open_acid(**{"hive.compactor.job.queue": OURS})
    outcomes = worker.compactor.run_once().outcomes
    assert {o.state for o in outcomes} == {State.READY_FOR_CLEANING}
    expected = _contents(theirs)
    assert expected, "Hive's worker wrote something"
    assert _contents(ours) == expected
    for t in (theirs, ours):
        t.agree()
    ours.hive("UPDATE {t} SET p = p WHERE id = 4" if not keys else "DELETE FROM {t} WHERE id = 4")
    ours.acid("DELETE FROM {t} WHERE id = 5").hive("INSERT INTO {t} VALUES (30, 'x', 1)")
