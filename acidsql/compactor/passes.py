"""Merging more files than one task may read, in several passes (``hive.compactor.max.num.delta``)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from acidsql import fs
from acidsql.compactor.run import Task
from acidsql.format.inputs import InputFile
from acidsql.format.rewrite import Rewrite, Rewritten

Run = Callable[[Sequence[Task]], Sequence[Rewritten]]


@dataclass(frozen=True)
class Passes:
    """Reduces many files to a few equivalent ones, as a minor compaction of the same deltas would.

    Attributes:
        limit: How many files with rows, and how many with deletes, are read at once.
        scratch: The directory of the new files, which is removed afterwards.
        run: Runs tasks.
    """

    limit: int
    scratch: str
    run: Run

    def of(self, work: Rewrite) -> Rewrite:
        """The same output file from at most ``limit`` input files."""
        return replace(work, inputs=self._few(work, work.inputs), deletes=self._few(work, work.deletes, deletes=True))

    def _few(self, work: Rewrite, files: Sequence[InputFile], *, deletes: bool = False) -> tuple[InputFile, ...]:
        limit = max(2, self.limit)
        while len(files) > limit:
            groups = [files[at : at + limit] for at in range(0, len(files), limit)]
            many = [group for group in groups if len(group) > 1]
            tasks = [self._task(work, group, deletes) for group in many]
            done = self.run(tasks)
            merged = [self._merged(*of) for of in zip(many, tasks, done, strict=True)]
            files = [*(one for one in merged if one is not None), *(group[0] for group in groups if len(group) == 1)]
        return tuple(files)

    def _task(self, work: Rewrite, group: Sequence[InputFile], deletes: bool) -> Task:
        target = fs.join(self.scratch, uuid.uuid4().hex)
        inputs, events = ((), tuple(group)) if deletes else (tuple(group), ())
        return Task(replace(work, target=target, inputs=inputs, deletes=events, applies_deletes=False), deletes)

    def _merged(self, group: Sequence[InputFile], task: Task, done: Rewritten) -> InputFile | None:
        """The file that replaces a group. As for a compacted delta, deletes extend to the last write id of the group,
        and rows begin at the first."""
        if not done.rows:
            return None
        reaches = [file.reach for file in group]
        return InputFile(task.work.target, max(reaches) if task.holds_deletes else min(reaches))
