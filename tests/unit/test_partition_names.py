"""Names of partitions (Hive: FileUtils.escapePathName, Warehouse.makePartName)."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import AnalysisError
from acidsql.partition_names import (
    DEFAULT_PARTITION,
    other_spellings,
    parse_partition_name,
    partition_name,
    table_directory,
)


def test_a_partition_is_named_by_its_keys_in_lower_case_and_its_values() -> None:
    assert partition_name(["P", "q"], ["1", "even"]) == "p=1/q=even"


@pytest.mark.parametrize("value", [None, ""])
def test_null_and_the_empty_string_are_the_default_partition(value: str | None) -> None:
    assert partition_name(["p"], [value]) == f"p={DEFAULT_PARTITION}"
    assert parse_partition_name(f"p={DEFAULT_PARTITION}") == (("p", DEFAULT_PARTITION),)


def test_the_characters_that_hive_escapes_are_escaped_and_no_others() -> None:
    ascii_text = "".join(map(chr, range(128)))
    name = partition_name(["p"], [ascii_text])
    kept = "".join(c for c in ascii_text if c in name.replace("%", "").removeprefix("p="))
    escaped = [c for c in ascii_text if f"%{ord(c):02X}" in name]
    assert escaped == [*map(chr, range(32)), *"\"#%'*/:=?[\\]^{\x7f"]
    assert all(c in kept for c in " !$&()+,-.;<>@_`|}~azAZ09")


def test_text_beyond_ascii_stays_as_it_is() -> None:
    assert partition_name(["dt"], ["żółć 日本"]) == "dt=żółć 日本"


def test_a_time_in_a_partition_value() -> None:
    assert partition_name(["ts"], ["2024-01-01 10:00:00"]) == "ts=2024-01-01 10%3A00%3A00"


def test_a_percent_sign_without_two_digits_is_taken_as_it_is() -> None:
    assert parse_partition_name("p=100%/q=%zz%2f") == (("p", "100%"), ("q", "%zz/"))


@pytest.mark.parametrize("name", ["", "p", "=1", "p=1//q=2"])
def test_a_name_without_key_and_value_is_refused(name: str) -> None:
    with pytest.raises(AnalysisError, match="Not a partition name"):
        parse_partition_name(name)


def test_as_many_values_as_keys_are_needed() -> None:
    with pytest.raises(AnalysisError, match="2 partition keys, but 1 values"):
        partition_name(["p", "q"], ["1"])


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.lists(st.tuples(_TEXT.map(str.lower), _TEXT), min_size=1, max_size=3))
def test_partition_names_round_trip(pairs: list[tuple[str, str]]) -> None:
    keys, values = zip(*pairs, strict=True)
    keys = tuple(k.lower() for k in keys)
    name = partition_name(keys, values)
    assert name.count("/") == len(pairs) - 1
    assert parse_partition_name(name) == tuple(zip((k.lower() for k in keys), values, strict=True))


@pytest.mark.parametrize(
    ("name", "directory"),
    [
        ("emp_2", "emp_2"),
        ("aci/d_u/ami", "aci-47-d_u-47-ami"),
        ("../x", "-46--46--47-x"),
        ("größe", "größe"),
        (".", "-46-"),
    ],
)
def test_a_table_has_one_directory_below_its_database_whatever_its_name(name: str, directory: str) -> None:
    assert table_directory(name) == directory


@given(st.text(min_size=1, max_size=6), st.text(max_size=6))
def test_other_spellings_mean_the_same_partition(key: str, value: str) -> None:
    name = partition_name(["first", key], ["x", value])
    others = list(islice(other_spellings(name), 50))
    assert len({name, *others}) == len(others) + 1
    assert all(parse_partition_name(other) == parse_partition_name(name) for other in others)


def test_a_partition_has_several_spellings() -> None:
    assert list(other_spellings("q=%2F/p=1")) == ["q=%2F/p=%31", "q=%2F/%70=1", "q=%2F/%70=%31"]
