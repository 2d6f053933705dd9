"""ValidTxnList and ValidWriteIdList: the questions of Hive's ValidReadTxnList and ValidReaderWriteIdList."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import InvalidValue
from acidsql.valid_ids import (
    NO_OPEN_ID,
    CompactorWriteIds,
    RangeResponse,
    ValidTxnList,
    ValidWriteIdList,
    join_write_ids,
    split_write_ids,
)

NONE, SOME, ALL = RangeResponse.NONE, RangeResponse.SOME, RangeResponse.ALL


def write_ids(high_watermark: int, *, open: tuple[int, ...] = (), aborted: tuple[int, ...] = ()) -> ValidWriteIdList:
    return ValidWriteIdList("db.t", high_watermark, open, aborted)


@st.composite
def id_lists(draw: st.DrawFn) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    high_watermark = draw(st.integers(0, 40))
    states = draw(st.lists(st.sampled_from("coa"), min_size=high_watermark, max_size=high_watermark))
    opened = tuple(i for i, state in enumerate(states, 1) if state == "o")
    return high_watermark, opened, tuple(i for i, state in enumerate(states, 1) if state == "a")


# --- single ids ---


def test_without_exceptions_everything_up_to_the_high_watermark_is_valid() -> None:
    valid = write_ids(5)
    assert [valid.is_valid(w) for w in (1, 5, 6)] == [True, True, False]
    assert valid.min_open is None


def test_open_and_aborted_ids_are_not_valid_and_only_the_aborted_are_aborted() -> None:
    valid = write_ids(10, open=(4, 6), aborted=(3,))
    assert [w for w in range(1, 12) if valid.is_valid(w)] == [1, 2, 5, 7, 8, 9, 10]
    assert [w for w in range(1, 12) if valid.is_aborted(w)] == [3]
    assert valid.min_open == 4
    assert valid.exceptions == (3, 4, 6)


def test_transactions_answer_as_write_ids_do() -> None:
    valid = ValidTxnList(10, (4, 6), (3,))
    assert [t for t in range(1, 12) if valid.is_valid(t)] == [1, 2, 5, 7, 8, 9, 10]
    assert [t for t in range(1, 12) if valid.is_aborted(t)] == [3]
    assert (valid.min_open, valid.exceptions) == (4, (3, 4, 6))


def test_ids_given_in_any_order_make_the_same_value() -> None:
    assert write_ids(9, open=(6, 4, 6)) == write_ids(9, open=(4, 6))
    assert hash(ValidTxnList(9, (6, 4))) == hash(ValidTxnList(9, (4, 6)))


# --- ranges ---


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (1, 3, ALL),
        (1, 4, SOME),
        (4, 6, NONE),
        (4, 4, NONE),
        (5, 7, SOME),
        (7, 10, ALL),
        (7, 11, SOME),
        (11, 20, NONE),
        (6, 11, SOME),
    ],
)
def test_range_valid_counts_what_is_hidden_and_what_lies_beyond(first: int, last: int, expected: RangeResponse) -> None:
    assert write_ids(10, open=(4, 6), aborted=(5,)).range_valid(first, last) is expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 4, NONE), (5, 5, ALL), (5, 6, ALL), (4, 6, SOME), (5, 7, SOME), (7, 9, NONE), (11, 12, NONE)],
)
def test_range_aborted_counts_the_aborted_only(first: int, last: int, expected: RangeResponse) -> None:
    assert write_ids(10, open=(4,), aborted=(5, 6)).range_aborted(first, last) is expected


def test_a_compacted_base_is_valid_below_the_smallest_open_id_and_up_to_the_high_watermark() -> None:
    valid = write_ids(10, open=(6,), aborted=(2,))
    assert [w for w in range(1, 13) if valid.is_valid_base(w)] == [1, 2, 3, 4, 5]
    assert [w for w in (9, 10, 11) if write_ids(10, aborted=(9,)).is_valid_base(w)] == [9, 10]


@given(id_lists(), st.integers(1, 45), st.integers(0, 10))
def test_ranges_agree_with_counting_ids_one_by_one(
    ids: tuple[int, tuple[int, ...], tuple[int, ...]], first: int, more: int
) -> None:
    valid = ValidWriteIdList("db.t", *ids)
    span = range(first, first + more + 1)

    def answer(flags: list[bool]) -> RangeResponse:
        return ALL if all(flags) else SOME if any(flags) else NONE

    assert valid.range_valid(span[0], span[-1]) is answer([valid.is_valid(w) for w in span])
    assert valid.range_aborted(span[0], span[-1]) is answer([valid.is_aborted(w) for w in span])


# --- text ---


def test_text_of_write_ids_is_hives() -> None:
    assert write_ids(3).to_text() == f"db.t:3:{NO_OPEN_ID}::"
    assert write_ids(17, open=(7, 9), aborted=(5,)).to_text() == "db.t:17:7:7,9:5"


def test_text_of_transactions_is_hives() -> None:
    assert ValidTxnList(11).to_text() == f"11:{NO_OPEN_ID}::"
    assert ValidTxnList(11, (5, 7), (6,)).to_text() == "11:5:5,7:6"


def test_runs_as_hive_4_compresses_them_are_read() -> None:
    assert ValidTxnList.from_text("20:4:4-9,15:12-14") == ValidTxnList(20, (4, 5, 6, 7, 8, 9, 15), (12, 13, 14))
    assert ValidWriteIdList.from_text("db.t:20:4:4:10-15") == write_ids(20, open=(4,), aborted=tuple(range(10, 16)))


@pytest.mark.parametrize("text", ["tbl:100:4:4", "tbl:100:4:4:"])
def test_empty_lists_at_the_end_may_be_missing(text: str) -> None:
    assert ValidWriteIdList.from_text(text) == ValidWriteIdList("tbl", 100, (4,))


@pytest.mark.parametrize("text", ["", "db.t", "db.t:5", "db.t:x:5::", "db.t:5:5:a:", "db.t:5:5:1:2:3"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="Not a list of valid ids"):
        ValidWriteIdList.from_text(text)


@given(id_lists())
def test_text_round_trip(ids: tuple[int, tuple[int, ...], tuple[int, ...]]) -> None:
    assert ValidWriteIdList.from_text(ValidWriteIdList("db.t", *ids).to_text()) == ValidWriteIdList("db.t", *ids)
    assert ValidTxnList.from_text(ValidTxnList(*ids).to_text()) == ValidTxnList(*ids)


def test_lists_of_several_tables_are_joined_as_hives_valid_txn_write_id_list() -> None:
    lists = (write_ids(3, open=(2,)), ValidWriteIdList("db.u", 0))
    text = join_write_ids(42, lists)
    assert text == f"42$db.t:3:2:2:$db.u:0:{NO_OPEN_ID}::"
    assert split_write_ids(text) == (42, lists)


@pytest.mark.parametrize("text", ["", "x$db.t:3:2:2:", "42$db.t"])
def test_other_joined_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        split_write_ids(text)


def test_a_list_as_of_an_older_write_id_hides_what_was_hidden_and_all_above() -> None:
    valid = ValidWriteIdList("d.t", 9, (4, 8), (2, 6))
    assert valid.as_of(6) == ValidWriteIdList("d.t", 6, (4,), (2, 6))
    assert valid.as_of(0) == ValidWriteIdList("d.t", 0)
    assert valid.as_of(12) == valid


# --- a compactor's list ---


def compactor_ids(high_watermark: int, *aborted: int) -> CompactorWriteIds:
    return write_ids(max((high_watermark, *aborted)), aborted=aborted, open=(high_watermark + 1,)).for_compaction()


@pytest.mark.parametrize(
    ("high_watermark", "aborted", "expected"),
    [
        (2, (1,), NONE),
        (2, (), NONE),
        (12, (13, 14), ALL),
        (15, (), ALL),
        (15, (3, 6), ALL),
        (15, (8,), ALL),
        (8, (11, 13), NONE),
    ],
)
def test_to_a_compactor_a_range_is_valid_by_its_upper_end_whatever_was_aborted(
    high_watermark: int, aborted: tuple[int, ...], expected: RangeResponse
) -> None:
    assert compactor_ids(high_watermark, *aborted).range_valid(7, 9) is expected


def test_a_compactor_stays_below_the_smallest_open_id_and_keeps_what_was_aborted_there() -> None:
    valid = write_ids(20, open=(11, 15), aborted=(3, 10, 12, 16)).for_compaction()
    assert (valid.high_watermark, valid.open_ids, valid.aborted_ids) == (10, (), (3, 10))
    assert write_ids(20, aborted=(20,)).for_compaction().high_watermark == 20


def test_aborted_ids_and_ranges_of_a_compactors_list() -> None:
    valid = compactor_ids(10, 4, 5, 6)
    assert [w for w in range(1, 12) if valid.is_aborted(w)] == [4, 5, 6]
    ranges = [(1, 3), (1, 4), (4, 6), (5, 7), (7, 10), (11, 13)]
    assert [valid.range_aborted(*one) for one in ranges] == [NONE, SOME, ALL, SOME, NONE, NONE]


@pytest.mark.parametrize("text", [f"db.t:37:{NO_OPEN_ID}::7,9,10", f"db.t:9:{NO_OPEN_ID}::", f"db.t:37:{NO_OPEN_ID}::"])
def test_a_compactors_list_has_the_same_text_and_is_read_from_it(text: str) -> None:
    valid = CompactorWriteIds.from_text(text)
    assert type(valid) is CompactorWriteIds
    assert valid.to_text() == text
