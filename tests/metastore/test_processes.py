"""Several processes at one store: at its making, at work, killed, and forked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acidsql.errors import TransactionAborted
from acidsql.metastore.model import CompactionFilter, CompactionRequest, CompactionType
from acidsql.metastore.protocol import Metastore
from tests.metastore.conftest import OpenStore
from tests.metastore.situations import EXCLUSIVE, begin, lock_states, read_write_ids, seen, table, take, write
from tests.metastore.stores import Opening

pytestmark = pytest.mark.needs("processes")

ROOT = Path(__file__).parents[2]
PROCESSES = 4
LIMIT = 60
"""Seconds until a process counts as hanging."""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("programs.py")), program, *arguments]
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def run_together(program: str, *arguments: str) -> list[Any]:
    """Run a program in several processes that go off at the same moment; what each of them answers."""
    running = [start(program, *arguments) for _ in range(PROCESSES)]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=LIMIT) for process in running]
    finally:
        for process in running:
            process.kill()
    for process, (_, errors) in zip(running, outputs, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(output.splitlines()[-1]) for output, _ in outputs]


@pytest.mark.needs("embedded")
def test_several_processes_may_make_a_new_store_at_the_same_moment(opening: Opening) -> None:
    answers = run_together("first_to_open", opening.url)
    assert sorted(answer["txn"] for answer in answers) == [1, 2, 3, 4]
    assert all(answer["databases"] == ["default"] for answer in answers)


def test_write_ids_of_several_processes_are_unique_and_without_gaps(store: Metastore, opening: Opening) -> None:
    count = 25
    store.create_table(table())
    done = [one for answer in run_together("statements", opening.url, str(count)) for one in answer]
    assert sorted(one["write_id"] for one in done) == list(range(1, PROCESSES * count + 1))
    txns = sorted(one["txn"] for one in done)
    assert txns == list(range(txns[0], txns[0] + PROCESSES * count))
    valid = read_write_ids(store)
    assert seen(valid, PROCESSES * count) == sorted(one["write_id"] for one in done if one["committed"])
    assert sorted(valid.aborted_ids) == sorted(
        one["write_id"] for one in done if not one["committed"] and one["write_id"] <= valid.high_watermark
    )
    assert lock_states(store) == []


@pytest.mark.needs("hands compactions to workers")
def test_requests_for_compactions_are_taken_once_each(store: Metastore, opening: Opening) -> None:
    count = 40
    for number in range(count):
        store.create_table(table(f"t{number}"))
        store.compact(CompactionRequest("default", f"t{number}", None, CompactionType.MAJOR, "ann", "desk"))
    taken = [id for answer in run_together("takes_compactions", opening.url) for id in answer]
    assert sorted(taken) == sorted(one.id for one in store.show_compactions(CompactionFilter()))
    assert len(taken) == count


class TestAProcessKilledInsideAStep:
    pytestmark = pytest.mark.needs("embedded")

    def test_leaves_nothing_of_the_step(self, store: Metastore, opening: Opening) -> None:
        store.create_table(table())
        victim = start("killed_inside_a_step", opening.url)
        output, errors = victim.communicate(timeout=LIMIT)
        assert victim.returncode == -9, errors
        txn_id = json.loads(output)["txn"]
        assert [t.id for t in store.show_txns()] == [txn_id]
        assert [state for _, state in lock_states(store)] == ["a"]
        assert seen(read_write_ids(store)) == []

    def test_leaves_a_store_that_others_can_use(self, store: Metastore, opening: Opening) -> None:
        store.create_table(table())
        victim = start("killed_inside_a_step", opening.url)
        output, _ = victim.communicate(timeout=LIMIT)
        dead = json.loads(output)["txn"]
        assert store.abort_txns([dead], "its process is gone") == [dead]
        store.commit_txn(write(store, type=EXCLUSIVE))
        assert seen(read_write_ids(store)) == [2]
        with pytest.raises(TransactionAborted):
            store.commit_txn(dead)


def in_a_child(work: Callable[[], object]) -> None:
    """Do something in a forked child; it must end well."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as e:
            os.write(2, f"in the child: {e!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
class TestAForkedChild:
    def test_uses_the_metastore_of_its_parent(self, store: Metastore) -> None:
        store.create_table(table())
        store.commit_txn(write(store))
        in_a_child(lambda: store.commit_txn(write(store)))
        store.commit_txn(write(store))
        assert seen(read_write_ids(store)) == [1, 2, 3]

    def test_sees_what_its_parent_does_and_the_other_way_round(self, store: Metastore) -> None:
        opened = begin(store)
        in_a_child(lambda: store.abort_txns([opened]))
        with pytest.raises(TransactionAborted):
            store.commit_txn(opened)
        lock_id = take(store, begin(store), EXCLUSIVE)

        def look() -> None:
            assert lock_states(store) == [(lock_id, "a")]

        in_a_child(look)

    def test_loses_nothing_when_its_parent_closes_the_store(self, store: Metastore, open_store: OpenStore) -> None:
        """SQLite's last connection tidies the log away: a child must count as one that is there."""
        store.create_table(table())
        ready, go_on = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                store.commit_txn(write(store))
                os.write(ready[1], b"1")
                os.read(go_on[0], 1)
                store.commit_txn(write(store))
            except BaseException as e:
                os.write(2, f"in the child: {e!r}\n".encode())
                os._exit(1)
            os._exit(0)
        os.read(ready[0], 1)
        store.close()
        between = open_store()
        between.commit_txn(write(between))
        between.close()
        os.write(go_on[1], b"1")
        assert os.waitpid(pid, 0)[1] == 0
        again = open_store()
        assert seen(read_write_ids(again)) == [1, 2, 3]

    def test_of_a_process_whose_threads_are_at_work(self, store: Metastore) -> None:
        store.create_table(table())
        stop, failures = threading.Event(), []

        def work() -> None:
            try:
                while not stop.is_set():
                    store.commit_txn(write(store))
            except Exception as e:
                failures.append(e)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            in_a_child(lambda: store.commit_txn(write(store)))
        stop.set()
        for thread in threads:
            thread.join(timeout=LIMIT)
        assert failures == []
        valid = read_write_ids(store)
        assert (valid.open_ids, valid.aborted_ids) == ((), ())


def test_threads_of_one_process_share_a_store(store: Metastore) -> None:
    store.create_table(table())
    write_ids: list[int] = []

    def work() -> None:
        for _ in range(10):
            txn_id = begin(store)
            write_ids.append(store.allocate_table_write_id(txn_id, "default", "t"))
            store.commit_txn(txn_id)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=LIMIT)
    assert sorted(write_ids) == list(range(1, 61))
