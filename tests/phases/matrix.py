"""All phases of a pair of statements, and the serial orders that they are judged by."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from acidsql.session import AcidSession
from tests.phases.encounter import Encounter, Pause, Phase, Run, StuckError, Walk, walk
from tests.phases.statements import BY_NAME, ONLY_CLEANER, PARTITIONED, PLAIN, Statement, attempt
from tests.phases.steps import READS
from tests.phases.verdict import Alternatives, Answer, Outcome, Rejection, State, judge
from tests.phases.warehouses import Warehouses, left_behind, look

_NOTHING = object()
LOCK_TIMEOUT = "acidsql.lock.timeout"
MERGE_LOCKS = "hive.txn.xlock.mergeinsert"
Order = tuple[int, ...]
"""Whose part comes when: 0 for the first statement, 1 for the second."""


@dataclass(frozen=True)
class Variant:
    """A kind of table, and settings of both sessions.

    Attributes:
        is_impatient: The second statement does not wait for locks: where it meets one it ends at once with an error
            that must have had no effect, and is run again after the first.
    """

    name: str
    kind: str = PARTITIONED
    settings: Mapping[str, str] = field(default_factory=dict)
    is_impatient: bool = False

    def __str__(self) -> str:
        return self.name


VARIANTS = {
    v.name: v
    for v in (
        Variant("partitioned"),
        Variant("plain", PLAIN),
        Variant("jobs", PARTITIONED, {"acidsql.write.driver.rows": "1"}),
        Variant("first wins", PARTITIONED, {"hive.txn.xlock.write": "false"}),
        Variant("plain, first wins", PLAIN, {"hive.txn.xlock.write": "false"}),
        Variant("by rows", PARTITIONED, {"acidsql.write.conflicts": "row"}),
        Variant("plain, by rows", PLAIN, {"acidsql.write.conflicts": "row"}),
        Variant("merge inserts lock", PARTITIONED, {MERGE_LOCKS: "true"}),
        Variant("impatient", PARTITIONED, is_impatient=True),
    )
}


@dataclass(frozen=True)
class Pair:
    """Two statements: the first is stopped for the second."""

    variant: Variant
    first: Statement
    second: Statement

    def __str__(self) -> str:
        return f"{self.variant}: {self.first.name} / {self.second.name}"

    def orders(self) -> list[Order]:
        """All serial orders of their parts; the first statement goes first in the first one."""
        counts = [len(s.parts[self.variant.kind]) for s in (self.first, self.second)]
        wholes = (0,) * counts[0] + (1,) * counts[1]
        return sorted(set(itertools.permutations(wholes)))

    @property
    def may_skew(self) -> bool:
        """Whether Hive's locks let both read the same snapshot and write; MERGE can be told to take stricter ones."""
        statements = (self.first, self.second)
        is_strict = self.variant.settings.get(MERGE_LOCKS) == "true"
        return all(s.writes for s in statements) and any(s.adds_what_it_reads for s in statements) and not is_strict


@dataclass(frozen=True)
class Failure:
    """A phase at which something illegal came out."""

    pair: Pair
    phase: Phase
    report: str

    def __str__(self) -> str:
        return f"{self.pair}, stopped at {self.phase}\n{self.report}"


Tampering = Callable[[AcidSession], AbstractContextManager[object]]
"""Breaks something in the session of a first statement: for the tests of the tests."""


