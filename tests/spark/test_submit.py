"""``spark-submit …/acidsql/submit.py``: a script on the session of a real spark-submit."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql import submit
from tests.spark.processes import SMALL, SPARK_SUBMIT, run
from tests.spark.tree import tree, with_version

SUBMIT = [SPARK_SUBMIT, "--master", "local[1]", *SMALL, submit.__file__]

SCRIPT = """
-- a table, its rows, and a change
CREATE TABLE ${name} (id int, name string) STORED AS ORC TBLPROPERTIES('transactional'='true');
INSERT INTO ${name} VALUES (1, 'Ann; the first'), (2, 'Bob');
UPDATE ${hivevar:name} SET name = 'Bert' WHERE id = 2;
SELECT id, name, ROW__ID.writeId FROM ${name} ORDER BY id;
SELECT * FROM nope;
SELECT 'never reached';
"""


@pytest.mark.long
def test_a_script_runs_to_its_first_error_which_is_told_with_its_line(tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    options = ["--warehouse", tmp_path / "wh", "--hivevar", "name=emp", "--format", "csv", "--no-header"]
    done = run([*SUBMIT, "-f", script, *options], tmp_path)
    assert done.returncode == 1
    *answers, error = done.stdout.splitlines()[:5]  # spark-submit sends Python's standard error to standard output
    assert answers == ["2,0,0,2", "1,1,0,0", "1,Ann; the first,1", "2,Bert,2"]
    assert error.startswith(f"acidsql: {script}: ")
    assert "nope" in error
    assert "Traceback" not in done.stdout
    assert "never reached" not in done.stdout
    assert tree(tmp_path / "wh" / "emp") == with_version(
        "delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"
    )


@pytest.mark.long
def test_nothing_to_run_is_refused_before_spark_is_asked_for(tmp_path: Path) -> None:
    done = run(SUBMIT, tmp_path)
    assert done.returncode != 0
    assert "Nothing to run" in done.stdout
