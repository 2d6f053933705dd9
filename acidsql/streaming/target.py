"""The table that is streamed to: records become columns as its files hold them, and these a delta of a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from acidsql.catalyst import rows_in_memory
from acidsql.commands.environment import Environment
from acidsql.metastore.model import Column, Table
from acidsql.partition_names import LONGEST_NAME, NO_NUL, partition_name
from acidsql.plan.arrow import arrow_type, fetched, is_utf8
from acidsql.plan.bucketing import bucket_number
from acidsql.plan.changes import BUCKET, NUMBER, key_column, value_column
from acidsql.plan.checks import of_row, violations
from acidsql.plan.event_writer import EventWriter
from acidsql.plan.session_zone import SessionZone
from acidsql.plan.staging import Staging
from acidsql.plan.target import Change, RowCounts, Target
from acidsql.plan.values import bounded, default_value, from_orc_driver, has_wall_clock, key_text
from acidsql.streaming.records import Field, RecordReader
from acidsql.streaming.values import BadValue, column_of, of_arrow
from acidsql.types import LOCAL_TIMESTAMP, HiveType, contains, parse_type

_NO_ZONE = SessionZone("UTC")
_KEPT_KEYS = 10_000
"""Texts of so many values of partition keys are remembered."""


@dataclass(frozen=True)
class BadRecord:
    """A record that cannot be stored, and why."""

    record: Any
    error: BadValue


@dataclass
class StreamTarget:
    """A table, and the partition that all rows go to or the keys that each row has a value for.

    Attributes:
        env: The session.
        table: The table.
        static: The texts of partition keys that are given, by name; None is the default partition.
    """

    env: Environment
    table: Table
    static: Mapping[str, str | None]
    _texts: dict[tuple[str, Any], str | None] = field(default_factory=dict)

    @cached_property
    def columns(self) -> list[Column]:
        """The columns that records have values for: the data columns, and the keys that are not given."""
        return [*self.table.columns, *self._given_keys]

    @cached_property
    def _given_keys(self) -> list[Column]:
        """The partition keys that each row has a value for."""
        return [k for k in self.table.partition_keys if k.name not in self.static]

    def _require_keys(self, names: Collection[str]) -> None:
        """Raises: BadValue when one of them has no value."""
        for key in self._given_keys:
            if key.name not in names:
                raise BadValue(f"Partition key {key.name} has no value")

    @cached_property
    def _types(self) -> dict[str, HiveType]:
        return {c.name: parse_type(c.type) for c in self.table.all_columns}

    @cached_property
    def fields(self) -> list[Field]:
        """The same as records see them."""
        return [Field(c.name, self._types[c.name]) for c in self.columns]

    # --- records -----------------------------------------------------------------------------------------------------

    def read(self, records: Iterable[Any], reader: RecordReader) -> tuple[list[pa.Table], list[BadRecord]]:
        """Records as columns, and those that cannot be stored.

        Records that name the same columns make one table, in their order.

        Returns:
            What :meth:`write` takes, and the bad records in their order.
        """
        groups: dict[tuple[str, ...], dict[int, Mapping[str, Any]]] = {}
        bad: dict[int, BadValue] = {}
        listed = list(records)
        for number, record in enumerate(listed):
            try:
                values = reader.read(record, self.fields)
                self._require_keys(values)
            except BadValue as e:
                bad[number] = e
                continue
            groups.setdefault(tuple(sorted(values)), {})[number] = values
        made = []
        for names, rows in groups.items():
            columns, refused = self._columns(names, rows)
            bad |= refused
            numbers = [number for number in rows if number not in refused]
            if not numbers:
                continue
            stored = self._stored(columns, len(numbers))
            failed = self._refused(stored)
            bad |= {numbers[i]: error for i, error in failed.items()}
            if len(failed) < len(numbers):
                made.append(_without(stored, failed))
        # without the traceback, which would keep all records alive
        return made, [BadRecord(listed[number], BadValue(bad[number].message)) for number in sorted(bad)]

    def _columns(
        self, names: Sequence[str], rows: Mapping[int, Mapping[str, Any]]
    ) -> tuple[dict[str, pa.Array], dict[int, BadValue]]:
        """Values of records by number as columns, without those of records that are refused; and why they are."""
        try:
            return {name: self._column(name, [row[name] for row in rows.values()]) for name in names}, {}
        except BadValue:  # of one of them
            bad: dict[int, BadValue] = {}
        for number, row in rows.items():
            try:
                for name in names:
                    self._column(name, [row[name]])
            except BadValue as e:
                bad[number] = e
        good = [row for number, row in rows.items() if number not in bad]
        return {name: self._column(name, [row[name] for row in good]) for name in names}, bad

    def _column(self, name: str, values: Sequence[Any]) -> pa.Array:
        try:
            return column_of(values, self._types[name], self._zone_of(self._types[name]))
        except BadValue as e:
            raise BadValue(f"Column {name}: {e.message}") from e

    def of_arrow(self, rows: pa.Table | pa.RecordBatch) -> pa.Table:
        """Arrow's columns, by name in any letter case, as :meth:`write` takes them.

        Raises:
            BadValue: When a value cannot be stored, or the table has no such column.
        """
        names = {c.name for c in self.columns}
        table = pa.table(rows.columns, names=rows.schema.names)
        if not is_utf8(table):
            raise BadValue("A text is not valid UTF-8")
        given: dict[str, pa.Array] = {}
        self._require_keys({*map(str.lower, table.schema.names)})
        for name, column in zip(table.schema.names, table.columns, strict=True):
            own = name.lower()
            if own not in names or own in given:
                raise BadValue(f"The table has no column {name}, or it is there twice")
            try:
                given[own] = of_arrow(column.combine_chunks(), self._types[own], self._zone_of(self._types[own]))
            except BadValue as e:
                raise BadValue(f"Column {name}: {e.message}") from e
        stored = self._stored(given, table.num_rows)
        for error in self._refused(stored).values():
            raise error
        return stored

    # --- what is stored ----------------------------------------------------------------------------------------------

    def _stored(self, given: Mapping[str, pa.Array], count: int) -> pa.Table:
        """Columns as :meth:`acidsql.plan.event_writer.EventWriter.write` takes them; of those not given the DEFAULT."""
        made = {}
        for i, column in enumerate(self.table.columns):
            values = given.get(column.name)
            made[value_column(i)] = self._default(column, count) if values is None else values
        for i, key in enumerate(self.table.partition_keys):
            if key.name in self.static:
                made[key_column(i)] = pa.array([self.static[key.name]] * count, type=pa.string())
                continue
            made[key_column(i)] = pa.array(self._key_texts(key, given[key.name]), type=pa.string())
        return pa.table(made)

    def _refused(self, stored: pa.Table) -> dict[int, BadValue]:
        """The rows that constraints refuse, or after whose partition no directory can be named, by position."""
        bad: dict[int, BadValue] = {}
        for i, key in enumerate(self.table.partition_keys):
            texts = stored[key_column(i)]
            for text in pc.unique(texts).to_pylist():
                if (problem := _unfit(key, text)) is not None:
                    bad |= dict.fromkeys(pc.indices_nonzero(pc.equal(texts, text)).to_pylist(), problem)
        places = [value_column(i) for i in range(len(self.table.columns))]
        places += [key_column(i) for i in range(len(self.table.partition_keys))]
        for column, place in zip(self.table.all_columns, places, strict=True):
            values = stored[place]
            if column.not_null and values.null_count:
                error = BadValue(f"NULL value in column {column.name}, which is NOT NULL")
                bad |= dict.fromkeys(pc.indices_nonzero(values.is_null()).to_pylist(), error)
        if self.table.checks:
            values = [from_orc_driver(of_row(value_column(i)), t) for i, t in enumerate(self._value_types)]
            frame = self._frame(stored.append_column(NUMBER, pa.array(range(stored.num_rows), pa.int32())))
            found = violations(self.env.own_spark, frame, self.table, values)
            bad = {n: BadValue(message) for n, message in found.items()} | bad
        return bad

    def _zone_of(self, type: HiveType) -> SessionZone:
        """The session's zone; for values without times, which need none, nothing is asked of the JVM."""
        has_times = contains(type, "timestamp") or contains(type, LOCAL_TIMESTAMP)
        return self.env.session_zone if has_times else _NO_ZONE

    @property
    def _value_types(self) -> list[HiveType]:
        return [self._types[c.name] for c in self.table.columns]

    def _frame(self, rows: pa.Table) -> DataFrame:
        """Rows in a session in the user's zone."""
        return rows_in_memory(self.env.own_spark, rows)

    def _frame_of_clocks(self, rows: pa.Table) -> DataFrame:
        """Rows in a session whose zone has every wall clock."""
        return rows_in_memory(self.env.sessions.in_zone("UTC").spark, rows)

    def _default(self, column: Column, count: int) -> pa.Array:
        type = self._types[column.name]
        if column.default is None:
            return pa.nulls(count, arrow_type(type))
        rows = self._frame(pa.table({NUMBER: pa.array(range(count), pa.int32())}))
        found = fetched(rows.selectExpr(f"{default_value(column)} AS v"))["v"]
        return of_arrow(found.combine_chunks(), type, self._zone_of(type))

    def key_text(self, key: Column, value: Any) -> str | None:
        """What stands in paths for a value of a key that is given. Raises: BadValue."""
        text = self._key_texts(key, self._column(key.name, [value]))[0]
        if (problem := _unfit(key, text)) is not None:
            raise problem
        return text

    def _key_texts(self, key: Column, values: pa.Array) -> list[str | None]:
        """What stands in paths for values of a key, by the rules of INSERT."""
        signs = [None if v is None else (key.name, _sign(v)) for v in _plain(values).to_pylist()]
        known = {sign: place for place, sign in enumerate(signs) if sign is not None}
        unknown = {sign: place for sign, place in known.items() if sign not in self._texts}
        if unknown:
            if len(self._texts) + len(unknown) > _KEPT_KEYS:
                self._texts.clear()
                unknown = known
            type = self._types[key.name]
            table = pa.table({"v": values.take(pa.array(unknown.values(), pa.int64()))})
            frame = self._frame_of_clocks(table) if has_wall_clock(type) else self._frame(table)
            found = frame.selectExpr(f"{key_text(bounded(from_orc_driver('v', type), key), type)} AS k").collect()
            self._texts.update(zip(unknown, (row.k for row in found), strict=True))
        return [None if sign is None else self._texts[sign] for sign in signs]

    # --- files -------------------------------------------------------------------------------------------------------

    def write(self, rows: pa.Table, target: Target, staging: Staging) -> RowCounts:
        """Write rows as one statement of a transaction."""
        if self.table.bucket_columns:
            rows = rows.append_column(BUCKET, self._bucket_numbers(rows))
        return EventWriter(target, staging).write(rows, Change.INSERT)

    def _bucket_numbers(self, rows: pa.Table) -> pa.ChunkedArray:
        by = {c.name: i for i, c in enumerate(self.table.columns)}
        hashed = [by[name] for name in self.table.bucket_columns if name in by]
        names = [value_column(i) for i in hashed]
        values = [
            f"{from_orc_driver(name, self._value_types[i])} AS {name}" for i, name in zip(hashed, names, strict=True)
        ]
        frame = self._frame_of_clocks(rows.select(names)).selectExpr(*values)
        number = bucket_number(frame.sparkSession, self.table, frame)
        return fetched(frame.select(number.alias(BUCKET)))[BUCKET]


def _unfit(key: Column, text: str | None) -> BadValue | None:
    """Why no directory can be named after a value of a key."""
    if text is None:
        return None
    if "\0" in text:
        return BadValue(f"Partition key {key.name} has {NO_NUL}")
    if len(partition_name([key.name], [text]).encode()) > LONGEST_NAME:
        return BadValue(f"Partition key {key.name} has a value that is too long for the name of a directory")
    return None


def _plain(values: pa.Array) -> pa.Array:
    """Days and moments as numbers: Python has none after the year 9999."""
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _sign(value: Any) -> Any:
    """By which a value is known: of floats, 0.0 and -0.0 are equal, and NaN is not equal to itself."""
    return repr(value) if isinstance(value, float) else value


def _without(rows: pa.Table, positions: Collection[int]) -> pa.Table:
    if not positions:
        return rows
    return rows.filter(pa.array([i not in positions for i in range(rows.num_rows)]))
