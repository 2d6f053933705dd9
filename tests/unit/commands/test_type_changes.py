"""Which changes of a column's type keep every value that is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.commands.type_changes import Verdict, is_lenient, judge
from acidsql.types import Char, Decimal, HiveType, Primitive, Varchar, parse_type

NUMBERS = ["tinyint", "smallint", "int", "bigint", "decimal(38,0)", "float", "double"]


def verdict(old: str, new: str) -> Verdict:
    return judge(parse_type(old), parse_type(new))


@pytest.mark.parametrize("old", NUMBERS)
@pytest.mark.parametrize("new", NUMBERS)
def test_a_number_may_become_a_later_one_in_hives_order(old: str, new: str) -> None:
    grows = NUMBERS.index(old) <= NUMBERS.index(new)
    assert verdict(old, new) is (Verdict.FINE if grows else Verdict.INCOMPATIBLE)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("int", "decimal(10,0)", Verdict.FINE),
        ("int", "decimal(9,0)", Verdict.LOSSY),
        ("bigint", "decimal(20,2)", Verdict.LOSSY),
        ("string", "varchar(65535)", Verdict.LOSSY),
        ("varchar(5)", "char(5)", Verdict.FINE),
        ("char(5)", "string", Verdict.FINE),
        ("char(5)", "varchar(4)", Verdict.LOSSY),
        ("date", "char(10)", Verdict.FINE),
        ("date", "char(9)", Verdict.LOSSY),
        ("decimal(5,2)", "varchar(8)", Verdict.FINE),
        ("double", "string", Verdict.FINE),
        ("double", "varchar(10)", Verdict.LOSSY),
        ("string", "int", Verdict.INCOMPATIBLE),
        ("boolean", "int", Verdict.INCOMPATIBLE),
        ("boolean", "string", Verdict.UNREADABLE),
        ("date", "timestamp", Verdict.UNREADABLE),
        ("timestamp", "date", Verdict.UNREADABLE),
        ("int", "date", Verdict.UNREADABLE),
        ("binary", "string", Verdict.UNREADABLE),
        ("int", "array<int>", Verdict.UNREADABLE),
        ("array<int>", "string", Verdict.UNREADABLE),
        ("struct<a:int>", "struct<a:int,b:int>", Verdict.LOSSY),
        ("array<int>", "array<int>", Verdict.FINE),
    ],
)
def test_the_verdict_on_a_change(old: str, new: str, expected: Verdict) -> None:
    assert verdict(old, new) is expected


def decimals() -> st.SearchStrategy[Decimal]:
    return st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))


@given(decimals(), decimals())
def test_a_decimal_that_may_become_another_has_room_for_its_largest_and_its_finest_value(
    old: Decimal, new: Decimal
) -> None:
    from decimal import Decimal as Number

    def fits(text: str) -> bool:
        number = Number(text)
        _, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        return -exponent <= new.scale and len(digits) + exponent <= new.precision - new.scale

    whole = "9" * (old.precision - old.scale)
    largest = f"{whole or '0'}.{'9' * old.scale}" if old.scale else whole
    finest = f"0.{'0' * (old.scale - 1)}1" if old.scale else "1"
    everything_fits = (not whole or fits(whole)) and (fits(largest) or not whole) and (not old.scale or fits(finest))
    if judge(old, new) is Verdict.FINE:
        assert everything_fits


types = st.one_of(
    st.sampled_from(
        [Primitive(n) for n in ("tinyint", "int", "bigint", "float", "double", "string", "date", "binary")]
    ),
    decimals(),
    st.integers(1, 255).map(Char),
    st.integers(1, 255).map(Varchar),
)


@given(types, types, types)
def test_two_fine_steps_are_one(first: HiveType, second: HiveType, third: HiveType) -> None:
    if judge(first, second) is Verdict.FINE and judge(second, third) is Verdict.FINE:
        assert judge(first, third) is Verdict.FINE


@given(types)
def test_no_change_is_fine(type: HiveType) -> None:
    assert judge(type, type) is Verdict.FINE


def test_only_numbers_and_texts_take_what_does_not_fit() -> None:
    assert [is_lenient(parse_type(t)) for t in ("int", "decimal(3,1)", "char(2)", "date", "array<int>")] == [
        True,
        True,
        True,
        False,
        False,
    ]
