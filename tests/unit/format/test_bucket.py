"""The bucket property: Hive's BucketCodec (TestBucketCodec)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import AcidError, CorruptFile
from acidsql.format.bucket import BucketProperty, decode, encode


@pytest.mark.parametrize(
    ("writer", "statement", "value"),
    [(0, 0, 536870912), (1, 0, 536936448), (0, 1, 536870913), (7, 0, 537329664), (4095, 4095, 805244927)],
)
def test_values_are_those_that_hive_writes(writer: int, statement: int, value: int) -> None:
    assert encode(writer, statement) == value
    assert decode(value) == BucketProperty(1, writer, statement)


def test_a_directory_without_statement_id_counts_as_statement_0() -> None:
    assert encode(3, -1) == encode(3, 0)


def test_version_0_is_the_bare_bucket_number() -> None:
    assert decode(7) == BucketProperty(0, 7, 0)


@pytest.mark.parametrize("value", [2 << 29, 3 << 29, -1, -(2**31)])
def test_an_unknown_version_is_refused(value: int) -> None:
    with pytest.raises(CorruptFile, match="unknown version"):
        decode(value)


@pytest.mark.parametrize("writer", [-1, 4096])
def test_a_bucket_number_beyond_twelve_bits_is_refused(writer: int) -> None:
    with pytest.raises(AcidError, match=f"Bucket number {writer} is out of range"):
        encode(writer, 0)


@pytest.mark.parametrize("statement", [-2, 4096])
def test_a_statement_id_beyond_twelve_bits_is_refused(statement: int) -> None:
    with pytest.raises(AcidError, match=f"Statement id {statement} is out of range"):
        encode(0, statement)


@given(st.integers(0, 4095), st.integers(0, 4095))
def test_round_trip_in_a_positive_int(writer: int, statement: int) -> None:
    value = encode(writer, statement)
    assert 0 < value < 2**31
    assert decode(value) == BucketProperty(1, writer, statement)
