"""The judge: counts what is done, hears of every failure, and says at the end what happened and how to run it again."""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Broken(AssertionError):
    """An invariant does not hold."""


class Judge:
    """Shared by all threads of a run; the first failure ends it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        """Set when the load is to end."""
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._lock = threading.Lock()

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] += number

    def replace(self, head: str, counts: Mapping[str, int]) -> None:
        """Put counts in the place of all whose names begin like that."""
        with self._lock:
            for what in [what for what in self.counts if what.startswith(head)]:
                del self.counts[what]
            self.counts.update({f"{head}{what}": number for what, number in counts.items()})

    def highest(self, what: str, number: int) -> None:
        """Remember the largest number of its kind."""
        with self._lock:
            self.counts[what] = max(self.counts[what], number)

    def fail(self, problem: str) -> None:
        with self._lock:
            self.failures.append(problem)
        self.stop.set()

    @contextmanager
    def watching(self, who: str) -> Iterator[None]:
        """Whatever is raised in the block is a failure of the run."""
        try:
            yield
        except Exception as e:  # whatever it is: the thread must end, and the others with it
            self.fail(f"{who}: {type(e).__name__}: {e}\n{''.join(traceback.format_tb(e.__traceback__)[-6:])}")

    @property
    def statements(self) -> int:
        return self.counts["statements"]

    def report(self) -> str:
        """What was done, a line each, and what went wrong."""
        width = max(map(len, self.counts), default=0)
        lines = [f"  {what:<{width}} {number:>10,}" for what, number in sorted(self.counts.items())]
        return "\n".join([*lines, *self.failures])
