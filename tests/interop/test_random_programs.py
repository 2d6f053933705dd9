"""Random programs whose statements run on either side, against an oracle in plain Python.

A failing program prints its seed; ``ACIDSQL_TEST_SEED`` runs that one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.interop.both import SIDES, Both

STATEMENTS = 14
SEEDS = [int(os.environ["ACIDSQL_TEST_SEED"])] if "ACIDSQL_TEST_SEED" in os.environ else [4, 401]
VALUES = ["a", "b", "", "żółć 😀", "x" * 30]

Row = tuple[int, str | None, int]
Rows = list[Row]


@dataclass(frozen=True)
class Condition:
    """A condition in SQL and in Python; SQL's NULL is no truth."""

    text: str
    holds: Callable[[Row], bool]


CONDITIONS = [
    Condition("", lambda r: True),
    Condition(" WHERE id = 1", lambda r: r[0] == 1),
    Condition(" WHERE id > 3", lambda r: r[0] > 3),
    Condition(" WHERE k = 1", lambda r: r[2] == 1),
    Condition(" WHERE k IN (0, 2) AND id < 5", lambda r: r[2] in (0, 2) and r[0] < 5),
    Condition(" WHERE v LIKE 'a%' OR v IS NULL", lambda r: r[1] is None or r[1].startswith("a")),
    Condition(" WHERE id % 2 = 0 AND k <> 2", lambda r: r[0] % 2 == 0 and r[2] != 2),
    Condition(" WHERE id > 99", lambda r: r[0] > 99),
]
CHANGES: list[tuple[str, Callable[[Row], Row]]] = [
    ("v = 'u'", lambda r: (r[0], "u", r[2])),
    ("id = id + 1", lambda r: (r[0] + 1, r[1], r[2])),
    ("v = concat(v, '!'), id = 0", lambda r: (0, None if r[1] is None else r[1] + "!", r[2])),
    ("v = CAST(NULL AS string)", lambda r: (r[0], None, r[2])),
]


def _text(value: object) -> str:
    return "CAST(NULL AS string)" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _select(rows: Rows) -> str:
    return " UNION ALL ".join("SELECT " + ", ".join(map(_text, r)) for r in rows)


def _statement(chance: random.Random, rows: Rows, partitioned: bool) -> tuple[str, Rows]:
    """A statement and the rows after it."""
    condition = chance.choice(CONDITIONS)
    match = [r for r in rows if condition.holds(r)]
    rest = [r for r in rows if not condition.holds(r)]
    kind = chance.choice(["values", "values", "select", "update", "update", "update", "delete", "delete", "overwrite"])
    if kind == "values":
        new: Rows = [
            (chance.randrange(7), chance.choice([None, *VALUES]), chance.randrange(3))
            for _ in range(chance.randint(1, 4))
        ]
        return "INSERT INTO {t} VALUES " + ", ".join(f"({', '.join(map(_value, r))})" for r in new), rows + new
    if kind == "select":
        text = f"INSERT INTO {{t}} SELECT id + 1, concat(v, '+'), k FROM {{t}}{condition.text}"
        return text, rows + [(r[0] + 1, None if r[1] is None else r[1] + "+", r[2]) for r in match]
    if kind == "update":
        change, applied = chance.choice(CHANGES)
        return f"UPDATE {{t}} SET {change}{condition.text}", rest + [applied(r) for r in match]
    if kind == "delete":
        return f"DELETE FROM {{t}}{condition.text}", rest
    text = f"INSERT OVERWRITE TABLE {{t}} SELECT id + 10, v, k FROM {{t}}{condition.text}"
    new = [(r[0] + 10, r[1], r[2]) for r in match]
    if not partitioned:
        return text, new
    touched = {r[2] for r in match}  # a dynamic overwrite replaces the partitions that it writes to
    return text, [r for r in rows if r[2] not in touched] + new


def _value(value: object) -> str:
    return "NULL" if value is None else _text(value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
def test_a_random_program_of_both_engines(both: Both, partitioned: bool, seed: int) -> None:
    chance = random.Random(f"{seed} {partitioned}")
    columns, keys = ("id int, v string", "k int") if partitioned else ("id int, v string, k int", "")
    t = both.table(columns, keys, by=chance.choice(SIDES))
    rows: Rows = []
    program: list[str] = []
    try:
        for _ in range(STATEMENTS):
            side = chance.choice(SIDES)
            both.acid.sql(f"SET acidsql.write.driver.rows = {chance.choice([0, 20000])}")
            text, rows = _statement(chance, rows, partitioned)
            program.append(f"{side}: {text}")
            t.on(side, text).holds(*rows)
    except Exception as e:
        told = "\n  ".join(program)
        raise AssertionError(f"ACIDSQL_TEST_SEED={seed} partitioned={partitioned}\n  {told}\n{e}") from e
