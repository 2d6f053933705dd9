"""Jupyter: the magics in a real shell, and the quickstart notebook from its first cell to its last."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from pyspark.sql import DataFrame, SparkSession
from traitlets.config import Config

import acidsql
from acidsql.session import AcidSession
from tests.spark.processes import ROOT, environment

CREATE = "CREATE TABLE emp (id int, name string) STORED AS ORC TBLPROPERTIES('transactional'='true')"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    config = Config()
    config.HistoryManager.enabled = False
    config.ProfileDir.location = str(tmp_path_factory.mktemp("ipython"))
    shell = InteractiveShell.instance(config=config)
    shell.run_line_magic("load_ext", "acidsql")
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(
    loaded: InteractiveShell, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InteractiveShell]:
    monkeypatch.chdir(tmp_path)
    loaded.user_ns["spark"] = spark
    yield loaded
    session = loaded.user_ns.pop("acid", None)
    if isinstance(session, AcidSession):
        session.close()
    loaded.user_ns.pop("kept", None)


def shown(shell: InteractiveShell, value: Any) -> dict[str, str]:
    formatted, _ = shell.display_formatter.format(value)
    return formatted


def test_the_first_statement_opens_a_session_on_the_notebooks_spark(shell: InteractiveShell, tmp_path: Path) -> None:
    assert shell.run_line_magic("acid", CREATE) is None
    session = shell.user_ns["acid"]
    assert session.spark is shell.user_ns["spark"]
    assert session.warehouse == str(tmp_path / "warehouse")


def test_a_connection_names_places_and_settings_and_replaces_the_session(
    shell: InteractiveShell, tmp_path: Path
) -> None:
    shell.run_line_magic("acid_connect", "")
    first = shell.user_ns["acid"]
    shell.run_line_magic("acid_connect", f"warehouse={tmp_path}/other hive.txn.timeout=99s")
    second = shell.user_ns["acid"]
    assert second is not first
    assert second.warehouse == str(tmp_path / "other")
    assert second.settings["hive.txn.timeout"] == "99s"


def test_a_session_of_the_users_own_is_used(shell: InteractiveShell, acid: AcidSession) -> None:
    shell.user_ns["acid"] = acid
    shell.run_line_magic("acid", CREATE)
    assert acid.table("emp").count() == 0


def test_a_result_is_a_dataframe_that_shows_its_rows(shell: InteractiveShell) -> None:
    frame = shell.run_line_magic("acid", "SELECT 1 AS id, '<x>' AS name")
    assert isinstance(frame, DataFrame)
    assert [tuple(r) for r in frame.collect()] == [(1, "<x>")]
    display = shown(shell, frame)
    assert "<td>1</td><td>&lt;x&gt;</td>" in display["text/html"]
    assert "| 1  | <x>  |" in display["text/plain"]


def test_a_long_result_is_cut_where_it_is_shown(shell: InteractiveShell) -> None:
    frame = shell.run_line_magic("acid", "SELECT * FROM range(1000)")
    display = shown(shell, frame)
    assert display["text/html"].count("<tr>") == 101
    assert "More rows are not shown." in display["text/html"]
    assert frame.count() == 1000


@pytest.mark.parametrize("within", [True, False])
def test_an_interrupt_while_the_answer_to_a_change_is_fetched(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    """The row stayed, and was there twice when the cell was run again."""

    def interrupted(frame: DataFrame) -> None:
        raise KeyboardInterrupt

    shell.run_cell_magic("acid", "-o kept", f"{CREATE}; INSERT INTO emp VALUES (1, 'a')")
    if within:
        shell.run_line_magic("acid", "START TRANSACTION")
    with monkeypatch.context() as patch:
        patch.setattr("acidsql.notebook.text_rows", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"^$" if within else "after its commit"):
            shell.run_line_magic("acid", "INSERT INTO emp VALUES (2, 'b')")
        shell.run_line_magic("acid", "SELECT * FROM emp")  # is shown later, if at all
        shown(shell, shell.user_ns["kept"])
    if within:
        shell.run_line_magic("acid", "COMMIT")
    assert shell.user_ns["acid"].table("emp").count() == (1 if within else 2)


def test_other_dataframes_are_shown_as_ever(shell: InteractiveShell, spark: SparkSession) -> None:
    frame = spark.range(3)
    assert shown(shell, frame) == {"text/plain": repr(frame)}


def test_a_cell_runs_every_statement_and_stores_the_last_result(shell: InteractiveShell) -> None:
    cell = f"{CREATE};\nINSERT INTO emp VALUES (1, '{{braces}} and $dollars; as they are');\nSELECT * FROM emp"
    assert shell.run_cell_magic("acid", "-o kept", cell) is None
    assert [tuple(r) for r in shell.user_ns["kept"].collect()] == [(1, "{braces} and $dollars; as they are")]
    last = shell.run_cell_magic("acid", "", "DELETE FROM emp; SELECT count(*) FROM emp")
    assert [tuple(r) for r in last.collect()] == [(0,)]


def test_an_error_is_shown_with_its_place_and_without_a_traceback(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_line_magic("acid", CREATE)
    with pytest.raises(acidsql.AcidError, match="line 1:16"):
        shell.run_line_magic("acid", "UPDATE emp SET nope = 1")
    result = shell.run_cell("%acid UPDATE emp SET nope = 1")
    assert isinstance(result.error_in_exec, acidsql.AcidError)
    told = capsys.readouterr()
    assert "               ^^^^" in (told.out + told.err).splitlines()
    assert "Traceback" not in told.out + told.err


@pytest.mark.parametrize(("line", "cell"), [("-x name", "SELECT 1"), ("-o", "SELECT 1"), ("-o 1a", "SELECT 1")])
def test_a_wrong_option_is_refused(shell: InteractiveShell, line: str, cell: str) -> None:
    with pytest.raises(UsageError):
        shell.run_cell_magic("acid", line, cell)


@pytest.mark.parametrize(("magic", "line"), [("acid", "  "), ("acid_connect", "warehouse")])
def test_a_magic_without_what_it_needs_is_refused(shell: InteractiveShell, magic: str, line: str) -> None:
    with pytest.raises(UsageError):
        shell.run_line_magic(magic, line)


def test_a_setting_that_nobody_knows_is_refused_and_no_session_is_made(shell: InteractiveShell) -> None:
    with pytest.raises(acidsql.AcidError, match=r"no\.such"):
        shell.run_line_magic("acid_connect", "no.such=1")
    assert "acid" not in shell.user_ns


def run(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[str]]:
    """Execute a notebook; its cells with code, and the text that each has printed and given."""
    for variable, value in environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 1g pyspark-shell")
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": place}}).execute()
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    return cells, ["".join(o.get("data", o).get("text/plain", o.get("text", "")) for o in c.outputs) for c in cells]


@pytest.mark.long
def test_the_quickstart_notebook_runs_and_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, texts = run("quickstart.ipynb", tmp_path, monkeypatch)
    pages = ["".join(o.get("data", {}).get("text/html", "") for o in c.outputs) for c in cells]
    inserted, updated, deleted, selected = pages[1:5]
    assert "<td>3</td><td>0</td><td>0</td><td>3</td>" in inserted
    assert "<td>1</td><td>1</td><td>0</td><td>0</td>" in updated
    assert "<td>1</td><td>0</td><td>1</td><td>0</td>" in deleted
    assert "<td>2</td><td>Bob</td><td>6000</td>" in selected
    assert texts[6] == "(2, 3)"
    assert texts[7].split() == [
        f"{folder}/{name}"
        for folder in (
            "delete_delta_0000002_0000002_0000",
            "delete_delta_0000003_0000003_0000",
            "delta_0000001_0000001_0000",
            "delta_0000002_0000002_0000",
            "delta_0000004_0000004_0000",
        )
        for name in ("_orc_acid_version", "bucket_00000")
    ]


@pytest.mark.long
def test_the_streaming_notebook_runs_and_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, texts = run("streaming.ipynb", tmp_path, monkeypatch)
    pictures = [sum("image/png" in o.get("data", {}) for o in c.outputs) for c in cells]
    assert texts[1] == "(11000, 220)"
    rows, deltas = map(int, texts[2].strip("()").split(", "))
    assert rows == 21_000
    assert deltas < 40
    assert pictures == [0, 0, 0, 1, 0, 1, 0, 0]
    assert "update_preimage" in texts[4]
    told = [line.strip("|").split("|") for line in texts[6].splitlines() if line.startswith("|")][1:]
    assert [[value.strip() for value in row] for row in told] == [
        ["1", "Ann", "10", "20"],
        ["1", "Anne", "20", "30"],
        ["1", "Anna", "30", "NULL"],
        ["2", "Bob", "5", "25"],
    ]


@pytest.mark.long
def test_the_transactions_notebook_runs_and_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, texts = run("transactions.ipynb", tmp_path, monkeypatch)
    start = {"checking": [("Ann", 500), ("Bob", 300)], "saving": [("Ann", 1000), ("Bob", 0)]}
    moved = {"checking": [("Ann", 400), ("Bob", 300)], "saving": [("Ann", 1100), ("Bob", 0)]}
    assert ast.literal_eval(texts[2]) == start
    assert ast.literal_eval(texts[4]) == (False, start)
    assert ast.literal_eval(texts[6]) == moved
    message, _, shown = texts[7].partition("{")
    assert message.strip() == "Bob has not so much"
    assert ast.literal_eval(f"{{{shown}") == {
        "checking": [("Ann", 350), ("Bob", 300)],
        "saving": [("Ann", 1150), ("Bob", 0)],
    }
    message, _, shown = texts[8].partition("{")
    assert "snapshot" in message
    assert ast.literal_eval(f"{{{shown}")["checking"] == [("Ann", 350), ("Bob", 290)]
