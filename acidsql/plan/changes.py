"""What a statement writes: rows to insert, to replace and to delete, before it is known who writes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.catalyst import Catalyst
from acidsql.metastore.model import Table
from acidsql.plan.arrow import arrow_type
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.target import IDENTITY, Change

BUCKET, KIND, NUMBER = "b", "kind", "n"
_INT, _LONG = pa.int32(), pa.int64()
_TYPES = {"writeId": _LONG, "bucketId": _INT, "rowId": _LONG, NUMBER: _LONG, KIND: _INT, BUCKET: _INT}


@dataclass(frozen=True)
class ChangeSet:
    """Changes of one table, a row for each.

    No row of the table may be named twice; where ``change`` is None, writers check that (MERGE).

    Attributes:
        frame: The rows; it has at least the columns of :attr:`columns`.
        table: The table that is changed.
        change: What happens to all rows; None if the column ``kind`` has it, a :class:`~acidsql.plan.target.Change`.
        is_numbered: Whether the column ``n`` has the number of the source row that a change comes from.
        is_bucketed: Whether the column ``b`` has the bucket of each new row.
    """

    frame: DataFrame
    table: Table
    change: Change | None
    is_numbered: bool = False
    is_bucketed: bool = False

    @property
    def values(self) -> list[str]:
        """``c0…``: the values to store, of the types of the table's data columns; none where all rows are deleted."""
        return [] if self.change is Change.DELETE else [value_column(i) for i in range(len(self.table.columns))]

    @property
    def keys(self) -> list[str]:
        """``k0…``: the values of the partition keys as path text, NULL for the default partition."""
        return [key_column(i) for i in range(len(self.table.partition_keys))]

    @property
    def identity(self) -> tuple[str, ...]:
        """The row id of the row that is replaced or deleted, NULL in rows that are inserted; none where all are."""
        return () if self.change is Change.INSERT else IDENTITY

    @property
    def columns(self) -> list[str]:
        """Names of all columns that count."""
        further = [(NUMBER, self.is_numbered), (KIND, self.change is None), (BUCKET, self.is_bucketed)]
        return [*self.values, *self.keys, *self.identity, *(name for name, is_there in further if is_there)]

    def arrow_types(self) -> list[pa.DataType]:
        """The types of :attr:`columns`, as the driver writes them."""
        types = {**_TYPES, **dict.fromkeys(self.keys, pa.string())}
        types.update(zip(self.values, (arrow_type(t) for _, t in row_type_of(self.table).fields), strict=False))
        return [types[name] for name in self.columns]

    def over(self, frame: DataFrame) -> ChangeSet:
        """The same changes in a frame that was made of theirs."""
        return replace(self, frame=frame)

    def moved(self, catalyst: Catalyst) -> ChangeSet:
        """The same in another session."""
        return self.over(catalyst.moved(self.frame))

    def without_number(self) -> ChangeSet:
        """The same, whose writer need not know the numbers of the source rows."""
        return replace(self, is_numbered=False)

    def with_bucket(self, frame: DataFrame) -> ChangeSet:
        """The same in a frame that has the bucket of each new row, too."""
        return replace(self, frame=frame, is_bucketed=True)


def value_column(position: int) -> str:
    """The column with the values of a data column of the table."""
    return f"c{position}"


def key_column(position: int) -> str:
    """The column with the path text of a partition key."""
    return f"k{position}"
