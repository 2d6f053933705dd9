"""Changes of keyed rows from elsewhere, brought into a table: in whatever order they come, and however often.

Each change has a key and a number that says when it happened (its sequence). A companion table remembers what the
table itself cannot tell: of type 1 the last sequence of every key, of type 2 the deletes. Both are written in one
transaction, under the lock of the companion, so that batches of several writers follow one another. What was applied
before is passed over, which makes a batch that comes twice, as after a crash, harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from acidsql.commands.environment import Environment
from acidsql.commands.transaction.write_transaction import WriteTransaction, together
from acidsql.errors import AcidError, AnalysisError, InvalidValue, UnsupportedError
from acidsql.format.writer_clocks import is_utc
from acidsql.metastore.model import LockComponent, LockType, Operation, Table
from acidsql.plan.text import quote
from acidsql.plan.views import Views
from acidsql.sql.parser import parse_table_name
from acidsql.types import parse_type, to_hive

VALIDITY = ("valid_from", "valid_to")
"""The columns of a table of type 2, unless others are named: from which sequence on a row held, and until which; NULL:
it still does."""
_PREFIX = "acidsql_applied_"
_SEQUENCE, _DELETED, _IS_OLD, _UNTIL, _NEXT = (f"__acid_{n}" for n in ("sequence", "deleted", "old", "until", "next"))


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

    def __init__(
        self, env: Environment, sql: Callable[..., DataFrame], name: str, changes: DataFrame, options: ChangeOptions
    ) -> None:
        """``sql`` runs a statement.

        Raises:
            InvalidValue, AnalysisError, UnsupportedError: When the options do not fit the changes, or the table.
        """
        options.check()
        self._env, self._sql, self._options = env, sql, options
        self._table = env.changeable_table(parse_table_name(name))
        self._names = _names(self._table, changes, options)
        self._values = [n for n in self._names if n not in options.keys]
        self._events, self._sequence_type = self._prepared(changes)
        database = quote(self._table.database)
        self._target = f"{database}.{quote(self._table.name)}"
        self._companion_name = f"{_PREFIX}{self._table.name}"
        self._companion = f"{database}.{quote(self._companion_name)}"

    def apply(self) -> DataFrame:
        """Apply them.

        Returns:
            The counts of what was changed in the table.

        Raises:
            InvalidValue: When a key or a sequence is NULL, or two changes of a key have one sequence and differ.
        """
        # what may give other rows each time is evaluated once
        events = self._events.localCheckpoint()
        self._check(events)
        self._make_companion()
        write = self._type_1 if self._options.scd_type == 1 else self._type_2

        def run(txn: WriteTransaction) -> DataFrame:
            kind, companion = LockType.EXCL_WRITE, self._companion_name
            txn.lock([LockComponent(kind, self._table.database, companion, operation=Operation.UPDATE)])
            with Views(self._env.spark) as views:
                return write(views, views.add(events))

        return together(self._env, run)

    # --- the changes -------------------------------------------------------------------------------------------------

    def _prepared(self, changes: DataFrame) -> tuple[DataFrame, str]:
        """Keys, values, sequence, and whether it is a delete; and the sequence's type in a table."""
        options = self._options
        deletes = "false" if options.deletes is None else options.deletes
        given = {name.lower(): name for name in changes.columns}
        columns = [f"{quote(given[n])} AS {quote(n)}" for n in (*options.keys, *self._values)]
        made = changes.selectExpr(
            *columns, f"({options.sequence_by}) AS {_SEQUENCE}", f"coalesce(({deletes}), false) AS {_DELETED}"
        )
        if isinstance(made.schema[_SEQUENCE].dataType, TimestampType):
            if options.scd_type == 1:
                made = made.withColumn(_SEQUENCE, F.unix_micros(_SEQUENCE))
            elif not is_utc(self._env.zones.session):  # two moments of the hour that comes twice are one wall clock
                raise UnsupportedError(
                    f"Times as the sequence of type 2 need a session in UTC, not in {self._env.zones.session}",
                    hint="SET TIME ZONE 'UTC', or unix_micros(…) as the sequence.",
                )
        type = made.schema[_SEQUENCE].dataType.simpleString()
        try:
            return made, to_hive(parse_type(type))
        except AcidError as e:
            raise UnsupportedError(f"A sequence of the type {type} cannot be stored: {e.message}") from e

    def _check(self, events: DataFrame) -> None:
        keys = [quote(k) for k in self._options.keys]
        missing = " OR ".join(f"{name} IS NULL" for name in (*keys, _SEQUENCE))
        if not events.filter(missing).isEmpty():
            raise InvalidValue("A change has NULL as its key or its sequence")
        same = events.groupBy(*keys, _SEQUENCE).count().filter("count > 1").drop("count")
        if same.isEmpty():
            return
        values = F.to_json(F.struct(*[quote(n) for n in self._values])) if self._values else F.lit("")
        content = F.when(F.col(_DELETED), F.lit(None)).otherwise(values)
        doubtful = events.join(same, [*self._options.keys, _SEQUENCE], "leftsemi").withColumn("content", content)
        kinds = F.countDistinct(_DELETED, F.coalesce("content", F.lit(""))).alias("n")
        differ = doubtful.groupBy(*keys, _SEQUENCE).agg(kinds)
        if not differ.filter("n > 1").isEmpty():
            raise InvalidValue(
                "Two changes of a key have the same sequence and differ: it is not known which one is the later",
                hint="A struct is ordered by its fields one by one: sequence_by='struct(at, number)'.",
            )

    # --- the companion -----------------------------------------------------------------------------------------------

    def _make_companion(self) -> None:
        types = {c.name: c.type for c in self._table.all_columns}
        columns = ", ".join(f"{quote(k)} {types[k]}" for k in self._options.keys)
        self._sql(
            f"CREATE TABLE IF NOT EXISTS {self._companion} ({columns}, {quote('sequence')} {self._sequence_type},"
            " deleted boolean) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
        )
        found = self._env.metastore.get_table(self._table.database, self._companion_name)
        expected = [
            *((k, types[k]) for k in self._options.keys),
            ("sequence", self._sequence_type),
            ("deleted", "boolean"),
        ]
        if [(c.name, c.type) for c in found.columns] != expected:
            raise AnalysisError(
                f"{found.full_name}, which remembers what was applied, has other keys, or another type of the sequence",
                hint="Apply changes as before; or rename that table, to begin anew.",
            )

    def _on(self, one: str, other: str) -> str:
        return " AND ".join(f"{one}.{quote(k)} = {other}.{quote(k)}" for k in self._options.keys)

    # --- type 1: the newest state ------------------------------------------------------------------------------------

    def _type_1(self, views: Views, events: str) -> DataFrame:
        keys = ", ".join(map(quote, self._options.keys))
        number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {_SEQUENCE} DESC)"
        newest = f"SELECT * EXCEPT (n) FROM (SELECT *, {number} AS n FROM {quote(events)}) WHERE n = 1"
        on = self._on("e", "c")
        later = self._sql(
            f"SELECT e.* FROM ({newest}) e LEFT JOIN {self._companion} c ON {on}"
            f" WHERE c.{quote('sequence')} IS NULL OR e.{_SEQUENCE} > c.{quote('sequence')}"
        )
        source = quote(views.add(later.localCheckpoint()))
        names = [*self._options.keys, *self._values]
        sets = ", ".join(f"{quote(n)} = s.{quote(n)}" for n in self._values)
        update = f" WHEN MATCHED THEN UPDATE SET {sets}" if sets else ""
        counts = self._sql(
            f"MERGE INTO {self._target} AS t USING {source} AS s ON {self._on('t', 's')}"
            f" WHEN MATCHED AND s.{_DELETED} THEN DELETE{update} WHEN NOT MATCHED AND NOT s.{_DELETED} THEN"
            f" INSERT ({', '.join(map(quote, names))}) VALUES ({', '.join(f's.{quote(n)}' for n in names)})"
        )
        values = ", ".join([*(f"s.{quote(k)}" for k in self._options.keys), f"s.{_SEQUENCE}", f"s.{_DELETED}"])
        self._sql(
            f"MERGE INTO {self._companion} AS t USING {source} AS s ON {self._on('t', 's')}"
            f" WHEN MATCHED THEN UPDATE SET {quote('sequence')} = s.{_SEQUENCE}, deleted = s.{_DELETED}"
            f" WHEN NOT MATCHED THEN INSERT VALUES ({values})"
        )
        return counts

    # --- type 2: all states ------------------------------------------------------------------------------------------

    def _type_2(self, views: Views, events: str) -> DataFrame:
        options, new = self._options, quote(events)
        start, end = map(quote, options.validity)
        keys = ", ".join(map(quote, options.keys))
        values = "".join(f", {quote(n)}" for n in self._values)
        nothing = "".join(f", NULL AS {quote(n)}" for n in self._values)
        mine = f"EXISTS (SELECT 1 FROM {new} n WHERE {self._on('n', 'o')})"
        rows = (
            f"SELECT {keys}{nothing}, {start} AS {_SEQUENCE}, false AS {_DELETED}, true AS {_IS_OLD}, {end} AS {_UNTIL}"
            f" FROM {self._target} o WHERE {mine}"
        )
        deletes = f"SELECT {keys}{nothing}, {quote('sequence')}, true, true, NULL FROM {self._companion} o WHERE {mine}"
        old = f"{rows} UNION ALL {deletes}"
        known = f"SELECT 1 FROM old k WHERE {self._on('k', 'e')} AND k.{_SEQUENCE} = e.{_SEQUENCE}"
        first = f"row_number() OVER (PARTITION BY {keys}, {_SEQUENCE} ORDER BY {_SEQUENCE})"
        once = f"SELECT * EXCEPT (n) FROM (SELECT *, {first} AS n FROM {new}) WHERE n = 1"
        added = (
            f"SELECT {keys}{values}, {_SEQUENCE}, {_DELETED}, false AS {_IS_OLD}, NULL AS {_UNTIL} FROM ({once}) e"
            f" WHERE NOT EXISTS ({known})"
        )
        following = f"lead({_SEQUENCE}) OVER (PARTITION BY {keys} ORDER BY {_SEQUENCE} NULLS FIRST) AS {_NEXT}"
        told = self._sql(
            f"WITH old AS ({old}), every AS (SELECT * FROM old UNION ALL {added})"
            f" SELECT * FROM (SELECT *, {following} FROM every)"
            f" WHERE NOT ({_IS_OLD} AND ({_DELETED} OR {_UNTIL} <=> {_NEXT}))"
        )
        source = quote(views.add(told.localCheckpoint()))
        names = [*options.keys, *self._values]
        inserted = ", ".join([*map(quote, names), start, end])
        given = ", ".join([*(f"s.{quote(n)}" for n in names), f"s.{_SEQUENCE}", f"s.{_NEXT}"])
        counts = self._sql(
            f"MERGE INTO {self._target} AS t USING (SELECT * FROM {source} WHERE NOT {_DELETED}) AS s"
            f" ON {self._on('t', 's')} AND t.{start} <=> s.{_SEQUENCE}"
            f" WHEN MATCHED THEN UPDATE SET {end} = s.{_NEXT}"
            f" WHEN NOT MATCHED THEN INSERT ({inserted}) VALUES ({given})"
        )
        self._sql(
            f"INSERT INTO {self._companion} SELECT {keys}, {_SEQUENCE}, true FROM {source}"
            f" WHERE {_DELETED} AND NOT {_IS_OLD}"
        )
        return counts


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
