"""``acidsql compactor``: its options, what a round prints, its exit code; the processes are those of tests/spark."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from acidsql.cli import compactor, main
from acidsql.compactor import Compactor, RoundResult
from acidsql.compactor.worker import Outcome
from acidsql.format.rewrite import Rewritten
from acidsql.fs import jvm
from acidsql.metastore.model import Capabilities, CompactionInfo, CompactionType
from acidsql.metastore.model import CompactionState as State


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def outcome(state: State, message: str | None = None) -> Outcome:
    entry = CompactionInfo(7, "hr", "emp", "p=1", CompactionType.MINOR, State.WORKING)
    done = Rewritten(rows=3, bytes_read=900, bytes_written=400, files_read=5, files_written=1)
    return Outcome(entry, state, done, message, 0.25)


def test_a_round_on_a_new_warehouse_finds_nothing_to_do(tmp_path: Path) -> None:
    result = run("compactor", "--warehouse", str(tmp_path / "w"), "--once", "--no-spark")
    assert (result.exit_code, result.stdout) == (0, "initiated 0, compacted 0, refused 0, failed 0, cleaned 0\n")
    assert (tmp_path / "w" / "acidsql.db").is_file()


def test_options_before_the_command_count_and_those_behind_it_go_first(tmp_path: Path) -> None:
    run("--warehouse", str(tmp_path / "outer"), "compactor", "--once")
    run("--warehouse", str(tmp_path / "outer2"), "compactor", "--once", "--warehouse", str(tmp_path / "inner"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["inner", "outer"]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([State.READY_FOR_CLEANING, State.REFUSED, State.READY_FOR_CLEANING], 0),
        ([State.READY_FOR_CLEANING, State.FAILED], 1),
    ],
)
def test_a_round_counts_what_became_of_the_requests_and_fails_if_one_of_them_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: list[State], code: int
) -> None:
    done = RoundResult(2, tuple(outcome(state) for state in states), 4)
    monkeypatch.setattr(Compactor, "run_once", lambda self, stop: done)
    result = run("compactor", "--warehouse", str(tmp_path), "--once")
    assert result.exit_code == code
    compacted, refused, failed = (states.count(s) for s in (State.READY_FOR_CLEANING, State.REFUSED, State.FAILED))
    expected = f"initiated 2, compacted {compacted}, refused {refused}, failed {failed}, cleaned 4\n"
    assert result.stdout == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--warehouse", "hdfs://host/w", "--no-spark"], "cannot be accessed: files that are not local"),
        (["--warehouse", "w", "--metastore", "thrift://nobody:1"], "pass either metastore or warehouse"),
        (["--conf", "hive.compactor.worker.thread=2"], "Did you mean hive.compactor.worker.threads?"),
        (["--conf", "hive.compactor.worker.threads=many"], "hive.compactor.worker.threads takes a whole number"),
    ],
)
def test_what_cannot_be_opened_is_told_on_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jvm, "_attached", None)
    result = run("compactor", "--once", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_nothing_of_it_is_left_in_the_process(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    handlers = list(logging.getLogger("acidsql").handlers)
    run("compactor", "--warehouse", str(tmp_path), "--once")
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert logging.getLogger("acidsql").handlers == handlers


def test_a_compaction_is_told_in_one_line() -> None:
    head = "compaction 7 of hr.emp.p=1: MINOR"
    done = f"{head}, ready for cleaning, 3 rows, 5 -> 1 files, 900 -> 400 bytes, 0.2 s"
    assert str(outcome(State.READY_FOR_CLEANING)) == done
    assert str(outcome(State.REFUSED, "no need")) == f"{head}, refused, 0.2 s: no need"


def test_a_metastore_of_before_hive_4_hands_its_queue_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Old:
        version, capabilities = "3.1.3", Capabilities(has_open_queue=False)
        closed = False

        def close(self) -> None:
            self.closed = True

    old = Old()
    monkeypatch.setattr(compactor, "open_store", lambda *_: (old, ""))
    result = run("compactor", "--metastore", "thrift://old:9083")
    assert result.exit_code == 1
    assert "version 3.1.3, hands compactions only to its own workers" in result.stderr
    assert old.closed
