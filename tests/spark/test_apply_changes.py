"""Feeds of changes: out of order, twice, in any batches, deletes before inserts; against a model of what happened."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import acidsql
from acidsql.commands import registry
from acidsql.commands.environment import Environment
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, AnalysisError, InvalidValue, NotTransactional, TableNotFound, UnsupportedError
from acidsql.metastore.model import LockComponent, LockState
from acidsql.session import AcidSession
from acidsql.streaming import apply_changes
from tests.spark.answers import nothing_is_open, rows

Event = tuple[int, int, str | None, str]
"""Key, sequence, value, and D for a delete."""
FEED = "id int, at bigint, v string, op string"


def frame(spark: SparkSession, events: Sequence[Event]) -> DataFrame:
    return spark.createDataFrame(list(events), FEED)


def apply(acid: AcidSession, events: Sequence[Event], scd_type: int, table: str = "t") -> Any:
    options = {"keys": ["id"], "sequence_by": "at", "deletes": "op = 'D'", "except_columns": ["op", "at"]}
    return acid.apply_changes(table, frame(acid.spark, events), scd_type=scd_type, **options).collect()[0]  # type: ignore[arg-type]


def newest(events: Sequence[Event]) -> list[tuple[int, str | None]]:
    last: dict[int, Event] = {}
    for event in sorted(set(events), key=lambda e: e[1]):
        last[event[0]] = event
    return sorted((key, e[2]) for key, e in last.items() if e[3] != "D")


def history(events: Sequence[Event]) -> list[tuple[int, str | None, int, int | None]]:
    found = []
    for key in {e[0] for e in events}:
        own = sorted({(*e[:2], None if e[3] == "D" else e[2], e[3]) for e in events if e[0] == key}, key=itemgetter(1))
        for event, later in zip(own, [*own[1:], None], strict=True):
            if event[3] != "D":
                found.append((key, event[2], event[1], None if later is None else later[1]))
    return sorted(found, key=repr)


@pytest.fixture(params=[1, 2])
def scd(request: pytest.FixtureRequest, acid: AcidSession) -> int:
    validity = ", valid_from bigint, valid_to bigint" if request.param == 2 else ""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v string{validity})")
    return int(request.param)


def expected(events: Sequence[Event], scd_type: int) -> list[tuple[Any, ...]]:
    return newest(events) if scd_type == 1 else history(events)


def found(acid: AcidSession, table: str = "t") -> list[tuple[Any, ...]]:
    return rows(acid, f"SELECT * FROM {table}")


@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.long) for s in range(2, 12))])
def test_random_feeds_give_what_happened_in_whatever_order_it_is_told(acid: AcidSession, scd: int, seed: int) -> None:
    chance = random.Random(seed)
    numbers = chance.sample(range(1000), 60)
    events: list[Event] = [
        (chance.randrange(8), number, f"v{number}", "D" if chance.random() < 0.3 else "U") for number in numbers
    ]
    told: list[Event] = []
    rest = [*events, *chance.sample(events, 12)]
    chance.shuffle(rest)
    while rest:
        size = chance.randrange(1, 30)
        batch, rest = rest[:size], rest[size:]
        if told and chance.random() < 0.4:
            batch += chance.sample(told, min(5, len(told)))
        apply(acid, batch, scd)
        told += batch
        assert found(acid) == sorted(expected(told, scd), key=repr)
    assert found(acid) == sorted(expected(events, scd), key=repr)
    nothing_is_open(acid)


def test_a_batch_that_comes_again_changes_nothing(acid: AcidSession, scd: int) -> None:
    batch: list[Event] = [(1, 10, "a", "U"), (1, 20, "b", "U"), (2, 5, None, "D"), (3, 7, "c", "U"), (3, 9, None, "D")]
    assert apply(acid, batch, scd).num_affected_rows == (1 if scd == 1 else 3)
    before = found(acid)
    assert apply(acid, batch, scd).num_affected_rows == 0
    assert found(acid) == before == sorted(expected(batch, scd), key=repr)
    apply(acid, [(2, 4, "late", "U"), (3, 8, "late", "U"), (1, 15, "between", "U")], scd)
    told = [*batch, (2, 4, "late", "U"), (3, 8, "late", "U"), (1, 15, "between", "U")]
    assert found(acid) == sorted(expected(told, scd), key=repr)


def test_rows_from_before_are_older_than_every_change(acid: AcidSession, scd: int) -> None:
    acid.sql("INSERT INTO t (id, v) VALUES (1, 'old'), (2, 'old'), (3, 'old')")
    apply(acid, [(1, 5, "new", "U"), (2, 6, None, "D")], scd)
    if scd == 1:
        assert found(acid) == [(1, "new"), (3, "old")]
    else:
        expected = [(1, "new", 5, None), (1, "old", None, 5), (2, "old", None, 6), (3, "old", None, None)]
        assert found(acid) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(order, marks=[] if number in (0, 5) else [pytest.mark.long])
        for number, order in enumerate(itertools.permutations(range(3)))
    ],
)
def test_an_end_is_remembered_once_its_row_ends_before(acid: AcidSession, order: tuple[int, ...]) -> None:
    """However the changes are dealt to batches, and also for what happens at that end."""
    events: list[Event] = [(1, 5, None, "D"), (1, 7, "c", "U"), (1, 10, "at", "U"), (1, 12, "z", "U")]
    batches = [events[:1], events[1:2], events[3:]]
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string, valid_from bigint, valid_to bigint)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1, 10), (2, 'a', 1, 10)")
    for number in order:
        apply(acid, batches[number], 2)
    assert found(acid) == [(1, "a", 1, 5), (1, "c", 7, 10), (1, "z", 12, None), (2, "a", 1, 10)]
    apply(acid, events[2:3], 2)
    assert apply(acid, events, 2).num_affected_rows == 0
    assert found(acid) == [(1, "a", 1, 5), (1, "at", 10, 12), (1, "c", 7, 10), (1, "z", 12, None), (2, "a", 1, 10)]


@pytest.mark.parametrize(
    "before",
    [
        [(5, 5)],
        [(5, 5), (7, 9)],
        [(5, 5), (5, None)],
        [(5, 6), (5, 8)],
        [(1, 8), (5, 9)],
        [(1, 8), (1, 8)],
        [(5, 3)],
        [(None, 4), (6, 8)],
        [(None, None), (3, None)],
    ],
)
def test_history_that_is_no_chain_keeps_its_ends(acid: AcidSession, before: list[tuple[Any, Any]]) -> None:
    """Rows without length, that begin at once, or overlap: only what a change falls into ends with it."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string, valid_from bigint, valid_to bigint)")
    known = [(1, f"r{number}", *row) for number, row in enumerate(before)]
    acid.insert(acid.spark.createDataFrame(known, "id int, v string, valid_from bigint, valid_to bigint"), "t")
    for at in (10, 7):
        apply(acid, [(1, at, f"at{at}", "U")], 2)
        ended = [row for row in known if row[2] is None or row[2] < at]
        known = [
            (*row[:3], at) if row in ended and (row[3] is None or at < row[3]) and not row[1].startswith("at") else row
            for row in known
        ]
        ends = [end for _, end in before]  # a row that it falls into ended then, and nothing else tells of that
        later = [n for n in (*ends, *(row[2] for row in known)) if n is not None and n > at]
        known.append((1, f"at{at}", at, min(later, default=None)))
        if at == 7 and (7, 9) in before:  # the change is passed over: a row begins then
            known.pop()
        assert found(acid) == sorted(known, key=repr)


