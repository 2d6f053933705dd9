"""ANALYZE of acidsql's: Hive answers count(*) from its numbers, for as long as they hold and no longer."""

from __future__ import annotations

from typing import cast

import pytest

from acidsql.metastore.hive.metastore import HiveMetastore
from acidsql.metastore.model import RowChange, TableChanges
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both


def _from_statistics(both: Both, query: str) -> bool:
    plan = "\n".join(str(r[0]) for r in both.ask(HIVE, f"EXPLAIN {query}"))
    return "TableScan" not in plan


@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
@pytest.mark.parametrize("writer", SIDES)
def test_hive_takes_the_number_and_drops_it_with_the_next_write(both: Both, keys: str, writer: str) -> None:
    t = both.table("id int" + ("" if keys else ", k int"), keys, by=HIVE)
    t.acid("INSERT INTO {t} VALUES (1, 1), (2, 1), (3, 2)")
    t.acid("DELETE FROM {t} WHERE id = 2")
    count = f"SELECT count(*) FROM {t.name}"
    assert not _from_statistics(both, count)
    both.run(ACIDSQL, f"ANALYZE TABLE {t.name} COMPUTE STATISTICS")
    assert _from_statistics(both, count)
    assert both.ask(HIVE, count) == [(2,)]
    both.run(writer, f"INSERT INTO {t.name} VALUES (7, 1)")
    assert both.ask(HIVE, count) == [(3,)]
    both.run(writer, f"DELETE FROM {t.name} WHERE id = 1")
    assert both.ask(HIVE, count) == [(2,)]
    t.agree()


EVERY_KIND = (
    "i int, b bigint, f float, d double, s string, v varchar(9), t boolean, x binary"
    ", m decimal(12,3), a date, ts timestamp"
)
EVERY_VALUE = (
    "(1, -9000000000, 0.5, -1.5, 'one', 'ab', true, 'q', 1.125, date '2024-02-29', timestamp '2024-02-29 12:00:00'),"
    " (7, 5, 2.5, 1e300, '', 'abc', false, 'qq', -2.5, date '1999-12-31', timestamp '1970-01-01 00:00:01'),"
    " (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
)
NOT_COMPARED = ("bit_vector", "avg_col_len", "comment")
"""acidsql keeps no sketch of the values; Hive counts a NULL as a text of no characters."""


def _shown(both: Both, side: str, place: str) -> dict[str, str]:
    """What DESCRIBE FORMATTED tells of a column."""
    found = {str(r[0]).strip(): str(r[1] or "").strip() for r in both.ask(side, f"DESCRIBE FORMATTED {place}")}
    return {name: value for name, value in found.items() if name and name not in NOT_COMPARED}


@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_hive_shows_statistics_of_columns_as_its_own(both: Both, keys: str) -> None:
    t = both.table(EVERY_KIND, keys, by=HIVE)
    into = "{t} PARTITION (k=1)" if keys else "{t}"
    t.hive(f"INSERT INTO {into} VALUES {EVERY_VALUE}")
    names = [column.split()[0] for column in EVERY_KIND.split(", ")]
    part = " PARTITION (k=1)" if keys else ""
    both.run(HIVE, f"ANALYZE TABLE {t.name}{part} COMPUTE STATISTICS FOR COLUMNS")
    own = {name: _shown(both, HIVE, f"{t.name}{part} {name}") for name in names}
    t.acid("DELETE FROM {t} WHERE false")
    both.run(ACIDSQL, f"ANALYZE TABLE {t.name} COMPUTE STATISTICS FOR COLUMNS")
    assert {name: _shown(both, HIVE, f"{t.name}{part} {name}") for name in names} == own
    of_ours = {name: _shown(both, ACIDSQL, f"{t.name}{part} {name}") for name in names}
    for name in names:
        assert of_ours[name]["num_nulls"] == own[name]["num_nulls"] == "1", name
    assert of_ours["m"]["min"] == "-2.500"
    assert of_ours["ts"]["max"] == "2024-02-29 12:00:00"


@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_hive_answers_min_and_max_from_statistics_of_columns_as_long_as_they_hold(both: Both, keys: str) -> None:
    t = both.table("id int, v string" + ("" if keys else ", k int"), keys, by=HIVE)
    t.acid("INSERT INTO {t} VALUES (1, 'a', 1), (2, NULL, 1), (3, 'c', 2)")
    bounds = f"SELECT min(id), max(id), count(v) FROM {t.name}"
    both.run(ACIDSQL, f"ANALYZE TABLE {t.name} COMPUTE STATISTICS FOR COLUMNS")
    assert _from_statistics(both, bounds)
    assert both.ask(HIVE, bounds) == [(1, 3, 2)]
    both.run(ACIDSQL, f"DELETE FROM {t.name} WHERE id = 3")
    assert both.ask(HIVE, bounds) == [(1, 2, 1)]
    both.run(ACIDSQL, f"ANALYZE TABLE {t.name} COMPUTE STATISTICS FOR COLUMNS")
    both.run(HIVE, f"INSERT INTO {t.name} VALUES (9, 'z', 2)")
    assert both.ask(HIVE, bounds) == [(1, 9, 2)]
    t.agree()


def test_beside_an_open_writer_nothing_is_exact(both: Both) -> None:
    """The writer has said before the ANALYZE that nothing is exact; what he commits later must be counted."""
    t = both.table("id int", by=HIVE)
    t.acid("INSERT INTO {t} VALUES (1)")
    store = both.acid.metastore
    table = store.get_table(*t.name.lower().split("."))
    [writer] = store.open_txns(user="ann", host="desk")
    write_id = store.allocate_table_write_id(writer, table.database, table.name)
    [seen] = store.get_valid_write_ids([table.full_name], store.get_valid_txns(writer))
    cast(HiveMetastore, store).carry_on(TableChanges(table, write_id, seen, {"": RowChange(inserted=1)}))
    both.run(ACIDSQL, f"ANALYZE TABLE {t.name} COMPUTE STATISTICS")
    assert not _from_statistics(both, f"SELECT count(*) FROM {t.name}")
    store.abort_txns([writer])
    assert both.ask(HIVE, f"SELECT count(*) FROM {t.name}") == [(1,)]
