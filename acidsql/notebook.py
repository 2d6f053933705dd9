"""Jupyter: ``%load_ext acidsql`` adds ``%acid``, ``%%acid`` and ``%acid_connect``.

The magics use the session in the notebook's variable ``acid``, and store a new one there.
IPython is imported only when the extension is loaded.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

import acidsql
from acidsql.commands.transaction import outcome
from acidsql.output import ERRORS, describe, format_table, html_table, text_rows, without_error_log
from acidsql.session import AcidSession

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.lib.pretty import RepresentationPrinter

_Rows = tuple[list[tuple["str | None", ...]], bool]

SESSION_NAME = "acid"
SHOWN_ROWS = 100
"""Maximum number of rows displayed; the DataFrame has all of them."""

_MARK = "_acidsql_shown"
"""The attribute of a DataFrame that a magic has returned: its rows where it is the answer to a change, else None."""
_COUNTS = "num_affected_rows"
"""A column of such answers."""


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register the magics, and a display for the DataFrames that they return."""
    ipython.register_magics(AcidMagics)
    formatters = ipython.display_formatter.formatters  # type: ignore[union-attr]
    # The class itself, not its base: IPython's text display prefers a class's own __repr__ to a base's registration.
    formatters["text/html"].for_type(ClassicDataFrame, _html)
    formatters["text/plain"].for_type(ClassicDataFrame, _plain)


@magics_class
class AcidMagics(Magics):
    """The magics. Statements are passed unchanged: ``{…}`` and ``$…`` are not expanded as Python variables."""

    shell: InteractiveShell

    @no_var_expand
    @line_magic
    def acid_connect(self, line: str) -> None:
        """``%acid_connect [warehouse=…] [metastore=…] [setting=value …]``: open a session as ``acid``."""
        try:
            given = dict(_pair(word) for word in shlex.split(line))
        except ValueError as e:
            raise UsageError(f"%acid_connect: {e}") from e
        old = self.shell.user_ns.get(SESSION_NAME)
        if isinstance(old, AcidSession):
            old.close()
        self._connect(given)

    @no_var_expand
    @line_cell_magic
    def acid(self, line: str, cell: str | None = None) -> DataFrame | None:
        """``%acid <statement>`` runs one statement, ``%%acid [-o name]`` a cell of statements separated by ``;``.

        The (last) result is shown and returned as a DataFrame; with ``-o`` it is stored in a variable instead.
        """
        if cell is None:
            if not line.strip():
                raise UsageError("%acid: a statement is missing")
            return self._run(line)
        target = _output_name(line)
        result = self._run(cell)
        if target is None:
            return result
        self.shell.user_ns[target] = result
        return None

    def _run(self, text: str) -> DataFrame | None:
        result = None
        with _shown_briefly(), without_error_log():
            session, before = self._session(), outcome.commits()
            for frame in session.script(text + "\n", keeps_transaction=True):
                result = frame
                vars(frame)[_MARK] = _answer(session, frame, before) if _COUNTS in frame.columns else None
                before = outcome.commits()
        return result if result is not None and result.columns else None

    def _session(self) -> AcidSession:
        session = self.shell.user_ns.get(SESSION_NAME)
        return session if isinstance(session, AcidSession) else self._connect({})

    def _connect(self, given: dict[str, str]) -> AcidSession:
        where = {k: v for k, v in given.items() if k in ("warehouse", "metastore")}
        settings = {k: v for k, v in given.items() if k not in where}
        spark = self.shell.user_ns.get("spark")
        with _shown_briefly():
            session = acidsql.connect(spark if isinstance(spark, SparkSession) else None, settings=settings, **where)
        self.shell.user_ns[SESSION_NAME] = session
        return session


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name:
        raise ValueError(f"{word!r} is not name=value")
    return name, value


def _output_name(line: str) -> str | None:
    """The variable that ``-o name`` names; None for an empty line."""
    words = line.split()
    if not words:
        return None
    if len(words) == 2 and words[0] in ("-o", "--output") and words[1].isidentifier():
        return words[1]
    raise UsageError(f"%%acid only accepts -o NAME, not {line.strip()!r}")


@contextmanager
def _shown_briefly() -> Iterator[None]:
    """Let IPython show only the message of an error; the exception itself is raised unchanged."""
    try:
        yield
    except ERRORS as e:
        lines = [f"{type(e).__name__}: {describe(e)}"]
        vars(e)["_render_traceback_"] = lambda: lines
        raise


# --- display ---------------------------------------------------------------------------------------------------------


def _answer(session: AcidSession, frame: DataFrame, before: int) -> _Rows:
    """The answer to a change, before others follow: where this is interrupted, the change is undone in a transaction.

    Args:
        session: The session.
        frame: The row of counts.
        before: How many commits there were when the statement began.
    """
    try:
        with outcome.told(before):
            return _fetched(frame)
    except BaseException as e:
        session._take_back(e)
        raise


def _fetched(frame: DataFrame) -> _Rows:
    """The first rows, and whether there are more."""
    rows = list(text_rows(frame.limit(SHOWN_ROWS + 1)))
    return rows[:SHOWN_ROWS], len(rows) > SHOWN_ROWS


def _shown(frame: DataFrame) -> _Rows:
    return vars(frame)[_MARK] or _fetched(frame)


def _html(frame: DataFrame) -> str | None:
    """A DataFrame returned by a magic as a table; any other as PySpark shows it."""
    if _MARK not in vars(frame):
        return frame._repr_html_()
    rows, more = _shown(frame)
    return html_table(frame.columns, rows, more=more)


def _plain(frame: DataFrame, printer: RepresentationPrinter, cycle: bool) -> None:
    if _MARK not in vars(frame):
        text = repr(frame)
    else:
        rows, more = _shown(frame)
        text = format_table(frame.columns, rows) + ("\n(more rows are not shown)" if more else "")
    printer.text(text)  # type: ignore[no-untyped-call]
