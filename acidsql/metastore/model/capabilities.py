"""What a store does itself, and what it leaves to its clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Capabilities:
    """What differs between stores. The defaults are those of the embedded store.

    Attributes:
        owns_directories: It creates, moves and removes the directories of databases, tables and partitions itself.
        runs_compactor: It has an initiator and a cleaner of its own, and does not tell clients what there is to do.
        is_shared_with_hive: Hive reads and writes the same tables: its layout, caches and restrictions apply.
        has_open_queue: Its compaction queue is that of Hive 4: it accepts rebalance requests and pools, and workers
            that are not its own can take requests.
        hides_new_tables: A table can be registered so that others see it from the commit on; with Hive they find it,
            empty, just before.
        tells_creators: It knows which transaction has registered a partition, until one that has is committed.
        versions_places: The versions of tables count up their changes, and those of the places of partitions.
        compares_rows: A commit that tells which rows it deletes is in conflict only with those that delete one of them.
        reads_zstd: Whoever reads its tables knows ORC files compressed with ZSTD: Hive does since version 4.
    """

    owns_directories: bool = False
    runs_compactor: bool = False
    is_shared_with_hive: bool = False
    has_open_queue: bool = True
    hides_new_tables: bool = True
    tells_creators: bool = True
    versions_places: bool = True
    compares_rows: bool = True
    reads_zstd: bool = True
