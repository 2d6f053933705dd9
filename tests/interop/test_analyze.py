"""ANALYZE of acidsql's: Hive answers count(*) from its numbers, for as long as they hold and no longer."""

from __future__ import annotations

import pytest

from acidsql.metastore.model import RowChange
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


def test_beside_an_open_writer_nothing_is_exact(both: Both) -> None:
    """The writer has said before the ANALYZE that nothing is exact; what he commits later must be counted."""
    t = both.table("id int", by=HIVE)
    t.acid("INSERT INTO {t} VALUES (1)")
    store = both.acid.metastore
    table = store.get_table(*t.name.lower().split("."))
    [writer] = store.open_txns(user="ann", host="desk")
    write_id = store.allocate_table_write_id(writer, table.database, table.name)
    [seen] = store.get_valid_write_ids([table.full_name], store.get_valid_txns(writer))
    store.update_statistics(table, write_id, seen, {"": RowChange(inserted=1)})
    both.run(ACIDSQL, f"ANALYZE TABLE {t.name} COMPUTE STATISTICS")
    assert not _from_statistics(both, f"SELECT count(*) FROM {t.name}")
    store.abort_txns([writer])
    assert both.ask(HIVE, f"SELECT count(*) FROM {t.name}") == [(1,)]
