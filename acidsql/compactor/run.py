"""Writing the files of a compaction, in threads of this process, or in Spark tasks for large ones."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.compactor.plan import NewDirectory
from acidsql.format.rewrite import Rewrite, Rewritten, rewrite_deletes, rewrite_rows
from acidsql.format.spread import Share, write_share
from acidsql.format.writer_clocks import UnknownClock, ZoneRules, learn, rules_of

logger = logging.getLogger(__name__)

_THREADS = max(2, min(8, os.cpu_count() or 1))
"""Files that one process writes concurrently: most of the work is done without the GIL. Each takes memory for one or
two columns of a stripe."""
_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True)
class Task:
    """One file to be written; can be pickled for another process.

    Attributes:
        work: Its content; the target is a full path.
        holds_deletes: Whether the file has delete events.
    """

    work: Rewrite
    holds_deletes: bool

    @property
    def target(self) -> str:
        return self.work.target

    def at(self, target: str) -> Task:
        return replace(self, work=replace(self.work, target=target))

    def run(self) -> Rewritten:
        """Write the file."""
        filesystem, _ = fs.resolve(self.work.target)
        return (rewrite_deletes if self.holds_deletes else rewrite_rows)(filesystem, self.work)


@dataclass(frozen=True)
class ShareTask:
    """One file of a rebalance compaction."""

    share: Share

    @property
    def target(self) -> str:
        return self.share.target

    def at(self, target: str) -> ShareTask:
        return replace(self, share=replace(self.share, target=target))

    def run(self) -> Rewritten:
        """Write the file."""
        filesystem, _ = fs.resolve(self.share.target)
        return write_share(filesystem, self.share)


class FileTask(Protocol):
    """A task that writes one file."""

    @property
    def target(self) -> str:
        """The file."""
        ...

    def at(self, target: str) -> FileTask:
        """The same for another file."""
        ...

    def run(self) -> Rewritten:
        """Write the file."""
        ...


def tasks_of(directory: NewDirectory, path: str) -> list[Task]:
    """The tasks for the files of a new directory at a path."""
    return [
        Task(replace(work, target=fs.join(path, work.target)), directory.holds_deletes) for work in directory.rewrites
    ]


def run_tasks(tasks: Sequence[FileTask], spark: SparkSession | None, job_name: str) -> list[Rewritten]:
    """Run tasks, several at a time.

    Args:
        tasks: The tasks.
        spark: Runs them as tasks of one job, if every worker can access the files; None for this process.
        job_name: The job's name in Spark's UI, and in the log, which shows the progress.
    """
    if spark is not None and len(tasks) > 1:
        with _described(spark, job_name), _this_python(spark):
            return _run_in_spark(tasks, spark)
    if len(tasks) < 2:
        return [task.run() for task in tasks]
    done = []
    with ThreadPoolExecutor(_THREADS, "compaction") as pool:
        for result in pool.map(_run, tasks):
            done.append(result)
            logger.info("%s: %d of %d files", job_name, len(done), len(tasks))
    return done


def _run(task: FileTask) -> Rewritten:
    return task.run()


def _run_in_spark(tasks: Sequence[FileTask], spark: SparkSession) -> list[Rewritten]:
    """A task that meets the clock of a zone says so: workers have no JVM to ask, and are told with another job."""
    clocks: dict[str, ZoneRules] = {}
    done: dict[int, Rewritten] = {}
    while len(done) < len(tasks):
        due = [number for number in range(len(tasks)) if number not in done]
        attempts = spark.sparkContext.parallelize([tasks[number] for number in due], len(due))
        results = attempts.map(partial(_attempt, clocks=clocks)).collect()
        done |= {number: result for number, result in zip(due, results, strict=True) if isinstance(result, Rewritten)}
        clocks |= {result: rules_of(result) for result in results if isinstance(result, str)}
    return [done[number] for number in range(len(tasks))]


def _attempt(task: FileTask, clocks: Mapping[str, ZoneRules]) -> Rewritten | str:
    """Run a task in a worker of Spark's, as one of perhaps several attempts: what a dead one has begun, and what
    another one does at the same time, has another name, outside of the directory that is published.

    Returns:
        What was done; or a zone whose clock has to be known first.
    """
    learn(clocks)
    filesystem, target = fs.resolve(task.target)
    directory = target.rpartition("/")[0]
    own = fs.join(directory.rpartition("/")[0], "attempts", uuid.uuid4().hex)
    try:
        done = task.at(own).run()
    except UnknownClock as e:
        filesystem.delete(own)
        return e.zone
    if filesystem.exists(own):
        if filesystem.exists(target):  # another attempt was faster
            filesystem.delete(own)
        else:
            filesystem.mkdirs(directory, durable=False)
            filesystem.rename(own, target)
    return done


@contextmanager
def _this_python(spark: SparkSession) -> Iterator[None]:
    """Let local workers run this interpreter, which has acidsql, instead of ``python3`` from the path."""
    context = spark.sparkContext
    before = context.pythonExec
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


@contextmanager
def _described(spark: SparkSession, name: str) -> Iterator[None]:
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, name)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]
