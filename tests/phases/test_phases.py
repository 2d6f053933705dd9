"""Whatever phase a statement is stopped at while another one runs, the outcome is that of a serial order.

The normal run drives a sample that ``ACIDSQL_TEST_SEED`` chooses; ``make test-phases`` drives every phase of every
pair, and ``PHASES="partitioned and update"`` (an expression of pytest's ``-k``) a part of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import product

import pytest

from tests.phases.conftest import Tally
from tests.phases.encounter import Phase
from tests.phases.matrix import VARIANTS, Matrix, Pair, Variant
from tests.phases.statements import STATEMENTS

SEED = os.environ.get("ACIDSQL_TEST_SEED") or "1"
SAMPLED_PAIRS = 3
SAMPLED_PHASES = 2

MERGES = frozenset(("merge", "merge insert only", "merge over many partitions"))
PROBES = frozenset(
    (
        *("insert into a new partition", "overwrite dynamic", "update", "delete", "merge"),
        *("drop partition", "drop and create", "truncate", "major compaction and cleaner"),
    )
)
"""Statements that find out most about the others."""
READS = frozenset(("select", "select twice"))


def pairs_of(variant: Variant) -> list[Pair]:
    """The pairs of a variant: all of the two kinds of tables; of the others those that it makes a difference to."""
    known = [s for s in STATEMENTS if variant.kind in s.parts]
    writing, probes = [s for s in known if s.writes], [s for s in known if s.name in PROBES]
    if variant.is_impatient:
        chosen = known, probes
    elif variant.name == "jobs":
        chosen = writing, probes
    elif variant.name == "merge inserts lock":
        chosen = ([s for s in known if s.name in MERGES],) * 2
    elif "first wins" in variant.name:
        chosen = [s for s in known if s.writes or s.name in READS], probes
    elif "by rows" in variant.name:
        compared = [s for s in known if s.name in ("update", "delete")]
        others = [s for s in known if s not in compared]
        return [Pair(variant, *two) for two in (*product(compared, known), *product(others, compared))]
    else:
        chosen = known, known
    return [Pair(variant, first, second) for first in chosen[0] for second in chosen[1]]


PAIRS = [pair for variant in VARIANTS.values() for pair in pairs_of(variant)]
SAMPLE = random.Random(SEED).sample(pairs_of(VARIANTS["partitioned"]), SAMPLED_PAIRS)


def drive(matrix: Matrix, tally: Tally, pair: Pair, phases: Sequence[Phase] | None = None) -> None:
    failures = list(matrix.failures(pair, phases))
    tally.pairs.add(str(pair))
    tally.failures += failures
    assert not failures, "\n".join([f"{len(failures)} illegal outcomes", *map(str, failures)])


@pytest.mark.parametrize("pair", SAMPLE, ids=str)
def test_at_some_phases_of_some_pairs_the_outcome_is_that_of_a_serial_order(
    matrix: Matrix, tally: Tally, pair: Pair
) -> None:
    phases = matrix.phases(pair)
    chosen = random.Random(f"{SEED} {pair}").sample(phases, min(SAMPLED_PHASES, len(phases)))
    drive(matrix, tally, pair, sorted(chosen, key=lambda phase: phase.number))


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_at_every_phase_of_every_pair_the_outcome_is_that_of_a_serial_order(
    matrix: Matrix, tally: Tally, pair: Pair
) -> None:
    drive(matrix, tally, pair)
