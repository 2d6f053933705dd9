"""The command ``acidsql``: what runs, what is printed where, which exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import acidsql
from acidsql.cli import main
from acidsql.errors import MetastoreError, ParseError, TableNotFound
from tests.unit.cli import fakes

ONE = fakes.Frame(["one"], [("1",)])


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> fakes.Session:
    lost = TableNotFound("Table not found default.nope").locate("SELECT * FROM nope", 14, 18)
    made = fakes.Session({"SELECT 1": ONE, "SELECT 2": fakes.Frame(["two"], [("2",)]), "SELECT * FROM nope": lost})
    monkeypatch.setitem(vars(acidsql), "connect", made.connect)
    monkeypatch.setattr("acidsql.cli.run.write_result", fakes.write_result)
    return made


@pytest.fixture
def run(session: fakes.Session) -> Callable[..., Result]:
    return lambda *args, **more: CliRunner().invoke(main, list(args), **more)


def test_several_statements_run_in_order_and_print_as_tsv_where_there_is_no_terminal(
    run: Callable[..., Result], session: fakes.Session
) -> None:
    result = run("-e", "SELECT 1; SELECT 2")
    assert (result.exit_code, result.stdout) == (0, "tsv: ('1',)\ntsv: ('2',)\n")
    assert session.closed


def test_a_failed_statement_ends_the_run_with_its_place_on_standard_error_and_exit_code_1(
    run: Callable[..., Result], session: fakes.Session
) -> None:
    result = run("-e", "SELECT 1; SELECT * FROM nope; SELECT 2")
    assert result.exit_code == 1
    assert result.stdout == "tsv: ('1',)\n"
    assert "line 1:15" in result.stderr
    assert "              ^^^^" in result.stderr.splitlines()
    assert "Traceback" not in result.stderr
    assert session.closed


@pytest.mark.parametrize("commits", [True, False])
def test_an_interrupt_while_an_answer_is_printed_tells_of_the_commit(
    run: Callable[..., Result], session: fakes.Session, monkeypatch: pytest.MonkeyPatch, commits: bool
) -> None:
    def interrupted(frame: fakes.Frame, *args: object, **options: object) -> int:
        if frame is ONE:
            return 1
        raise KeyboardInterrupt

    monkeypatch.setattr("acidsql.cli.run.write_result", interrupted)
    ran = session.sql

    def sql(text: str) -> fakes.Frame:
        session.commits = text == "SELECT 1" or commits  # that of an earlier statement is not told
        return ran(text)

    session.sql = sql  # type: ignore[method-assign]
    result = run("-e", "SELECT 1; SELECT 2")
    assert result.exit_code == 130
    told = "; the statement was interrupted after its commit: what it has changed stays" if commits else ""
    assert result.stderr == f"acidsql: ended by SIGINT{told}\n"


def test_files_run_after_one_another_with_their_variables(
    run: Callable[..., Result], session: fakes.Session, tmp_path: Path
) -> None:
    one, two = tmp_path / "one.sql", tmp_path / "two.sql"
    one.write_text("SELECT 1;")
    two.write_text("SELECT 2")
    result = run("-f", str(one), "-f", str(two), "--hivevar", "a=1", "-d", "b=x=y")
    assert result.exit_code == 0
    assert session.ran == ["SELECT 1", "SELECT 2"]
    assert session.variables == {"a": "1", "b": "x=y"}


def test_the_error_of_a_file_names_the_file(run: Callable[..., Result], tmp_path: Path) -> None:
    script = tmp_path / "wrong.sql"
    script.write_text("SELECT * FROM nope")
    result = run("-f", str(script))
    assert result.exit_code == 1
    assert f"{script}: " in result.stderr


def test_a_script_that_is_not_text_is_an_error_and_no_traceback(run: Callable[..., Result], tmp_path: Path) -> None:
    script = tmp_path / "binary.sql"
    script.write_bytes(b"\xff\xfe\x00")
    result = run("-f", str(script))
    assert result.exit_code == 1
    assert "binary.sql" in result.stderr


@pytest.mark.parametrize("args", [[], ["-f", "-"]])
def test_without_a_terminal_standard_input_is_the_script(
    run: Callable[..., Result], session: fakes.Session, args: list[str]
) -> None:
    assert run(*args, input="SELECT 1;\n").exit_code == 0
    assert session.ran == ["SELECT 1"]


def test_places_and_settings_go_to_connect_and_the_database_is_used_first(
    run: Callable[..., Result], session: fakes.Session
) -> None:
    given = [
        "--warehouse",
        "/w",
        "--metastore",
        "sqlite:////m.db",
        "--database",
        "h`r",
        "--conf",
        "hive.txn.timeout=9s",
    ]
    assert run(*given, "-e", "SELECT 1").exit_code == 0
    assert session.connected == {
        "spark": None,
        "warehouse": "/w",
        "metastore": "sqlite:////m.db",
        "settings": {"hive.txn.timeout": "9s"},
    }
    assert session.ran == ["USE `h``r`", "SELECT 1"]


def test_format_and_header_are_handed_on(run: Callable[..., Result]) -> None:
    assert run("--format", "csv", "--no-header", "-e", "SELECT 1").stdout == "csv bare: ('1',)\n"


def test_a_session_that_cannot_be_opened_is_an_error_with_exit_code_1(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **places: object) -> None:
        raise MetastoreError("The store cannot be opened")

    monkeypatch.setitem(vars(acidsql), "connect", refuse)
    result = run("-e", "SELECT 1")
    assert (result.exit_code, result.stderr) == (1, "acidsql: [SQLSTATE 08S01] The store cannot be opened\n")


def test_a_parse_error_of_a_database_name_is_reported(run: Callable[..., Result], session: fakes.Session) -> None:
    session.answers = {"USE `x`": ParseError("no such thing")}
    assert run("--database", "x", "-e", "SELECT 1").exit_code == 1


@pytest.mark.parametrize(
    "args",
    [["-e", "SELECT 1", "-f", "-"], ["-d", "novalue", "-e", "x"], ["--conf", "=v", "-e", "x"], ["--format", "xml"]],
)
def test_a_wrong_command_line_is_refused_with_exit_code_2(run: Callable[..., Result], args: list[str]) -> None:
    assert run(*args).exit_code == 2


def test_version() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert result.stdout == f"acidsql, version {acidsql.__version__}\n"


def test_the_module_is_the_command_and_needs_no_spark_for_its_help() -> None:
    code = (
        "import sys, runpy; sys.argv = ['acidsql', '--help']\n"
        "try: runpy.run_module('acidsql', run_name='__main__')\n"
        "except SystemExit as e: assert not e.code\n"
        "assert 'pyspark' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "dump" in done.stdout
