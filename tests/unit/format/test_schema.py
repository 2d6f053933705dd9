"""Event schema and user metadata: exact names, exact bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import CorruptFile
from acidsql.format.schema import (
    EVENT_COLUMNS,
    AcidSchema,
    AcidStats,
    RecordKey,
    acid_metadata,
    event_type,
    is_acid_schema,
    key_index,
    parse_key_index,
)
from acidsql.types import parse_type, to_hive


def test_the_event_type_is_that_of_hives_record_updater() -> None:
    row = parse_type("struct<id:int,name:string>")
    assert to_hive(event_type(row)) == (  # type: ignore[arg-type]
        "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
        "row:struct<id:int,name:string>>"
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (EVENT_COLUMNS, AcidSchema.EXACT),
        (tuple(reversed(EVENT_COLUMNS)), AcidSchema.EXACT),
        (tuple(n.lower() for n in EVENT_COLUMNS), AcidSchema.ANY_CASE),
        (EVENT_COLUMNS[:5], AcidSchema.NONE),
        ((*EVENT_COLUMNS, "more"), AcidSchema.NONE),
        (("a", "b", "c", "d", "e", "f"), AcidSchema.NONE),
        ((), AcidSchema.NONE),
    ],
)
def test_event_files_are_told_by_their_six_names(names: tuple[str, ...], expected: AcidSchema) -> None:
    assert is_acid_schema(names) is expected


def test_metadata_are_hives_byte_for_byte() -> None:
    assert acid_metadata(AcidStats(inserts=3), [RecordKey(1, 536870912, 2)]) == {
        "hive.acid.key.index": b"1,536870912,2;",
        "hive.acid.stats": b"3,0,0",
        "hive.acid.version": b"2",
    }


def test_a_file_without_stripes_has_an_empty_key_index() -> None:
    assert key_index([]) == b""
    assert parse_key_index(b"") == ()


@pytest.mark.parametrize("value", [b"1", b"1,2;", b"1,2,x;", b"1,2,3,4;", b"\xff,1,2;"])
def test_another_key_index_is_refused(value: bytes) -> None:
    with pytest.raises(CorruptFile, match="Not a key index"):
        parse_key_index(value)


@given(st.lists(st.builds(RecordKey, st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))))
def test_key_index_round_trip(keys: list[RecordKey]) -> None:
    assert parse_key_index(key_index(keys)) == tuple(keys)
