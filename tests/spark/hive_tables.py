"""Directories that another engine wrote, registered as its metastore knows the table: no statement looks at them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from acidsql import fs
from acidsql.format.foreign import directory_summary
from acidsql.metastore.model import Column, Table
from acidsql.plan.snapshot import new_partition
from acidsql.session import AcidSession
from acidsql.valid_ids import ValidWriteIdList

GOLDEN = Path(__file__).parents[1] / "golden" / "data"
Columns = Sequence[tuple[str, str]]


def register(
    acid: AcidSession,
    location: Path | str,
    columns: Columns,
    *,
    name: str = "t",
    keys: Columns = (),
    partitions: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    valid: ValidWriteIdList | None = None,
) -> Table:
    """Make a table of a directory; without ``valid`` every write id in its names is committed."""
    found = directory_summary(*fs.resolve(str(location)))
    properties = {"transactional": "true", "transactional_properties": "default", **(parameters or {})}
    table = Table(
        "default",
        name,
        str(location),
        tuple(Column(n, t) for n, t in columns),
        tuple(Column(n, t) for n, t in keys),
        properties,
    )
    acid.metastore.create_table(table, holds_rows=True)
    if found.max_visibility_txn:
        acid.metastore.seed_txn_id(found.max_visibility_txn)
    opened, aborted = (valid.open_ids, valid.aborted_ids) if valid else ((), ())
    high = max(found.max_write_id, valid.high_watermark if valid else 0)
    if high:
        acid.metastore.seed_write_id(ValidWriteIdList(table.full_name, high, opened, aborted))
    added = [new_partition(table, p) for p in partitions]
    acid.metastore.add_partitions(added, with_rows=added)
    return table


def register_golden(acid: AcidSession, step: str, target: Path, golden: Path = GOLDEN) -> Table:
    """A copy of a Hive-written directory, in the snapshot in which Hive read it."""
    meta = json.loads((golden / step / "meta.json").read_text())
    shutil.copytree(golden / step / "data", target)
    for partition in meta["partitions"]:  # git keeps no empty directories
        (target / partition).mkdir(parents=True, exist_ok=True)
    described = [row[:2] for row in meta["describe_formatted"]]
    columns = described[: described.index(["", None])]
    keys: list[list[str]] = []
    if ["# Partition Information", None] in described:
        below = described[described.index(["# Partition Information", None]) + 2 :]
        keys = below[: below.index(["", None])]
    [seen] = meta["validWriteIds"]
    high, hidden = seen["writeIdHighWaterMark"], tuple(seen["invalidWriteIds"])
    return register(
        acid,
        target,
        [(n, t) for n, t in columns],
        name=meta["table"],
        keys=[(n, t) for n, t in keys],
        partitions=meta["partitions"],
        parameters=dict(re.findall(r"'(transactional\w*)'='(\w+)'", meta["ddl"])),
        valid=ValidWriteIdList(seen["fullTableName"], high, (), hidden),
    )
