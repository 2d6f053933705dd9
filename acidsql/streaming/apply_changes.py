"""Changes of keyed rows from elsewhere, brought into a table: in whatever order they come, and however often.

Each change has a key and a number that says when it happened (its sequence). A companion table remembers what the
table itself cannot tell: of type 1 the last sequence of every key, of type 2 the deletes. Both are written in one
transaction, under the lock of the companion, so that batches of several writers follow one another. What was applied
before is passed over, which makes a batch that comes twice, as after a crash, harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from acidsql.commands.environment import Environment
from acidsql.commands.registry import run
from acidsql.commands.transaction.locking import change_locks
from acidsql.commands.transaction.run import together
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import (
    AcidError,
    AnalysisError,
    ConstraintViolation,
    InvalidValue,
    UnsupportedError,
)
from acidsql.format.writer_clocks import is_utc
from acidsql.metastore.model import LockComponent, LockType, Operation, Table
from acidsql.plan.failures import failing_with, own_failures
from acidsql.plan.text import quote
from acidsql.plan.views import Views, require_frame
from acidsql.sql.parser import parse_table_name
from acidsql.streaming.applied import DELETED, SEQUENCE, Applied
from acidsql.streaming.keys import not_in_orc, with_keys_as_stored
from acidsql.types import contains, parse_type, to_hive

VALIDITY = ("valid_from", "valid_to")
"""The columns of a table of type 2, unless others are named: from which sequence on a row held, and until which; NULL:
it still does."""
_SEQUENCE, _DELETED, _IS_OLD, _UNTIL, _NEXT = (f"__acid_{n}" for n in ("sequence", "deleted", "old", "until", "next"))
_COUNT, _CONTENT, _COMES, _ANEW = (f"__acid_{n}" for n in ("count", "content", "comes", "anew"))
_T, _S, _OLD, _EVERY = (f"__acid_{n}" for n in ("t", "s", "before", "every"))
"""Names that no column of a table has."""
_EXACTLY = {"ignoreNullFields": "false"}


@dataclass(frozen=True)
class ChangeOptions:
    """How changes are applied; see :meth:`acidsql.session.AcidSession.apply_changes`."""

    keys: tuple[str, ...]
    sequence_by: str
    deletes: str | None
    except_columns: tuple[str, ...]
    scd_type: int
    validity: tuple[str, str]

    def check(self) -> None:
        """Raises: InvalidValue."""
        if self.scd_type not in (1, 2) or isinstance(self.scd_type, bool):
            raise InvalidValue(f"{self.scd_type!r} is no type of slowly changing dimensions: 1 or 2")
        if not self.keys or len(set(self.keys)) < len(self.keys):
            raise InvalidValue("The keys are the names of the columns that name a row, each once")


class ChangeApplier:
    """One batch of changes for a table."""

    def __init__(self, env: Environment, name: str, changes: DataFrame, options: ChangeOptions) -> None:
        """
        Raises:
            InvalidValue, AnalysisError, UnsupportedError: When the options do not fit the changes, or the table.
        """
        options.check()
        require_frame(changes)
        self._env, self._options = env, options
        self._name = parse_table_name(name)
        self._table = env.changeable_table(self._name)
        self._names = _names(self._table, changes, options)
        self._values = [n for n in self._names if n not in options.keys]
        self._events, self._sequence_type = self._prepared(changes)
        if options.scd_type == 2:
            self._check_validity()
        database = quote(self._table.database)
        self._target = f"{database}.{quote(self._table.name)}"
        types = self._types
        keys = [(key, types[key]) for key in options.keys]
        self._applied = Applied(env, self._name, self._table, keys, self._sequence_type, options.scd_type)

    def apply(self) -> DataFrame:
        """Apply them.

        Returns:
            The counts of what was changed in the table.

        Raises:
            InvalidValue: When a key or a sequence is NULL or would be stored as another one, or two changes of a key
                have one sequence and differ.
        """
        # what may give other rows each time is evaluated once
        try:
            with own_failures():
                events = self._events.localCheckpoint()
        except ConstraintViolation as e:
            raise InvalidValue(e.message) from None
        self._check(events)
        self._applied.make()
        write = self._type_1 if self._options.scd_type == 1 else self._type_2

        def apply(txn: WriteTransaction, env: Environment) -> DataFrame:
            database, name = self._applied.place
            locks = [LockComponent(LockType.EXCL_WRITE, database, name, operation=Operation.UPDATE)]
            if self._options.scd_type == 2:  # what is read of the table stays until it is changed
                table = env.get_table(self._name)
                locks += change_locks(env, table, Operation.UPDATE, None, by_rows=False)
            txn.lock(locks)
            with Views(env.spark) as views:
                return write(env, views, views.add(events))

        return together(self._env, apply)

    @property
    def _types(self) -> dict[str, str]:
        """The types of the table's columns."""
        return {c.name: c.type for c in self._table.all_columns}

    def _check_validity(self) -> None:
        types = self._types
        for name in self._options.validity:
            if types[name] != self._sequence_type:
                raise AnalysisError(
                    f"{name} of {self._table.full_name} is {types[name]}, the sequence {self._sequence_type}",
                    hint=f"sequence_by='CAST(… AS {types[name]})', or a table whose columns have the sequence's type.",
                )

    # --- the changes -------------------------------------------------------------------------------------------------

    def _prepared(self, changes: DataFrame) -> tuple[DataFrame, str]:
        """Keys, values, sequence, and whether it is a delete; and the sequence's type in a table."""
        options = self._options
        deletes = "false" if options.deletes is None else options.deletes
        spelled = {name.lower(): name for name in changes.columns}
        columns = [f"{quote(spelled[n])} AS {quote(n)}" for n in (*options.keys, *self._values)]
        made = changes.selectExpr(
            *columns, f"({options.sequence_by}) AS {_SEQUENCE}", f"coalesce(({deletes}), false) AS {_DELETED}"
        )
        keys = {key: key for key in options.keys}
        made = self._with_moments(with_keys_as_stored(made, self._table, keys, all_in_files=True))
        given = made.schema[_SEQUENCE].dataType.simpleString()
        try:
            type = parse_type(given)
        except AcidError as e:
            raise UnsupportedError(f"A sequence of the type {given} cannot be stored: {e.message}") from e
        if contains(type, "map"):
            raise UnsupportedError(f"A sequence of the type {given} has no order: maps are not compared")
        lost = not_in_orc(_SEQUENCE, type)
        if lost is not None:
            said = f"concat('A sequence cannot be stored as it is, ', CAST({_SEQUENCE} AS string))"
            made = made.withColumn(_SEQUENCE, F.expr(f"if({lost}, {failing_with(said)}, {_SEQUENCE})"))
        return made, to_hive(type)

    def _with_moments(self, changes: DataFrame) -> DataFrame:
        """Changes whose sequence is remembered as it is: a time is stored as a wall clock, of which an hour in autumn
        has two times, and sessions in other zones have others; and a wall clock is stored as a time that has it, of
        which an hour in spring has none."""
        type = changes.schema[_SEQUENCE].dataType
        if "timestamp" not in type.simpleString():
            return changes
        if self._options.scd_type == 1 and isinstance(type, TimestampType):
            return changes.withColumn(_SEQUENCE, F.unix_micros(_SEQUENCE))
        if self._options.scd_type == 1 and isinstance(type, StructType):
            fields = {f.name: f"{_SEQUENCE}.{quote(f.name)}" for f in type.fields}
            moments = {f.name for f in type.fields if isinstance(f.dataType, TimestampType)}
            if all(f.name in moments or "timestamp" not in f.dataType.simpleString() for f in type.fields):
                parts = [f"unix_micros({v})" if n in moments else v for n, v in fields.items()]
                named = ", ".join(f"{part} AS {quote(n)}" for part, n in zip(parts, fields, strict=True))
                return changes.withColumn(_SEQUENCE, F.expr(f"if({_SEQUENCE} IS NULL, NULL, struct({named}))"))
        if not is_utc(self._env.zones.session):
            raise UnsupportedError(
                f"Times in a sequence of this form need a session in UTC, not in {self._env.zones.session}",
                hint="SET TIME ZONE 'UTC', or a number or a text in the sequence, such as unix_micros(…).",
            )
        return changes

    def _check(self, events: DataFrame) -> None:
        keys = [quote(k) for k in self._options.keys]
        missing = " OR ".join(f"{name} IS NULL" for name in (*keys, _SEQUENCE))
        if not events.filter(missing).isEmpty():
            raise InvalidValue("A change has NULL as its key or its sequence")
        same = events.groupBy(*keys, _SEQUENCE).agg(F.count("*").alias(_COUNT)).filter(f"{_COUNT} > 1").drop(_COUNT)
        if same.isEmpty():
            return
        values = F.to_json(
            F.struct(*[_comparable(F.col(quote(n)), events.schema[n].dataType).alias(n) for n in self._values]),
            _EXACTLY,
        )
        content = F.when(F.col(_DELETED), F.lit("")).otherwise(values if self._values else F.lit(""))
        doubtful = events.join(same, [*self._options.keys, _SEQUENCE], "leftsemi").withColumn(_CONTENT, content)
        differ = doubtful.groupBy(*keys, _SEQUENCE).agg(F.countDistinct(_DELETED, _CONTENT).alias(_COUNT))
        if not differ.filter(f"{_COUNT} > 1").isEmpty():
            raise InvalidValue(
                "Two changes of a key have the same sequence and differ: it is not known which one is the later",
                hint="A struct is ordered by its fields one by one: sequence_by='struct(at, number)'.",
            )

    @property
    def _companion(self) -> str:
        """The table of what was applied, once it is there."""
        return self._applied.text

    def _on(self, one: str, other: str) -> str:
        return " AND ".join(f"{one}.{quote(k)} = {other}.{quote(k)}" for k in self._options.keys)

    # --- type 1: the newest state ------------------------------------------------------------------------------------

    def _type_1(self, env: Environment, views: Views, events: str) -> DataFrame:
        keys = ", ".join(map(quote, self._options.keys))
        later = (
            f"SELECT {_S}.* FROM {quote(events)} {_S} LEFT JOIN {self._companion} {_T} ON {self._on(_S, _T)}"
            f" WHERE {_T}.{SEQUENCE} IS NULL OR {_S}.{_SEQUENCE} > {_T}.{SEQUENCE}"
        )
        # the newest change of each key; where a delete comes before it, the row is another one than was there
        number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {_SEQUENCE} DESC) AS {_COUNT}"
        is_anew = f"max({_DELETED}) OVER (PARTITION BY {keys}) AS {_ANEW}"
        newest = run(env, f"SELECT * FROM (SELECT *, {number}, {is_anew} FROM ({later})) WHERE {_COUNT} = 1")
        source = quote(views.add(newest.localCheckpoint()))
        names = [*self._options.keys, *self._values]
        sets = [f"{quote(n)} = {_S}.{quote(n)}" for n in self._values]
        others = [f"{quote(c.name)} = DEFAULT" for c in self._table.columns if c.name not in names]
        anew = f" WHEN MATCHED AND {_S}.{_ANEW} THEN UPDATE SET {', '.join([*sets, *others])}" if others else ""
        update = f" WHEN MATCHED THEN UPDATE SET {', '.join(sets)}" if sets else ""
        counts = run(
            env,
            f"MERGE INTO {self._target} AS {_T} USING {source} AS {_S} ON {self._on(_T, _S)}"
            f" WHEN MATCHED AND {_S}.{_DELETED} THEN DELETE{anew}{update} WHEN NOT MATCHED AND NOT {_S}.{_DELETED} THEN"
            f" INSERT ({', '.join(map(quote, names))}) VALUES ({', '.join(f'{_S}.{quote(n)}' for n in names)})",
        )
        values = ", ".join([*(f"{_S}.{quote(k)}" for k in self._options.keys), f"{_S}.{_SEQUENCE}", f"{_S}.{_DELETED}"])
        run(
            env,
            f"MERGE INTO {self._companion} AS {_T} USING {source} AS {_S} ON {self._on(_T, _S)}"
            f" WHEN MATCHED THEN UPDATE SET {SEQUENCE} = {_S}.{_SEQUENCE}, {DELETED} = {_S}.{_DELETED}"
            f" WHEN NOT MATCHED THEN INSERT VALUES ({values})",
        )
        return counts

    # --- type 2: all states ------------------------------------------------------------------------------------------

    def _type_2(self, env: Environment, views: Views, events: str) -> DataFrame:
        options, new = self._options, quote(events)
        start, end = map(quote, options.validity)
        keys = ", ".join(map(quote, options.keys))
        values = "".join(f", {quote(n)}" for n in self._values)
        nothing = "".join(f", NULL AS {quote(n)}" for n in self._values)
        mine = f"EXISTS (SELECT 1 FROM {new} {_S} WHERE {self._on(_S, _T)})"
        rows = (
            f"SELECT DISTINCT {keys}{nothing}, {start} AS {_SEQUENCE}, false AS {_DELETED}, true AS {_IS_OLD},"
            f" {end} AS {_UNTIL} FROM {self._target} {_T} WHERE {mine}"
        )
        remembered = f"FROM {self._companion} {_T} WHERE {mine} AND"
        deletes = f"SELECT {keys}{nothing}, {SEQUENCE}, true, true, NULL {remembered} {DELETED}"
        old = f"{rows} UNION ALL {deletes}"
        known = f"SELECT 1 FROM {_OLD} {_T} WHERE {self._on(_T, _S)} AND {_T}.{_SEQUENCE} = {_S}.{_SEQUENCE}"
        first = f"row_number() OVER (PARTITION BY {keys}, {_SEQUENCE} ORDER BY {_SEQUENCE})"
        once = f"SELECT * EXCEPT ({_COUNT}) FROM (SELECT *, {first} AS {_COUNT} FROM {new}) WHERE {_COUNT} = 1"
        added = (
            f"SELECT {keys}{values}, {_SEQUENCE}, {_DELETED}, false AS {_IS_OLD}, NULL AS {_UNTIL} FROM ({once}) {_S}"
            f" WHERE NOT EXISTS ({known})"
        )
        # rows may have ended by deletes that nothing else tells of: unless something else has happened then, and also
        # once the row ends before
        ended = (
            f"SELECT {keys}, {_UNTIL}, false AS {_IS_OLD} FROM {_OLD} WHERE {_UNTIL} IS NOT NULL"
            f" UNION ALL SELECT {keys}, {SEQUENCE}, true {remembered} NOT {DELETED}"
        )
        same = f"SELECT 1 FROM {_EVERY} {_S} WHERE {self._on(_S, _T)} AND {_S}.{_SEQUENCE} = {_T}.{_UNTIL}"
        ends = (
            f"SELECT {keys}{nothing}, {_UNTIL}, CAST(NULL AS boolean), max({_IS_OLD}), NULL FROM ({ended}) {_T}"
            f" WHERE NOT EXISTS ({same}) GROUP BY {keys}, {_UNTIL}"
        )
        # a new row holds until what comes next; one that was there ends where something new comes before its end
        by = f"PARTITION BY {keys} ORDER BY {_SEQUENCE} NULLS FIRST"
        is_new = f"NOT {_IS_OLD} AND {_DELETED} IS NOT NULL"
        # the latest first: Spark reckons a frame that has no end anew for each row, one that has no beginning once
        latest_first = f"PARTITION BY {keys} ORDER BY {_SEQUENCE} DESC NULLS LAST"
        behind = f"({latest_first} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        comes = f"min(if({is_new}, {_SEQUENCE}, NULL)) OVER {behind} AS {_COMES}"
        until = f"if({_COMES} IS NULL OR {_COMES} >= {_UNTIL}, {_UNTIL}, {_COMES})"
        following = f"if({_IS_OLD}, {until}, lead({_SEQUENCE}) OVER ({by})) AS {_NEXT}"
        told = run(
            env,
            f"WITH {_OLD} AS ({old}), {_EVERY} AS (SELECT * FROM {_OLD} UNION ALL {added})"
            f" SELECT * EXCEPT ({_COMES}) FROM (SELECT *, {following} FROM (SELECT *, {comes}"
            f" FROM (SELECT * FROM {_EVERY} UNION ALL {ends})))"
            f" WHERE NOT ({_IS_OLD} AND ({_DELETED} OR {_UNTIL} <=> {_NEXT}))",
        )
        source = quote(views.add(told.localCheckpoint()))
        names = [*options.keys, *self._values]
        inserted = ", ".join([*map(quote, names), start, end])
        given = ", ".join([*(f"{_S}.{quote(n)}" for n in names), f"{_S}.{_SEQUENCE}", f"{_S}.{_NEXT}"])
        counts = run(
            env,
            f"MERGE INTO {self._target} AS {_T} USING (SELECT * FROM {source} WHERE NOT {_DELETED}) AS {_S}"
            f" ON {self._on(_T, _S)} AND {_T}.{start} <=> {_S}.{_SEQUENCE} AND {_T}.{end} <=> {_S}.{_UNTIL}"
            f" WHEN MATCHED THEN UPDATE SET {end} = {_S}.{_NEXT}"
            f" WHEN NOT MATCHED THEN INSERT ({inserted}) VALUES ({given})",
        )
        run(
            env,
            f"INSERT INTO {self._companion} SELECT {keys}, {_SEQUENCE}, coalesce({_DELETED}, false) FROM {source}"
            f" WHERE coalesce({_DELETED}, true) AND NOT {_IS_OLD}",
        )
        return counts