class Matrix:
    """Runs pairs of statements; what does not depend on the phase is computed once.

    Attributes:
        driven: How many phases were driven.
        spared: How many were not, because what they come to is known from the one before.
        skewed: Phases at which something came out that snapshot isolation allows, but no serial order gives.
    """

    def __init__(self, warehouses: Warehouses, tampering: Tampering = nullcontext) -> None:
        self._warehouses = warehouses
        self._tampering = tampering
        self._serial = functools.cache(self._serially)
        self._walked = functools.cache(self._walk)
        self.driven = self.spared = 0
        self.skewed: list[tuple[Pair, Phase]] = []

    def phases(self, pair: Pair) -> Sequence[Phase]:
        """The phases of the first statement, from the second on: before its first step it has not begun."""
        return self._walked(pair.variant.name, pair.first.name, pair.second.name).phases[1:]

    def failures(self, pair: Pair, phases: Sequence[Phase] | None = None) -> Iterator[Failure]:
        """Drive a pair through phases; through all where none are given.

        Of all, those are spared that nobody can tell from the phase before: a step that changes nothing, and answers
        the same whether the second statement has come or not, may as well stand before it as behind it.
        """
        is_known = False
        for phase in self.phases(pair) if phases is None else phases:
            if is_known and phases is None:
                self.spared += 1
            else:
                self.driven += 1
                report, walked = self._case(pair, phase)
                if report is not None:
                    yield Failure(pair, phase, report)
            is_known = phase.next_step in READS and self._answers_the_same(pair, walked, phase)

    def _answers_the_same(self, pair: Pair, walked: Walk, phase: Phase) -> bool:
        alone = self._walked(pair.variant.name, pair.first.name, pair.second.name)
        if phase not in walked.phases:
            return False
        both = [w.answers.get(phase.number, _NOTHING) for w in (alone, walked)]
        return _NOTHING not in both and bool(both[0] == both[1])

    # --- one run -----------------------------------------------------------------------------------------------------

    def _case(self, pair: Pair, phase: Phase) -> tuple[str | None, Walk]:
        """What is wrong with the outcome at a phase, and how the first statement came to it."""
        root = self._prepared(pair)
        first, second = self._session(pair, 0), self._session(pair, 1)
        with first, second:
            encounter = Encounter(first, second, (pair.first.name, pair.second.name))
            try:
                with self._tampering(first):
                    answers = encounter.run(self._run(pair, 0, root), self._run(pair, 1, root), phase)
            except StuckError as e:
                return f"  {e}", encounter.walk
            if pair.variant.is_impatient and _timed_out(answers[1]):
                second.sql(f"SET {LOCK_TIMEOUT} = 5s")
                answers = (answers[0], self._run(pair, 1, root)(second, Walk().pause))
        outcome, left = self._looked(pair, root, *answers)
        verdict = judge(outcome, self._alternatives(pair, phase))
        problem = verdict.problem
        if verdict.is_skewed:
            self.skewed.append((pair, phase))
        if left:
            problem = "\n".join(filter(None, [problem, f"  left   {', '.join(left)}"]))
        return problem, encounter.walk

    def _prepared(self, pair: Pair) -> Path:
        """A warehouse, and whatever both statements expect to find in it."""
        root = self._warehouses.fresh(pair.variant.kind)
        requests = [s.prepare[pair.variant.kind] for s in (pair.first, pair.second) if s.prepare]
        if requests:
            with self._warehouses.connect({}) as acid:
                for text in dict.fromkeys(requests):
                    acid.sql(text)
        return root

    def _session(self, pair: Pair, number: int) -> AcidSession:
        timeout = "0s" if number == 1 and pair.variant.is_impatient else "5s"
        statement = (pair.first, pair.second)[number]
        return self._warehouses.connect({LOCK_TIMEOUT: timeout, **pair.variant.settings, **statement.settings})

    def _run(self, pair: Pair, number: int, root: Path) -> Run:
        """A whole statement: an error ends it."""
        parts = (pair.first, pair.second)[number].parts[pair.variant.kind]

        def run(acid: AcidSession, pause: Pause) -> Answer:
            answer: Answer = ()
            for part in parts:
                answer = attempt(part, acid, root, pause)
                if isinstance(answer, Rejection):
                    break
            return answer

        return run

    def _looked(self, pair: Pair, root: Path, first: Answer | None, second: Answer | None) -> tuple[Outcome, list[str]]:
        with self._warehouses.connect(ONLY_CLEANER) as acid:
            left, state = left_behind(acid, root), look(acid, root)
            if pair.first.maintains or pair.second.maintains:
                acid.compactor.run_once()
                cleaned = look(acid, root)
                left += [] if cleaned == state else [f"what the cleaner then made {Outcome(first, second, cleaned)}"]
            return Outcome(first, second, state), left

    # --- what it is judged by ----------------------------------------------------------------------------------------

    def _alternatives(self, pair: Pair, phase: Phase) -> Alternatives:
        names = (pair.variant.name, pair.first.name, pair.second.name)
        counts = [len(s.parts[pair.variant.kind]) for s in (pair.first, pair.second)]
        orders = pair.orders()[:1] if phase.has_read else pair.orders()

        def before() -> State:
            return self._serial(*names, ()).state

        return Alternatives(
            [functools.partial(self._serial, *names, order) for order in orders],
            functools.partial(self._serial, *names, (1,) * counts[1]),
            functools.partial(self._serial, *names, (0,) * counts[0]),
            before if pair.may_skew else None,
        )

    def _serially(self, variant: str, first: str, second: str, order: Order) -> Outcome:
        """What a serial order of the parts comes to. A statement ends with its first error."""
        pair = self._pair(variant, first, second)
        root = self._prepared(pair)
        answers: list[Answer | None] = [None, None]
        sessions = [self._session(pair, n) for n in (0, 1)]
        remaining = [iter(s.parts[pair.variant.kind]) for s in (pair.first, pair.second)]
        with sessions[0], sessions[1]:
            for who in order:
                part = next(remaining[who])
                if not isinstance(answers[who], Rejection):
                    answers[who] = attempt(part, sessions[who], root, Walk().pause)
        outcome, left = self._looked(pair, root, *answers)
        assert not left, f"{pair} in the order {order} left {left}"
        return outcome

    def _walk(self, variant: str, first: str, second: str) -> Walk:
        """The first statement alone, but for what the second one expects to find."""
        pair = self._pair(variant, first, second)
        root, steps = self._prepared(pair), Walk()
        with self._session(pair, 0) as acid, self._tampering(acid):
            walk(acid, self._run(pair, 0, root), steps)
        return steps

    def _pair(self, variant: str, first: str, second: str) -> Pair:
        return Pair(VARIANTS[variant], BY_NAME[first], BY_NAME[second])


def _timed_out(answer: Answer) -> bool:
    return isinstance(answer, Rejection) and answer.kind.startswith("LockTimeout")
