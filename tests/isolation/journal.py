"""What sessions do, written down as they do it: a process that is killed leaves what it had begun."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.isolation.history import Append, Operation, Outcome, Read, Txn

Event = dict[str, Any]


@dataclass
class Report:
    """What was done.

    Attributes:
        history: The transactions over lists.
        counts: How many of what.
        problems: What must not be, besides anomalies of the history.
    """

    history: list[Txn] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Journal:
    """The events of one process, in memory or in a file.

    Args:
        name: Of all journals that are read together, no other one has it.
        file: Where the events go, each as it comes, in a line of JSON; None: they stay in memory.
    """

    def __init__(self, name: str, file: Path | None = None) -> None:
        self._name = name
        self._file = file.open("ab", buffering=0) if file is not None else None
        self._lock = threading.Lock()
        self._number = 0
        self.events: list[Event] = []

    def begin(self) -> Entry:
        """A transaction over lists begins."""
        with self._lock:
            self._number += 1
            txn = f"{self._name}/{self._number}"
        self.write(txn=txn, began=time.monotonic_ns())
        return Entry(self, txn)

    def count(self, what: str) -> None:
        self.write(count=what)

    def problem(self, text: str) -> None:
        self.write(problem=text)

    def write(self, **event: Any) -> None:
        if self._file is None:
            self.events.append(event)
        else:
            self._file.write(json.dumps(event).encode() + b"\n")


class Entry:
    """A transaction over lists."""

    def __init__(self, journal: Journal, txn: str) -> None:
        self._journal, self._txn = journal, txn

    def append(self, key: str, value: int) -> None:
        """Something is about to be appended."""
        self._journal.write(txn=self._txn, append=[key, value])

    def read(self, key: str, values: tuple[int, ...]) -> None:
        """A list was read."""
        self._journal.write(txn=self._txn, read=[key, values])

    def end(self, outcome: Outcome) -> None:
        self._journal.write(txn=self._txn, ended=time.monotonic_ns(), outcome=outcome.value)
        self._journal.count(f"transactions {outcome.value}")


def events_of(files: Iterable[Path]) -> Iterator[Event]:
    """The events of journals; the last one of a killed process may not be whole."""
    for file in sorted(files):
        for line in file.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)


def report_of(events: Iterable[Event]) -> Report:
    """What some journals tell; a transaction whose end is not told has an unknown outcome."""
    report, told = Report(), dict[str, list[Event]]()
    for event in events:
        if "txn" in event:
            told.setdefault(event["txn"], []).append(event)
        elif "count" in event:
            report.counts[event["count"]] += 1
        else:
            report.problems.append(event["problem"])
    for number, steps in enumerate(told.values()):
        operations = tuple(made for step in steps if (made := _operation(step)) is not None)
        last = steps[-1] if "ended" in steps[-1] else {}
        times = {"began": steps[0]["began"]} | ({"ended": last["ended"]} if last else {})
        report.history.append(Txn(number, operations, Outcome(last.get("outcome", "unknown")), **times))
        if not last:
            report.counts["transactions cut short"] += 1
    return report


def _operation(step: Event) -> Operation | None:
    if "append" in step:
        return Append(*step["append"])
    if "read" in step:
        key, values = step["read"]
        return Read(key, tuple(values))
    return None
