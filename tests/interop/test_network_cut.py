"""The network to the metastore fails in the middle of statements: what was acknowledged is there, once, and no part of
what was not; transactions and locks end. Hive sees the same."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.interop.both import ACIDSQL, HIVE, Both
from tests.interop.conftest import Service
from tests.interop.waiting import until
from tests.services.relay import Relay, times

Rows = dict[int, int]
Change = tuple[Callable[[AcidSession], object], Callable[[Rows], Rows]]

ROUNDS = 40
MOST_PIECES = 60
"""Requests and answers of the longest of these statements, about."""
SETTINGS = {
    "hive.metastore.client.connect.retry.delay": "100ms",
    "hive.metastore.connect.retries": "2",
    "hive.txn.timeout": "60s",
}


def changes(table: str, number: int) -> dict[str, Change]:
    """What a round may do: by acidsql, and by a model."""
    k = number % 5

    def stream(acid: AcidSession) -> None:
        with acid.streaming(table) as connection:
            connection.begin()
            connection.write([(1000 + number, 0), (2000 + number, 0)])
            connection.commit()

    def mutate(acid: AcidSession) -> None:
        with acid.mutation(table) as mutation:
            found = mutation.rows().where(f"id % 5 = {k}").orderBy("ROW__ID.bucketId", "ROW__ID").collect()
            [task] = mutation.tasks(1)
            with task.open() as worker:
                for row in sorted(found, key=lambda row: (row["ROW__ID"].bucketId >> 16, row["ROW__ID"])):
                    worker.update(row["ROW__ID"], (row.id, row.v + 100))
            mutation.commit([worker.written])

    def by_sql(text: str) -> Callable[[AcidSession], object]:
        return lambda acid: acid.sql(text.format(t=table)).collect()

    merge = (
        "MERGE INTO {t} USING (SELECT explode(array(%d, %d)) AS id) s ON {t}.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = v + 10 WHEN NOT MATCHED THEN INSERT VALUES (s.id, -1)"
    )
    return {
        "insert": (by_sql(f"INSERT INTO {{t}} VALUES ({number}, 0)"), lambda now: {**now, number: 0}),
        "stream": (stream, lambda now: {**now, 1000 + number: 0, 2000 + number: 0}),
        "update": (
            by_sql(f"UPDATE {{t}} SET v = v + 1 WHERE id % 5 = {k}"),
            lambda now: {i: v + (i % 5 == k) for i, v in now.items()},
        ),
        "mutation": (mutate, lambda now: {i: v + 100 * (i % 5 == k) for i, v in now.items()}),
        "delete": (
            by_sql(f"DELETE FROM {{t}} WHERE id % 7 = {k}"),
            lambda now: {i: v for i, v in now.items() if i % 7 != k},
        ),
        "merge": (
            by_sql(merge % (k, 3000 + number)),
            lambda now: {**now, 3000 + number: -1, k: now[k] + 10 if k in now else -1},
        ),
    }


@pytest.mark.parametrize("seed", range(3))
def test_what_is_acknowledged_is_there_once_and_nothing_else_by_halves(
    both: Both, spark: SparkSession, hive_service: Service, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    draw = random.Random(seed)
    t = both.table("id int, v int", by=HIVE)
    address = urlsplit(hive_service.metastore_uri)
    known: Rows = {}
    failed = unclear = 0
    with (
        Relay(address.hostname or "", address.port or 9083) as relay,
        acidsql.connect(spark, metastore=f"thrift://127.0.0.1:{relay.port}", settings=SETTINGS) as acid,
    ):
        for number in range(ROUNDS):
            acid.settings.set("hive.metastore.failure.retries", str(draw.choice([0, 1])))
            run, model = changes(t.name, number)[draw.choice([*changes(t.name, number)])]
            relay.cut_after(times(draw, MOST_PIECES), draw.choice([0.0, 0.5]))
            expected = [model(known)]
            try:
                run(acid)
            except AcidError:
                failed += 1
                expected.append(known)
            relay.heal()
            now = {row.id: row.v for row in both.acid.sql(f"SELECT * FROM {t.name}").collect()}
            assert now in expected, f"round {number}: {sorted(now.items())}, known {sorted(known.items())}"
            assert both.acid.sql(f"SELECT count(*) FROM {t.name}").first() == (len(now),)
            unclear += len(expected) == 2 and now == expected[0] != known
            known = now
            acid.compactor.run_once()
        assert failed
        assert relay.cuts > ROUNDS / 3
        both.wrote(ACIDSQL, ROUNDS)
        name = t.name.partition(".")[2]
        until(lambda: not [r for r in both.acid.sql("SHOW LOCKS").collect() if name in str(r)], "the end of the locks")
        # who goes on does so at once: nothing waits for a time-out
        acid.sql(f"UPDATE {t.name} SET v = v + 1")
        t.agree()
    print(f"{ROUNDS} statements, {relay.cuts} cuts, {failed} errors, {unclear} of them after a commit")
    assert not list(t.directory.rglob("_tmp_*"))