@pytest.mark.parametrize("seed", range(2))
def test_history_that_was_there_keeps_its_ends(acid: AcidSession, seed: int) -> None:
    """A delete that was applied elsewhere has left nothing but the end of a row."""
    chance = random.Random(seed)
    numbers = iter(chance.sample(range(1000), 100))
    before: list[Event] = [(key, next(numbers), f"v{key}", chance.choice("UUD")) for key in range(8) for _ in range(4)]
    before = [event for event in before if event[0] != 3] + [(3, 500, "v", "U"), (3, 600, None, "D")]
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string, valid_from bigint, valid_to bigint)")
    told = history(before)
    acid.insert(acid.spark.createDataFrame(told, "id int, v string, valid_from bigint, valid_to bigint"), "t")
    # deletes that no row ends with have left nothing at all
    known = [(e[0], e[1], e[2], e[3]) for e in before if e[3] == "U" or (e[0], e[1]) in {(r[0], r[3]) for r in told}]
    for _ in range(4):
        later = [(chance.randrange(8), next(numbers), "later", chance.choice("UUD")) for _ in range(4)]
        apply(acid, later, 2)
        known += later
        assert found(acid) == history(known)
    apply(acid, [(3, 600, "at its end", "U")], 2)
    assert found(acid) == history([e for e in known if e[:2] != (3, 600)] + [(3, 600, "at its end", "U")])


