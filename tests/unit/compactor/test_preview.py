"""What is told of a compaction before it is asked for is what comes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from acidsql.compactor.compaction import NOTHING_TO_DO
from acidsql.compactor.preview import Preview, preview, standing
from acidsql.compactor.rebalance import ON_BUCKETED
from acidsql.metastore.model import CompactionRequest, CompactionType
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import MAJOR, MINOR, World

REBALANCE = CompactionType.REBALANCE


def request(type: CompactionType, part: str | None = None, **more: object) -> CompactionRequest:
    place = None if part is None else f"p={part}"
    return CompactionRequest("default", "t", place, type, "ann", "desk", **more)  # type: ignore[arg-type]


def foretold(world: World, asked: CompactionRequest) -> Preview:
    seen = world.snapshot()
    table = world.store.get_table("default", "t")
    names = None if asked.partition is None else [asked.partition]
    found = world.store.list_partitions("default", "t", names) if names else [None]
    return preview(world.context, asked, table, found[0], seen.write_ids, seen.txns)


def inserts(world: World) -> None:
    world.insert(1, 2, buckets=2)
    world.insert(3)


def changes(world: World) -> None:
    inserts(world)
    world.delete(1)


def originals(world: World) -> None:
    world.original(7, 8)
    changes(world)


def compacted(world: World) -> None:
    changes(world)
    world.compact()
    world.clean()
    world.insert(4)
    world.insert(5)


def below_an_open_one(world: World) -> None:
    changes(world)
    world.insert(4, end="open")
    world.insert(5)


@pytest.mark.parametrize("layout", ["hive3", "hive4"])
@pytest.mark.parametrize("type", [MAJOR, MINOR, REBALANCE], ids=lambda type: type.name.lower())
@pytest.mark.parametrize("history", [inserts, changes, originals, compacted, below_an_open_one])
def test_what_is_foretold_comes_true(
    world: World, layout: str, type: CompactionType, history: Callable[[World], None]
) -> None:
    world.settings.set("acidsql.compactor.layout", layout)
    world.table()
    history(world)
    if type is REBALANCE and history is below_an_open_one:
        world.store.abort_txns([one.id for one in world.store.show_txns()])  # it would wait for it
    before = world.names()
    told = foretold(world, request(type))
    assert (told.problem, world.names()) == (None, before)
    world.compact(type)
    new = sorted(set(world.names()) - set(before))
    patterns = [re.sub("<.*>", "[0-9]+", name) for name in sorted(told.outputs)]
    assert len(patterns) == len(new)
    assert all(re.fullmatch(*pair) for pair in zip(patterns, new, strict=True))
    metrics = world.entries()[0].metrics
    assert metrics is not None
    assert (told.files, told.bytes) == (metrics.files_before, metrics.bytes_before)
    assert 1 <= metrics.files_after <= told.max_files
    is_major = any(name.startswith("base") for name in new)
    assert told.type is (REBALANCE if type is REBALANCE else MAJOR if is_major else MINOR)
    assert {name for name in told.inputs if " " not in name} <= set(before)


def test_it_is_told_in_a_line(world: World) -> None:
    world.table("t", "a", "b")
    for n in range(2):
        world.insert(n, part="a")
    told = foretold(world, request(MINOR, "a"))
    size = sum(p.stat().st_size for p in world.path(part="a").rglob("bucket_*"))
    assert str(told) == (
        f"MINOR of delta_0000001_0000001_0000, delta_0000002_0000002_0000 (2 files, {size} bytes)"
        " writes delta_0000001_0000002_v<transaction> (1 file at most)"
    )
    assert str(foretold(world, request(MAJOR, "b"))) == f"MAJOR would be refused: {NOTHING_TO_DO}"


def test_where_there_is_only_something_to_clean_it_says_so(world: World) -> None:
    world.table()
    world.insert(1)
    world.overwrite(2)
    told = "MAJOR finds nothing to compact; 1 obsolete or aborted entries are left to the cleaner"
    assert str(foretold(world, request(MAJOR))) == told


def test_a_rebalance_of_a_bucketed_table_would_be_refused(world: World) -> None:
    table = world.table()
    world.insert(1)
    world.store.alter_table(replace(table, bucket_columns=("a",), num_buckets=2))
    assert foretold(world, request(REBALANCE)).problem == f"would be refused: {ON_BUCKETED}"


def test_an_original_file_that_is_no_orc_would_make_it_fail(world: World) -> None:
    world.table()
    world.insert(1)
    for name in ("000000_0", "000000_0_copy_1"):
        (world.path() / name).write_bytes(b"no ORC at all")
    problem = foretold(world, request(MAJOR)).problem
    assert problem is not None
    assert problem.startswith("would fail: ")
    assert world.compact().state == State.FAILED


def test_what_stands_in_the_way_is_what_the_queue_would_say(world: World) -> None:
    world.table("t", "a", "b")
    for part in ("a", "a", "b", "b"):
        world.insert(1, part=part)

    def in_the_way(part: str) -> int | None:
        found = standing(world.entries(), f"p={part}", world.snapshot().write_ids)
        answer = world.store.compact(request(MAJOR, part))
        assert answer.accepted == (found is None)
        return None if found is None else found.id

    assert in_the_way("a") is None
    assert in_the_way("a") == 1
    assert world.worker.run_one() is not None
    assert in_the_way("a") == 1
    assert in_the_way("b") is None
    world.insert(2, part="a")
    assert in_the_way("a") is None
