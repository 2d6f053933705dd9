"""The files of a compaction written: by threads of this process, or by Spark tasks where there is much to do."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.compactor.plan import NewDirectory
from acidsql.format.rewrite import Rewrite, Rewritten, rewrite_deletes, rewrite_rows
from acidsql.format.spread import Share, write_share

logger = logging.getLogger(__name__)

_THREADS = 4
"""Files that one process writes at the same time: most of the work is done outside of Python's lock."""
_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True)
class Task:
    """One file that is to be written; it can be sent to another process.

    Attributes:
        work: Its content; the target is a full path.
        holds_deletes: Whether it is a file of delete events.
    """

    work: Rewrite
    holds_deletes: bool

    def run(self) -> Rewritten:
        """Write it."""
        filesystem, _ = fs.resolve(self.work.target)
        return (rewrite_deletes if self.holds_deletes else rewrite_rows)(filesystem, self.work)


@dataclass(frozen=True)
class ShareTask:
    """One file of a rebalance compaction."""

    share: Share

    def run(self) -> Rewritten:
        """Write it."""
        filesystem, _ = fs.resolve(self.share.target)
        return write_share(filesystem, self.share)


class FileTask(Protocol):
    """What writes one file."""

    def run(self) -> Rewritten:
        """Write it."""
        ...


def tasks_of(directory: NewDirectory, path: str) -> list[Task]:
    """The files of a new directory that is written at a path."""
    return [
        Task(replace(work, target=fs.join(path, work.target)), directory.holds_deletes) for work in directory.rewrites
    ]


def run_tasks(tasks: Sequence[FileTask], spark: SparkSession | None, job_name: str) -> list[Rewritten]:
    """Run tasks, several at a time.

    Args:
        tasks: The tasks.
        spark: Where they run as the tasks of one job, if every worker can reach the files; None for this process.
        job_name: What the job is called in Spark's own lists, and in the log, which tells how far it is.
    """
    if spark is not None and len(tasks) > 1:
        with _described(spark, job_name), _this_python(spark):
            return spark.sparkContext.parallelize(tasks, len(tasks)).map(_run).collect()
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


@contextmanager
def _this_python(spark: SparkSession) -> Iterator[None]:
    """Workers on this machine run this interpreter, which has acidsql; Spark would take the ``python3`` of the path."""
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
