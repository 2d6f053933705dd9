"""What later statements of a transaction must find as earlier ones did."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from acidsql.commands.resolve.before import SeenBefore
from acidsql.commands.resolve.context import DefinitionChanged
from acidsql.errors import SnapshotTooOld
from acidsql.format.data_files import AcidFile
from acidsql.format.directory import AcidDirectory, AcidState
from acidsql.format.names import BaseName, DeltaName, parse_directory
from acidsql.format.unseen import Snapshot
from acidsql.metastore.model import Partition, Table
from acidsql.plan.snapshot import PartitionState, TableSnapshot
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

OWN = 7
NOW = int(time.time())
NEVER = 10**9
TABLE = Table("default", "t", "file:/w/t", (), (), {})


def named(name: str) -> BaseName | DeltaName:
    found = parse_directory(name)
    assert found is not None
    return found


def snapshot(
    files: Sequence[str], unseen: Sequence[str] = (), *, sees: int = 7, partition: Partition | None = None
) -> TableSnapshot:
    """A snapshot that sees write ids up to one, and some directories and original files."""
    names = {name: named(name) for name in files if "_" in name and not name.startswith("0")}
    originals = tuple(AcidFile(f"/w/t/{name}", name, 0, 10, 0) for name in files if name not in names)
    directories = {name: AcidDirectory(parsed, f"/w/t/{name}", ()) for name, parsed in names.items()}
    base = next((d for d in directories.values() if isinstance(d.name, BaseName)), None)
    deltas = tuple(d for d in directories.values() if isinstance(d.name, DeltaName))
    state = AcidState("/w/t", base, deltas, originals, unseen=tuple(map(named, unseen)))
    return TableSnapshot(TABLE, ValidWriteIdList("default.t", sees), (PartitionState(partition, state),))


def before(*, snapshot_ms: int = NOW * 1000) -> SeenBefore:
    """Of a transaction that sees none of 9 and of the compactor's transaction 33, which are committed by now."""
    committed = Snapshot(ValidTxnList(40, aborted_ids=(35,)), ValidWriteIdList("default.t", 12, (11,), (10,)))
    return SeenBefore(lambda: snapshot_ms, lambda table: committed)


FIRST = ["base_0000003", "delta_0000004_0000004_0000", "delete_delta_0000005_0000005_0000"]


@pytest.mark.parametrize(
    ("first", "later", "is_lost"),
    [
        (FIRST, FIRST, False),
        (FIRST, [*FIRST, "delta_0000007_0000007_0001"], False),
        ([*FIRST, "delta_0000007_0000007_0001"], FIRST, False),  # undone
        (FIRST, ["base_0000007"], False),  # of its own
        (["base_0000007"], FIRST, False),
        (FIRST, FIRST[1:], True),
        (FIRST, FIRST[:1], True),
        (FIRST, [], True),
        (FIRST, ["base_0000005_v0000019"], False),  # compacted, and seen (Hive 3)
        (FIRST, ["base_0000004_v0000019"], True),
        (FIRST, ["base_0000003", "delta_0000004_0000006_v0000019", "delete_delta_0000004_0000006_v0000019"], False),
        (["000000_0", "000001_0"], ["000000_0"], True),
        (["000000_0"], [], True),
        (["000000_0"], ["base_0000007"], False),
        (["000000_0"], ["base_-9223372036854775808_v0000019"], False),
        (["000000_0", "delta_0000004_0000004_0000"], ["base_-9223372036854775808_v0000019"], True),
        ([], ["delta_0000004_0000004_0000"], False),
    ],
)
def test_what_has_gone(first: list[str], later: list[str], is_lost: bool) -> None:
    seen = before()
    seen.require_files(snapshot(first), OWN)
    if not is_lost:
        seen.require_files(snapshot(later), OWN)
        return
    for _ in range(2):  # it stays lost
        with pytest.raises(SnapshotTooOld):
            seen.require_files(snapshot(later), OWN)


@pytest.mark.parametrize(
    ("files", "unseen", "sees", "is_lost"),
    [
        ([], [], 6, False),
        ([], ["base_0000009"], 6, True),
        (["delta_0000004_0000004_0000"], ["base_0000009"], 6, False),
        (["000000_0"], ["base_0000009"], 6, False),
        ([], ["base_0000009"], 0, True),  # there may have been original files
        (["000000_0"], ["base_0000009"], 0, False),
        ([], ["base_-9223372036854775808_v0000033"], 6, True),
        ([], ["base_-9223372036854775808_v0000033"], 0, True),
        ([], ["base_-9223372036854775808_v0000035"], 6, False),
        (["delta_0000004_0000004_0000"], ["base_-9223372036854775808_v0000033"], 6, True),
        (["000000_0"], ["base_-9223372036854775808_v0000033"], 6, False),
        ([], ["base_0000010"], 6, False),  # aborted
        ([], ["base_0000011"], 6, False),  # open
        ([], ["base_0000005_v0000033"], 6, True),
        ([], ["base_0000005_v0000035"], 6, False),
        ([], ["delta_0000004_0000005_v0000033"], 6, True),
        (["base_0000002"], ["delta_0000003_0000005_v0000033"], 6, True),
        (["base_0000002"], ["delta_0000008_0000009_v0000033"], 6, False),  # of none that it sees
        (["base_0000002", "delta_0000004_0000004"], ["delta_0000003_0000005_v0000033"], 6, False),
        (["base_0000006"], ["delta_0000003_0000005_v0000033"], 6, False),
        (["base_0000002"], ["delta_0000003_0000005_v0000035"], 6, False),
        (["delta_0000007_0000007_0000"], ["base_0000009"], 7, True),  # its own
    ],
)
def test_what_may_have_gone_before_the_first_look(
    files: list[str], unseen: list[str], sees: int, is_lost: bool
) -> None:
    if not is_lost:
        before().require_files(snapshot(files, unseen, sees=sees), OWN)
        return
    with pytest.raises(SnapshotTooOld):
        before().require_files(snapshot(files, unseen, sees=sees), OWN)


def test_its_own_write_id_is_none_that_it_saw() -> None:
    seen = snapshot([], ["delta_0000001_0000009_v0000033"], sees=1)
    before().require_files(seen, 1)
    with pytest.raises(SnapshotTooOld):
        before().require_files(seen, None)


@pytest.mark.parametrize(("seconds", "is_lost"), [(-1, True), (0, False), (5, False), (-NEVER, True)])
def test_a_later_partition_was_empty(seconds: int, is_lost: bool) -> None:
    partition = Partition("default", "t", ("1",), "file:/w/t", NOW + seconds)
    seen = snapshot([], ["base_0000009"], partition=partition)
    if not is_lost:
        before().require_files(seen, None)
        return
    with pytest.raises(SnapshotTooOld):
        before().require_files(seen, None)


@pytest.mark.parametrize(("seconds", "is_later"), [(-NEVER, False), (-5, False), (0, False), (1, True)])
def test_a_table_that_was_made_later(seconds: int, is_later: bool) -> None:
    table = Table("default", "t", "file:/w/t", (), (), {}, created_at=NOW + seconds)
    if not is_later:
        before().require_table(table)
        return
    for _ in range(2):
        with pytest.raises(DefinitionChanged):
            before().require_table(table)
