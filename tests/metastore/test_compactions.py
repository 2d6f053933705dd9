"""The queue of compactions: requests of users, as a store whose workers compact takes them."""

from __future__ import annotations

import pytest

from acidsql.errors import TableNotFound
from acidsql.metastore.model import CompactionFilter, CompactionInfo, CompactionRequest, CompactionType
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import partition, table

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
QUEUE = pytest.mark.needs("compaction queue")


@pytest.fixture
def queue(store: Metastore) -> Metastore:
    """A store with a plain table ``t`` and a table ``p`` of two partitions."""
    store.create_table(table("t"))
    store.create_table(table("p", partitioned=True))
    store.add_partitions([partition("1", "p"), partition("2", "p")])
    return store


def compact(
    store: Metastore, name: str = "t", part: str | None = None, type: CompactionType = MAJOR, **more: object
) -> CompactionInfo | None:
    """Ask for a compaction; its entry in the queue, None where it was refused."""
    request = CompactionRequest("default", name, part, type, "ann", "desk", **more)  # type: ignore[arg-type]
    response = store.compact(request)
    if not response.accepted:
        return None
    [found] = store.show_compactions(CompactionFilter(id=response.id))
    assert (found.id, found.state) == (response.id, response.state)
    return found


def shown(store: Metastore, **wanted: object) -> list[int]:
    return [one.id for one in store.show_compactions(CompactionFilter(**wanted))]  # type: ignore[arg-type]


class TestARequest:
    pytestmark = QUEUE

    @pytest.mark.parametrize("type", [MAJOR, MINOR])
    @pytest.mark.parametrize(("name", "part"), [("t", None), ("p", "p=1")])
    def test_stands_in_the_queue(self, queue: Metastore, name: str, part: str | None, type: CompactionType) -> None:
        found = compact(queue, name, part, type)
        assert found is not None
        assert (found.database, found.table, found.partition, found.type) == ("default", name, part, type)
        assert (found.state, found.worker, found.job_id, found.error) == (State.INITIATED, None, None, None)

    @pytest.mark.needs("describes compactions")
    def test_tells_when_and_by_whom_it_was_made(self, queue: Metastore) -> None:
        found = compact(queue, pool="night")
        assert found is not None
        assert found.initiator == "desk-manual"
        assert found.pool == "night"
        assert found.enqueued_ms is not None
        assert (found.started_ms, found.ended_ms) == (None, None)

    def test_is_refused_while_the_same_stands_in_the_queue(self, queue: Metastore) -> None:
        first = compact(queue)
        assert first is not None
        for type in (MAJOR, MINOR):
            response = queue.compact(CompactionRequest("default", "t", None, type, "ann", "desk"))
            assert (response.accepted, response.id, response.state) == (False, first.id, State.INITIATED)
        assert shown(queue) == [first.id]

    def test_for_another_partition_is_another(self, queue: Metastore) -> None:
        assert compact(queue, "p", "p=1") is not None
        assert compact(queue, "p", "p=2") is not None
        assert len(shown(queue)) == 2

    def test_for_a_table_that_is_not_there_is_an_error(self, queue: Metastore) -> None:
        with pytest.raises(TableNotFound, match=r"default\.nowhere"):
            compact(queue, "nowhere")
        assert shown(queue) == []

    def test_goes_with_its_table(self, queue: Metastore) -> None:
        compact(queue)
        queue.drop_table("default", "t")
        assert shown(queue) == []

    @pytest.mark.needs("takes compactions back")
    def test_is_taken_back(self, queue: Metastore) -> None:
        found = compact(queue)
        assert found is not None
        answers = queue.abort_compactions([found.id])
        assert list(answers) == [found.id]
        assert "aborted" in answers[found.id].lower()
        [after] = queue.show_compactions(CompactionFilter(id=found.id))
        assert after.state is State.ABORTED
        assert compact(queue) is not None

    @pytest.mark.needs("takes compactions back")
    def test_that_is_not_there_is_not_taken_back(self, queue: Metastore) -> None:
        found = compact(queue)
        assert found is not None
        queue.abort_compactions([found.id + 1000])
        assert [one.state for one in queue.show_compactions(CompactionFilter())] == [State.INITIATED]


class TestTheList:
    pytestmark = QUEUE

    def test_begins_with_the_latest(self, queue: Metastore) -> None:
        ids = [compact(queue), compact(queue, "p", "p=2"), compact(queue, "p", "p=1", MINOR)]
        assert shown(queue) == [one.id for one in reversed(ids) if one is not None]

    def test_is_restricted_by_all_that_is_asked_for(self, queue: Metastore) -> None:
        queue_ids = [compact(queue), compact(queue, "p", "p=2"), compact(queue, "p", "p=1", MINOR)]
        t, p2, p1 = (one.id for one in queue_ids if one is not None)
        assert shown(queue, table="p") == [p1, p2]
        assert shown(queue, table="p", partition="p=2") == [p2]
        assert shown(queue, type=MINOR) == [p1]
        assert shown(queue, type=MAJOR) == [p2, t]
        assert shown(queue, state=State.INITIATED) == [p1, p2, t]
        assert shown(queue, state=State.FAILED) == []
        assert shown(queue, database="default") == [p1, p2, t]
        assert shown(queue, database="elsewhere") == []
        assert shown(queue, id=t) == [t]
        assert shown(queue, id=t, table="p") == []
        assert shown(queue, limit=2) == [p1, p2]
        assert shown(queue, table="p", type=MAJOR, limit=1) == [p2]
