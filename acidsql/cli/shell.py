"""The interactive shell: runs each statement at its ``;``, shows rows and time, and continues after errors."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from py4j.protocol import Py4JError

from acidsql.cli.interrupt import KeptInterrupts, Terminated
from acidsql.cli.run import Printing
from acidsql.cli.scan import is_blank, is_complete
from acidsql.cli.streams import StandardOutput
from acidsql.commands.transaction import outcome
from acidsql.interrupts import interrupt_behind
from acidsql.output import ERRORS, describe, write_result
from acidsql.sql.parser import is_open_script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from acidsql.session import AcidSession

HISTORY_VARIABLE = "ACIDSQL_HISTORY"
"""Environment variable with the path of the history file; empty: no history is kept."""

_CANCELLED = "Cancelled."
_DONE = "Cancelled after its commit: what the statement has changed stays."
_QUIT = ("quit", "exit", "!quit", "!exit", "!q")
_HELP = """\
A statement ends with ';' and may span several lines.
  !help   show this text
  !quit   exit (also: quit, exit, Ctrl-D)
  Ctrl-C  discard the input, or cancel the running statement
Statements include CREATE TABLE, INSERT, UPDATE, DELETE, SELECT, SHOW TABLES, SHOW TRANSACTIONS, SHOW LOCKS,
DESCRIBE, USE, SET, START TRANSACTION, COMMIT, ROLLBACK (a * in the prompt marks an open transaction). Statements that
acidsql does not implement are passed to Spark SQL."""


class Shell:
    """One run of the shell on an open session."""

    def __init__(self, session: AcidSession, variables: Mapping[str, str], printing: Printing) -> None:
        self._session = session
        self._variables = variables
        self._printing = printing
        self._interrupts = KeptInterrupts()
        self._commits = outcome.commits()
        """How many transactions had been committed when the statement began."""
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(),
            multiline=True,
            key_bindings=_bindings(self._interrupts),
            prompt_continuation=lambda width, line, soft: "-> ".rjust(width),
        )

    def run(self) -> int:
        """Read and run statements until the user exits; the exit code is always 0."""
        print("acidsql: type !help for help, !quit to exit.")
        with self._interrupts:
            while True:
                try:
                    self._interrupts.keep()
                    if not self._turn():
                        return 0
                except Terminated:
                    raise
                except KeyboardInterrupt:  # of the statement, or where that had just ended by itself
                    self._tell_cancelled()

    def _turn(self) -> bool:
        """Read an input and run it; False where the user exits."""
        self._commits = outcome.commits()
        mark = "*" if self._session.in_transaction else ""
        try:
            # the terminal makes keys of Ctrl-C while it is read from
            typed = self._prompt.prompt(f"acidsql ({self._session.database}){mark}> ", handle_sigint=False)
        except Terminated:
            raise
        except KeyboardInterrupt:
            return True
        except EOFError:
            return False
        word = _word(typed)
        if word in _QUIT:
            return False
        if word.startswith("!"):
            print(_HELP if word == "!help" else f"Unknown command {word}; !help lists the commands.")
        elif not is_blank(typed):
            self._carry_out(typed)
        return True

    def _carry_out(self, text: str) -> None:
        """Run the input and show its results; Ctrl-C ends it (:mod:`acidsql.cli.interrupt`)."""
        try:
            with self._interrupts.answered():
                begun = time.monotonic()
                for frame in self._session.script(text + "\n", self._variables, keeps_transaction=True):
                    rows = self._shown(frame)
                    print(_summary(rows if frame.columns else None, time.monotonic() - begun))
                    begun, self._commits = time.monotonic(), outcome.commits()
        except ERRORS as e:
            interrupt = interrupt_behind(e)
            if interrupt and (isinstance(e, Py4JError) or outcome.commits() > self._commits):
                self._tell_cancelled()
            else:
                print(describe(e), file=sys.stderr)
            if isinstance(interrupt, Terminated):
                raise interrupt from None

    def _tell_cancelled(self) -> None:
        print(_DONE if outcome.commits() > self._commits else _CANCELLED, file=sys.stderr)

    def _shown(self, frame: DataFrame) -> int:
        try:
            return write_result(frame, self._printing.format, StandardOutput(), header=self._printing.header)
        except BaseException as e:
            self._session._take_back(e)
            raise


def _summary(rows: int | None, seconds: float) -> str:
    what = "OK" if rows is None else f"{rows} row{'' if rows == 1 else 's'}"
    return f"{what} ({seconds:.3f} s)"


def _word(typed: str) -> str:
    """The input, normalised for comparison with the commands of the shell."""
    return typed.strip().rstrip(";").strip().lower()


def _is_done(text: str) -> bool:
    """Whether Enter ends the input: a complete statement, a shell command, or empty input."""
    word = _word(text)
    if word in _QUIT or word.startswith("!") or not word:
        return True
    return is_complete(text) and not is_open_script(text)


def _bindings(interrupts: KeptInterrupts) -> KeyBindings:
    """Enter ends the input if it is complete and starts a new line otherwise. Ctrl-C after it ends the statement."""
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def _(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        if _is_done(buffer.text):
            interrupts.forget()
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _history() -> History:
    name = os.environ.get(HISTORY_VARIABLE, str(Path.home() / ".acidsql_history"))
    return FileHistory(name) if name else InMemoryHistory()
