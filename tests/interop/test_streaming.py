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


@pytest.mark.parametrize("by", SIDES)
def test_hive_reads_what_workers_have_changed(both: Both, by: str) -> None:
    t = both.table("id int, v string, at timestamp", "k int", by=by)
    t.hive("INSERT INTO {t} PARTITION (k) VALUES (1, 'a', '1500-03-01 12:00:00.5', 0)")
    t.hive("INSERT INTO {t} PARTITION (k) VALUES (2, 'b', NULL, 0), (3, 'c', NULL, 1)")
    t.acid("INSERT INTO {t} VALUES (4, 'd', NULL, 0), (5, 'e', NULL, 1)")
    for round in range(2):
        with both.acid.mutation(t.name, buffer_rows=1) as mutation:
            tasks = mutation.tasks(2)
            found = mutation.rows().orderBy("k", "ROW__ID").collect()
            written = []
            for task in tasks:
                with task.open() as worker:
                    for row in found:
                        if row.k != task.number:
                            continue
                        if row.id % 3 == 2:
                            worker.delete(row["ROW__ID"], row.asDict())
                        else:
                            worker.update(row["ROW__ID"], {**row.asDict(), "v": f"{row.v}{round}"})
                    worker.insert((10 * (round + 1) + task.number, "new", None, 2))
                written.append(worker.written)
            mutation.commit(written)
        both.wrote(ACIDSQL)
        t.agree()
    t.hive("UPDATE {t} SET v = 'hive' WHERE id > 3").acid("ALTER TABLE {t} PARTITION (k = 0) COMPACT 'major'")
    done = [one.entry.table for one in both.acid.compactor.run_once().outcomes if one.state.is_done]
    assert t.name.partition(".")[2] in done
    t.agree()
    [total] = t.answer_alike("SELECT count(*), sum(id) FROM {t}")
    assert tuple(int(Decimal(value)) for value in total) == (7, 70)
