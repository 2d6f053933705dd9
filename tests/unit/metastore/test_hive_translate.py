"""Tables, snapshots and locks as a Hive Metastore has them, there and back through Thrift's own bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hive_metastore import ttypes
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from acidsql.metastore.hive import translate
from acidsql.metastore.hive.constraints import LISTS, to_thrift, with_constraints
from acidsql.metastore.model import (
    Column,
    Constraint,
    ConstraintKind,
    LockComponent,
    LockType,
    Operation,
    Partition,
    Table,
    TxnState,
)
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList
from tests.metastore.situations import check

T = TypeVar("T")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789_äß", min_size=1, max_size=8)
TYPES = st.sampled_from(["int", "string", "decimal(10,2)", "struct<a:int,b:array<string>>", "map<string,double>"])
LOCATIONS = NAMES.map(lambda name: f"file:/warehouse/{name}")


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    keys = draw(st.integers(0, len(names) - 1))
    comments = st.none() | TEXTS
    columns = [
        Column(name, draw(TYPES), draw(comments), draw(comments), draw(st.booleans()))
        for name in names[: len(names) - keys]
    ]
    partition_keys = [Column(name, draw(TYPES), draw(comments)) for name in names[len(names) - keys :]]
    bucket_columns = draw(st.lists(st.sampled_from([c.name for c in columns]), unique=True))
    return Table(
        draw(NAMES),
        draw(NAMES),
        draw(LOCATIONS),
        tuple(columns),
        tuple(partition_keys),
        draw(st.dictionaries(TEXTS.filter(lambda key: key != "comment"), TEXTS, max_size=3)),
        draw(comments),
        tuple(bucket_columns),
        draw(st.integers(1, 100)) if bucket_columns else -1,
        draw(st.sampled_from(["MANAGED_TABLE", "EXTERNAL_TABLE"])),
        draw(TEXTS),
        draw(st.integers(0, 2**31 - 1)),
        table_constraints=(
            *draw(st.lists(informational(columns), max_size=4)),
            *map(check, draw(st.lists(TEXTS, max_size=12))),
        ),
    )


def informational(columns: list[Column]) -> st.SearchStrategy[Constraint]:
    """Constraints that are only declared, named as Hive would name them."""
    names = [c.name for c in columns]
    of_columns = st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple)
    one = st.sampled_from(names).map(lambda n: (n,))
    name = st.uuids().map(str)
    kinds = ConstraintKind
    keys = st.builds(
        Constraint, st.sampled_from([kinds.PRIMARY_KEY, kinds.UNIQUE]), of_columns, name, rely=st.booleans()
    )
    foreign = of_columns.flatmap(
        lambda own: st.builds(
            Constraint,
            st.just(kinds.FOREIGN_KEY),
            st.just(own),
            name,
            rely=st.booleans(),
            parent=st.just("d.p"),
            parent_columns=st.just(tuple(f"k{i}" for i in range(len(own)))),
        )
    )
    not_null = st.builds(Constraint, st.just(kinds.NOT_NULL), one, name, rely=st.booleans())
    check = st.builds(Constraint, st.just(kinds.CHECK), name=name, expression=TEXTS.filter(bool))
    return keys | foreign | not_null | check


def through_bytes(struct: T) -> T:
    """A struct as the other side gets it."""
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocol(buffer))  # type: ignore[attr-defined]
    made = type(struct)()
    made.read(TBinaryProtocol(TMemoryBuffer(buffer.getvalue())))  # type: ignore[attr-defined]
    return made


def constraints_of(table: Table) -> Any:
    """The constraints of a table, of each kind the last one first."""
    structs = to_thrift(table, table.constraints)
    return through_bytes(ttypes.SQLAllTableConstraints(**{LISTS[k]: found[::-1] for k, found in structs.items()}))


def by_content(table: Table) -> Table:
    checks = (c for c in table.table_constraints if c.enforced)
    return table.constrained((*sorted(table.informational, key=repr), *checks))


class TestTables:
    @given(tables())
    def test_come_back_as_they_went(self, table: Table) -> None:
        there = through_bytes(translate.table_to_thrift(table))
        found = with_constraints(translate.table_from_thrift(there), constraints_of(table))
        assert by_content(found) == by_content(table)
        named = {c.name for c in table.informational}
        assert {c.name for c in found.informational} == named

    @given(tables(), tables())
    def test_that_are_altered_have_what_is_new_and_keep_the_rest(self, old: Table, new: Table) -> None:
        there = translate.altered_table(translate.table_to_thrift(old), new)
        found = with_constraints(translate.table_from_thrift(through_bytes(there)), constraints_of(new))
        kept = ("database", "name", "bucket_columns", "num_buckets", "owner", "created_at")
        wanted = replace(new, **{name: getattr(old, name) for name in kept})
        assert by_content(found) == by_content(wanted)

    def test_are_described_as_hive_describes_its_own(self) -> None:
        table = Table("d", "t", "/w/t", (Column("a", "int"),), (Column("p", "string"),), {"transactional": "true"})
        there = translate.table_to_thrift(table)
        assert there.sd.inputFormat == "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
        assert there.sd.outputFormat == "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
        assert there.sd.serdeInfo.serializationLib == "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
        assert there.sd.location == "file:/w/t"
        assert [c.name for c in there.sd.cols] == ["a"]
        assert [c.name for c in there.partitionKeys] == ["p"]
        assert there.catName == "hive"

    def test_of_any_origin_are_read(self) -> None:
        """What Hive leaves out, and writes in capital letters."""
        bare = ttypes.Table(dbName="D", tableName="T", sd=ttypes.StorageDescriptor(cols=None))
        assert translate.table_from_thrift(bare) == Table("d", "t", "", ())

    def test_that_are_views_have_their_query(self) -> None:
        view = ttypes.Table(
            dbName="d",
            tableName="v",
            tableType="VIRTUAL_VIEW",
            sd=ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("A", "INT", None)]),
            viewOriginalText="SELECT a FROM t",
            viewExpandedText="SELECT `t`.`a` FROM `d`.`t`",
        )
        found = translate.table_from_thrift(view)
        assert (found.table_type, found.view_text) == ("VIRTUAL_VIEW", "SELECT `t`.`a` FROM `d`.`t`")
        assert found.columns == (Column("a", "int"),)

    def test_are_held_only_to_the_constraints_that_are_enabled(self) -> None:
        constraints = ttypes.SQLAllTableConstraints(
            notNullConstraints=[
                ttypes.SQLNotNullConstraint(column_name="A", enable_cstr=True),
                ttypes.SQLNotNullConstraint(column_name="b", enable_cstr=False),
            ],
            defaultConstraints=[ttypes.SQLDefaultConstraint(column_name="B", default_value="1", enable_cstr=True)],
            checkConstraints=[
                ttypes.SQLCheckConstraint(column_name="a", check_expression="a > 0", enable_cstr=True),
                ttypes.SQLCheckConstraint(column_name="b", check_expression="b > 0", enable_cstr=False),
            ],
        )
        table = Table("d", "t", "file:/w", (Column("a", "int"), Column("b", "int")))
        found = with_constraints(translate.table_from_thrift(translate.table_to_thrift(table)), constraints)
        assert found.columns == (Column("a", "int", not_null=True), Column("b", "int", default="1"))
        assert found.checks == ("a > 0",)
        assert found.informational == (
            Constraint(ConstraintKind.NOT_NULL, ("b",)),
            Constraint(ConstraintKind.CHECK, (), expression="b > 0"),
        )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("/w/t", "file:/w/t"),
        ("file:/w/t", "file:/w/t"),
        ("file:///w/t", "file:/w/t"),
        ("hdfs://nn:8020/w/t", "hdfs://nn:8020/w/t"),
        ("s3a://bucket/t", "s3a://bucket/t"),
    ],
)
def test_locations_are_written_as_hadoop_writes_them(given: str, wanted: str) -> None:
    assert translate.qualified(given) == wanted


class TestPartitions:
    def test_come_back_as_they_went(self) -> None:
        table = translate.table_to_thrift(Table("d", "t", "file:/w/t", (Column("a", "int"),), (Column("p", "string"),)))
        partition = Partition("d", "t", ("a/b=c d%ä",), "file:/elsewhere/x")
        there = through_bytes(translate.partition_to_thrift(partition, table))
        assert translate.partition_from_thrift("d", "t", there) == partition
        assert there.sd.cols == table.sd.cols
        assert table.sd.location == "file:/w/t"

    def test_of_specs_lie_below_the_root_or_elsewhere(self) -> None:
        below = ttypes.PartitionWithoutSD(values=["1"], relativePath="/p=1")
        elsewhere = ttypes.Partition(values=["2"], sd=ttypes.StorageDescriptor(location="file:/x"))
        specs = [
            ttypes.PartitionSpec(
                rootPath="file:/w/t", sharedSDPartitionSpec=ttypes.PartitionSpecWithSharedSD(partitions=[below])
            ),
            ttypes.PartitionSpec(partitionList=ttypes.PartitionListComposingSpec(partitions=[elsewhere])),
        ]
        assert translate.partitions_from_specs("d", "t", specs) == [
            Partition("d", "t", ("1",), "file:/w/t/p=1"),
            Partition("d", "t", ("2",), "file:/x"),
        ]


@st.composite
def ids(draw: st.DrawFn) -> tuple[list[int], set[int], bytes]:
    """Ids, which of them are aborted, and that as the bytes of a Java BitSet (which ends with its last set bit)."""
    all_ids = sorted(draw(st.sets(st.integers(1, 200), max_size=40)))
    aborted = set(draw(st.lists(st.sampled_from(all_ids)))) if all_ids else set()
    bits = sum(1 << position for position, id in enumerate(all_ids) if id in aborted)
    return all_ids, aborted, bits.to_bytes((bits.bit_length() + 7) // 8, "little")


class TestSnapshots:
    @given(ids(), st.integers(0, 30))
    def test_tell_open_from_aborted_write_ids(self, some: tuple[list[int], set[int], bytes], more: int) -> None:
        all_ids, aborted, bits = some
        high = max(all_ids, default=0) + more
        found = translate.valid_write_ids_from_thrift(ttypes.TableValidWriteIds("D.T", high, all_ids, None, bits))
        assert found == ValidWriteIdList("d.t", high, tuple(i for i in all_ids if i not in aborted), tuple(aborted))

    @given(ids(), st.integers(0, 210))
    def test_of_a_transaction_end_with_it_and_see_it(self, some: tuple[list[int], set[int], bytes], mine: int) -> None:
        all_ids, aborted, bits = some
        answer = ttypes.GetOpenTxnsResponse(txn_high_water_mark=200, open_txns=all_ids, abortedBits=bits)
        found = translate.valid_txns_from_thrift(answer, mine)
        high = min(mine, 200) if mine else 200
        others = [i for i in all_ids if i <= high and i != mine]
        assert found == ValidTxnList(
            high, tuple(i for i in others if i not in aborted), tuple(i for i in others if i in aborted)
        )

    def test_without_bits_have_nothing_aborted(self) -> None:
        answer = ttypes.GetOpenTxnsResponse(txn_high_water_mark=9, open_txns=[3, 9], abortedBits=None)
        assert translate.valid_txns_from_thrift(answer, 0) == ValidTxnList(9, (3, 9))


class TestLocks:
    @pytest.mark.parametrize(
        ("place", "level"),
        [
            (("d", None, None), ttypes.LockLevel.DB),
            (("d", "t", None), ttypes.LockLevel.TABLE),
            (("d", "t", "p=1"), ttypes.LockLevel.PARTITION),
        ],
    )
    def test_have_the_level_of_their_object(self, place: tuple[str, str | None, str | None], level: int) -> None:
        component = LockComponent(LockType.SHARED_READ, *place, Operation.SELECT)
        made = translate.lock_component_to_thrift(component, exclusive_write=True)
        assert (made.level, made.dbname, made.tablename, made.partitionname) == (level, *place)

    @pytest.mark.parametrize("operation", list(Operation))
    @pytest.mark.parametrize("dynamic", [True, False])
    def test_have_their_operation(self, operation: Operation, dynamic: bool) -> None:
        component = LockComponent(LockType.SHARED_READ, "d", "t", None, operation, dynamic)
        made = translate.lock_component_to_thrift(component, exclusive_write=True)
        assert (
            ttypes.DataOperationType._VALUES_TO_NAMES[made.operationType]
            == {
                "s": "SELECT",
                "i": "INSERT",
                "u": "UPDATE",
                "d": "DELETE",
                "n": "NO_TXN",
            }[operation.value]
        )
        assert made.isDynamicPartitionWrite is dynamic

    @pytest.mark.parametrize("type", list(LockType))
    def test_have_hives_numbers_for_their_types(self, type: LockType) -> None:
        made = translate.lock_component_to_thrift(LockComponent(type, "d"), exclusive_write=True)
        assert made.type == int(type)

    def test_of_exclusive_writes_are_shared_writes_in_hive_3(self) -> None:
        made = translate.lock_component_to_thrift(LockComponent(LockType.EXCL_WRITE, "d"), exclusive_write=False)
        assert made.type == ttypes.LockType.SHARED_WRITE


def test_transactions_are_shown_with_their_state() -> None:
    for number, state in ((1, TxnState.COMMITTED), (2, TxnState.ABORTED), (3, TxnState.OPEN)):
        found = translate.txn_from_thrift(ttypes.TxnInfo(7, number, "ann", "desk", startedTime=5, lastHeartbeatTime=6))
        assert (found.id, found.state, found.user, found.host) == (7, state, "ann", "desk")
        assert (found.started_ms, found.heartbeat_ms) == (5, 6)