def test_both_tables_are_written_or_none(acid: AcidSession, scd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(acid, [(1, 1, "a", "U")], scd)
    before = found(acid), found(acid, "acidsql_applied_t")
    real = registry.run

    def failing(env: Environment, text: str, **parameters: Any) -> DataFrame:
        if "acidsql_applied_t" in text and text.startswith(("MERGE", "INSERT")):
            raise RuntimeError("the power is gone")
        return real(env, text, **parameters)

    monkeypatch.setattr(apply_changes, "run", failing)
    with pytest.raises(RuntimeError):
        apply(acid, [(1, 2, "b", "U"), (1, 3, None, "D")], scd)
    monkeypatch.undo()
    assert (found(acid), found(acid, "acidsql_applied_t")) == before
    nothing_is_open(acid)
    apply(acid, [(1, 2, "b", "U"), (1, 3, None, "D")], scd)
    assert found(acid) == sorted(expected([(1, 1, "a", "U"), (1, 2, "b", "U"), (1, 3, None, "D")], scd), key=repr)


@pytest.mark.parametrize("type", ["varchar(4)", "char(4)", "string", "date", "timestamp", "decimal(4,1)"])
def test_null_is_no_key_of_changes_and_one_of_a_sink(acid: AcidSession, type: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (k {type}, v int)")
    changes = acid.spark.sql("SELECT CAST(NULL AS string) AS k, 1 AS v, 1 AS at")
    if type in ("date", "timestamp", "decimal(4,1)"):
        changes = changes.withColumn("k", F.expr(f"CAST(k AS {type})"))
    with pytest.raises(InvalidValue, match="NULL as its key"):
        acid.apply_changes("t", changes, keys=["k"], sequence_by="at", except_columns=["at"])
    sink = acid.sink("t", mode="merge", keys=["k"])
    for number in range(2):
        sink(changes.drop("at"), number)
    assert found(acid) == [(None, 1)]


def test_changes_that_are_evaluated_twice_would_differ_and_are_evaluated_once(acid: AcidSession, scd: int) -> None:
    changes = acid.spark.range(50).selectExpr("CAST(id AS int) AS id", "uuid() AS v", "id AS at")
    acid.apply_changes("t", changes, keys=["ID"], sequence_by="at + 1", except_columns=["AT"], scd_type=scd)
    assert len(found(acid)) == 50
    names = "SELECT id FROM t WHERE v IS NOT NULL" if scd == 1 else "SELECT id FROM t WHERE valid_from = id + 1"
    assert len(rows(acid, names)) == 50


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([(None, 1, "a", "U")], "NULL as its key"),
        ([(1, None, "a", "U")], "NULL as its key or its sequence"),
        ([(1, 1, "a", "U"), (1, 1, "b", "U")], "same sequence and differ"),
        ([(1, 1, "a", "U"), (1, 1, None, "D")], "same sequence and differ"),
        ([(1, 1, None, "U"), (1, 1, "", "U")], "same sequence and differ"),
    ],
)
def test_changes_without_an_order_are_refused(acid: AcidSession, scd: int, events: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        apply(acid, events, scd)
    assert found(acid) == []
    nothing_is_open(acid)
    apply(acid, [(1, 1, "a", "U"), (1, 1, "a", "U"), (2, 1, "x", "D"), (2, 1, "y", "D")], scd)
    assert [r[:2] for r in found(acid)] == [(1, "a")]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"keys": []}, InvalidValue, "keys"),
        ({"keys": "id"}, InvalidValue, "lists"),
        ({"keys": ["id", "ID"]}, InvalidValue, "once"),
        ({"keys": ["nope"]}, AnalysisError, "no column nope"),
        ({"except_columns": ["at"]}, AnalysisError, "no column op"),
        ({"except_columns": ["op", "at", "what"]}, AnalysisError, "no column what"),
        ({"scd_type": 3}, InvalidValue, "type of slowly"),
        ({"scd_type": 2}, AnalysisError, "no column valid_from"),
        ({"sequence_by": None}, InvalidValue, "texts"),
        ({"validity": ("a", "A")}, InvalidValue, "two columns"),
        ({"validity": ("a", "b"), "scd_type": 2}, AnalysisError, "no column a"),
        ({"sequence_by": "make_interval(1)"}, UnsupportedError, "cannot be stored"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    acid: AcidSession, options: dict[str, Any], error: type[AcidError], message: str
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    given = {"keys": ["id"], "sequence_by": "at", "except_columns": ["op", "at"], **options}
    with pytest.raises(error, match=message):
        acid.apply_changes("t", frame(acid.spark, [(1, 1, "a", "U")]), **given)
    assert "acidsql_applied_t" not in acid.metastore.list_tables("default")


def test_changes_that_are_no_frame_are_refused(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    with pytest.raises(InvalidValue, match="The rows are to be a DataFrame, not list"):
        acid.apply_changes("t", [(1, "a")], keys=["id"], sequence_by="at")  # type: ignore[arg-type]
    assert "acidsql_applied_t" not in acid.metastore.list_tables("default")


def test_only_full_acid_tables_take_changes(acid: AcidSession) -> None:
    events = frame(acid.spark, [(1, 1, "a", "U")])
    with pytest.raises(TableNotFound):
        acid.apply_changes("nope", events, keys=["id"], sequence_by="at")
    acid.sql("CREATE TABLE o (id int) TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    with pytest.raises(NotTransactional):
        acid.apply_changes("o", events, keys=["id"], sequence_by="at")


def test_keys_of_several_columns_partitions_and_structs_as_sequences(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int, v string) PARTITIONED BY (day date)")
    feed = "id int, day date, v string, at timestamp, n int"
    acid.sql("SET TIME ZONE 'Europe/Berlin'")
    try:
        changes = acid.spark.sql(
            "SELECT 1 AS id, DATE'2024-10-27' AS day, 'first' AS v, timestamp_seconds(1729989000) AS at, 1 AS n"
            " UNION ALL"
            " SELECT 1, DATE'2024-10-27', 'second', timestamp_seconds(1729992600), 1 UNION ALL"
            " SELECT 2, DATE'2024-10-28', 'other', timestamp_seconds(1), 1"
        )
        assert changes.schema.simpleString() == acid.spark.createDataFrame([], feed).schema.simpleString()
        for part in (changes.filter("v = 'second'"), changes.filter("v <> 'second'")):  # both at 2:30 of that night
            acid.apply_changes("p", part, keys=["id", "day"], sequence_by="at", except_columns=["at", "n"])
        assert rows(acid, "SELECT id, v FROM p") == [(1, "second"), (2, "other")]
        acid.sql("CREATE TRANSACTIONAL TABLE h (id int, v string, valid_from timestamp, valid_to timestamp)")
        with pytest.raises(UnsupportedError, match="UTC"):
            acid.apply_changes(
                "h", changes, keys=["id"], sequence_by="at", except_columns=["day", "at", "n"], scd_type=2
            )
    finally:
        acid.sql("SET TIME ZONE 'UTC'")
    acid.apply_changes("h", changes, keys=["id"], sequence_by="at", except_columns=["day", "at", "n"], scd_type=2)
    assert rows(acid, "SELECT id, v, valid_to IS NULL FROM h") == [
        (1, "first", False),
        (1, "second", True),
        (2, "other", True),
    ]
    acid.sql("CREATE TRANSACTIONAL TABLE o (id int, v string, __START_AT timestamp, __END_AT timestamp)")
    named = {"keys": ["id"], "scd_type": 2, "validity": ("__START_AT", "__END_AT")}
    acid.apply_changes("o", changes, sequence_by="at", except_columns=["day", "at", "n"], **named)  # type: ignore[arg-type]
    assert rows(acid, "SELECT * FROM o") == rows(acid, "SELECT * FROM h")
    acid.sql("CREATE TRANSACTIONAL TABLE s (id int, v string)")
    by_struct = {"keys": ["id"], "sequence_by": "struct(n, v)", "except_columns": ["day", "at", "n"]}
    for order in ("v", "v DESC"):
        acid.apply_changes("s", changes.orderBy(*[order.split()[0]]), **by_struct)  # type: ignore[arg-type]
    assert rows(acid, "SELECT * FROM s") == [(1, "second"), (2, "other")]
    with pytest.raises(AnalysisError, match="other keys, or another type"):
        acid.apply_changes(
            "s", changes.filter("v = 'first'"), keys=["id"], sequence_by="n", except_columns=["day", "at", "n"]
        )


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        ("char(5)", "'a'"),
        pytest.param("varchar(3)", "'abc  '", marks=pytest.mark.long),
        ("decimal(10,2)", "CAST(1.5 AS decimal(10, 4))"),
        pytest.param("bigint", "1", marks=pytest.mark.long),
        pytest.param("float", "CAST(0.5 AS double)", marks=pytest.mark.long),
        pytest.param("date", "TIMESTAMP'2024-02-29 00:00:00'", marks=pytest.mark.long),
    ],
)
def test_keys_are_compared_as_they_are_stored(acid: AcidSession, scd: int, type: str, keys: str) -> None:
    validity = ", valid_from bigint, valid_to bigint" if scd == 2 else ""
    acid.sql(f"CREATE TRANSACTIONAL TABLE k (id {type}, v string{validity})")
    for at, op in ((1, "U"), (1, "U"), (2, "U"), (3, "D")):
        changes = acid.spark.sql(f"SELECT {keys} AS id, 'v{at}' AS v, {at}L AS at, '{op}' AS op")
        acid.apply_changes(
            "k", changes, keys=["id"], sequence_by="at", deletes="op = 'D'", except_columns=["at", "op"], scd_type=scd
        )
    expected = [] if scd == 1 else [("v1", 1, 2), ("v2", 2, 3)]
    assert rows(acid, "SELECT v, valid_from, valid_to FROM k" if scd == 2 else "SELECT v FROM k") == expected


@pytest.mark.parametrize(
    ("type", "key"),
    [("char(2)", "'abc'"), ("varchar(2)", "'abc'"), ("decimal(10,2)", "1.005"), ("int", "1.5"), ("float", "0.1D"),
     ("date", "TIMESTAMP'2024-02-29 12:00:00'")],
)  # fmt: skip
def test_keys_that_are_stored_as_other_values_are_refused(acid: AcidSession, type: str, key: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE k (id {type}, v string)")
    changes = acid.spark.sql(f"SELECT {key} AS id, 'v' AS v, 1 AS at")
    with pytest.raises((AcidError, PySparkException), match="A key does not fit into id"):
        acid.apply_changes("k", changes, keys=["id"], sequence_by="at", except_columns=["at"])
    assert rows(acid, "SELECT * FROM k") == []
    nothing_is_open(acid)


@pytest.mark.parametrize(
    "name", ["o", *(pytest.param(n, marks=pytest.mark.long) for n in ("n", "s", "t", "count", "sequence", "deleted"))]
)
def test_columns_may_be_called_as_one_likes(acid: AcidSession, scd: int, name: str) -> None:
    validity = ", valid_from bigint, valid_to bigint" if scd == 2 else ""
    options: dict[str, Any] = {"sequence_by": "at", "except_columns": ["at"], "scd_type": scd}
    acid.sql(f"CREATE TRANSACTIONAL TABLE k (`{name}` int, v struct<`{name}`:int>{validity})")
    acid.sql(f"CREATE TRANSACTIONAL TABLE w (id int, `{name}` struct<id:int>{validity})")
    for at in (1, 2):
        changes = acid.spark.sql(f"SELECT 7 AS `{name}`, named_struct('{name}', {at}) AS v, {at}L AS at")
        acid.apply_changes("k", changes, keys=[name], **options)
        values = acid.spark.sql(f"SELECT 7 AS id, named_struct('id', {at}) AS `{name}`, {at}L AS at")
        acid.apply_changes("w", values, keys=["id"], **options)
    shown = [(7, 2)] if scd == 1 else [(7, 1, 1, 2), (7, 2, 2, None)]
    more = ", valid_from, valid_to" if scd == 2 else ""
    assert rows(acid, f"SELECT `{name}`, v.`{name}`{more} FROM k") == shown
    assert rows(acid, f"SELECT id, `{name}`.id{more} FROM w") == shown


def test_validity_of_another_type_than_the_sequence_is_refused(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE h (id int, v string, valid_from double, valid_to double)")
    with pytest.raises(AnalysisError, match=r"valid_from of default\.h is double, the sequence bigint"):
        apply(acid, [(1, 1, "a", "U")], 2, "h")


def test_times_in_a_struct_are_moments(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    options: dict[str, Any] = {"keys": ["id"], "sequence_by": "struct(at, n)", "except_columns": ["at", "n"]}
    acid.sql("SET TIME ZONE 'Europe/Berlin'")
    try:
        for moment, v in ((1729992600, "newer"), (1729989900, "older")):  # 2:30 in winter, 2:45 in summer
            changes = acid.spark.sql(f"SELECT 1 AS id, '{v}' AS v, timestamp_seconds({moment}) AS at, 1 AS n")
            acid.apply_changes("t", changes, **options)
    finally:
        acid.sql("SET TIME ZONE 'UTC'")
    assert rows(acid, "SELECT v FROM t") == [("newer",)]
    deep = acid.spark.sql("SELECT 1 AS id, 'w' AS v, timestamp_seconds(1) AS at, 1 AS n")
    acid.sql("SET TIME ZONE 'Asia/Tokyo'")
    try:
        with pytest.raises(UnsupportedError, match="UTC"):
            acid.apply_changes("t", deep, **{**options, "sequence_by": "array(at)"})
    finally:
        acid.sql("SET TIME ZONE 'UTC'")


@pytest.mark.parametrize(
    ("type", "one", "other"),
    [
        ("timestamp", "timestamp_micros(1)", "timestamp_micros(2)"),
        ("string", "CAST(X'FF' AS string)", "CAST(X'FE' AS string)"),
        ("map<string,int>", "map('a', NULL)", "map()"),
        ("array<string>", "array(CAST(X'FF' AS string))", "array(CAST(X'FE' AS string))"),
        (
            "map<string,struct<s:array<string>>>",
            "map('a', named_struct('s', array(CAST(X'FF' AS string))))",
            "map('a', named_struct('s', array(CAST(X'FE' AS string))))",
        ),
        ("map<string,int>", "map(CAST(X'FF' AS string), 1)", "map(CAST(X'FE' AS string), 1)"),
        ("struct<s:string>", "named_struct('s', '')", "named_struct('s', NULL)"),
        ("struct<s:string>", "NULL", "named_struct('s', NULL)"),
    ],
)
def test_changes_that_differ_a_little_are_refused(acid: AcidSession, type: str, one: str, other: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v {type})")
    text = f"SELECT 1 AS id, CAST({{}} AS {type}) AS v, 1 AS at"
    changes = acid.spark.sql(f"{text.format(one)} UNION ALL {text.format(other)}")
    with pytest.raises(InvalidValue, match="same sequence and differ"):
        acid.apply_changes("t", changes, keys=["id"], sequence_by="at", except_columns=["at"])


@pytest.mark.parametrize("type", ["date", "timestamp", "struct<a:array<date>>"])
def test_no_setting_makes_changes_alike(acid: AcidSession, type: str) -> None:
    """The old formatter writes no era."""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v {type})")
    one, other = f"{type} '-0001-01-01'", f"{type} '0002-01-01'"
    if type.startswith("struct"):
        one, other = (f"named_struct('a', array(DATE'{day}'))" for day in ("-0001-01-01", "0002-01-01"))
    changes = acid.spark.sql(f"SELECT 1 AS id, {one} AS v, 1 AS at UNION ALL SELECT 1, {other}, 1")
    acid.spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    try:
        with pytest.raises(InvalidValue, match="same sequence and differ"):
            acid.apply_changes("t", changes, keys=["id"], sequence_by="at", except_columns=["at"])
    finally:
        acid.spark.conf.unset("spark.sql.legacy.timeParserPolicy")


@pytest.mark.parametrize("first", [1, 2])
def test_a_table_has_one_type_of_history(acid: AcidSession, first: int) -> None:
    """What is remembered of type 1 means something else for type 2."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string, valid_from int, valid_to int)")
    feed = acid.spark.createDataFrame([(1, "a", 5)], "id int, v string, n int")
    options: dict[str, Any] = {"keys": ["id"], "sequence_by": "n", "except_columns": ["n"]}
    acid.apply_changes("t", feed, scd_type=first, **options)
    before = rows(acid, "SELECT * FROM t")
    with pytest.raises(AnalysisError, match=f"rules of type {first}"):
        acid.apply_changes("t", feed, scd_type=3 - first, **options)
    acid.apply_changes("t", feed, scd_type=first, **options)
    assert rows(acid, "SELECT * FROM t") == before


def test_what_was_applied_goes_with_the_table(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    apply(acid, [(1, 5, "five", "U")], 1)
    acid.sql("ALTER TABLE t RENAME TO u")
    apply(acid, [(1, 4, "four", "U"), (2, 1, "one", "U")], 1, "u")
    assert found(acid, "u") == [(1, "five"), (2, "one")]
    acid.sql("CREATE TABLE like_u LIKE u")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    for table in ("t", "like_u"):
        apply(acid, [(1, 4, "four", "U")], 1, table)
        assert found(acid, table) == [(1, "four")]
    acid.sql("DROP TABLE t")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    apply(acid, [(1, 3, "three", "U")], 1)
    assert found(acid) == [(1, "three")]
    companion = acid.metastore.get_table("default", "t").parameters["acidsql.applied"]
    acid.sql(f"DROP TABLE {companion}")
    with pytest.raises(AnalysisError, match="is gone"):
        apply(acid, [(1, 2, "two", "U")], 1)
    acid.sql("ALTER TABLE t UNSET TBLPROPERTIES ('acidsql.applied')")
    apply(acid, [(1, 2, "two", "U")], 1)
    assert found(acid) == [(1, "two")]


def test_what_was_applied_is_not_that_of_another_table(acid: AcidSession) -> None:
    acid.sql("CREATE DATABASE q")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    apply(acid, [(1, 5, "five", "U")], 1)
    [(text,)] = acid.sql("SHOW CREATE TABLE t").collect()
    assert "acidsql.applied" not in text
    acid.sql("CREATE TRANSACTIONAL TABLE copy (id int, v string) TBLPROPERTIES ('acidsql.applied'='acidsql_applied_t')")
    apply(acid, [(1, 4, "four", "U")], 1, "copy")
    assert found(acid, "copy") == [(1, "four")]
    acid.sql("CREATE TRANSACTIONAL TABLE q.t (id int, v string)")
    apply(acid, [(1, 100, "old", "U")], 1, "q.t")
    acid.sql("DROP TABLE q.t")
    acid.sql("ALTER TABLE t RENAME TO q.t")
    apply(acid, [(1, 4, "four", "U"), (1, 6, "six", "U")], 1, "q.t")
    apply(acid, [(1, 5, "five", "U")], 1, "q.t")
    assert found(acid, "q.t") == [(1, "six")]


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_key_that_would_be_stored_in_the_default_partition_is_refused(acid: AcidSession, value: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p string)")
    changes = acid.spark.createDataFrame([(1, value, "a", 1)], "id int, p string, v string, at int")
    for write in (
        lambda: acid.apply_changes("t", changes, keys=["id", "p"], sequence_by="at", except_columns=["at"]),
        lambda: acid.sink("t", mode="merge", keys=["id", "p"])(changes.drop("at"), 0),
    ):
        with pytest.raises(AcidError, match="A key does not fit into p"):
            write()
    assert found(acid) == []


@pytest.mark.parametrize("type", ["string", "varchar(4)", "char(4)"])
def test_a_partition_key_of_blanks_is_one(acid: AcidSession, type: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p {type})")
    for number in range(2):
        changes = acid.spark.createDataFrame([(1, " ", f"v{number}", number)], "id int, p string, v string, at int")
        acid.apply_changes("t", changes, keys=["id", "p"], sequence_by="at", except_columns=["at"])
    assert [(r.id, r.v, r.p.strip()) for r in acid.table("t").collect()] == [(1, "v1", "")]


LAST_SECOND = "TIMESTAMP'1969-12-31 23:59:59.5'"


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("date", "DATE'1582-10-10'"),
        ("timestamp", "TIMESTAMP'1582-10-10 12:00:00'"),
        ("timestamp", "TIMESTAMP'1969-12-31 23:59:59.5'"),
        ("timestamp", "TIMESTAMP_NTZ'1582-10-05 00:00:00'"),
        ("timestamp", "TIMESTAMP'1970-01-01 08:59:59.000001'"),  # the last second of a writer in Tokyo
        ("timestamp with local time zone", "TIMESTAMP'1969-12-31 13:59:59.5-10:00'"),
        ("timestamp with local time zone", "TIMESTAMP'1582-10-10 12:00:00'"),
    ],
)
def test_days_and_times_that_orc_does_not_have_are_no_keys(acid: AcidSession, type: str, text: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (k {type}, v string)")
    changes = acid.spark.sql(f"SELECT {text} AS k, 'v' AS v, 1 AS at")
    with pytest.raises(AcidError, match="A key does not fit into k"):
        acid.apply_changes("t", changes, keys=["k"], sequence_by="at", except_columns=["at"])


@pytest.mark.parametrize("type", ["timestamp", "timestamp with local time zone"])
@pytest.mark.parametrize("value", ["timestamp_seconds(id * 3600 - 1)", "timestamp_millis(id * 1000 * 3600 + 1500)"])
def test_other_times_about_1970_are_keys(acid: AcidSession, value: str, type: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (k {type}, v string)")
    changes = acid.spark.sql(f"SELECT {value} AS k, 'v' AS v, 1 AS at FROM range(-20, 20)")
    for _ in range(2):
        acid.apply_changes("t", changes, keys=["k"], sequence_by="at", except_columns=["at"])
    assert acid.table("t").count() == 40


@pytest.mark.parametrize(
    ("type", "text"),
    [("date", "DATE'1582-10-10'"), ("timestamp", "TIMESTAMP'1582-10-14 23:59:59'"), ("timestamp", LAST_SECOND)],
)
def test_nor_are_they_keys_of_partitions(acid: AcidSession, type: str, text: str) -> None:
    """A path has them, but what was applied is remembered in a file."""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (k {type})")
    changes = acid.spark.sql(f"SELECT 1 AS id, {text} AS k, 'v' AS v, 1 AS at")
    with pytest.raises(AcidError, match="A key does not fit into k"):
        acid.apply_changes("t", changes, keys=["id", "k"], sequence_by="at", except_columns=["at"])
    assert found(acid) == []
    for number in range(2):  # a sink remembers no keys
        sink = acid.sink("t", mode="merge", keys=["id", "k"], name=str(number))
        sink(changes.drop("at").withColumn("v", F.lit(f"v{number}")), 0)
    assert [(r.id, r.v) for r in acid.table("t").collect()] == [(1, "v1")]


@pytest.mark.parametrize(
    "text",
    [
        "DATE'1582-10-05'",
        "TIMESTAMP_NTZ'1582-10-10 12:00:00'",
        LAST_SECOND.replace("TIMESTAMP", "TIMESTAMP_NTZ"),
        "struct(1 AS a, DATE'1582-10-14' AS b)",
        "array(DATE'2024-01-01', DATE'1582-10-14')",
        "struct(array(struct(TIMESTAMP_NTZ'1969-12-31 23:59:59.000001' AS c)) AS a)",
    ],
)
@pytest.mark.parametrize("scd_type", [1, 2])
def test_nor_are_they_sequences(acid: AcidSession, text: str, scd_type: int) -> None:
    type = (
        acid.spark.sql(f"SELECT {text} AS at")
        .schema["at"]
        .dataType.simpleString()
        .replace("timestamp_ntz", "timestamp")
    )
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v string, valid_from {type}, valid_to {type})")
    changes = acid.spark.sql(f"SELECT 1 AS id, 'v' AS v, {text} AS at")
    with pytest.raises(AcidError, match="A sequence cannot be stored as it is"):
        acid.apply_changes("t", changes, keys=["id"], sequence_by="at", except_columns=["at"], scd_type=scd_type)
    assert found(acid) == []


@pytest.mark.parametrize(
    "text", ["TIMESTAMP_NTZ'2024-03-10 02:30:00'", "struct(TIMESTAMP_NTZ'2024-03-10 02:30:00' AS a)"]
)
@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_wall_clock_that_a_zone_does_not_have_is_a_sequence_in_utc_alone(
    acid: AcidSession, text: str, scd_type: int
) -> None:
    type = "timestamp" if text.startswith("T") else "struct<a: timestamp>"
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v string, valid_from {type}, valid_to {type})")

    def told(text: str, value: str) -> None:
        changes = acid.spark.sql(f"SELECT 1 AS id, '{value}' AS v, {text} AS at")
        acid.apply_changes("t", changes, keys=["id"], sequence_by="at", except_columns=["at"], scd_type=scd_type)

    acid.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    with pytest.raises(UnsupportedError, match="need a session in UTC"):
        told(text, "first")
    acid.spark.conf.set("spark.sql.session.timeZone", "UTC")
    told(text, "first")
    told(text.replace("02:30", "03:10"), "later")
    assert [row.v for row in acid.table("t").orderBy("valid_from").collect()][-1] == "later"


def test_moments_of_these_times_are_sequences_of_type_1(acid: AcidSession) -> None:
    """They are remembered as numbers."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    for number, text in enumerate(("TIMESTAMP'1582-10-10 00:00:00'", "TIMESTAMP'1582-10-14 00:00:00'", LAST_SECOND)):
        changes = acid.spark.sql(f"SELECT 1 AS id, 'v{number}' AS v, {text} AS at")
        for _ in range(2):
            acid.apply_changes("t", changes, keys=["id"], sequence_by="at", except_columns=["at"])
    assert found(acid) == [(1, "v2")]


@pytest.mark.parametrize("type", ["struct<a: char(3)>", "array<varchar(3)>", "struct<a: timestamp>"])
def test_nested_keys_whose_values_are_stored_in_another_way_are_refused(acid: AcidSession, type: str) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (k {type}, v string)")
    changes = acid.spark.sql(f"SELECT CAST(NULL AS {type}) AS k, 'v' AS v, 1 AS at")
    for write in (
        lambda: acid.apply_changes("t", changes, keys=["k"], sequence_by="at", except_columns=["at"]),
        lambda: acid.sink("t", mode="merge", keys=["k"])(changes.drop("at"), 0),
    ):
        with pytest.raises(UnsupportedError, match="k cannot be a key"):
            write()


def test_days_in_nested_keys_are_checked(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k struct<a: array<date>>, v string)")
    for text, context in (
        ("1582-10-20", nullcontext()),
        ("1582-10-10", pytest.raises(AcidError, match="does not fit into k")),
    ):
        changes = acid.spark.sql(f"SELECT struct(array(NULL, DATE'{text}') AS a) AS k, 'v' AS v, 1 AS at")
        with context:
            acid.apply_changes("t", changes, keys=["k"], sequence_by="at", except_columns=["at"])
    assert acid.table("t").count() == 1


def test_two_moments_of_one_wall_clock_are_no_two_keys(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k timestamp, v string)")
    acid.sql("SET TIME ZONE 'Europe/Berlin'")
    try:
        for seconds in (1698539400, 1698539400 + 3600):  # 02:30, in summer and in winter
            changes = acid.spark.sql(f"SELECT timestamp_seconds({seconds}) AS k, 'v' AS v, 1 AS at")
            with pytest.raises(AcidError, match="A key does not fit into k") if seconds > 1698539400 else nullcontext():
                acid.apply_changes("t", changes, keys=["k"], sequence_by="at", except_columns=["at"])
        assert acid.table("t").count() == 1
    finally:
        acid.sql("SET TIME ZONE 'UTC'")


def test_two_that_begin_at_once_remember_in_one_place(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    changes = [frame(acid.spark, [(1, n, f"v{n}", "U"), (n, 1, "own", "U")]) for n in (7, 9, 8)]
    options: dict[str, Any] = {"keys": ["id"], "sequence_by": "at", "except_columns": ["at", "op"]}
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(acid.apply_changes, "t", one, **options) for one in changes]:
            done.result()
    assert found(acid) == [(1, "v9"), (7, "own"), (8, "own"), (9, "own")]
    assert len([n for n in acid.metastore.list_tables("default") if n.startswith("acidsql_applied")]) == 1


@pytest.mark.parametrize("cut", [[2, 1], [3], [1, 1, 1]])
def test_a_row_that_comes_after_a_delete_is_another_one_however_the_feed_is_cut(
    acid: AcidSession, cut: list[int]
) -> None:
    """Of columns that the changes lack it has the DEFAULT, and not what the deleted row had."""
    acid.sql(
        "CREATE TABLE t (id int, v string, z string DEFAULT 'new', n int) STORED AS ORC"
        " TBLPROPERTIES ('transactional'='true')"
    )
    acid.sql("INSERT INTO t VALUES (1, 'old', 'secret', 7), (2, 'old', 'kept', 8)")
    events: list[Event] = [(1, 1, None, "D"), (1, 2, "a", "I"), (2, 2, "b", "U")]
    while events:
        size = cut.pop(0)
        apply(acid, events[:size], 1)
        del events[:size]
    assert rows(acid, "SELECT * FROM t ORDER BY id") == [(1, "a", "new", None), (2, "b", "kept", 8)]


def test_after_a_first_call_that_failed_another_one_may_be_different(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TABLE t (id int, v string NOT NULL) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    changes = spark.sql("SELECT 1 AS id, CAST(NULL AS string) AS v, '5' AS s")
    with pytest.raises(AcidError):
        acid.apply_changes("t", changes, keys=["id"], sequence_by="s", except_columns=["s"])
    good = spark.sql("SELECT 1 AS id, 'x' AS v, '5' AS s")
    acid.apply_changes("t", good, keys=["id"], sequence_by="int(s)", except_columns=["s"])
    assert rows(acid, "SELECT * FROM t") == [(1, "x")]
    assert rows(acid, "SELECT * FROM acidsql_applied_t") == [(1, 5, False)]
    with pytest.raises(AnalysisError, match="another type of the sequence"):
        acid.apply_changes("t", good, keys=["id"], sequence_by="s", except_columns=["s"])
    nothing_is_open(acid)


def test_a_sequence_of_maps_is_refused(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with pytest.raises(UnsupportedError, match="no order"):
        acid.apply_changes("t", spark.sql("SELECT 1 AS id"), keys=["id"], sequence_by="map(1, 2)")
    assert rows(acid, "SHOW TABLES IN default LIKE 'acidsql*'") == []


def test_a_history_is_read_under_the_lock_of_its_table(acid: AcidSession, spark: SparkSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string, valid_from bigint, valid_to bigint)")
    apply(acid, [(1, 1, "a", "I"), (2, 1, "b", "I")], 2)
    with acidsql.connect(spark, warehouse=str(warehouse)) as other:
        other.sql("START TRANSACTION")
        other.sql("DELETE FROM t WHERE id = 1")
        waits = threading.Thread(target=lambda: apply(acid, [(1, 7, "c", "I")], 2))
        waits.start()
        while not [k for k in other.metastore.show_locks() if k.state is LockState.WAITING]:
            assert waits.is_alive()
        other.sql("COMMIT")
        waits.join()
    assert rows(acid, "SELECT * FROM t ORDER BY id") == [(1, "c", 7, None), (2, "b", 1, None)]


def test_as_the_first_statement_of_a_transaction_it_comes_through_beside_updates(
    acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked at what was applied before it locks the table, and lost to whoever had changed that, each time."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    apply(acid, [(1, 0, "a", "U")], 1)
    lock, mine, updates = WriteTransaction.lock, threading.get_ident(), list[int]()
    with acidsql.connect(acid.spark, warehouse=str(warehouse)) as other:

        def late(self: WriteTransaction, components: Sequence[LockComponent], **options: Any) -> None:
            of_t = [c.table for c in self.locks.components]
            if threading.get_ident() == mine and "t" not in of_t and any(c.table == "t" for c in components):
                updates.append(self.id)
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(other.sql, "UPDATE t SET v = concat(v, '!') WHERE id = 2").result(60)
            lock(self, components, **options)

        acid.sql("START TRANSACTION")
        with monkeypatch.context() as patch:
            patch.setattr(WriteTransaction, "lock", late)
            apply(acid, [(1, 1, "c", "U")], 1)
        acid.sql("COMMIT")
    assert len(updates) == 1
    assert sorted(rows(acid, "SELECT * FROM t")) == [(1, "c"), (2, "b!")]
    nothing_is_open(acid)


def test_an_interrupt_does_not_take_the_table_that_remembers_for_the_changes(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that there had been a commit: that of the table, while nothing was applied."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")

    def interrupted(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WriteTransaction, "publish", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            apply(acid, [(1, 1, "c", "U")], 1)
    assert rows(acid, "SELECT * FROM t") == []
    with monkeypatch.context() as patch:
        patch.setattr(WriteTransaction, "committed", interrupted)
        with pytest.raises(KeyboardInterrupt, match="after its commit"):
            apply(acid, [(1, 1, "c", "U")], 1)
    assert rows(acid, "SELECT * FROM t") == [(1, "c")]
    nothing_is_open(acid)
