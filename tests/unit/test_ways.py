"""The cases that a run leaves out because it runs them in another way."""

from __future__ import annotations

from tests.ways import others

CASES = [f"tests/spark/test_a.py::test_{n}[{way}-x y-{n}]" for n in range(40) for way in ("driver", "job")]


def test_each_case_is_run_in_one_of_two_ways_and_each_way_by_some() -> None:
    left_out = others(CASES)
    assert [sum(case in left_out for case in pair) for pair in zip(CASES[::2], CASES[1::2], strict=True)] == [1] * 40
    assert 8 < sum("[job" in case for case in left_out) < 32


def test_the_choice_is_that_of_every_run() -> None:
    assert others(reversed(CASES)) == others(CASES)
    assert others(CASES[:20]) == others(CASES) & set(CASES[:20])


def test_what_has_one_way_or_needs_no_spark_is_run() -> None:
    assert not others(["tests/spark/test_a.py::test_b[driver]", "tests/spark/test_a.py::test_b", CASES[0]])
    assert not others(["tests/unit/test_a.py::test_b[driver]", "tests/unit/test_a.py::test_b[job]"])


def test_of_two_pairs_one_of_four_is_run_at_least() -> None:
    cases = [f"tests/spark/test_a.py::test_b[{a}-{b}]" for a in ("driver", "job") for b in ("hive3", "hive4")]
    assert len(others(cases)) < 4
