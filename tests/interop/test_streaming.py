"""What is streamed to a table of a Hive Metastore, read by Hive while it streams."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from acidsql.session import AcidSession
from acidsql.streaming import Json
from acidsql.streaming.sink import BATCHES
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both
from tests.interop.conftest import OpenAcid

COLUMNS = "id int, v string, d decimal(10,2), at timestamp, day date, l array<int>, s struct<x:int,y:string>"


def test_hive_reads_while_it_streams(both: Both) -> None:
    t = both.table(COLUMNS, "k int, q string", by=HIVE)
    with both.acid.streaming(t.name, batch=3) as stream:
        for i in range(7):
            stream.begin()
            moment = dt.datetime(1500 + 80 * i, 3, 1, 12, 30, i, 1000 * i)
            row = (i, f"v{i}", Decimal(i) / 4, moment, moment.date(), [i, None], {"x": i, "y": "é"}, i % 2, "a/b")
            stream.write([row, (None,) * 9])
            t.agree()  # nothing of it
            if i % 3 == 2:
                stream.abort()
                both.wrote(ACIDSQL)
            else:
                stream.commit()
                both.wrote(ACIDSQL)
            t.agree()
            if i == 3:
                t.hive("UPDATE {t} SET v = 'hive' WHERE id = 0", "DELETE FROM {t} WHERE id = 1")
            if i == 5:
                t.hive("INSERT INTO {t} PARTITION (k, q) SELECT * FROM {t} WHERE id = 0")
    [found] = t.answer_alike("SELECT count(*), count(id), sum(id) FROM {t}")
    assert tuple(int(Decimal(value)) for value in found) == (10, 5, 13)


@pytest.mark.parametrize("by", SIDES)
def test_buckets_and_insert_only(both: Both, by: str) -> None:
    t = both.table("id int, v string", by=by, buckets="(id) INTO 4 BUCKETS")
    u = both.table("id int, v string", by=by, insert_only=True)
    for table in (t, u):
        with both.acid.streaming(table.name, records=Json()) as stream:
            for part in range(3):
                stream.begin()
                stream.write(f'{{"id": {i}, "v": "x{i}"}}' for i in range(part * 20, part * 20 + 20))
                stream.commit()
        both.wrote(ACIDSQL)
        assert len(table.agree()) == 60
    t.hive("UPDATE {t} SET v = 'h' WHERE id < 10").acid("DELETE FROM {t} WHERE id % 7 = 0")


def test_batches_are_written_once(both: Both, open_acid: OpenAcid) -> None:
    t = both.table("id int, v string", by=HIVE)
    spark = both.acid.spark
    for number in range(3):
        sinks: list[AcidSession] = [both.acid, open_acid()]
        for acid in sinks:  # the second one is a process that was killed, and is run again
            frame = spark.sql(f"SELECT {number % 2} AS id, 'b{number}' AS v")
            acid.sink(t.name, mode="merge", keys=["id"])(frame, number)
        both.wrote(ACIDSQL)
        t.agree()
    t.holds((0, "b2"), (1, "b1"))
    [(last,)] = both.answer_alike(f"SELECT max(batch) FROM {both.database}.{BATCHES} WHERE sink = '{t.name}'")
    assert int(last) == 2
