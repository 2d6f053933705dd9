"""Directories that Hive 4.0.1 wrote: the state that is found, and the rows in it, are what Hive itself read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from acidsql.format.directory import AcidDirectory, AcidFile, AcidState, acid_state, qualifies
from acidsql.format.foreign import directory_summary
from acidsql.format.orc import Event, read_events, read_footer, read_keys
from acidsql.format.originals import number_originals
from acidsql.fs import LocalFileSystem
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

DATA = Path(__file__).parent / "data"
STEPS = sorted(str(found.parent.relative_to(DATA)) for found in DATA.glob("*/*/rowid.json"))
"""Those of full-ACID tables: the rows of others have no ids."""
FS = LocalFileSystem()
ALL_TXNS = ValidTxnList(1 << 62)


def load(step: str, name: str) -> Any:
    return json.loads((DATA / step / f"{name}.json").read_text())


def write_ids_of(step: str) -> ValidWriteIdList:
    """The snapshot in which Hive read the table: its ``abortedBits`` flag the invalid ids that are aborted."""
    found = load(step, "meta")["validWriteIds"][0]
    invalid, bits = found["invalidWriteIds"], int.from_bytes(bytes.fromhex(found["abortedBits"]), "little")
    aborted = tuple(w for i, w in enumerate(invalid) if bits >> i & 1)
    opened = tuple(w for w in invalid if w not in aborted)
    return ValidWriteIdList(found["fullTableName"], found["writeIdHighWaterMark"], opened, aborted)


def states_of(step: str) -> list[AcidState]:
    """The states of the table's directory, or of those of its partitions."""
    root = DATA / step / "data"
    paths = [root / p for p in load(step, "meta")["partitions"]] or [root]
    return [acid_state(FS, str(path), write_ids_of(step), ALL_TXNS) for path in paths]


def data_directories(state: AcidState) -> list[AcidDirectory]:
    return ([state.base] if state.base else []) + list(state.insert_deltas)


def relative(step: str, path: str) -> str:
    return str(Path(path).relative_to(DATA / step / "data"))


def hive_rows(step: str) -> Iterator[tuple[str, tuple[int, int, int], list[Any]]]:
    """File, row id and values of each row, as Hive read them."""
    for row_id, file, *values in load(step, "rowid")["rows"]:
        key = json.loads(row_id)
        below = file.split("/gold.db/")[1].split("/", 1)[1]
        yield below, (key["writeid"], key["bucketid"], key["rowid"]), values


def live_rows(step: str) -> Iterator[tuple[str, tuple[int, int, int], Event]]:
    """File, row id and event of each row that the rules of a snapshot read leave (section by section, no Spark)."""
    valid = write_ids_of(step)
    for state in states_of(step):
        for directory in data_directories(state):
            for file in directory.files:
                deleted = deleted_rows(state, directory, file, valid)
                for event in read_events(FS, file.path):
                    key = (event.original_transaction, event.bucket, event.row_id)
                    if event.operation == 0 and valid.is_valid(event.current_transaction) and key not in deleted:
                        yield relative(step, file.path), key, event
        for original in number_originals(state.originals, None, lambda f: read_footer(FS, f.path).stripes):
            deleted = deleted_rows(state, None, original.file, valid)
            for number, event in enumerate(read_events(FS, original.file.path), original.first_row_id):
                if (original.write_id, original.bucket, number) not in deleted:
                    key = original.write_id, original.bucket, number
                    yield relative(step, original.file.path), key, event


def deleted_rows(
    state: AcidState, directory: AcidDirectory | None, file: AcidFile, valid: ValidWriteIdList
) -> set[tuple[int, int, int]]:
    """The keys of the delete events that can hide rows of a file."""
    deleted = set()
    for delta in state.delete_deltas:
        if qualifies(delta.name, directory.name if directory else None):  # type: ignore[arg-type]
            same_bucket = [f for f in delta.files if f.bucket_id == file.bucket_id]
            for key in (k for f in same_bucket for k in read_keys(FS, f.path).to_pylist()):
                if valid.is_valid(key["currentTransaction"]):
                    deleted.add((key["originalTransaction"], key["bucket"], key["rowId"]))
    return deleted


