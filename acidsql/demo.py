"""``make demo``: two short examples that show the rows and the directory after each statement.

The output is also checked: the run fails if a row or file is not as expected.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import acidsql
from acidsql.errors import AcidError
from acidsql.output import ERRORS, describe, format_table, text_rows
from acidsql.session import AcidSession

HIVE_TABLE = Path(__file__).parent.parent / "tests" / "golden" / "data" / "emp" / "05_insert2" / "data"
"""A table directory that Apache Hive 4.0.1 wrote: INSERT, UPDATE, DELETE, MERGE, INSERT. It comes with the checkout."""

_ROW_ID = '{{"writeId":{},"bucketId":{},"rowId":{}}}'

Row = tuple[str | None, ...]


class Story:
    """A table, shown statement by statement.

    Args:
        acid: The session.
        table: Name of the table.
        location: Its directory.
    """

    def __init__(self, acid: AcidSession, table: str, location: Path) -> None:
        self._acid = acid
        self._table = table
        self._location = location
        self._known: set[str] = set()

    def look(self, rows: Sequence[Row]) -> None:
        """Show the directory and the rows, each with its row id, and check the rows."""
        _say("\n  The table directory (+ is new):")
        files = _tree(self._location)
        for name in files or ["(empty)"]:
            _say(f"    {'+' if name in files and name not in self._known else ' '} {name}")
        self._known = set(files)
        query = f"SELECT ROW__ID, * FROM {self._table} ORDER BY id"
        frame = self._acid.sql(query)
        shown = list(text_rows(frame))
        _say(f"\n  {query}")
        _say(_indent(format_table(frame.columns, shown)))
        _check("rows", shown, list(rows))

    def run(self, statement: str, new_files: Sequence[str], counts: Row | None = None) -> None:
        """Run a statement and check its files and its result.

        Args:
            statement: The statement.
            new_files: The directories that it must create, each with one bucket file and the version file.
            counts: Affected, updated, deleted and inserted rows; None for a statement with an empty result.
        """
        _say(f'\nacid.sql("{statement}")')
        before = set(_tree(self._location))
        begun = time.monotonic()
        result = self._acid.sql(statement)
        answered = list(text_rows(result)) if result.columns else []
        _say(f"  done in {time.monotonic() - begun:.2f} s" + (f", {_counts(answered[0])}" if answered else ""))
        if counts is not None:
            _check("counts", answered, [counts])
        created = sorted(set(_tree(self._location)) - before)
        expected = sorted(f"{d}/{f}" for d in new_files for f in ("_orc_acid_version", "bucket_00000"))
        _check("new files", created, expected)


def tell_emp(acid: AcidSession, warehouse: Path) -> None:
    """A new table: create, insert, update, delete."""
    _title("1. A new table")
    story = Story(acid, "emp", warehouse / "emp")
    bucket = "536870912"  # bucket 0, statement 0, as Hive encodes them
    ann: Row = (_ROW_ID.format(1, bucket, 0), "1", "Ann", "5000")
    bob: Row = (_ROW_ID.format(1, bucket, 1), "2", "Bob", "5500")
    cid: Row = (_ROW_ID.format(1, bucket, 2), "3", "Cid", "4000")
    new_bob: Row = (_ROW_ID.format(2, bucket, 0), "2", "Bob", "6000")

    story.run(
        "CREATE TABLE emp (id int, name string, salary int) STORED AS ORC TBLPROPERTIES('transactional'='true')", []
    )
    story.look([])
    story.run(
        "INSERT INTO emp VALUES (1, 'Ann', 5000), (2, 'Bob', 5500), (3, 'Cid', 4000)",
        ["delta_0000001_0000001_0000"],
        ("3", "0", "0", "3"),
    )
    story.look([ann, bob, cid])
    _say("\n  Each row has an identity: the write id that created it, its bucket, and its number in the bucket.")
    story.run(
        "UPDATE emp SET salary=6000 WHERE id=2",
        ["delete_delta_0000002_0000002_0000", "delta_0000002_0000002_0000"],
        ("1", "1", "0", "0"),
    )
    story.look([ann, new_bob, cid])
    _say("\n  No file was changed: a delete delta marks the old row as deleted, and a new delta has the new one.")
    story.run("DELETE FROM emp WHERE id=3", ["delete_delta_0000003_0000003_0000"], ("1", "0", "1", "0"))
    story.look([ann, new_bob])


def tell_hive(acid: AcidSession, folder: Path) -> None:
    """A directory that Hive wrote: registered, read, updated, deleted from, read again."""
    _title("2. A table that Apache Hive wrote")
    if not HIVE_TABLE.is_dir():
        raise AcidError(f"{HIVE_TABLE} does not exist", hint="Run the demo in a checkout of the project.")
    location = folder / "hive_emp"
    shutil.copytree(HIVE_TABLE, location)
    _say("Hive 4.0.1 wrote this directory with INSERT, UPDATE, DELETE, MERGE and another INSERT.")
    story = Story(acid, "hive_emp", location)
    ann: Row = (_ROW_ID.format(4, 536870914, 0), "1", "Ann", "5100")
    gil: Row = (_ROW_ID.format(4, 536870915, 0), "7", "Gil", "7000")
    hal: Row = (_ROW_ID.format(4, 536870915, 1), "8", "Hal", None)
    ida: Row = (_ROW_ID.format(5, 536870912, 0), "9", "Ida", "9000")
    story.run(
        "CREATE TABLE hive_emp (id int, name string, salary int) STORED AS ORC\n"
        f"          LOCATION '{location}' TBLPROPERTIES('transactional'='true')",
        [],
    )
    story.look([ann, gil, hal, ida])
    _say("\n  These are the rows and row ids that Hive itself reads.")
    story.run(
        "UPDATE hive_emp SET salary = salary + 100 WHERE id < 8",
        ["delete_delta_0000006_0000006_0000", "delta_0000006_0000006_0000"],
        ("2", "2", "0", "0"),
    )
    new_ann: Row = (_ROW_ID.format(6, 536870912, 0), "1", "Ann", "5200")
    new_gil: Row = (_ROW_ID.format(6, 536870912, 1), "7", "Gil", "7100")
    story.look([new_ann, new_gil, hal, ida])
    story.run("DELETE FROM hive_emp WHERE salary IS NULL", ["delete_delta_0000007_0000007_0000"], ("1", "0", "1", "0"))
    story.look([new_ann, new_gil, ida])
    _say("\n  The write ids continue Hive's, and directories and files have Hive's names and format.")


def main() -> int:
    """Run both examples in a warehouse that is removed at the end.

    Returns:
        The exit code: 0, or 1 when a statement failed or had an unexpected result.
    """
    folder = Path(tempfile.mkdtemp(prefix="acidsql-demo-"))
    try:
        _say("Starting Spark ...")
        with acidsql.connect(warehouse=folder / "warehouse") as acid:
            tell_emp(acid, folder / "warehouse")
            tell_hive(acid, folder)
    except (*ERRORS, OSError) as e:
        print(f"\nThe demo failed: {describe(e)}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _say("\nBoth examples finished with the expected results. A minimal program is in README.md.")
    return 0


# --- showing ---------------------------------------------------------------------------------------------------------


def _say(text: str) -> None:
    print(text, flush=True)


def _title(text: str) -> None:
    _say(f"\n{text}\n{'=' * len(text)}")


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def _counts(row: Row) -> str:
    words = ("affected", "updated", "deleted", "inserted")
    return ", ".join(f"{n} {w}" for n, w in zip(row, words, strict=True))


def _check(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise AcidError(f"unexpected {what}:\n  actual   {actual}\n  expected {expected}")


def _tree(folder: Path) -> list[str]:
    """All files below a directory, relative to it."""
    return sorted(
        os.path.relpath(os.path.join(parent, name), folder) for parent, _, names in os.walk(folder) for name in names
    )


if __name__ == "__main__":
    sys.exit(main())
