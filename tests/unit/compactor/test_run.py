"""How the files of a compaction are written: what the log tells meanwhile."""

from __future__ import annotations

import logging

import pytest

from tests.unit.compactor.world import World


def progress(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "acidsql.compactor.run"]


@pytest.mark.parametrize(("part", "place"), [(None, "default.t"), ("x", "default.t.p=x")])
def test_given_several_files_when_they_are_written_then_the_log_tells_how_many_are_done(
    world: World, caplog: pytest.LogCaptureFixture, part: str | None, place: str
) -> None:
    world.table("t", *([part] if part else []))
    world.insert(1, part=part, buckets=3)
    world.insert(2, part=part, buckets=3)
    with caplog.at_level(logging.INFO, "acidsql.compactor.run"):
        world.compact(part=part)
    assert progress(caplog) == [f"desk-compactor-{place}: {done} of 3 files" for done in (1, 2, 3)]


def test_given_one_file_when_it_is_written_then_there_is_no_progress_to_tell(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.table()
    world.insert(1)
    world.insert(2)
    with caplog.at_level(logging.INFO, "acidsql.compactor.run"):
        world.compact()
    assert progress(caplog) == []
