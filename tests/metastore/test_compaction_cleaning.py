"""What there is to compact and to clean, and what is forgotten when it is done (Hive: ``TestCompactionTxnHandler``)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.errors import CompactionError
from acidsql.metastore.model import (
    AbortedComponent,
    CompactionCandidate,
    CompactionFilter,
    Operation,
    TxnState,
    TxnType,
)
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.protocol import Metastore
from tests.metastore.compacting import (
    MAJOR,
    MINOR,
    aborted,
    asked,
    committed,
    compacted,
    entry,
    ready,
    request,
    states,
    taken,
)
from tests.metastore.conftest import CountRows, OpenStore
from tests.metastore.situations import (
    READ,
    SHARED_WRITE,
    Clock,
    ask_all,
    begin,
    component,
    partition,
    read_write_ids,
    seen,
    table,
    take,
    tidy,
    write,
)

pytestmark = pytest.mark.needs("cleans compactions")


@pytest.fixture
def tables(store: Metastore) -> Metastore:
    """A store with a plain table ``t`` and a table ``p`` of two partitions."""
    store.create_table(table("t"))
    store.create_table(table("p", partitioned=True))
    store.add_partitions([partition("1", "p"), partition("2", "p")])
    return store


def components(store: Metastore) -> dict[tuple[str, str | None], set[int]]:
    """What aborted transactions have left: write ids by table and partition."""
    return {(one.table, one.partition): set(one.write_ids) for one in store.aborted_components()}


def potential(store: Metastore, *, threshold: int = 100, **more: int | None) -> list[CompactionCandidate]:
    since = more.get("since_ms")
    return store.find_potential_compactions(
        aborted_threshold=threshold, aborted_age_ms=more.get("aborted_age_ms"), since_ms=since
    )


class TestAnEntryIsReadyForTheCleaner:
    def test_when_it_is_compacted_and_not_before(self, tables: Metastore) -> None:
        asked(tables, "p", "p=1", MINOR)
        assert ready(tables) == []
        entered = tables.find_next_compact("desk-1")
        assert entered is not None
        assert ready(tables) == []
        tables.mark_compacted(entered.id)
        assert ready(tables) == [entered.id]

    def test_when_its_transaction_is_committed(self, tables: Metastore) -> None:
        id = compacted(tables, commits=False)
        assert ready(tables) == []
        txn_id = entry(tables, id).txn_id
        assert txn_id is not None
        tables.commit_txn(txn_id)
        assert ready(tables) == [id]

    def test_when_its_transaction_was_committed_first(self, tables: Metastore, clock: Clock) -> None:
        id, txn_id = taken(tables), begin(tables, TxnType.COMPACTION)
        tables.update_compactor_state(id, txn_id, 0)
        tables.commit_txn(txn_id)
        tables.mark_compacted(id)
        assert ready(tables) == [id]
        after = entry(tables, id)
        assert (after.txn_id, after.next_txn_id, after.committed_ms) == (txn_id, txn_id, clock.ms)

    def test_not_when_its_transaction_was_aborted(self, tables: Metastore) -> None:
        id = compacted(tables, commits=False)
        txn_id = entry(tables, id).txn_id
        assert txn_id is not None
        tables.abort_txns([txn_id])
        tidy(tables, Clock())
        assert ready(tables) == []

    @pytest.mark.parametrize("type", [TxnType.READ_ONLY, TxnType.DEFAULT])
    def test_when_everybody_is_gone_who_began_before_the_commit(self, tables: Metastore, type: TxnType) -> None:
        committed(tables)
        early = begin(tables, type)
        id = compacted(tables, commits=False)
        late = begin(tables, type)  # the newest one at the commit: it may have a snapshot without it
        txn_id = entry(tables, id).txn_id
        assert txn_id is not None
        tables.commit_txn(txn_id)
        begin(tables, type)  # sees what was compacted
        assert entry(tables, id).next_txn_id == late
        assert ready(tables) == []
        tables.commit_txn(early)
        assert ready(tables) == []
        tables.abort_txns([late])
        assert ready(tables) == [id]

    def test_when_the_retention_is_over(self, tables: Metastore, clock: Clock) -> None:
        id = compacted(tables)
        assert ready(tables, retention_ms=5000) == []
        clock.pass_seconds(4.9)
        assert ready(tables, retention_ms=5000) == []
        clock.pass_seconds(0.1)
        assert ready(tables, retention_ms=5000) == [id]

    def test_when_the_one_below_it_is_cleaned(self, tables: Metastore) -> None:
        committed(tables)
        first = compacted(tables)
        committed(tables)
        second = compacted(tables)
        other = compacted(tables, "p", "p=1")
        assert ready(tables) == [first, other]
        tables.mark_cleaned(first)
        assert ready(tables) == [second, other]

    def test_up_to_the_number_of_one_round(self, tables: Metastore, open_store: OpenStore) -> None:
        ids = [compacted(tables, "p", "p=1"), compacted(tables, "p", "p=2"), compacted(tables)]
        session = open_store({"hive.compactor.fetch.size": "2"})
        assert ready(session) == ids[:2]
        session.mark_cleaned(ids[0])
        assert ready(session) == ids[1:]


class TestCleaningThatFails:
    def test_is_put_off_and_counted(self, tables: Metastore, clock: Clock) -> None:
        id = compacted(tables)
        tables.set_cleaner_retry(id, retry_at_ms=clock.ms + 60_000, message="busy")
        assert (ready(tables), states(tables)) == ([], [State.READY_FOR_CLEANING])
        clock.pass_seconds(59)
        assert ready(tables) == []
        clock.pass_seconds(1)
        [found] = tables.find_ready_to_clean(tables.min_open_txn(), 0)
        assert (found.id, found.retries, found.error) == (id, 1, "busy")
        tables.set_cleaner_retry(id, retry_at_ms=clock.ms + 120_000, message="still busy")
        clock.pass_seconds(120)
        [found] = tables.find_ready_to_clean(tables.min_open_txn(), 0)
        assert (found.retries, found.error) == (2, "still busy")

    def test_does_not_keep_the_next_one_waiting(self, tables: Metastore, clock: Clock) -> None:
        committed(tables)
        first = compacted(tables)
        committed(tables)
        second = compacted(tables)
        tables.set_cleaner_retry(first, retry_at_ms=clock.ms + 60_000, message="busy")
        assert ready(tables) == [second]

    def test_may_fail_for_good(self, tables: Metastore) -> None:
        committed(tables)
        id = compacted(tables)
        tables.mark_failed(id, "not to be removed")
        assert (ready(tables), states(tables)) == ([], [State.FAILED])
        assert len(tables.completed_writes("default", "t") or []) == 1

    def test_is_not_put_off_before_it_is_due(self, tables: Metastore, clock: Clock) -> None:
        with pytest.raises(CompactionError, match="working, and not ready for cleaning"):
            tables.set_cleaner_retry(taken(tables), retry_at_ms=clock.ms, message="busy")


class TestWhatIsCleaned:
    def test_goes_into_the_history(self, tables: Metastore, clock: Clock) -> None:
        id = compacted(tables)
        before = entry(tables, id)
        clock.pass_seconds(3)
        tables.mark_cleaned(id)
        assert entry(tables, id) == replace(before, state=State.SUCCEEDED, ended_ms=clock.ms)
        assert (ready(tables), tables.find_next_compact("desk-1")) == ([], None)

    def test_may_have_been_cleaned_by_another(self, tables: Metastore) -> None:
        id = compacted(tables)
        tables.mark_cleaned(id)
        tables.mark_cleaned(id)
        assert states(tables) == [State.SUCCEEDED]

    def test_has_to_be_compacted(self, tables: Metastore) -> None:
        id = taken(tables)
        with pytest.raises(CompactionError, match="working, and not ready for cleaning"):
            tables.mark_cleaned(id)

    def test_is_forgotten_up_to_its_write_id(self, tables: Metastore) -> None:
        committed(tables)
        aborted(tables)
        id = compacted(tables)
        aborted(tables)
        committed(tables)
        tables.mark_cleaned(id)
        assert [one.write_id for one in tables.completed_writes("default", "t") or []] == [4]
        assert components(tables) == {("t", None): {3}}

    def test_is_forgotten_of_its_partition_alone(self, tables: Metastore) -> None:
        for place in ("default.p/p=1", "default.p/p=2", "default.t"):
            committed(tables, place)
            aborted(tables, place)
        tables.mark_cleaned(compacted(tables, "p", "p=1"))
        assert [one.partition for one in tables.completed_writes("default", "p") or []] == ["p=2"]
        assert components(tables) == {("p", "p=2"): {4}, ("t", None): {2}}

    def test_keeps_a_write_that_named_no_partition(self, tables: Metastore) -> None:
        aborted(tables, "default.p")
        tables.mark_cleaned(compacted(tables, "p", "p=1"))
        assert components(tables) == {("p", None): {1}}

    def test_keeps_what_was_aborted_where_it_is_still_in_the_files(self, tables: Metastore) -> None:
        committed(tables)
        aborted(tables)
        tables.mark_cleaned(compacted(tables), keep_aborted=True)
        assert tables.completed_writes("default", "t") == []
        assert components(tables) == {("t", None): {2}}

    def test_keeps_what_is_open(self, tables: Metastore) -> None:
        txn_id = write(tables)
        tables.mark_cleaned(compacted(tables))
        tables.commit_txn(txn_id)
        assert [one.write_id for one in tables.completed_writes("default", "t") or []] == [1]

    def test_forgets_nothing_of_which_nobody_said_that_it_was_compacted(self, tables: Metastore) -> None:
        committed(tables)
        aborted(tables)
        id = taken(tables)
        tables.mark_compacted(id)
        tables.mark_cleaned(id)
        assert len(tables.completed_writes("default", "t") or []) == 1
        assert components(tables) == {("t", None): {2}}

    def test_lets_its_aborted_transactions_be_forgotten(self, tables: Metastore, clock: Clock) -> None:
        """Those that have left nothing elsewhere (``testMarkCleanedCleansTxnsAndTxnComponents``)."""
        alone = aborted(tables)
        both = write(tables)
        write(tables, "default.p/p=1", txn_id=both)
        tables.abort_txns([both])
        committed(tables)
        committed(tables, "default.p/p=1")
        tables.mark_cleaned(compacted(tables))
        tidy(tables, clock)
        assert [t.id for t in tables.show_txns() if t.state is TxnState.ABORTED] == [both]
        assert alone not in tables.get_valid_txns().aborted_ids
        tables.mark_cleaned(compacted(tables, "p", "p=1"))
        tidy(tables, clock)
        assert [t.id for t in tables.show_txns() if t.state is TxnState.ABORTED] == []


class TestAnAbortedCompaction:
    def test_stays_known_until_what_it_wrote_is_gone(self, tables: Metastore, clock: Clock) -> None:
        committed(tables)
        id, txn_id = taken(tables), begin(tables, TxnType.COMPACTION)
        tables.update_compactor_state(id, txn_id, 1)
        tables.abort_txns([txn_id])
        begin(tables)
        tidy(tables, clock)
        assert tables.get_valid_txns().aborted_ids == (txn_id,)
        place = AbortedComponent("default", "t", None, frozenset(), txn_id, frozenset({txn_id}))
        assert tables.aborted_compactions() == [place]
        assert tables.aborted_components() == []
        tables.forget_txn_components(txn_id)
        tidy(tables, clock)
        assert (tables.aborted_compactions(), tables.get_valid_txns().aborted_ids) == ([], ())

    def test_is_cleaned_by_the_next_one(self, tables: Metastore) -> None:
        committed(tables)
        id, txn_id = taken(tables), begin(tables, TxnType.COMPACTION)
        tables.update_compactor_state(id, txn_id, 1)
        tables.abort_txns([txn_id])
        tables.mark_failed(id, "why")
        tables.mark_cleaned(compacted(tables))
        assert tables.aborted_compactions() == []

    def test_does_not_count_as_a_write(self, tables: Metastore) -> None:
        tables.mark_cleaned(compacted(tables))
        assert potential(tables) == []
        assert tables.aborted_compactions() == []


class TestWhatWasAborted:
    def test_is_told_by_place_the_oldest_first(self, tables: Metastore) -> None:
        first = aborted(tables, "default.p/p=2")
        rest = [aborted(tables) for _ in range(2)]
        assert tables.aborted_components() == [
            AbortedComponent("default", "p", "p=2", frozenset({1}), first, frozenset({first})),
            AbortedComponent("default", "t", None, frozenset({1, 2}), rest[0], frozenset(rest)),
        ]

    def test_is_told_above_a_number_or_an_age(self, tables: Metastore, clock: Clock) -> None:
        aborted(tables, "default.p/p=2")
        clock.pass_seconds(10)
        for _ in range(2):
            aborted(tables)

        def places(**when: int) -> list[str]:
            return [one.table for one in tables.aborted_components(**when)]

        assert places() == ["p", "t"]
        assert places(threshold=1) == ["t"]
        assert places(threshold=2) == []
        assert places(threshold=2, age_ms=9_000) == ["p"]
        assert places(threshold=2, age_ms=10_000) == []

    def test_is_told_up_to_the_number_of_one_round_and_of_one_table_all(
        self, tables: Metastore, open_store: OpenStore
    ) -> None:
        aborted(tables, "default.p/p=2")
        aborted(tables, "default.p/p=1")
        aborted(tables, "default.t")
        one = open_store({"hive.compactor.fetch.size": "1"})
        [found] = one.aborted_components()
        assert found.partition == "p=2"
        assert [found.partition for found in one.aborted_components(table="default.p")] == ["p=2", "p=1"]
        assert one.aborted_components(table="default.nope") == []

    def test_is_forgotten_by_its_write_ids(self, tables: Metastore, clock: Clock) -> None:
        txns = [aborted(tables, place) for place in ("default.p/p=1", "default.p/p=1", "default.p/p=2")]
        opened = write(tables, "default.p/p=1")
        tables.forget_aborted("default", "p", "p=1", {1, 3, 4})
        assert components(tables) == {("p", "p=1"): {2}, ("p", "p=2"): {3}}
        tidy(tables, clock)
        assert list(tables.get_valid_txns().aborted_ids) == txns[1:]
        tables.abort_txns([opened])
        assert components(tables)["p", "p=1"] == {2, 4}, "what was open then was not forgotten"
        tables.forget_aborted("default", "p", "p=1", {2, 4}, {opened, txns[2]})
        assert components(tables)["p", "p=1"] == {2}, "another's under the same name"

    def test_without_a_write_id_has_written_nothing(self, tables: Metastore, clock: Clock) -> None:
        txn_id = begin(tables)
        take(tables, txn_id, READ, "default.t", Operation.INSERT)
        tables.abort_txns([txn_id])
        assert tables.aborted_components() == []
        begin(tables)
        tidy(tables, clock)
        assert tables.get_valid_txns().aborted_ids == ()


class TestAPlaceMayBeDueForCompaction:
    def test_when_a_transaction_that_wrote_there_is_committed(self, tables: Metastore) -> None:
        txn_id = begin(tables)
        places = [component(SHARED_WRITE, place, Operation.UPDATE) for place in ("default.t", "default.p/p=1")]
        ask_all(tables, txn_id, *places)
        for name in ("t", "p"):
            tables.allocate_table_write_id(txn_id, "default", name)
        assert potential(tables) == []
        tables.commit_txn(txn_id)
        assert potential(tables) == [
            CompactionCandidate("default", "p", "p=1"),
            CompactionCandidate("default", "t", None),
        ]

    def test_that_a_dynamic_partition_write_named(self, tables: Metastore) -> None:
        txn_id = begin(tables)
        ask_all(tables, txn_id, component(SHARED_WRITE, "default.p", Operation.UPDATE, dynamic=True))
        write_id = tables.allocate_table_write_id(txn_id, "default", "p")
        tables.add_dynamic_partitions(txn_id, write_id, "default", "p", ["p=2", "p=1"], Operation.UPDATE)
        tables.commit_txn(txn_id)
        assert [one.partition for one in potential(tables)] == ["p=1", "p=2"]

    def test_not_when_only_a_lock_was_taken(self, tables: Metastore) -> None:
        txn_id = begin(tables)
        take(tables, txn_id, READ, "default.t", Operation.INSERT)
        tables.commit_txn(txn_id)
        assert potential(tables) == []

    def test_when_it_was_written_to_since_a_time(self, tables: Metastore, clock: Clock) -> None:
        committed(tables)
        committed(tables, "default.p/p=1")
        assert len(potential(tables, since_ms=clock.ms)) == 2
        clock.pass_seconds(10)
        assert potential(tables, since_ms=clock.ms) == []
        committed(tables, "default.p/p=1")
        assert [one.partition for one in potential(tables, since_ms=clock.ms)] == ["p=1"]

    @pytest.mark.parametrize(("end", "is_due"), [("mark_failed", True), ("mark_refused", False)])
    def test_when_its_last_compaction_failed(self, tables: Metastore, clock: Clock, end: str, is_due: bool) -> None:
        committed(tables)
        committed(tables, "default.p/p=1")
        getattr(tables, end)(taken(tables), "why")
        clock.pass_seconds(10)
        assert [one.table for one in potential(tables, since_ms=clock.ms)] == (["t"] if is_due else [])
        tables.mark_did_not_initiate(request(), "why")
        assert [one.table for one in potential(tables, since_ms=clock.ms)] == ["t"]

    def test_not_when_that_was_cleaned(self, tables: Metastore) -> None:
        committed(tables)
        tables.mark_cleaned(compacted(tables))
        assert potential(tables) == []

    def test_when_there_are_too_many_or_old_aborts(self, tables: Metastore, clock: Clock) -> None:
        aborted(tables)
        assert potential(tables, threshold=1) == []
        clock.pass_seconds(10)
        aborted(tables, "default.p/p=1")
        [old] = potential(tables, threshold=1, aborted_age_ms=9_000)
        assert old == CompactionCandidate("default", "t", None, has_old_abort=True)
        aborted(tables)
        committed(tables)
        [many] = potential(tables, threshold=1)
        assert many == CompactionCandidate("default", "t", None, too_many_aborts=True)

    def test_however_many_others_are(self, tables: Metastore, open_store: OpenStore) -> None:
        """Hive cuts them off, and never comes to the rest."""
        for place in ("default.t", "default.p/p=1", "default.p/p=2"):
            committed(tables, place)
        assert len(potential(open_store({"hive.compactor.fetch.size": "1"}))) == 3


class TestFailures:
    RETRY = 7 * 86_400_000

    def failed(self, store: Metastore, threshold: int = 2) -> bool:
        return store.check_failed_compactions("default", "p", "p=1", threshold, self.RETRY)

    def test_in_a_row_keep_the_initiator_away(self, tables: Metastore) -> None:
        assert not self.failed(tables)
        for expected in (False, True, True):
            tables.mark_failed(taken(tables, "p", "p=1"), "why")
            assert self.failed(tables) is expected
        assert not self.failed(tables, threshold=4)
        assert not tables.check_failed_compactions("default", "p", "p=2", 1, self.RETRY)

    @pytest.mark.parametrize(
        "succeed",
        [
            lambda store: store.mark_refused(taken(store, "p", "p=1"), "nothing"),
            lambda store: store.mark_cleaned(compacted(store, "p", "p=1")),
        ],
    )
    def test_do_not_count_before_another_end(self, tables: Metastore, succeed: object) -> None:
        for _ in range(2):
            tables.mark_failed(taken(tables, "p", "p=1"), "why")
        succeed(tables)  # type: ignore[operator]
        tables.mark_failed(taken(tables, "p", "p=1"), "why")
        assert not self.failed(tables)

    def test_are_not_what_did_not_initiate(self, tables: Metastore) -> None:
        for _ in range(2):
            tables.mark_did_not_initiate(request("p", "p=1"), "why")
        assert not self.failed(tables)
        for _ in range(2):
            tables.mark_failed(taken(tables, "p", "p=1"), "why")
        tables.mark_did_not_initiate(request("p", "p=1"), "why")
        assert self.failed(tables)

    def test_of_long_ago_are_tried_again(self, tables: Metastore, clock: Clock) -> None:
        for _ in range(2):
            tables.mark_failed(taken(tables, "p", "p=1"), "why")
        clock.pass_seconds(self.RETRY / 1000 + 1)
        assert not self.failed(tables)
        assert tables.check_failed_compactions("default", "p", "p=1", 2, 0), "0 is never"


def test_what_did_not_initiate_is_in_the_history(tables: Metastore, clock: Clock) -> None:
    queued = asked(tables)
    tables.mark_did_not_initiate(request("p", "p=1", MINOR, initiator="desk-7"), "cannot be listed")
    [found, _] = (entry(tables, queued + 1), entry(tables, queued))
    assert (found.state, found.error, found.type) == (State.DID_NOT_INITIATE, "cannot be listed", MINOR)
    assert (found.initiator, found.started_ms, found.ended_ms) == ("desk-7", clock.ms, clock.ms)


class TestTheHistory:
    def test_keeps_the_latest_of_each_state(self, tables: Metastore) -> None:
        for _ in range(5):
            tables.mark_cleaned(compacted(tables))
            tables.mark_failed(taken(tables), "why")
            tables.mark_refused(taken(tables), "why")
            tables.mark_did_not_initiate(request(), "why")
            tables.abort_compactions([asked(tables)])
        tables.mark_failed(taken(tables, "p", "p=1"), "why")
        tables.purge_compaction_history()
        kept = states(tables, table="t")
        assert {state: kept.count(state) for state in set(kept)} == {
            State.SUCCEEDED: 3,
            State.FAILED: 3,
            State.REFUSED: 3,
            State.DID_NOT_INITIATE: 2,
            State.ABORTED: 3,
        }
        assert states(tables, table="p") == [State.FAILED]

    def test_keeps_as_many_as_it_is_told(self, tables: Metastore, open_store: OpenStore) -> None:
        for _ in range(6):
            tables.mark_cleaned(compacted(tables))
        session = open_store({"hive.compactor.history.retention.succeeded": "4"})
        latest = [one.id for one in session.latest_compactions("default", "t")]
        session.purge_compaction_history()
        assert states(session) == [State.SUCCEEDED] * 4
        assert [one.id for one in session.latest_compactions("default", "t")] == latest

    def test_keeps_as_many_that_did_not_initiate_as_it_is_told(self, tables: Metastore, open_store: OpenStore) -> None:
        session = open_store({"hive.compactor.history.retention.did.not.initiate": "4"})
        for number in range(6):
            session.mark_did_not_initiate(request(), f"why {number}")
        session.purge_compaction_history()
        kept = session.show_compactions(CompactionFilter())
        assert [one.error for one in kept] == ["why 5", "why 4", "why 3", "why 2"]

    def test_forgets_what_was_made_good_after_the_time_that_it_is_told(
        self, tables: Metastore, open_store: OpenStore, clock: Clock
    ) -> None:
        session = open_store({"hive.compactor.history.retention.timeout": "10s"})
        session.mark_failed(taken(session), "why")
        session.mark_cleaned(compacted(session))
        clock.pass_seconds(9)
        session.purge_compaction_history()
        assert states(session) == [State.SUCCEEDED, State.FAILED]
        clock.pass_seconds(2)
        session.purge_compaction_history()
        assert states(session) == [State.SUCCEEDED]

    def test_keeps_what_the_initiator_counts(self, tables: Metastore, open_store: OpenStore) -> None:
        session = open_store(
            {
                "hive.compactor.history.retention.failed": "1",
                "hive.compactor.initiator.failed.compacts.threshold": "5",
            }
        )
        for _ in range(7):
            session.mark_failed(taken(session), "why")
        session.purge_compaction_history()
        assert states(session) == [State.FAILED] * 5

    @pytest.mark.parametrize(
        ("failed", "succeeded", "goes"),
        [(MAJOR, MAJOR, True), (MINOR, MAJOR, True), (MINOR, MINOR, True), (MAJOR, MINOR, False)],
    )
    def test_forgets_an_old_failure_that_a_later_compaction_made_good(
        self, tables: Metastore, clock: Clock, failed: object, succeeded: object, goes: bool
    ) -> None:
        tables.mark_failed(taken(tables, type=failed), "why")  # type: ignore[arg-type]
        tables.mark_refused(taken(tables, type=failed), "why")  # type: ignore[arg-type]
        tables.mark_did_not_initiate(request(type=failed), "why")  # type: ignore[arg-type]
        clock.pass_seconds(8 * 86_400)
        tables.purge_compaction_history()
        assert len(states(tables)) == 3, "nothing has made them good"
        tables.mark_cleaned(compacted(tables, type=succeeded))  # type: ignore[arg-type]
        tables.mark_failed(taken(tables), "why")
        tables.purge_compaction_history()
        left = [State.DID_NOT_INITIATE, State.REFUSED, State.FAILED]
        assert states(tables) == [State.FAILED, State.SUCCEEDED, *([] if goes else left)]

    def test_of_hundreds_of_failures_is_cut(self, tables: Metastore) -> None:
        for _ in range(510):
            tables.mark_did_not_initiate(request(), "why")
        tables.purge_compaction_history()
        assert states(tables) == [State.DID_NOT_INITIATE] * 2


class TestARenamed:
    def test_table_takes_its_compactions_along(self, tables: Metastore) -> None:
        ids = [compacted(tables)]
        tables.mark_cleaned(ids[0])
        ids.append(asked(tables))
        tables.rename_table("default", "t", replace(table("t"), name="u"))
        assert [entry(tables, id).table for id in ids] == ["u", "u"]
        assert not tables.compact(request("u")).accepted
        found = tables.find_next_compact("desk-1")
        assert found is not None
        assert (found.id, found.table) == (ids[1], "u")

    def test_partition_takes_its_compactions_along(self, tables: Metastore) -> None:
        id, other = asked(tables, "p", "p=1"), asked(tables, "p", "p=2")
        tables.rename_partition("p=1", partition("9", "p"))
        assert [entry(tables, one).partition for one in (id, other)] == ["p=9", "p=2"]


class TestADropped:
    def test_table_leaves_no_compactions(self, tables: Metastore) -> None:
        tables.mark_failed(taken(tables), "why")
        tables.mark_failed(taken(tables), "why")
        asked(tables)
        kept = asked(tables, "p", "p=1")
        tables.drop_table("default", "t", keep_files=True)  # its place is free at once
        assert [one.id for one in tables.show_compactions(CompactionFilter())] == [kept]
        tables.create_table(table("t"))
        assert not tables.check_failed_compactions("default", "t", None, 2, 0), "that was another table"

    def test_partition_leaves_no_compactions(self, tables: Metastore) -> None:
        tables.mark_failed(taken(tables, "p", "p=1"), "why")
        asked(tables, "p", "p=1")
        kept = asked(tables, "p", "p=2")
        tables.drop_partitions("default", "p", ["p=1"])
        assert [one.id for one in tables.show_compactions(CompactionFilter())] == [kept]


class TestTheOldestOpenTransaction:
    def test_is_the_next_one_where_none_is_open(self, tables: Metastore) -> None:
        assert tables.min_open_txn() == 1
        committed(tables)
        aborted(tables)
        assert tables.min_open_txn() == 3

    def test_may_be_a_reader(self, tables: Metastore) -> None:
        reader = begin(tables, TxnType.READ_ONLY)
        begin(tables)
        assert tables.min_open_txn() == reader


class TestTheOldestTransactionThatSomebodyMayNotSee:
    """What an INSERT OVERWRITE has replaced may go once its transaction is older."""

    def test_is_the_next_one_where_none_is_open(self, tables: Metastore) -> None:
        assert tables.min_unseen_txn() == 1
        committed(tables)
        aborted(tables)
        assert tables.min_unseen_txn() == 3

    def test_is_the_oldest_one_that_is_open(self, tables: Metastore) -> None:
        committed(tables)
        reader = begin(tables, TxnType.READ_ONLY)
        committed(tables)
        assert tables.min_unseen_txn() == reader

    def test_may_have_ended_since_somebody_began_who_is_still_there(self, tables: Metastore) -> None:
        writer, reader = begin(tables), begin(tables, TxnType.READ_ONLY)
        tables.commit_txn(writer)
        assert (tables.min_open_txn(), tables.min_unseen_txn()) == (reader, writer)
        later = begin(tables, TxnType.READ_ONLY)
        tables.commit_txn(reader)
        assert tables.min_unseen_txn() == reader, "the later one began before this one's end"
        tables.commit_txn(later)
        assert tables.min_unseen_txn() == later + 1


class TestWriteIdsThatEverybodySees:
    """``cleanTxnToWriteIdTable``."""

    def test_are_forgotten(self, tables: Metastore, count_rows: CountRows) -> None:
        for _ in range(3):
            committed(tables)
        assert tables.prune_txn_to_write_id() == 3
        assert count_rows("TXN_TO_WRITE_ID") == 0
        assert seen(read_write_ids(tables)) == [1, 2, 3]
        committed(tables)
        assert seen(read_write_ids(tables)) == [1, 2, 3, 4]

    def test_do_not_include_those_above_an_aborted_transaction(self, tables: Metastore, count_rows: CountRows) -> None:
        committed(tables)
        gone = aborted(tables)
        committed(tables)
        assert tables.prune_txn_to_write_id() == 1
        assert (seen(read_write_ids(tables)), read_write_ids(tables).aborted_ids) == ([1, 3], (2,))
        tables.forget_txn_components(gone)
        begin(tables)
        tidy(tables, Clock())
        assert count_rows("TXN_TO_WRITE_ID") == 2

    def test_do_not_include_what_an_open_reader_does_not_see(self, tables: Metastore) -> None:
        """The reader's snapshot names a transaction that has committed since: whose write id is it?"""
        writer = write(tables)
        reader = begin(tables, TxnType.READ_ONLY)
        snapshot = tables.get_valid_txns(reader)
        tables.commit_txn(writer)
        assert tables.prune_txn_to_write_id() == 0
        [valid] = tables.get_valid_write_ids(["default.t"], snapshot)
        assert seen(valid) == []
        tables.commit_txn(reader)
        assert tables.prune_txn_to_write_id() == 1
        assert seen(read_write_ids(tables)) == [1]

    def test_do_not_include_one_above_a_hidden_one(self, tables: Metastore) -> None:
        """Transactions need not get their write ids in their own order."""
        first, second = begin(tables), begin(tables)
        write(tables, txn_id=second)
        write(tables, txn_id=first)
        tables.abort_txns([second])
        tables.commit_txn(first)
        tables.prune_txn_to_write_id()
        assert (seen(read_write_ids(tables)), read_write_ids(tables).aborted_ids) == ([2], (1,))
