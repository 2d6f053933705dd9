"""The interactive shell, typed into through a pipe."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from py4j.protocol import Py4JError

from acidsql.cli.run import Printing
from acidsql.cli.shell import HISTORY_VARIABLE, Shell
from acidsql.commands.transaction import outcome
from acidsql.errors import TableNotFound
from tests.unit.cli import fakes

TypeIn = Callable[[str], int]


@pytest.fixture
def session() -> fakes.Session:
    lost = TableNotFound("Table not found default.nope").locate("SELECT * FROM nope", 14, 18)
    return fakes.Session({"SELECT 1": fakes.Frame(["one"], [("1",)]), "SELECT * FROM nope": lost})


@pytest.fixture
def type_in(session: fakes.Session, monkeypatch: pytest.MonkeyPatch) -> TypeIn:
    monkeypatch.setenv(HISTORY_VARIABLE, "")
    monkeypatch.setattr("acidsql.cli.shell.write_result", fakes.write_result)

    def run(keys: str) -> int:
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys)
            return Shell(session, {}, Printing()).run()  # type: ignore[arg-type]

    return run


def test_a_statement_runs_when_its_semicolon_is_followed_by_enter(
    type_in: TypeIn, session: fakes.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert type_in("SELECT 1;\r!quit\r") == 0
    assert session.ran == ["SELECT 1"]
    out = capsys.readouterr().out
    assert "table: ('1',)\n" in out
    assert "1 row (" in out


def test_enter_before_the_semicolon_starts_a_new_line(type_in: TypeIn, session: fakes.Session) -> None:
    type_in("SELECT\r1\r;\rquit;\r")
    assert session.ran == ["SELECT\n1"]


def test_an_error_is_shown_with_its_caret_and_the_shell_goes_on(
    type_in: TypeIn, session: fakes.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in("SELECT * FROM nope;\rSELECT 1;\rexit\r")
    assert session.ran == ["SELECT * FROM nope", "SELECT 1"]
    shown = capsys.readouterr()
    assert "              ^^^^" in shown.err.splitlines()
    assert "table: ('1',)" in shown.out


def test_a_statement_without_rows_says_ok(type_in: TypeIn, capsys: pytest.CaptureFixture[str]) -> None:
    type_in("USE hr;\r!q\r")
    assert "OK (" in capsys.readouterr().out


def test_help_and_unknown_commands_run_nothing(
    type_in: TypeIn, session: fakes.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in("!help\r!helf\r;\r\r-- nothing\r;\r!quit\r")
    out = capsys.readouterr().out
    assert "!quit" in out
    assert "Unknown command !helf" in out
    assert session.ran == []


def test_ctrl_c_drops_what_was_typed_and_ctrl_d_leaves(type_in: TypeIn, session: fakes.Session) -> None:
    assert type_in("SELECT 'open\x03SELECT 1;\r\x04") == 0
    assert session.ran == ["SELECT 1"]


def test_ctrl_c_during_a_statement_cancels_it_alone(
    type_in: TypeIn, session: fakes.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    session.script = interrupted  # type: ignore[assignment, method-assign]
    assert type_in("SELECT 1;\r!quit\r") == 0
    assert "Cancelled." in capsys.readouterr().err


def test_a_call_that_fails_because_of_ctrl_c_is_cancelled_too(
    type_in: TypeIn, session: fakes.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second Ctrl-C meets py4j while it closes the connection of the first."""

    def interrupted(*args: object, **options: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("Gateway must be connected to send cancel cmd.")

    session.script = interrupted  # type: ignore[assignment, method-assign]
    assert type_in("SELECT 1;\r!quit\r") == 0
    assert capsys.readouterr().err == "Cancelled.\n"


@pytest.mark.parametrize("within", [False, True])
def test_ctrl_c_while_an_answer_is_shown(
    type_in: TypeIn,
    session: fakes.Session,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    within: bool,
) -> None:
    """In a transaction the statement is undone; outside of one it had been committed, and "Cancelled." was not true."""

    def interrupted(*args: object, **options: object) -> int:
        raise KeyboardInterrupt

    session.answers = {"DELETE FROM t": fakes.Frame(["num_affected_rows"], [(1,)])}
    session.commits = not within
    monkeypatch.setattr("acidsql.cli.shell.write_result", interrupted)
    assert type_in("DELETE FROM t;\r!quit\r") == 0
    assert session.ran == ["DELETE FROM t", "taken back: KeyboardInterrupt"]
    told = "Cancelled." if within else "Cancelled after its commit: what the statement has changed stays."
    assert capsys.readouterr().err == f"{told}\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt, Py4JError])
def test_ctrl_c_between_a_commit_and_its_answer(
    type_in: TypeIn, session: fakes.Session, capsys: pytest.CaptureFixture[str], error: type[BaseException]
) -> None:
    """It said "Cancelled.", and who ran the transaction again had its rows twice."""
    ran = session.sql

    def interrupted(text: str) -> fakes.Frame:
        ran(text)
        if text == "COMMIT":
            outcome.has_committed()
            try:
                raise KeyboardInterrupt
            finally:
                raise error
        return fakes.Frame([], [])

    session.sql = interrupted  # type: ignore[method-assign]
    typed = "START TRANSACTION;\rINSERT INTO t VALUES (1); COMMIT;\rINSERT INTO t VALUES (2);\r"
    assert type_in(f"{typed}\r!quit\r") == 0
    assert session.ran == ["START TRANSACTION", "INSERT INTO t VALUES (1)", "COMMIT", "INSERT INTO t VALUES (2)"]
    assert capsys.readouterr().err == "Cancelled after its commit: what the statement has changed stays.\n"


def test_the_prompt_marks_an_open_transaction(
    type_in: TypeIn, session: fakes.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "acidsql.cli.shell.PromptSession.prompt", lambda self, text, **_: asked.append(text) or next(typed)
    )
    typed = iter(["START TRANSACTION;", "SELECT 1;", "COMMIT;", "!quit"])
    assert type_in("") == 0
    assert session.ran == ["START TRANSACTION", "SELECT 1", "COMMIT"]
    assert asked == [f"acidsql (default){mark}> " for mark in ("", "*", "*", "")]


def test_ctrl_c_between_enter_and_the_statement_cancels_it(
    type_in: TypeIn, session: fakes.Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended the shell, and the open transaction with it."""
    typed = iter(["SELECT 1;", "SELECT 2;", "!quit"])

    def prompt(self: object, text: str, **_: object) -> str:
        found = next(typed)
        if found == "SELECT 1;":
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr("acidsql.cli.shell.PromptSession.prompt", prompt)
    before = signal.getsignal(signal.SIGINT)
    assert type_in("") == 0
    assert session.ran == ["SELECT 2"]
    assert capsys.readouterr().err == "Cancelled.\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_while_an_error_is_shown_ends_nothing(
    type_in: TypeIn, session: fakes.Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def describe(error: BaseException) -> str:
        signal.raise_signal(signal.SIGINT)
        return "described"

    monkeypatch.setattr("acidsql.cli.shell.describe", describe)
    assert type_in("SELECT * FROM nope;\rSELECT 1;\r!quit\r") == 0
    assert session.ran == ["SELECT * FROM nope", "SELECT 1"]
    assert capsys.readouterr().err == "described\n"


def test_a_statement_of_many_is_ended_by_ctrl_c(type_in: TypeIn, session: fakes.Session) -> None:
    """In the next turn, too: who answers it is set anew."""
    ran: list[str] = []

    def script(text: str, *args: object, **options: object) -> None:
        ran.append(text)
        signal.raise_signal(signal.SIGINT)
        ran.append("went on")

    session.script = script  # type: ignore[assignment, method-assign]
    assert type_in("SELECT 1;\rSELECT 2;\r!quit\r") == 0
    assert ran == ["SELECT 1;\n", "SELECT 2;\n"]
