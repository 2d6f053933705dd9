"""Standard streams that are closed, and a standard output that cannot be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import acidsql
from acidsql.cli import main
from acidsql.cli.streams import OutputFailed
from tests.unit.cli import fakes

FILE = Path(__file__).parents[2] / "golden/data/emp/01_insert/data/delta_0000001_0000001_0000/bucket_00000_0"
DUMP = f"dump {FILE}"
CHECK = "store check"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    from acidsql.metastore.embedded import EmbeddedMetastore
    from acidsql.session import STORE_NAME
    from acidsql.settings import Settings

    EmbeddedMetastore(str(tmp_path / STORE_NAME), Settings({}), str(tmp_path)).close()
    return tmp_path


def run(warehouse: Path, command: str, redirected: str) -> subprocess.CompletedProcess[str]:
    text = f"{sys.executable} -m acidsql --warehouse {warehouse} {command} {redirected}"
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, cwd=warehouse)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", [DUMP, CHECK, "compactor --once --no-spark"])
def test_a_full_device_is_one_line_and_exit_code_1(warehouse: Path, command: str) -> None:
    done = run(warehouse, command, "> /dev/full")
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1] == "acidsql: standard output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", ["--version", "--help"])
def test_so_it_is_where_click_prints(warehouse: Path, command: str) -> None:
    done = run(warehouse, command, "> /dev/full")
    assert (done.returncode, done.stderr) == (1, "acidsql: [Errno 28] No space left on device\n")


def test_a_reader_that_is_gone_is_worth_no_word(warehouse: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "acidsql", *DUMP.split()]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, cwd=warehouse)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("command", [DUMP, CHECK, "--version"])
@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(warehouse: Path, command: str, closed: str) -> None:
    done = run(warehouse, command, closed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_errors_go_nowhere_else_where_standard_error_is_closed(warehouse: Path) -> None:
    done = run(warehouse, "dump nowhere", "2>&-")
    assert (done.returncode, done.stdout) == (1, "")


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What other processes print would go into it: of the store, or of a table."""
    code = (
        "import os, sys; from acidsql.cli.streams import open_closed; open_closed()\n"
        f"file = open({str(tmp_path / 'file')!r}, 'w'); assert file.fileno() > 2, file.fileno()\n"
        "os.system('echo printed by another process'); print('printed'); print('told', file=sys.stderr)"
    )
    done = subprocess.run(["bash", "-c", f'{sys.executable} -c "$0" <&- >&- 2>&-', code], check=False)
    assert done.returncode == 0
    assert (tmp_path / "file").read_bytes() == b""


def test_a_character_that_the_encoding_lacks_is_one_line(warehouse: Path) -> None:
    code = (
        "import acidsql.cli.dump as d; from acidsql.cli.main import main\n"
        "d.dump = lambda path, out: (out.write('before\\n'), out.write('caf\\u00e9\\n'))\n"
        "main(['dump', 'x'])"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (1, "before\n")
    assert done.stderr.startswith("acidsql: standard output cannot be written: 'ascii' codec can't encode")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("commits", [True, False])
def test_an_answer_that_cannot_be_printed_tells_of_the_commit(monkeypatch: pytest.MonkeyPatch, commits: bool) -> None:
    """Its rows came twice where it was run again."""
    session = fakes.Session({"INSERT INTO t VALUES (1)": fakes.Frame(["n"], [("1",)])})
    session.commits = commits
    monkeypatch.setitem(vars(acidsql), "connect", session.connect)

    def full(*args: Any, **options: Any) -> int:
        raise OutputFailed("standard output cannot be written: No space left on device")

    monkeypatch.setattr("acidsql.cli.run.write_result", full)
    result = CliRunner().invoke(main, ["-e", "INSERT INTO t VALUES (1)"])
    told = "The statement failed after its commit, and what it has changed stays: " if commits else ""
    assert result.exit_code == 1
    assert result.stderr == f"acidsql: {told}standard output cannot be written: No space left on device\n"
