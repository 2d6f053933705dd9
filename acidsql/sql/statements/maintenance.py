"""Statements that maintain a table's files, and DESCRIBE DETAIL."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.statements.parts import PartitionSpec, Span, Statement, TableName


@dataclass(frozen=True)
class Optimize(Statement):
    """``OPTIMIZE t [PARTITION (…)] [WHERE condition]``: a partial specification selects all matching partitions."""

    table: TableName
    partition: PartitionSpec | None = None
    where: Span | None = None
    """The condition, over partition keys."""


@dataclass(frozen=True)
class Vacuum(Statement):
    """``VACUUM t [RETAIN n HOURS] [DRY RUN]``."""

    table: TableName
    retain_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class DescribeDetail(Statement):
    """``DESCRIBE DETAIL t``."""

    table: TableName
