"""FROM … INSERT … INSERT …: every INSERT sees the same rows of the source, at the same time."""

from __future__ import annotations

import pytest

from acidsql.errors import UnsupportedError
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE src (id int, ts timestamp)")
    acid.sql("INSERT INTO src SELECT id, timestamp_seconds(id) FROM range(20)")
    acid.sql("CREATE TRANSACTIONAL TABLE low (id int, v timestamp)")
    acid.sql("CREATE TRANSACTIONAL TABLE high (id int, v timestamp)")
    return acid


INTO_TWO = " INSERT INTO low SELECT id, ts WHERE {low} INSERT INTO high SELECT id, ts WHERE {high}"


@pytest.mark.parametrize(
    "source",
    [
        "FROM (SELECT *, rand() AS r FROM src) s",
        "FROM (SELECT *, uuid() AS r FROM src) s",
        "FROM (SELECT *, monotonically_increasing_id() AS r FROM src) s",
        "FROM (SELECT *, 1 AS r FROM src LIMIT 5) s",
        "FROM (SELECT *, 1 AS r FROM src OFFSET 5) s",
        "FROM (SELECT *, 1 AS r FROM src TABLESAMPLE (50 PERCENT)) s",
        "FROM src JOIN (SELECT id AS i, rand() AS r FROM src) o ON id = i",
        "FROM (SELECT *, 1 AS r FROM src WHERE id IN (SELECT id FROM src LIMIT 3)) s",
        "WITH s AS (SELECT *, rand() AS r FROM src) FROM s",
    ],
)
def test_a_source_that_may_change_between_two_inserts_is_refused(shop: AcidSession, source: str) -> None:
    text = source + INTO_TWO.format(low="r < 0.5", high="r >= 0.5")
    with pytest.raises(UnsupportedError, match="may give other rows each time") as caught:
        shop.sql(text)
    assert (caught.value.line, caught.value.column) == (1, text.index(") FROM s") + 3 if "WITH" in text else 1)
    with pytest.raises(UnsupportedError, match="may give other rows each time"):
        shop.sql(f"EXPLAIN {text}")
    assert rows(shop, "SELECT id FROM low UNION ALL SELECT id FROM high") == []
    nothing_is_open(shop)


def test_a_single_insert_may_have_any_source(shop: AcidSession) -> None:
    shop.sql("FROM (SELECT *, rand() AS r FROM src LIMIT 4) s INSERT INTO low SELECT id, ts WHERE r < 2")
    assert len(rows(shop, "SELECT id FROM low")) == 4


def test_what_an_insert_computes_itself_may_be_random(shop: AcidSession) -> None:
    shop.sql(
        "FROM src INSERT INTO low SELECT id, timestamp_seconds(id + rand())"
        " INSERT INTO high SELECT id, ts ORDER BY id LIMIT 3"
    )
    assert len(rows(shop, "SELECT id FROM low")) == 20
    assert rows(shop, "SELECT id FROM high") == [(0,), (1,), (2,)]


def test_all_inserts_have_one_current_time(shop: AcidSession) -> None:
    """Or a row from between two times would be neither in the past nor in the future."""
    shop.sql("FROM src INSERT INTO low SELECT id, current_timestamp() INSERT INTO high SELECT id, now()")
    assert len(rows(shop, "SELECT DISTINCT v FROM (SELECT * FROM low UNION ALL SELECT * FROM high)")) == 1


def test_each_row_goes_to_the_inserts_whose_condition_it_meets(shop: AcidSession) -> None:
    shop.sql("WITH s AS (SELECT * FROM src) FROM s" + INTO_TWO.format(low="id < 7", high="id >= 7"))
    assert rows(shop, "SELECT id FROM low") == [(i,) for i in range(7)]
    assert len(rows(shop, "SELECT id FROM high")) == 13
