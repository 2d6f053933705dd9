"""Views over ACID tables: made by one side, read by both."""

from __future__ import annotations

import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both

QUERIES = (
    "SELECT id, v FROM {t} WHERE id > 1",
    "SELECT * FROM {t}",
    "SELECT id + 1 AS next, upper(v) AS up FROM {t}",
    "SELECT a.id, b.v FROM {t} a JOIN {t} b ON a.id = b.id",
    "SELECT v, count(*) AS n, max(id) AS top FROM {t} GROUP BY v",
    "SELECT id FROM {t} UNION ALL SELECT id * 10 AS id FROM {t}",
    "WITH c AS (SELECT id FROM {t} WHERE id < 3) SELECT c.id FROM c",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("by", SIDES)
def test_both_read_a_view(both: Both, by: str, query: str) -> None:
    t = both.table("id int, v string", by=by)
    t.acid("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    view = f"{t.name}_v"
    both.run(by, f"CREATE VIEW {view} AS {query.format(t=t.name)}")
    assert both.answer_alike(f"SELECT * FROM {view}")
    t.hive("UPDATE {t} SET v = 'x' WHERE id = 2")
    both.answer_alike(f"SELECT * FROM {view}")
    both.run(ACIDSQL, f"DROP VIEW {view}")
    assert not [r for r in both.ask(HIVE, f"SHOW VIEWS IN {both.database}") if r[0] in view]


def test_hive_sees_names_types_and_comments(both: Both) -> None:
    t = both.table("id int, v string", by=HIVE)
    t.acid("INSERT INTO {t} VALUES (1, 'a')")
    view = f"{t.name}_v"
    both.run(ACIDSQL, f"CREATE VIEW {view} (a COMMENT 'the key', b) COMMENT 'some' AS SELECT id, v FROM {t.name}")
    assert both.ask(HIVE, f"DESCRIBE {view}") == [("a", "int", "the key"), ("b", "string", "")]
    assert both.answer_alike(f"SELECT a, b FROM {view}") == [("1", "a")]
    both.run(ACIDSQL, f"CREATE OR REPLACE VIEW {view} AS SELECT v FROM {t.name}")
    assert both.answer_alike(f"SELECT * FROM {view}") == [("a",)]
    both.run(HIVE, f"CREATE OR REPLACE VIEW {view} AS SELECT id, id + 1 AS id_plus_1 FROM {t.name}")
    assert both.answer_alike(f"SELECT * FROM {view}") == [("1", "2")]
