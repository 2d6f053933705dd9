"""One point of a curve: a statement's time before and after its planning, its CPU time, the memory of all processes.

Times are medians of some runs after one that is not counted. CPU time is that of the whole process tree: of this
process, of the JVM and of all that they start, processes that have ended among them. It is read from ``/proc``: on
other systems than Linux it and the memory are None.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from acidsql.plan.write import Writer
from acidsql.session import AcidSession

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CPU_FIELDS = slice(11, 15)
"""Behind the name in ``/proc/<pid>/stat``: user and system time, its own and that of its children that have ended."""


@dataclass(frozen=True)
class Memory:
    """Resident memory in MB: of the driver's JVM, of this process, of all other processes (Spark's Python workers)."""

    jvm: float
    python: float
    workers: float


@dataclass(frozen=True)
class Run:
    """One statement; seconds. ``planning`` ends where ``acid.sql`` has a query's plan, or DML begins to write."""

    planning: float
    wall: float
    cpu: float | None
    memory: Memory | None


@dataclass(frozen=True)
class Point:
    """The medians of some runs of one statement at one size.

    Attributes:
        curve: What grows.
        size: How large it is.
        statement: What was run.
        planning: Seconds up to the plan, for DML up to the first row that is fetched or written.
        working: Seconds after that: reading, writing, publishing, commit.
        wall: Seconds, all in all.
        cpu: CPU seconds of all processes.
        memory_mb: Resident memory after the last run.
        runs: How many there were, without the first.
    """

    curve: str
    size: int
    statement: str
    planning: float
    working: float
    wall: float
    cpu: float | None
    memory_mb: Memory | None
    runs: int

    def record(self) -> dict[str, Any]:
        """As a line of the file of results."""
        return {"kind": "point", **asdict(self)}


class Processes:
    """This process, the JVM, and what they start."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._jvm = int(jvm.java.lang.ProcessHandle.current().pid())
        self._is_known = (_PROC / "self" / "stat").exists()

    def cpu(self) -> float | None:
        """CPU seconds so far."""
        if not self._is_known:
            return None
        return sum(sum(map(int, fields[_CPU_FIELDS])) for fields in self._tree().values()) / _TICKS

    def memory(self) -> Memory | None:
        """Resident memory now."""
        if not self._is_known:
            return None
        found = {pid: _resident(pid) for pid in self._tree()}
        jvm, python = found.pop(self._jvm, 0.0), found.pop(os.getpid(), 0.0)
        return Memory(jvm, python, sum(found.values()))

    def _tree(self) -> dict[int, list[str]]:
        """The fields of all of these processes behind their names, by process id."""
        all_fields = dict(_stats())
        wanted = {os.getpid(), self._jvm}
        while more := {pid for pid, f in all_fields.items() if int(f[1]) in wanted and pid not in wanted}:
            wanted |= more
        return {pid: all_fields[pid] for pid in wanted if pid in all_fields}


def _stats() -> Iterator[tuple[int, list[str]]]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has ended
                continue


def _resident(pid: int) -> float:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE / (1 << 20)
    except OSError:
        return 0.0


class ScaleMeter:
    """Runs statements of one session and keeps their points."""

    def __init__(self, acid: AcidSession, runs: int, keep: Callable[[Point], None]) -> None:
        self.acid = acid
        self._runs = runs
        self._keep = keep
        self._processes = Processes(acid.spark)
        self._began_to_write: float | None = None

    def point(self, curve: str, size: int, statement: str, texts: Sequence[str]) -> None:
        """Run statements of one kind: the first one is not counted. The last is repeated where they are too few."""
        made = [self._run(texts[min(number, len(texts) - 1)]) for number in range(self._runs + 1)][1:]
        planning, wall = (statistics.median(v) for v in ([r.planning for r in made], [r.wall for r in made]))
        cpus = [r.cpu for r in made if r.cpu is not None]
        cpu = statistics.median(cpus) if cpus else None
        working = statistics.median(r.wall - r.planning for r in made)
        self._keep(Point(curve, size, statement, planning, working, wall, cpu, made[-1].memory, len(made)))

    @property
    def statements(self) -> int:
        """How many times :meth:`point` runs a statement."""
        return self._runs + 1

    def _run(self, text: str) -> Run:
        cpu, start = self._processes.cpu(), time.perf_counter()
        with self._watched():
            answer = self.acid.sql(text)
        planned = self._began_to_write or time.perf_counter()
        answer.collect()
        end, used = time.perf_counter(), self._processes.cpu()
        spent = None if cpu is None or used is None else used - cpu
        return Run(planned - start, end - start, spent, self._processes.memory())

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Note when a statement begins to write: all DML does so by one method."""
        self._began_to_write, write = None, Writer.write

        def noted(writer: Writer, *arguments: Any, **options: Any) -> Any:
            self._began_to_write = self._began_to_write or time.perf_counter()
            return write(writer, *arguments, **options)

        Writer.write = noted  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Writer.write = write  # type: ignore[method-assign]
