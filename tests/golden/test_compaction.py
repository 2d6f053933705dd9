"""Directories that Hive 4.0.1 compacted: acidsql makes the same rows of the same files, value for value.

What is compared is read with pyorc, which neither Hive nor the code under test has written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyorc
import pytest

from acidsql.compactor.plan import Layout, NewDirectory, Subject, is_enough, plan
from acidsql.errors import UnsupportedError
from acidsql.format.directory import AcidFile, AcidState, acid_state
from acidsql.format.orc import read_footer
from acidsql.format.rewrite import rewrite_deletes, rewrite_rows
from acidsql.format.schema import KEY_INDEX_KEY, STATS_KEY, RecordKey, key_index
from acidsql.format.tail import OrcFooter
from acidsql.format.values import CONVERTERS
from acidsql.fs import LocalFileSystem
from acidsql.metastore.model import CompactionType
from acidsql.types import Struct
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

DATA = Path(__file__).parent / "data"
FS = LocalFileSystem()
ALL_TXNS = ValidTxnList(1 << 62)
MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR
CHANGED = "evo"
"""A table of which a column has changed its type."""


def tables(pattern: str) -> list[str]:
    """Those that Hive has compacted: it refused some, for original files or for having nothing to put together."""
    found = {path.relative_to(DATA).parts[0] for path in DATA.glob(f"*/{pattern}")}
    return sorted(found - {CHANGED})


def write_ids_of(step: str) -> ValidWriteIdList:
    found = json.loads((DATA / step / "meta.json").read_text())["validWriteIds"][0]
    invalid, bits = found["invalidWriteIds"], int.from_bytes(bytes.fromhex(found["abortedBits"]), "little")
    aborted = tuple(w for i, w in enumerate(invalid) if bits >> i & 1)
    opened = tuple(w for w in invalid if w not in aborted)
    return ValidWriteIdList(found["fullTableName"], found["writeIdHighWaterMark"], opened, aborted)


def footer_of(file: AcidFile) -> OrcFooter:
    return read_footer(FS, file.path)


def last_row_type(table: str) -> Struct:
    """The data columns as the newest file of the table has them."""
    newest = max((DATA / table).glob("12_major/data/*/[b0]*"))
    return read_footer(FS, str(newest)).row_type


def stored(path: Path) -> list[tuple[Any, ...]]:
    with path.open("rb") as file:
        return list(pyorc.Reader(file, converters=CONVERTERS))


def events(directory: Path) -> dict[int, list[tuple[Any, ...]]]:
    """The stored rows of a directory by bucket; files without a row left out."""
    found = {}
    for path in sorted(directory.glob("[b0]*")):
        rows = stored(path)
        if rows:
            found[int(path.name.removeprefix("bucket_").split("_")[0])] = rows
    return found


def compacted(table: str, step: str, type: CompactionType, target: Path) -> Iterator[tuple[NewDirectory, Path]]:
    """What acidsql makes of the table after a step."""
    ids = write_ids_of(f"{table}/{step}").for_compaction()
    is_full_acid = not table.startswith("mm")
    state: AcidState = acid_state(FS, str(DATA / table / step / "data"), ids, ALL_TXNS, any_file_name=not is_full_acid)
    assert is_enough(state, type)
    subject = Subject(state, ids, last_row_type(table), "zlib", is_full_acid, footer_of)
    for directory in plan(subject, type, Layout.HIVE4, 77):
        here = target / str(directory.name)
        for work in directory.rewrites:
            rewrite = rewrite_deletes if directory.holds_deletes else rewrite_rows
            assert rewrite(FS, replace(work, target=str(here / work.target))).bytes_read > 0
        yield directory, here


def by_hive(table: str, step: str, directory: NewDirectory) -> Path:
    pattern = str(directory.name).replace("_v0000077", "_v*")
    [found] = (DATA / table / step / "data").glob(pattern)
    return found


def assert_same_rows(table: str, made: Path, expected: Path) -> None:
    """Also in the same order, but for rows without ids. As texts, because NaN is not equal to itself."""
    order = sorted if table.startswith("mm") else list
    found, wanted = ({b: order(map(repr, rows)) for b, rows in events(d).items()} for d in (made, expected))
    assert wanted
    assert found == wanted


def last_step_before(table: str, step: str) -> str:
    return max(path.name for path in (DATA / table).iterdir() if path.name < step)


@pytest.mark.parametrize("table", tables("10_minor/data/delta_*_v*"))
def test_given_a_table_before_hives_minor_compaction_when_it_is_compacted_then_the_events_are_those_of_hive(
    table: str, tmp_path: Path
) -> None:
    before = last_step_before(table, "10_minor")
    for directory, made in compacted(table, before, MINOR, tmp_path):
        assert_same_rows(table, made, by_hive(table, "10_minor", directory))


@pytest.mark.parametrize("table", tables("12_major/data/base_*_v*"))
def test_given_a_table_before_hives_major_compaction_when_it_is_compacted_then_the_rows_are_those_of_hive(
    table: str, tmp_path: Path
) -> None:
    for directory, made in compacted(table, "11_minor_cleaned", MAJOR, tmp_path):
        assert_same_rows(table, made, by_hive(table, "12_major", directory))


@pytest.mark.parametrize("table", tables("12_major/data/base_*_v*/bucket_*"))
def test_given_a_compacted_file_when_its_metadata_are_read_then_they_are_exact(table: str, tmp_path: Path) -> None:
    for _, made in compacted(table, "11_minor_cleaned", MAJOR, tmp_path):
        for file in made.glob("bucket_*"):
            footer, rows = read_footer(FS, str(file)), stored(file)
            ends = np.cumsum([stripe.rows for stripe in footer.stripes])
            assert footer.metadata[KEY_INDEX_KEY] == key_index(RecordKey(*rows[end - 1][1:4]) for end in ends)
            assert footer.metadata[STATS_KEY] == b"%d,0,0" % len(rows)
            with file.open("rb") as opened:
                reader = pyorc.Reader(opened)
                for column, values in enumerate(zip(*(row[:5] for row in rows), strict=True), start=1):
                    statistics = reader[column].statistics
                    found = [statistics[name] for name in ("minimum", "maximum", "sum", "number_of_values")]
                    assert found == [min(values), max(values), sum(values), len(values)]


def test_given_a_column_that_changed_its_type_when_the_old_file_is_rewritten_as_it_is_then_it_is_refused(
    tmp_path: Path,
) -> None:
    before = last_step_before(CHANGED, "10_minor")
    with pytest.raises(UnsupportedError, match="columns of other types"):
        list(compacted(CHANGED, before, MINOR, tmp_path))