@pytest.mark.parametrize("step", STEPS)
def test_every_file_that_hive_read_is_among_those_chosen(step: str) -> None:
    states = states_of(step)
    chosen = {relative(step, f.path) for s in states for d in data_directories(s) for f in d.files}
    chosen |= {relative(step, f.path) for s in states for f in s.originals}
    assert {file for file, _, _ in hive_rows(step)} <= chosen


@pytest.mark.parametrize("step", STEPS)
def test_the_live_rows_are_those_that_hive_read_in_the_same_files(step: str) -> None:
    expected = sorted((file, key) for file, key, _ in hive_rows(step))
    assert sorted((file, key) for file, key, _ in live_rows(step)) == expected


@pytest.mark.parametrize("step", STEPS)
def test_the_values_are_those_that_hive_read(step: str) -> None:
    columns = load(step, "rowid")["columns"][2:]
    ours = {(file, key): event.row or {} for file, key, event in live_rows(step)}
    for file, key, values in hive_rows(step):
        partition_keys = file.count("/") - 1
        row = list(ours[file, key].values())
        row += [None] * (len(columns) - partition_keys - len(row))  # columns that were added after the file was written
        for (name, hive_type), mine, hives in zip(columns, row, values, strict=False):
            assert same(mine, hives, hive_type), f"{file} {key} {name}: {mine!r} is not {hives!r}"


def same(mine: Any, hives: Any, hive_type: str) -> bool:
    """Whether a value of a dump and Hive's answer are the same: Hive prints nested values as JSON in a text."""
    if mine is None or hives is None:
        return mine is hives
    if isinstance(mine, (list, dict)):
        return bool(plain(mine) == plain(json.loads(hives)))
    if hive_type == "FLOAT_TYPE":  # 1e-45 and Java's 1.4e-45 are one float
        return struct.pack("f", float(mine)) == struct.pack("f", float(hives))
    if hive_type == "DOUBLE_TYPE":
        return struct.pack("d", float(mine)) == struct.pack("d", float(hives))
    return bool(mine == hives)


def plain(value: Any) -> Any:
    """Numbers without their spelling, all through a nested value."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    try:
        return value if value is None or isinstance(value, bool) else Decimal(str(value))
    except ArithmeticError:
        return value


@pytest.mark.parametrize("step", [s for s in STEPS if s.endswith(("11_minor_cleaned", "13_major_cleaned"))])
def test_after_cleaning_nothing_is_obsolete_or_aborted(step: str) -> None:
    assert [(s.obsolete, s.aborted) for s in states_of(step)] == [((), ())]


@pytest.mark.parametrize("step", [s for s in STEPS if s.endswith("12_major") and not s.startswith("un/")])
def test_before_cleaning_all_but_the_new_base_is_obsolete_or_aborted(step: str) -> None:
    [state] = states_of(step)
    below = {p.name for p in (DATA / step / "data").iterdir()}
    left = below - {Path(p).name for p in (*state.obsolete, *state.aborted)}
    assert state.base is not None
    assert left == {Path(state.base.path).name}
    assert state.deltas == ()


def test_the_directories_of_an_aborted_transaction_are_set_aside() -> None:
    [state] = states_of("ab/05_aborted_delete")
    assert [Path(p).name for p in state.aborted] == ["delete_delta_0000005_0000005_0000", "delta_0000002_0000002_0000"]
    assert state.aborted_write_ids == {2, 5}


def test_the_directories_of_an_open_transaction_are_passed_over() -> None:
    [state] = states_of("ab/02_open_txn_later_commit")
    assert [Path(d.path).name for d in state.deltas] == ["delta_0000001_0000001_0000", "delta_0000003_0000003_0000"]
    assert (state.obsolete, state.aborted) == ((), ())


def test_truncate_leaves_a_base_without_data_files() -> None:
    [state] = states_of("ow/05_truncate")
    assert state.base is not None
    assert (state.base.files, state.deltas) == ((), ())


@pytest.mark.parametrize(
    ("step", "expected"), [("emp/12_major", (7, 2969)), ("dyn/07_merge", (9, 0)), ("ab/12_major", (5, 3038))]
)
def test_the_summary_of_a_directory_taken_in(step: str, expected: tuple[int, int]) -> None:
    assert directory_summary(FS, str(DATA / step / "data")) == expected
