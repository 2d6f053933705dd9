"""Hive's types: reading in every spelling, printing for Hive, Spark and ORC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import AnalysisError
from acidsql.types import (
    Array,
    Char,
    Decimal,
    HiveType,
    Map,
    Primitive,
    Struct,
    Varchar,
    compared_name,
    contains,
    parse_type,
    to_hive,
    to_orc,
    to_spark,
)

NAMES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp"),
    "timestamp with local time zone",
)


@pytest.mark.parametrize("name", NAMES)
def test_primitive_types_print_as_they_are_read(name: str) -> None:
    assert parse_type(name) == Primitive(name)
    assert to_hive(parse_type(name.upper())) == name


@pytest.mark.parametrize(
    ("spark", "hive"),
    [
        ("byte", "tinyint"),
        ("short", "smallint"),
        ("integer", "int"),
        ("long", "bigint"),
        ("real", "float"),
        ("double precision", "double"),
        ("numeric", "decimal(10,0)"),
        ("DEC(5)", "decimal(5,0)"),
        ("decimal", "decimal(10,0)"),
        ("decimal( 12 , 3 )", "decimal(12,3)"),
        ("character(4)", "char(4)"),
        ("timestamp_ltz", "timestamp with local time zone"),
        ("timestamp_ntz", "timestamp"),
        ("timestamp without time zone", "timestamp"),
        ("struct<a: int, b: string COMMENT 'x, y: >'>", "struct<a:int,b:string>"),
        ("struct<a INT NOT NULL, b string>", "struct<a:int,b:string>"),
        ("STRUCT<`a b`: INT>", "struct<a b:int>"),
        ("array< map<string , int> >", "array<map<string,int>>"),
    ],
)
def test_spellings_of_spark_and_the_standard_are_understood(spark: str, hive: str) -> None:
    assert to_hive(parse_type(spark)) == hive


def test_field_names_keep_their_letter_case() -> None:
    assert parse_type("Struct<FirstName:String>") == Struct((("FirstName", Primitive("string")),))


def test_a_name_with_blanks_is_read_as_hive_prints_it() -> None:
    assert parse_type("struct<first name:string,b:int>") == Struct(
        (("first name", Primitive("string")), ("b", Primitive("int")))
    )


def test_a_name_that_no_reader_could_take_is_printed_in_back_quotes() -> None:
    odd = Struct((("a:b", Primitive("int")), ("c`d", Char(3))))
    assert to_hive(odd) == "struct<`a:b`:int,`c``d`:char(3)>"
    assert parse_type(to_hive(odd)) == odd


def test_spark_ddl_quotes_field_names_and_can_make_all_texts_plain_strings() -> None:
    t = parse_type("map<varchar(5),struct<a b:char(2),ts:timestamp with local time zone>>")
    assert to_spark(t) == "map<varchar(5),struct<`a b`:char(2),`ts`:timestamp_ltz>>"
    assert to_spark(t, plain_strings=True) == "map<string,struct<`a b`:string,`ts`:timestamp_ltz>>"


def test_orc_text_quotes_only_names_that_need_it() -> None:
    assert to_orc(parse_type("struct<a_1:int,b c:array<decimal(4,2)>>")) == "struct<a_1:int,`b c`:array<decimal(4,2)>>"


def test_contains_looks_into_every_corner() -> None:
    t = parse_type("array<struct<a:map<string,timestamp>,c:char(3)>>")
    assert all(contains(t, name) for name in ("array", "struct", "map", "timestamp", "string", "char"))
    assert not any(contains(t, name) for name in ("date", "varchar", "decimal"))


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "a type expected, not the end", 1),
        ("array<", "a type expected, not the end", 7),
        ("number", "unknown type 'number'", 1),
        ("uniontype<int,string>", "type uniontype is not supported", 1),
        ("map<string,interval>", "type interval is not supported", 12),
        ("void", "type void is not supported", 1),
        ("timestamp with time zone", "type timestamp with time zone is not supported", 1),
        ("decimal(39,2)", "precision of a decimal must be 1 to 38", 9),
        ("decimal(0)", "precision of a decimal must be 1 to 38", 9),
        ("decimal(4,5)", "scale of a decimal must not exceed its precision", 11),
        ("decimal(4,x)", "a number expected", 11),
        ("decimal(1,2,3)", "too many parameters", 13),
        ("char", "char needs a length", 1),
        ("char(256)", "length of a char must be 1 to 255", 6),
        ("varchar(65536)", "length of a varchar must be 1 to 65535", 9),
        ("varchar(0)", "length of a varchar must be 1 to 65535", 9),
        ("map<int>", "',' expected, not '>'", 8),
        ("map<array<int>,int>", "key of a map must be a primitive type", 5),
        ("array<int", "'>' expected, not the end", 10),
        ("struct<>", "name of a struct field expected", 8),
        ("struct<a:int,A:string>", "two struct fields named 'A'", 15),
        ("struct<a int not b>", "NULL expected after NOT", 18),
        ("struct<a int comment b>", "a quoted comment expected", 22),
        ("int string", "unexpected 'string' after the type", 5),
        ("int;", "unexpected character ';'", 4),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str, column: int) -> None:
    with pytest.raises(AnalysisError) as caught:
        parse_type(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)


def test_the_place_is_right_on_a_later_line() -> None:
    with pytest.raises(AnalysisError) as caught:
        parse_type("struct<\n  a: int,\n  b: oops>")
    assert (caught.value.line, caught.value.column) == (3, 6)
    assert caught.value.excerpt == "  b: oops>\n     ^^^^"


_PRIMITIVES = st.sampled_from(NAMES).map(Primitive)
_PARAMETRIC = st.one_of(
    st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p))),
    st.builds(Char, st.integers(1, 255)),
    st.builds(Varchar, st.integers(1, 65535)),
)
_LEAVES: st.SearchStrategy[HiveType] = st.one_of(_PRIMITIVES, _PARAMETRIC)
_FIELD_NAMES = st.one_of(
    st.text("abcXYZ019_.$ ", min_size=1, max_size=6), st.text(min_size=1, max_size=6).filter(lambda s: "\x00" not in s)
)


def _structs(children: st.SearchStrategy[HiveType]) -> st.SearchStrategy[HiveType]:
    fields = st.lists(st.tuples(_FIELD_NAMES, children), min_size=1, max_size=4, unique_by=lambda f: f[0].lower())
    return fields.map(lambda pairs: Struct(tuple(pairs)))


TYPES: st.SearchStrategy[HiveType] = st.recursive(
    _LEAVES,
    lambda children: st.one_of(children.map(Array), st.builds(Map, _LEAVES, children), _structs(children)),
    max_leaves=8,
)


@given(TYPES)
def test_hive_text_round_trip(t: HiveType) -> None:
    assert parse_type(to_hive(t)) == t


@given(TYPES)
def test_spark_text_round_trip(t: HiveType) -> None:
    assert parse_type(to_spark(t)) == t


@given(TYPES)
def test_orc_text_round_trip(t: HiveType) -> None:
    assert parse_type(to_orc(t)) == t


@given(st.text("struct<map(),:`'10 decimalchar", max_size=30))
def test_any_text_is_a_type_or_a_located_error(text: str) -> None:
    try:
        found = parse_type(text)
    except AnalysisError as e:
        if e.line is None:
            raise
        return
    assert parse_type(to_hive(found)) == found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Amount", "aMOUNT", True),
        ("\u0131", "i", True),
        ("\u0130", "i", True),
        ("\u017fum", "SUM", True),
        ("\u00b5", "\u03bc", True),
        ("\u03c2", "\u03a3", True),
        ("\u212a", "k", True),  # the sign for Kelvin
        ("ß", "ẞ", True),
        ("straße", "strasse", False),
        ("a", "á", False),
    ],
)
def test_names_are_compared_as_by_javas_equals_ignore_case(one: str, other: str, same: bool) -> None:
    """What Java answers; of all characters of the first plane the two agree on all but five new Latin letters."""
    assert (compared_name(one) == compared_name(other)) is same
