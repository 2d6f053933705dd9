"""``acidsql dump``: files that Hive wrote as JSON lines, directories as their state."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from acidsql.cli import main

EMP = Path(__file__).parents[2] / "golden" / "data" / "emp"


def dump(*paths: Path) -> Result:
    return CliRunner().invoke(main, ["dump", *map(str, paths)])


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def line(kind: str, path: str, size: int, files: int = 1) -> dict[str, Any]:
    return {"kind": kind, "path": path, "files": files, "bytes": size}


def test_insert_events_of_a_file_that_hive_wrote() -> None:
    result = dump(EMP / "01_insert" / "data" / "delta_0000001_0000001_0000" / "bucket_00000_0")
    first = '{"operation":0,"originalTransaction":1,"bucket":536870912,"rowId":0,"currentTransaction":1,'
    assert result.stdout.splitlines()[0] == first + '"row":{"id":1,"name":"Ann","salary":5000}}'
    assert [e["row"]["name"] for e in lines(result)] == ["Ann", "Bob", "Cid"]


def test_delete_events_have_no_row() -> None:
    [event] = lines(dump(EMP / "02_update" / "data" / "delete_delta_0000002_0000002_0000" / "bucket_00000_0"))
    assert (event["operation"], event["rowId"], event["currentTransaction"], event["row"]) == (2, 1, 2, None)


def test_a_delta_directory_is_printed_event_by_event() -> None:
    delta = EMP / "01_insert" / "data" / "delta_0000001_0000001_0000"
    assert dump(delta).stdout == dump(delta / "bucket_00000_0").stdout


def test_the_state_of_a_table_directory_names_deltas_in_order_with_their_bytes() -> None:
    table = EMP / "02_update" / "data"
    assert lines(dump(table)) == [
        line(kind, name, (table / name / "bucket_00000_0").stat().st_size)
        for kind, name in [
            ("delta", "delta_0000001_0000001_0000"),
            ("delete_delta", "delete_delta_0000002_0000002_0000"),
            ("delta", "delta_0000002_0000002_0001"),
        ]
    ]


def test_what_a_base_replaces_is_obsolete(tmp_path: Path) -> None:
    delta = EMP / "01_insert" / "data" / "delta_0000001_0000001_0000"
    shutil.copytree(delta, tmp_path / "base_0000001")
    shutil.copytree(delta, tmp_path / delta.name)
    shutil.copy(delta / "bucket_00000_0", tmp_path / "000000_0")
    size = (delta / "bucket_00000_0").stat().st_size
    assert lines(dump(tmp_path)) == [
        line("base", "base_0000001", size),
        line("obsolete", "000000_0", size),
        line("obsolete", delta.name, size),
    ]


def test_each_partition_has_its_own_state_and_original_files_are_told_apart(tmp_path: Path) -> None:
    delta = EMP / "01_insert" / "data" / "delta_0000001_0000001_0000"
    size = (delta / "bucket_00000_0").stat().st_size
    shutil.copytree(delta, tmp_path / "p=1" / "q=a" / delta.name)
    (tmp_path / "p=1" / "q=b").mkdir()
    shutil.copy(delta / "bucket_00000_0", tmp_path / "p=1" / "q=b" / "000000_0")
    (tmp_path / "_staging").mkdir()
    assert lines(dump(tmp_path)) == [
        line("delta", f"p=1/q=a/{delta.name}", size),
        line("original", "p=1/q=b/000000_0", size),
    ]


def test_several_paths_are_printed_after_one_another() -> None:
    one, two = EMP / "01_insert" / "data", EMP / "02_update" / "data"
    assert dump(one, two).stdout == dump(one).stdout + dump(two).stdout


def test_an_empty_directory_has_no_lines(tmp_path: Path) -> None:
    assert lines(dump(tmp_path)) == []


@pytest.mark.parametrize("content", [b"", b"ORC", b"this is no ORC file, whatever its name says"])
def test_a_file_that_is_not_orc_is_an_error_without_a_traceback(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bucket_00000"
    path.write_bytes(content)
    result = dump(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert str(path) in result.stderr


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    result = dump(tmp_path / "nope")
    assert result.exit_code == 1
    assert "nope does not exist" in result.stderr


def test_it_imports_neither_spark_nor_a_store() -> None:
    code = (
        "import sys\nfrom acidsql.cli import main\n"
        f"try: main(['dump', {str(EMP / '01_insert' / 'data')!r}])\n"
        "except SystemExit as e: assert not e.code\n"
        "assert not {'pyspark', 'sqlalchemy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
