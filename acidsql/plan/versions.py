"""ACID version 1 (before Hive 3): events of one key in several directories, of which the newest is the row.

An update event (operation 1) holds the whole new row under the key of the old one, a delete event (2) no row; both
stand in deltas among inserts. Readers merge by key (``OrcRawRecordMerger``): the event of the newest transaction wins,
of its last statement, and a delete before anything else.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from acidsql.format.schema import Operation

STATEMENT = "__acid_statement"
MERGE_COLUMNS = ("operation", "currentTransaction", STATEMENT)
"""What the frames of events have besides identity, values and place."""

_RANK = "__acid_rank"
_VERSION_1 = 1 << 29


def newest(events: DataFrame, part: str) -> DataFrame:
    """The rows that the events of some partitions leave.

    Args:
        events: Visible events: identity, :data:`MERGE_COLUMNS` and others.
        part: The column with the number of the partition: a key is one of its partition only.
    """
    # The bare bucket number of version 0 names the same row as its value of version 1: original files get the latter.
    bucket = F.expr(f"if((bucket >> 29) & 7 = 0, {_VERSION_1} | (bucket << 16), bucket)")
    last_first = [F.col(name).desc() for name in ("currentTransaction", STATEMENT, "operation")]
    by_key = Window.partitionBy(part, "originalTransaction", bucket, "rowId").orderBy(*last_first)
    kept = events.withColumn(_RANK, F.row_number().over(by_key)).filter(
        f"{_RANK} = 1 AND operation != {int(Operation.DELETE)}"
    )
    return kept.drop(_RANK, *MERGE_COLUMNS)
