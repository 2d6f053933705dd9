"""Many looks give what one after the other would give, and fail as that would."""

from __future__ import annotations

import threading
import time

import pytest

from acidsql.fs import side_by_side

LOCAL, REMOTE = "/warehouse/t", "s3a://bucket/t"
_places = pytest.mark.parametrize("location", [LOCAL, "file:/warehouse/t", REMOTE])


@_places
@pytest.mark.parametrize("count", [0, 1, 500])
def test_answers_are_in_the_order_of_the_items(location: str, count: int) -> None:
    def look(item: int) -> int:
        time.sleep(0.001 * (item % 3))
        return item * item

    assert list(side_by_side(look, range(count), location)) == [n * n for n in range(count)]


@_places
def test_the_error_is_that_of_the_first_item_that_has_one(location: str) -> None:
    def look(item: int) -> int:
        if item == 7:
            time.sleep(0.05)  # others fail before it
        if item >= 7:
            raise ValueError(item)
        return item

    with pytest.raises(ValueError, match=r"^7$"):
        list(side_by_side(look, range(100), location))


def test_only_where_each_look_waits_for_a_network_there_are_several_at_a_time() -> None:
    barrier = threading.Barrier(4, timeout=60)
    list(side_by_side(lambda _: barrier.wait(), range(8), REMOTE))
    seen = set(side_by_side(lambda _: threading.current_thread(), range(100), LOCAL))
    assert seen == {threading.current_thread()}
