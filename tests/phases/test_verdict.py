"""The judge of outcomes lets pass what a serial order gives, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import LockTimeout, NoSuchTransaction, SnapshotTooOld, TableNotFound, WriteConflict
from tests.phases.verdict import (
    Alternatives,
    Answer,
    Outcome,
    Rejection,
    Rows,
    TableState,
    Verdict,
    judge,
    side_by_side,
)

ROWS = st.lists(st.tuples(st.integers(0, 2)), max_size=2).map(tuple)
REJECTIONS = st.sampled_from(
    [Rejection.of(kind("told")) for kind in (LockTimeout, WriteConflict, SnapshotTooOld, TableNotFound)]
)
ANSWERS: st.SearchStrategy[Answer] = st.one_of(ROWS, REJECTIONS)


def state(rows: Rows) -> tuple[tuple[str, TableState], ...]:
    return (("t", TableState(("id",), "w/t", (), rows)),)


OUTCOMES = st.builds(Outcome, ANSWERS, ANSWERS, ROWS.map(state))


def legal(
    serial: Sequence[Outcome], without_first: Outcome | None = None, without_second: Outcome | None = None
) -> Alternatives:
    def known(outcome: Outcome | None) -> Outcome:
        assert outcome is not None, "it was not to be asked for"
        return outcome

    return Alternatives(
        [lambda one=one: one for one in serial],  # type: ignore[misc]
        lambda: known(without_first),
        lambda: known(without_second),
    )


@given(st.lists(OUTCOMES, min_size=1, max_size=3), st.data())
def test_what_a_serial_order_gives_is_legal(serial: list[Outcome], data: st.DataObject) -> None:
    assert judge(data.draw(st.sampled_from(serial)), legal(serial)) == Verdict()


@given(st.lists(OUTCOMES, max_size=3), ROWS, ROWS, ROWS)
def test_without_an_error_nothing_else_is_legal(serial: list[Outcome], first: Rows, second: Rows, rows: Rows) -> None:
    outcome = Outcome(first, second, state(rows))
    assert (judge(outcome, legal(serial)) == Verdict()) == (outcome in serial)


@given(st.lists(OUTCOMES, max_size=2), OUTCOMES, OUTCOMES, OUTCOMES)
def test_an_error_that_may_be_retried_is_legal_where_only_the_other_statement_had_an_effect(
    serial: list[Outcome], outcome: Outcome, without_first: Outcome, without_second: Outcome
) -> None:
    def gave_up(answer: Answer | None) -> bool:
        return isinstance(answer, Rejection) and answer.may_retry

    allowed = outcome in serial
    if gave_up(outcome.first) and not gave_up(outcome.second):
        allowed |= (outcome.second, outcome.state) == (without_first.second, without_first.state)
    if gave_up(outcome.second) and not gave_up(outcome.first):
        allowed |= (outcome.first, outcome.state) == (without_second.first, without_second.state)
    assert (judge(outcome, legal(serial, without_first, without_second)) == Verdict()) == allowed


def test_only_errors_of_a_transaction_that_had_no_effect_may_be_retried() -> None:
    assert Rejection.of(WriteConflict("another one was first")).may_retry
    assert not Rejection.of(NoSuchTransaction("forgotten")).may_retry
    assert not Rejection.of(TableNotFound("gone")).may_retry
    assert not Rejection.of(FileNotFoundError("a bare one")).may_retry


def test_a_report_names_what_was_expected_and_what_came_out() -> None:
    wanted, got = Outcome((), (), state(((1,),))), Outcome((), (), state(((2,),)))
    report = judge(got, legal([wanted])).problem
    assert report is not None
    assert "expect first []; second []; t(id) in w/t: [(1)]" in report
    assert "got    first []; second []; t(id) in w/t: [(2)]" in report


@given(ROWS, ROWS, ROWS)
def test_statements_that_add_rows_side_by_side_lose_none(before: Rows, first: Rows, second: Rows) -> None:
    alone = Outcome((), None, state(before + first)), Outcome(None, (), state(before + second))
    wanted = tuple(sorted(before + first + second, key=str))
    assert side_by_side(state(before), *alone) == Outcome((), (), state(wanted))


@given(st.lists(st.tuples(st.integers(0, 2)), min_size=1, max_size=3).map(tuple), ROWS, ROWS)
def test_statements_that_change_the_same_row_never_go_side_by_side(before: Rows, first: Rows, second: Rows) -> None:
    changed = Counter(before) - Counter(first) & Counter(before) - Counter(second)
    both = side_by_side(state(before), Outcome((), None, state(first)), Outcome(None, (), state(second)))
    assert (both is None) == bool(changed)


def test_a_skewed_outcome_is_legal_only_where_the_locks_allow_it_and_is_told() -> None:
    was, one, other = ((1,),), ((1,), (2,)), ((1,), (3,))
    serial = Outcome((), (), state(((9,),)))
    alone = Outcome((), None, state(one)), Outcome(None, (), state(other))
    got = Outcome((), (), state(((1,), (2,), (3,))))
    strict = legal([serial], without_first=alone[1], without_second=alone[0])
    assert judge(got, strict).problem is not None
    assert judge(got, replace(strict, before=lambda: state(was))) == Verdict(is_skewed=True)


def test_statements_that_add_the_same_column_go_side_by_side() -> None:
    def wide(*rows: tuple[object, ...]) -> tuple[tuple[str, TableState], ...]:
        return (("t", TableState(("id", "w"), "w/t", (), rows)),)

    alone = Outcome((), None, wide((1, None), (2, "w"))), Outcome(None, (), wide((1, None), (3, "w")))
    wanted = wide((1, None), (2, "w"), (3, "w"))
    assert side_by_side(state(((1,),)), *alone) == Outcome((), (), wanted)
