"""Which workers are dead: those of this host whose process is not there any more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from acidsql.compactor.processes import is_dead, process_name


@pytest.fixture(scope="module")
def ended() -> str:
    """The name of a worker whose process has ended."""
    text = "from acidsql.compactor.processes import process_name; print(process_name('desk-1'))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()}.0"


def test_a_worker_is_dead_when_its_process_has_ended(ended: str) -> None:
    assert is_dead(ended, "desk-1")
    assert is_dead(ended.removesuffix(".0"), "desk-1")


def test_a_worker_of_another_host_may_be_alive(ended: str) -> None:
    assert not is_dead(ended, "desk")
    assert not is_dead(ended.replace("desk-1", "desk-2"), "desk-1")


def test_a_worker_of_this_process_or_of_another_that_runs_is_alive() -> None:
    assert not is_dead(f"{process_name('desk')}.3", "desk")
    assert not is_dead(f"desk-{os.getppid()}.0.3", "desk")


def test_a_process_that_got_the_number_of_an_ended_one_is_not_that_one() -> None:
    pid, start = process_name("desk").removeprefix("desk-").split(".")
    assert is_dead(f"desk-{pid}.{int(start) - 1}.0", "desk")


@pytest.mark.parametrize("name", ["desk", "desk-7", "desk-manual", "desk-x.y.0", "desk-12", ""])
def test_who_is_called_otherwise_may_be_alive(name: str) -> None:
    assert not is_dead(name, "desk")
