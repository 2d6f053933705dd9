"""Preview of a compaction. Writes nothing and makes no request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acidsql import fs
from acidsql.compactor.compaction import RefusedError, WorkerContext
from acidsql.compactor.measure import replaced_files
from acidsql.compactor.plan import Layout, NewDirectory, to_compact
from acidsql.compactor.rebalance import Rebalance, check_rebalance, compaction_of
from acidsql.errors import AcidError
from acidsql.format.directory import AcidState, acid_state
from acidsql.format.names import BaseName
from acidsql.metastore.model import CompactionInfo, CompactionRequest, CompactionState, CompactionType, Partition, Table
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True)
class Preview:
    """Preview of a compaction of a table, or of one partition.

    Attributes:
        type: The resulting type: a minor one may become a major one.
        inputs: The directories that it would replace, and the number of original files.
        files: Files with rows or delete events in them.
        bytes: Their size.
        outputs: The directories that it would write; none if it would only be cleaned.
        max_files: Maximum number of files in them.
        obsolete: Other directories and files left to the cleaner: replaced before, or aborted.
        problem: Why it would be refused or fail; None otherwise.
    """

    type: CompactionType
    inputs: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    outputs: tuple[str, ...] = ()
    max_files: int = 0
    obsolete: int = 0
    problem: str | None = None

    def __str__(self) -> str:
        """One line: ``MAJOR of delta_…, delta_… (2 files, 900 bytes) writes base_0000002 (1 file at most)``."""
        if self.problem is not None:
            return f"{self.type.name} {self.problem}"
        left = f"{self.obsolete} obsolete or aborted entries are left to the cleaner"
        if not self.outputs:
            return f"{self.type.name} finds nothing to compact; {left}"
        written = f"{', '.join(self.outputs)} ({_count(self.max_files, 'file')} at most)"
        read = f"{', '.join(self.inputs) or 'nothing'} ({_count(self.files, 'file')}, {_count(self.bytes, 'byte')})"
        return f"{self.type.name} of {read} writes {written}" + (f"; {left}" if self.obsolete else "")


def preview(
    context: WorkerContext,
    request: CompactionRequest,
    table: Table,
    partition: Partition | None,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
) -> Preview:
    """The preview of a request.

    Args:
        context: The shared context of the services.
        request: The request.
        table: The table.
        partition: The partition; None for a table without any.
        write_ids, txns: The current snapshot.
    """
    entry = CompactionInfo(
        0,
        request.database,
        request.table,
        request.partition,
        request.type,
        CompactionState.INITIATED,
        properties=request.properties,
        buckets=request.buckets,
        order_by=request.order_by,
    )
    location = table.location if partition is None else partition.location
    filesystem, path = fs.resolve(location)
    seen = to_compact(filesystem, path, write_ids)
    try:
        state = acid_state(filesystem, path, seen, txns, any_file_name=table.is_insert_only)
        check_rebalance(entry, table)
        compaction = compaction_of(context, entry, "", table, partition, 0)
        directories = compaction.preview(state, seen)
    except RefusedError as e:
        return Preview(request.type, problem=f"would be refused: {e.message}")
    except AcidError as e:
        return Preview(request.type, problem=f"would fail: {e.message}")
    obsolete = len(state.obsolete) + len(state.aborted)
    if not directories:
        return Preview(request.type, obsolete=obsolete)
    is_base = any(isinstance(one.name, BaseName) for one in directories)
    files = list(replaced_files(state, by_base=is_base))
    is_rebalance = isinstance(compaction, Rebalance)
    resulting = CompactionType.MAJOR if is_base else CompactionType.MINOR
    max_files = max(1, sum(len(one.rewrites) for one in directories))
    return Preview(
        CompactionType.REBALANCE if is_rebalance else resulting,
        tuple(_inputs(state, is_base)),
        len(files),
        sum(file.length for file in files),
        tuple(_outputs(directories, compaction.layout, is_rebalance)),
        request.buckets if is_rebalance and request.buckets else max_files,
        obsolete,
    )


def standing(
    entries: Iterable[CompactionInfo], partition: str | None, write_ids: ValidWriteIdList
) -> CompactionInfo | None:
    """The queue entry because of which a request would not be accepted (``Compactions.compact``).

    Args:
        entries: The entries of the table.
        partition: The requested partition.
        write_ids: The current snapshot.
    """
    highest = write_ids.for_compaction().high_watermark
    for one in sorted(entries, key=lambda entry: entry.id):
        if one.partition != partition:
            continue
        if one.state.is_under_way:
            return one
        if one.state is CompactionState.READY_FOR_CLEANING and one.highest_write_id == highest:
            return one
    return None


def _inputs(state: AcidState, is_base: bool) -> Iterator[str]:
    if is_base and state.base is not None:
        yield state.base.path.rstrip("/").rpartition("/")[2]
    yield from (delta.path.rstrip("/").rpartition("/")[2] for delta in state.deltas)
    if is_base and state.originals:
        yield _count(len(state.originals), "original file")


def _outputs(directories: Iterable[NewDirectory], layout: Layout, is_rebalance: bool) -> Iterator[str]:
    """Their names, with placeholders for ids that only the worker will know."""
    for one in directories:
        if layout is Layout.HIVE4:
            yield f"{one.name}_v<transaction>"
        else:
            yield "base_<its own write id>" if is_rebalance else str(one.name)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
