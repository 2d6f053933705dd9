"""How often a statement calls the JVM: each call takes a tenth of a millisecond, and thousands were made unnoticed."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection

from acidsql.catalyst.jobs import THREAD
from acidsql.catalyst.rules import rule
from acidsql.session import AcidSession

_GARBAGE = "m\nd\n"


@contextmanager
def _counted() -> Iterator[Callable[[], int]]:
    """Count the calls of all threads, as a statement may use several.

    Not those that py4j makes for objects which Python has dropped, and not those of a thread that still cancels what a
    statement of an earlier test has left.
    """
    calls, lock = [0], threading.Lock()
    original = ClientServerConnection.send_command

    def counting(self: Any, command: str) -> Any:
        if not command.startswith(_GARBAGE) and threading.current_thread().name != THREAD:
            with lock:
                calls[0] += 1
        return original(self, command)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientServerConnection, "send_command", counting)
        yield lambda: calls[0]


_COLUMNS = 40


@pytest.fixture
def tables(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, qty int, note string)")
    acid.sql("INSERT INTO t SELECT id, int(id), string(id) FROM range(100)")
    wide = ", ".join(f"c{i} int" for i in range(_COLUMNS))
    acid.sql(f"CREATE TRANSACTIONAL TABLE wide (id bigint, {wide}) PARTITIONED BY (p string)")
    acid.sql(f"INSERT INTO wide SELECT id, {', '.join(['1'] * _COLUMNS)}, string(id % 3) FROM range(30)")
    acid.sql("CREATE TEMPORARY VIEW changes AS SELECT id + 95 AS id, 7 AS qty FROM range(10)")
    return acid


_MERGE = (
    "MERGE INTO t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET qty = s.qty"
    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.qty, 'new')"
)


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        ("SELECT count(*), sum(qty), max(note) FROM t", 230),
        ("SELECT * FROM t WHERE id = 7", 350),
        ("INSERT INTO t VALUES (1000, 1, 'a')", 150),
        ("UPDATE t SET qty = qty + 1 WHERE id = 7", 620),
        ("DELETE FROM t WHERE id = 7", 560),
        (_MERGE, 1450),
        ("SELECT * FROM wide WHERE p = '1' AND id = 7", 880),
        ("UPDATE wide SET c3 = c3 + 1 WHERE id = 7", 1330),
    ],
)
def test_a_statement_makes_few_calls(tables: AcidSession, search: None, statement: str, most: int) -> None:
    """About a quarter more than there were when this was written; many of them are PySpark's own."""
    tables.sql(statement).collect()
    with _counted() as calls:
        tables.sql(statement).collect()
    assert 20 < calls() < most


@pytest.mark.parametrize("transactional", ["true", "insert_only"])
def test_the_calls_do_not_become_more_with_the_partitions(acid: AcidSession, transactional: str) -> None:
    kind = ", 'transactional_properties'='insert_only'" if transactional == "insert_only" else ""
    made = []
    for partitions in (3, 60):
        acid.sql(
            f"CREATE TABLE p{partitions} (id bigint) PARTITIONED BY (p int) STORED AS ORC"
            f" TBLPROPERTIES ('transactional'='true'{kind})"
        )
        acid.sql(f"INSERT INTO p{partitions} SELECT id, int(id % {partitions}) FROM range(200)")
        acid.sql(f"SELECT sum(id) FROM p{partitions}").collect()
        with _counted() as calls:
            [row] = acid.sql(f"SELECT count(*), sum(id), sum(p) FROM p{partitions}").collect()
            made.append(calls())
        assert row == (200, 19900, sum(id % partitions for id in range(200)))
    assert made[1] <= made[0] + 30


def test_what_a_rule_answers_is_kept_until_the_jvm_has_ended() -> None:
    """The JVM was told that the object is gone before it had looked up the answer, which then was null."""

    class Node:
        pass

    with rule(lambda node: Node()) as each:
        answer = weakref.ref(each.applyOrElse(Node(), None))
        gc.collect()
        assert answer() is not None
    gc.collect()
    assert answer() is None
