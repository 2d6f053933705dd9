"""``acidsql`` as a process: one makes a table, the next one changes it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.processes import SMALL, environment, run

ACIDSQL = [sys.executable, "-m", "acidsql", *SMALL]


@pytest.mark.long
def test_a_process_makes_a_table_and_prints_its_rows(tmp_path: Path) -> None:
    create = "CREATE TRANSACTIONAL TABLE emp (id int, name string); INSERT INTO emp VALUES (1, 'Ann'), (2, NULL);"
    made = run([*ACIDSQL, "-e", create + " SELECT * FROM emp ORDER BY id", "--format", "json"], tmp_path)
    assert (made.returncode, made.stdout.splitlines()[1:]) == (
        0,
        ['{"id":1,"name":"Ann"}', '{"id":2,"name":null}'],
    ), made.stderr
    assert (tmp_path / "warehouse" / "emp" / "delta_0000001_0000001_0000" / "bucket_00000").is_file()


@pytest.mark.file_store
def test_a_process_changes_the_table_of_another_and_errors_have_a_caret(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann'), (2, NULL)")
    script = tmp_path / "open.sql"
    script.write_text("START TRANSACTION;\nDELETE FROM emp;\nSELECT count(*) FROM emp;\n")
    left = run([*ACIDSQL, "--format", "tsv", "-f", str(script)], tmp_path)
    assert (left.returncode, left.stdout.splitlines()[-1]) == (1, "0")
    assert "ended within a transaction, which was rolled back" in left.stderr
    assert acid.table("emp").count() == 2
    changed = run(
        [*ACIDSQL, "--format", "tsv"],
        tmp_path,
        typed="DELETE FROM emp WHERE id = 1;\nSELECT * FROM emp;\nUPDATE emp SET x = 1;",
    )
    assert changed.returncode == 1
    assert changed.stdout.splitlines()[1:] == ["1\t0\t1\t0", "id\tname", "2\t\\N"]
    assert "line 3:16" in changed.stderr
    assert "UPDATE emp SET x = 1\n               ^" in changed.stderr
    assert "Traceback" not in changed.stderr
    assert acid.table("emp").count() == 1


def ended_once_ready(script: Path, number: signal.Signals, later: float = 0) -> tuple[int, str]:
    """Exit code and standard error of a script that gets a signal so many seconds after it has printed ``ready``."""
    command = [*ACIDSQL, "--format", "tsv", "-f", str(script)]
    made = subprocess.Popen(
        command, cwd=script.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    with made as process:
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(later)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    return process.returncode, told


@pytest.mark.file_store
def test_a_script_that_is_to_end_rolls_its_transaction_back(acid: AcidSession, tmp_path: Path) -> None:
    """Its locks stayed until the time-out."""
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann'), (2, NULL)")
    script = tmp_path / "long.sql"
    endless = "SELECT count(*) FROM range(1000000000) CROSS JOIN range(1000000)"
    script.write_text(f"START TRANSACTION;\nDELETE FROM emp;\nSELECT 'ready';\n{endless};\n")
    code, told = ended_once_ready(script, signal.SIGTERM)
    assert (code, told.splitlines()[-1]) == (143, "acidsql: ended by SIGTERM"), told
    assert "the script failed within a transaction, which was rolled back" in told
    assert "Traceback" not in told
    assert acid.table("emp").count() == 2
    nothing_is_open(acid)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.long),
    ],
)
def test_a_statement_that_changes_rows_is_ended_by_a_signal(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """PySpark asks for the rows of the job that was cancelled: its error came instead, and the script just failed."""
    script = tmp_path / "long.sql"
    endless = "SELECT count(*) AS n FROM range(1000000000) CROSS JOIN range(1000000)"
    script.write_text(
        "CREATE TRANSACTIONAL TABLE t (n bigint);\nSTART TRANSACTION;\nINSERT INTO t VALUES (1);\n"
        f"SELECT 'ready';\nINSERT INTO t {endless};\n"
    )
    # its job runs by then; where it does not, the signal comes earlier, with the same answer
    found, told = ended_once_ready(script, number, later=5)
    assert found == code, told
    assert f"acidsql: ended by {number.name}" in told  # beside Spark's words about the task that it has killed
    assert "the script failed within a transaction, which was rolled back" in told
    left = run([*ACIDSQL, "--format", "tsv", "-e", "SELECT count(*) FROM t; SHOW LOCKS"], tmp_path)
    counted, locks = left.stdout.splitlines()[1], left.stdout.splitlines()[2:]
    assert (counted, locks) == ("0", locks[:1]), left.stdout  # the names of its columns alone
