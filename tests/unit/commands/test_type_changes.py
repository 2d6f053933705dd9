"""What becomes of a column's values when its type changes, and which changes Hive's metastore lets through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.commands.ddl.type_changes import Verdict, judge, kinds_fit
from acidsql.types import Char, Decimal, HiveType, Primitive, Varchar, parse_type

NUMBERS = ["tinyint", "smallint", "int", "bigint", "decimal(38,0)", "float", "double"]
FINE, LOSSY, UNREADABLE = Verdict.FINE, Verdict.LOSSY, Verdict.UNREADABLE


def verdict(old: str, new: str) -> Verdict:
    return judge(parse_type(old), parse_type(new))


@pytest.mark.parametrize("old", NUMBERS)
@pytest.mark.parametrize("new", NUMBERS)
def test_a_number_may_become_a_later_one_in_hives_order(old: str, new: str) -> None:
    grows = NUMBERS.index(old) <= NUMBERS.index(new)
    assert kinds_fit(parse_type(old), parse_type(new)) is grows
    assert verdict(old, new) is (FINE if grows else LOSSY)


@pytest.mark.parametrize(
    ("old", "new", "fit"),
    [
        ("string", "varchar(2)", True),
        ("char(9)", "string", True),
        ("date", "string", True),
        ("timestamp", "char(2)", True),
        ("decimal(9,2)", "decimal(2,0)", True),
        ("double", "varchar(3)", True),
        ("struct<a:int>", "struct<b:string,c:array<int>>", True),
        ("array<int>", "array<struct<a:int>>", True),
        ("map<int,int>", "map<string,date>", True),
        ("string", "int", False),
        ("string", "date", False),
        ("date", "timestamp", False),
        ("boolean", "string", False),
        ("boolean", "int", False),
        ("binary", "string", False),
        ("int", "date", False),
        ("array<int>", "map<int,int>", False),
        ("struct<a:int>", "string", False),
    ],
)
def test_hives_metastore_compares_the_kinds_of_types_alone(old: str, new: str, fit: bool) -> None:
    assert kinds_fit(parse_type(old), parse_type(new)) is fit


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("int", "decimal(10,0)", FINE),
        ("int", "decimal(9,0)", LOSSY),
        ("bigint", "decimal(20,2)", LOSSY),
        ("string", "varchar(65535)", LOSSY),
        ("varchar(5)", "char(5)", FINE),
        ("char(5)", "string", FINE),
        ("char(5)", "varchar(4)", LOSSY),
        ("date", "char(10)", FINE),
        ("date", "char(9)", LOSSY),
        ("decimal(5,2)", "varchar(8)", FINE),
        ("double", "string", FINE),
        ("double", "varchar(10)", LOSSY),
        ("double", "decimal(38,10)", LOSSY),
        ("string", "int", LOSSY),
        ("boolean", "int", LOSSY),
        ("boolean", "string", UNREADABLE),
        ("date", "timestamp", UNREADABLE),
        ("timestamp", "date", UNREADABLE),
        ("int", "date", UNREADABLE),
        ("binary", "string", UNREADABLE),
        ("int", "array<int>", UNREADABLE),
        ("array<int>", "string", UNREADABLE),
        ("array<int>", "array<int>", FINE),
    ],
)
def test_what_becomes_of_the_values_that_are_there(old: str, new: str, expected: Verdict) -> None:
    assert verdict(old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("struct<a:int>", "struct<a:int,b:int>", FINE),
        ("struct<a:int>", "struct<b:int,A:bigint>", FINE),
        ("struct<a:int,b:string>", "struct<b:string>", LOSSY),
        ("struct<a:int>", "struct<b:int>", LOSSY),
        ("struct<a:int>", "struct<a:date>", UNREADABLE),
        ("struct<a:string>", "struct<a:int>", LOSSY),
        ("struct<a:string>", "struct<a:char(3)>", LOSSY),
        ("struct<a:string>", "struct<a:varchar(3)>", UNREADABLE),
        ("struct<a:varchar(2)>", "struct<a:varchar(3)>", FINE),
        ("struct<s:struct<a:int>>", "struct<s:struct<b:date,a:bigint>>", FINE),
        ("array<int>", "array<bigint>", FINE),
        ("array<struct<a:int>>", "array<struct<b:int,a:bigint>>", FINE),
        ("array<struct<a:int,b:int>>", "array<struct<b:int,a:date>>", UNREADABLE),
        ("array<struct<a:int,b:int>>", "array<struct<a:int>>", LOSSY),
        ("struct<l:array<struct<a:int>>>", "struct<l:array<struct<z:int>>>", LOSSY),
        ("map<string,struct<a:int>>", "map<string,struct<A:bigint,b:int>>", FINE),
        ("map<int,int>", "map<bigint,int>", FINE),
        ("map<string,int>", "map<char(2),int>", UNREADABLE),
        ("map<varchar(2),int>", "map<char(3),int>", UNREADABLE),
        ("map<char(2),int>", "map<char(3),int>", FINE),
        ("map<char(2),varchar(2)>", "map<string,char(2)>", FINE),
        ("map<string,int>", "array<int>", UNREADABLE),
        # orc-core cannot convert the elements of arrays and maps that are all empty
        ("array<int>", "array<string>", UNREADABLE),
        ("array<date>", "array<string>", UNREADABLE),
        ("array<decimal(4,2)>", "array<double>", UNREADABLE),
        ("map<int,date>", "map<int,string>", UNREADABLE),
        ("array<struct<a:int>>", "array<struct<a:double>>", UNREADABLE),
        ("array<float>", "array<double>", FINE),
        ("struct<a:int,b:date>", "struct<a:double,b:string>", FINE),
    ],
)
def test_the_fields_of_structs_are_found_by_name_at_any_depth(old: str, new: str, expected: Verdict) -> None:
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
