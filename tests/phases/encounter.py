"""Two statements, one of which is stopped for the other."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from acidsql.metastore.model import LockResponse, LockState
from acidsql.session import AcidSession
from tests.phases.steps import After, ignored, watched
from tests.phases.verdict import Answer

PATIENCE = 60.0
"""Seconds until a wait is given up; none takes more than a few unless something is stuck."""


class StuckError(AssertionError):
    """Somebody waited in vain; names who waited for whom."""


@dataclass(frozen=True)
class Phase:
    """A place at which a statement can be stopped.

    Attributes:
        number: Counted from 1.
        name: The steps around it: ``lock -> get_valid_txns``.
        has_read: Whether the statement's snapshot was handed out before it.
    """

    number: int
    name: str
    has_read: bool = False

    @property
    def next_step(self) -> str:
        """The step behind it."""
        return self.name.rpartition(" -> ")[2]

    def __str__(self) -> str:
        return f"{self.number} ({self.name})"


class Pause(Protocol):
    """Called by a statement between steps of its own."""

    def __call__(self, name: str, *, has_read: bool = False) -> None: ...


Run = Callable[[AcidSession, Pause], Answer]
"""A statement: its session, its phases of its own."""


class Walk:
    """Counts the phases of a statement, and stops at one of them.

    Attributes:
        phases: Those that it came to.
        answers: What the step behind a phase answered, by the number of the phase.
    """

    def __init__(self, stop_at: int = 0, stopped: Callable[[Phase], None] | None = None) -> None:
        self.phases: list[Phase] = []
        self.answers: dict[int, Any] = {}
        self._stop_at, self._stopped = stop_at, stopped
        self._last = "begin"

    def step(self, name: str) -> None:
        """A step is about to be made."""
        self._reach(name)

    def made(self, name: str, answer: Any) -> None:
        """A step was made."""
        self.answers[len(self.phases)] = answer

    def pause(self, name: str, *, has_read: bool = False) -> None:
        """The statement is between steps, at a place that has a name."""
        self._reach(name, has_read=has_read)

    def _reach(self, name: str, *, has_read: bool = False) -> None:
        phase = Phase(len(self.phases) + 1, f"{self._last} -> {name}", has_read)
        self._last = name
        self.phases.append(phase)
        if phase.number == self._stop_at and self._stopped is not None:
            self._stopped(phase)


def walk(acid: AcidSession, run: Run, steps: Walk, after: After = ignored) -> Answer:
    """Run a statement through its phases; the last one is behind all its steps."""

    def made(name: str, answer: Any) -> None:
        steps.made(name, answer)
        after(name, answer)

    with watched(acid, before=steps.step, after=made):
        answer = run(acid, steps.pause)
    steps.pause("end")
    return answer


class Encounter:
    """The first statement is stopped at a phase; there the second one runs, in a thread of its own.

    The first one goes on when the second has ended, or waits for a lock; then the second is held until the first has
    ended, or has to wait itself. So nothing depends on time.

    Attributes:
        walk: How the first one came to its end.
    """

    def __init__(self, first: AcidSession, second: AcidSession, names: tuple[str, str]) -> None:
        self._first, self._second, self._names = first, second, names
        self._settled = threading.Event()
        """The second statement has ended, or waits for the first."""
        self._released = threading.Event()
        """The first statement has ended, or waits for the second."""
        self._has_waited = False
        self.walk = Walk()
        self._thread: threading.Thread | None = None
        self._answer: Answer | None = None
        self._problem: BaseException | None = None

    @property
    def second_has_waited(self) -> bool:
        """Whether a lock of the first statement was in the second one's way."""
        return self._has_waited

    def run(self, first: Run, second: Run, phase: Phase) -> tuple[Answer, Answer]:
        """The answers of both.

        Raises:
            StuckError: When one of them waits for something else than a lock of the other.
            AssertionError: When the first one does not come to the phase.
        """

        def meet(reached: Phase) -> None:
            assert reached == phase, f"{self._names[0]} came to {reached} instead of {phase}"
            self._thread = threading.Thread(target=self._run_second, args=(second,), name="second", daemon=True)
            self._thread.start()
            self._wait(self._settled, f"{self._names[0]}, stopped at {phase}", f"{self._names[1]} to end, or to wait")

        try:
            self.walk = Walk(phase.number, meet)
            answer = walk(self._first, first, self.walk, self._note_first)
        finally:
            self._released.set()
        assert self._thread is not None, f"{self._names[0]} ended before {phase}"
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise StuckError(f"{self._names[0]} has ended, and still waits for {self._names[1]}:\n{self._stack()}")
        if self._problem is not None:
            raise self._problem
        assert self._answer is not None
        return answer, self._answer

    def _run_second(self, second: Run) -> None:
        try:
            with watched(self._second, before=self._hold_second, after=self._note_second):
                self._answer = second(self._second, _no_pause)
        except BaseException as e:
            self._problem = e
        finally:
            self._settled.set()

    def _note_first(self, step: str, answer: Any) -> None:
        if self._has_waited and _is_waiting(answer):
            self._released.set()

    def _note_second(self, step: str, answer: Any) -> None:
        if _is_waiting(answer) and not self._released.is_set():
            self._has_waited = True

    def _hold_second(self, step: str) -> None:
        if self._has_waited and not self._released.is_set() and step == "check_lock":
            self._settled.set()
            self._wait(self._released, self._names[1], f"{self._names[0]} to end, or to wait")

    def _wait(self, event: threading.Event, who: str, whom: str) -> None:
        if not event.wait(PATIENCE):
            self._problem = StuckError(f"{who} waited {PATIENCE:g} s for {whom}:\n{self._stack()}")
            raise self._problem

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0) if self._thread is not None else None
        return "".join(traceback.format_stack(frame)[-12:]) if frame is not None else "(its thread is gone)"


def _is_waiting(answer: Any) -> bool:
    return isinstance(answer, LockResponse) and answer.state is LockState.WAITING


def _no_pause(name: str, *, has_read: bool = False) -> None:
    pass