def _comparable(value: Column, type: DataType) -> Column:
    """A value as JSON tells it apart from every other: texts, days and times, at any depth, in a form of one's own,
    which no setting of the session changes."""
    if isinstance(type, StringType):
        return F.hex(value)
    if isinstance(type, DateType):
        return F.unix_date(value)
    if isinstance(type, TimestampType):
        return F.unix_micros(value)
    if isinstance(type, TimestampNTZType):
        return value.cast("string")
    if isinstance(type, ArrayType):
        return F.transform(value, lambda element: _comparable(element, type.elementType))
    if isinstance(type, MapType):
        pair = StructType([StructField("key", type.keyType), StructField("value", type.valueType)])
        return F.transform(F.map_entries(value), lambda entry: _comparable(entry, pair))
    if isinstance(type, StructType):
        fields = [_comparable(value.getField(f.name), f.dataType).alias(f"f{n}") for n, f in enumerate(type.fields)]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value


def _names(table: Table, changes: DataFrame, options: ChangeOptions) -> list[str]:
    """The columns of the changes that are written, by the names that the table has.

    Raises:
        AnalysisError: When the table lacks one of them, or a key or the columns of type 2; or the changes lack a key.
    """
    own = [c.name for c in table.all_columns]
    left_out = {name.lower() for name in options.except_columns}
    given = [name.lower() for name in changes.columns]
    for name in (*left_out, *options.keys):
        if name not in given:
            raise AnalysisError(f"The changes have no column {name}")
    types = {c.name: parse_type(c.type) for c in table.all_columns}
    for name in options.keys:
        if name in types and contains(types[name], "map"):
            raise AnalysisError(f"{name} cannot be a key: maps are not compared")
        if name in (SEQUENCE, DELETED):
            raise AnalysisError(f"A key cannot be called {name}: the table of what was applied has such a column")
    found = [name for name in given if name not in left_out]
    if len(set(found)) < len(found):
        raise AnalysisError("The changes have two columns of one name")
    history = options.validity if options.scd_type == 2 else ()
    for name in (*found, *options.keys, *history):
        if name not in own:
            raise AnalysisError(
                f"{table.full_name} has no column {name}", hint="Columns that are not to be written: except_columns."
            )
    if clash := set(history) & set(found):
        raise AnalysisError(f"{sorted(clash)[0]} is written by acidsql: the changes cannot have it")
    return found


def options_of(
    keys: Sequence[str],
    sequence_by: str,
    deletes: str | None,
    except_columns: Sequence[str],
    scd_type: int,
    validity: Sequence[str],
) -> ChangeOptions:
    """The options as a user gives them. Raises: InvalidValue."""
    for names in (keys, except_columns, validity):
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise InvalidValue("keys, except_columns and validity are lists of column names")
    if len({name.lower() for name in validity}) != 2 or len(validity) != 2:
        raise InvalidValue("validity is the names of two columns")
    if not isinstance(sequence_by, str) or not isinstance(deletes, str | None):
        raise InvalidValue("sequence_by and deletes are texts of expressions over the changes")
    lowered = tuple(key.lower() for key in keys)
    begin, end = (name.lower() for name in validity)
    return ChangeOptions(lowered, sequence_by, deletes, tuple(except_columns), scd_type, (begin, end))
