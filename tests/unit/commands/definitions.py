"""Statements that define tables, without Spark: the store, the files and the parser are the real ones.

Rows are written and read with pyorc, as in :mod:`tests.unit.compactor.world`; of Spark there is what these statements
ask it: whether it has a table of that name, and the values of a PARTITION clause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

from acidsql.catalyst import InternalSessions
from acidsql.commands.ddl import create_as
from acidsql.commands.environment import Environment
from acidsql.commands.registry import execute
from acidsql.commands.transaction.run import write_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.format.bucket import encode
from acidsql.format.directory import acid_state
from acidsql.format.names import DeltaName
from acidsql.format.orc import write_inserts
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import Column, LockComponent, LockType, Operation, Table
from acidsql.plan.snapshot import partition_names
from acidsql.plan.staging import Staging
from acidsql.plan.target import RowCounts
from acidsql.settings import Settings
from acidsql.sql.parser import parse_statement
from tests.unit.compactor.world import FS, ROW_TYPE, rows_of, values


def _spark() -> MagicMock:
    spark = MagicMock()
    spark.catalog.tableExists.return_value = False
    spark.catalog.databaseExists.return_value = False
    return spark


def _sessions() -> MagicMock:
    """``PARTITION (p = 1)``: each value as it was given, and as its key's type prints it."""
    sessions = MagicMock()
    catalyst = sessions.user
    catalyst.is_temporary_view.return_value = False
    catalyst.looks_along_a_path.return_value = False
    catalyst.parse_expression.side_effect = lambda text: text.strip().strip("'")
    catalyst.alias.side_effect = lambda value, _: value
    catalyst.project.side_effect = lambda given, _: given
    catalyst.with_parameters.side_effect = lambda given, _: given
    catalyst.frame.side_effect = lambda given: given

    def moved(given: Sequence[str]) -> MagicMock:
        frame = MagicMock()
        frame.selectExpr.return_value.collect.return_value = [[text for value in given for text in (value, value)]]
        return frame

    catalyst.analyzed.side_effect = _Row
    sessions.own.frame.side_effect = moved
    return sessions


class _Row(list[str]):
    """The plan of a row."""

    def containsPattern(self, pattern: object) -> bool:
        """Nothing in it asks what is current."""
        return False


class Session:
    """One of several sessions at a store.

    Args:
        root: Where the store and the warehouse ``w`` are.
    """

    def __init__(self, root: Path, settings: Mapping[str, str] | None = None) -> None:
        self.root = root
        parsed = Settings({"acidsql.lock.timeout": "5s", **(settings or {})})
        self.store = EmbeddedMetastore(str(root / "s.db"), parsed, str(root / "w"))
        with patch.object(InternalSessions, "of", lambda _: _sessions()):
            self.env = Environment(
                spark=_spark(),
                metastore=self.store,
                settings=parsed,
                heartbeats=Heartbeats(self.store, 1000.0),
                compactor=MagicMock(),
                warehouse=str(root / "w"),
                user="ann",
                host="desk",
                agent="test",
            )
            assert self.env.sessions  # they are made at the first look

    def close(self) -> None:
        self.env.heartbeats.close()
        self.store.close()

    def sql(self, text: str) -> None:
        execute(self.env, parse_statement(text.replace("{root}", str(self.root))), {})

    def table(self, name: str = "t", keys: str = "") -> None:
        """CREATE TABLE of one column ``a``."""
        by = f" PARTITIONED BY ({keys})" if keys else ""
        self.sql(f"CREATE TRANSACTIONAL TABLE {name} (a int){by}")

    def insert(self, *numbers: int, name: str = "t", part: str = "") -> None:
        """INSERT into the table, or into one partition of it."""
        database, _, bare = name.rpartition(".")
        table = self.store.get_table(database or "default", bare)
        lock = LockComponent(LockType.SHARED_READ, table.database, table.name, part or None, Operation.INSERT)
        with write_transaction(self.env, [lock]) as txn:
            txn.revalidate(table)
            staging = txn.stage(table)
            stage(txn, table, staging, *numbers, part=part)
            txn.publish(table, staging)

    def rows(self, name: str = "default.t") -> dict[str, list[int]]:
        """The values that one who comes now reads, by partition; each has a directory."""
        table = self.store.get_table(*name.split("."))
        txns = self.store.get_valid_txns()
        [write_ids] = self.store.get_valid_write_ids([name], txns)
        places = {"": table.location}
        if table.partition_keys:
            known = self.store.list_partitions(table.database, table.name)
            places = {partition_names(table, p): p.location for p in known}
        assert all(Path(place).is_dir() for place in places.values()), places
        states = {part: acid_state(FS, place, write_ids, txns) for part, place in places.items()}
        return {part: sorted(rows_of(state, write_ids).values()) for part, state in states.items()}

    @property
    def seen(self) -> dict[str, dict[str, list[int]]]:
        """All rows of all tables, by the tables' names."""
        databases = self.store.list_databases()
        return {n: self.rows(n) for n in (f"{d}.{t}" for d in databases for t in self.store.list_tables(d))}

    @property
    def files(self) -> list[str]:
        """What there is below the warehouse."""
        top = self.root / "w"
        return sorted(str(path.relative_to(top)) for path in top.rglob("*"))

    @property
    def is_idle(self) -> bool:
        """Whether no transaction, lock or directory is left behind."""
        hidden = [name for name in self.files if "_tmp_" in name]
        return not (self.store.show_txns() or self.store.show_locks() or self.store.dropped_directories() or hidden)


def stage(txn: WriteTransaction, table: Table, staging: Staging, *numbers: int, part: str = "") -> None:
    """Rows in a staged delta."""
    write_id = txn.allocate_write_id(table)
    directory = staging.directory(part, DeltaName(write_id, write_id, 0))
    write_inserts(FS, directory.bucket(0), ROW_TYPE, values(*numbers), write_id=write_id, bucket=encode(0))
    staging.wrote(directory, len(numbers))


@contextmanager
def queries_of(*numbers: int, meanwhile: Callable[[], object] = lambda: None, key: str | None = None) -> Iterator[None]:
    """CREATE TABLE AS, without Spark: its query answers these numbers in a column ``a``.

    Args:
        numbers: The rows.
        meanwhile: What others do while it runs.
        key: A partition key; each row has a partition of its own.
    """

    class Insert:
        def __init__(self, env: Environment, statement: object, parameters: object, table: Table) -> None:
            self.table = table

        def stored(self, frame: object) -> object:
            return frame

        def write(self, changes: object, txn: WriteTransaction, staging: Staging) -> RowCounts:
            for some, part in [(numbers, "")] if key is None else [((n,), f"{key}={n}") for n in numbers]:
                stage(txn, self.table, staging, *some, part=part)
            meanwhile()
            return RowCounts(inserted=len(numbers))

        def publish(self, txn: WriteTransaction, staging: Staging) -> None:
            txn.publish(self.table, staging, dynamic=key is not None)

    def columns(self: Any, frame: object) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        return (Column("a", "int"),), () if key is None else (Column(key, "int"),)

    with (
        patch.object(create_as, "InsertClause", Insert),
        patch.object(create_as, "_ordered", lambda frame, table: frame),
        patch.object(create_as.CreateTableAsCommand, "_query", lambda *_: (MagicMock(tables=()), None)),
        patch.object(Environment, "writing", MagicMock()),
        patch.object(create_as.CreateTableAsCommand, "_columns", columns),
    ):
        yield
