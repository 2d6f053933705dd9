"""Structs of Hive 4 that the bindings lack, by the bytes that go over the wire.

Fields are written and read here by their numbers in Hive's ``hive_metastore.thrift``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from acidsql.errors import MetastoreError
from acidsql.metastore.hive import HiveMetastore, translate, wire
from acidsql.metastore.model import CompactionInfo, CompactionRequest, CompactionState, CompactionType


def decode(protocol: TBinaryProtocol, type: int) -> Any:
    """A value as it stands in the bytes: a struct by the numbers of its fields."""
    if type == TType.STRUCT:
        fields = {}
        while True:
            _, kind, number = protocol.readFieldBegin()
            if kind == TType.STOP:
                return fields
            fields[number] = decode(protocol, kind)
    if type == TType.LIST:
        kind, size = protocol.readListBegin()
        return [decode(protocol, kind) for _ in range(size)]
    if type == TType.MAP:
        key, kind, size = protocol.readMapBegin()
        return {decode(protocol, key): decode(protocol, kind) for _ in range(size)}
    return {
        TType.STRING: protocol.readString,
        TType.I32: protocol.readI32,
        TType.I64: protocol.readI64,
        TType.BOOL: protocol.readBool,
    }[type]()


def encode(protocol: TBinaryProtocol, fields: dict[int, Any]) -> None:
    """A struct of texts, whole numbers, truth values, lists of structs, maps of structs, and structs."""
    for number, value in fields.items():
        if isinstance(value, bool):
            protocol.writeFieldBegin("", TType.BOOL, number)
            protocol.writeBool(value)
        elif isinstance(value, tuple):  # (type, whole number)
            protocol.writeFieldBegin("", value[0], number)
            (protocol.writeI32 if value[0] == TType.I32 else protocol.writeI64)(value[1])
        elif isinstance(value, str):
            protocol.writeFieldBegin("", TType.STRING, number)
            protocol.writeString(value)
        elif isinstance(value, list):
            protocol.writeFieldBegin("", TType.LIST, number)
            protocol.writeListBegin(TType.STRUCT, len(value))
            for one in value:
                encode(protocol, one)
        elif all(isinstance(one, dict) for one in value.values()) and number == 1:
            protocol.writeFieldBegin("", TType.MAP, number)
            protocol.writeMapBegin(TType.I64, TType.STRUCT, len(value))
            for key, one in value.items():
                protocol.writeI64(key)
                encode(protocol, one)
        else:
            protocol.writeFieldBegin("", TType.STRUCT, number)
            encode(protocol, value)
    protocol.writeFieldStop()


def i32(value: int) -> tuple[int, int]:
    return TType.I32, value


def i64(value: int) -> tuple[int, int]:
    return TType.I64, value


class Wire:
    """A client whose server has answered already."""

    def __init__(self, name: str, answer: dict[int, Any] | TApplicationException) -> None:
        written = TMemoryBuffer()
        output = TBinaryProtocol(written)
        if isinstance(answer, TApplicationException):
            output.writeMessageBegin(name, TMessageType.EXCEPTION, 0)
            answer.write(output)
        else:
            output.writeMessageBegin(name, TMessageType.REPLY, 0)
            encode(output, answer)
        self._sent = TMemoryBuffer()
        received = TBinaryProtocol(TMemoryBuffer(written.getvalue()))
        self.client = SimpleNamespace(_oprot=TBinaryProtocol(self._sent), _iprot=received, _seqid=0)

    @property
    def request(self) -> tuple[str, dict[int, Any]]:
        """The name of the call and the fields of its one parameter."""
        sent = TBinaryProtocol(TMemoryBuffer(self._sent.getvalue()))
        name, kind, _ = sent.readMessageBegin()
        assert kind == TMessageType.CALL
        parameters = decode(sent, TType.STRUCT)
        assert list(parameters) == [1]
        return name, parameters[1]


def test_a_compaction_is_asked_for_with_hive_4s_fields() -> None:
    sent = Wire("compact2", {0: {1: i64(7), 2: "initiated", 3: True, 4: "fine"}})
    request = wire.CompactionRequest(
        dbname="d",
        tablename="t",
        partitionname="p=1",
        type=translate.COMPACTION_NUMBERS[CompactionType.REBALANCE],
        properties={"a": "b"},
        initiatorId="desk-manual",
        poolName="pool",
        numberOfBuckets=4,
        orderByClause="ORDER BY a",
    )
    answer = wire.compact(sent.client, request)
    assert (answer.id, answer.state, answer.accepted, answer.errormessage) == (7, "initiated", True, "fine")
    assert sent.request == (
        "compact2",
        {1: "d", 2: "t", 3: "p=1", 4: 3, 6: {"a": "b"}, 7: "desk-manual", 9: "pool", 10: 4, 11: "ORDER BY a"},
    )


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ({1: i64(33), 2: "initiated", 3: False}, (33, CompactionState.INITIATED, False, None)),
        (
            {1: i64(-1), 2: "refused", 3: False, 4: "Compaction is already scheduled with state='initiated' and id=33"},
            (33, CompactionState.INITIATED, False, "Compaction is already scheduled with state='initiated' and id=33"),
        ),
    ],
    ids=["Hive 3", "Hive 4"],
)
def test_a_refused_one_names_the_entry_in_the_queue(
    monkeypatch: pytest.MonkeyPatch, answer: dict[int, Any], wanted: tuple[Any, ...]
) -> None:
    store = HiveMetastore.__new__(HiveMetastore)
    client = Wire("compact2", {0: answer}).client
    monkeypatch.setattr(store, "_raw_table", lambda *_: None, raising=False)
    monkeypatch.setattr(store, "_call", lambda function: function(client), raising=False)
    response = store.compact(CompactionRequest("d", "t", None, CompactionType.MAJOR, "ann", "desk"))
    assert (response.id, response.state, response.accepted, response.message) == wanted


def test_what_is_left_out_is_not_sent() -> None:
    sent = Wire("compact2", {0: {1: i64(7), 2: "initiated", 3: True}})
    wire.compact(sent.client, wire.CompactionRequest(dbname="d", tablename="t", type=1))
    assert sent.request == ("compact2", {1: "d", 2: "t", 4: 1})


def test_hive_3_gets_an_empty_question_about_the_queue() -> None:
    sent = Wire("show_compact", {0: {1: []}})
    assert wire.show_compact(sent.client, wire.ShowCompactRequest()) == []
    assert sent.request == ("show_compact", {})


def test_the_queue_is_asked_for_with_hive_4s_filters() -> None:
    sent = Wire("show_compact", {0: {1: []}})
    wire.show_compact(sent.client, wire.ShowCompactRequest(id=3, dbName="d", tbName="t", partName="p=1"))
    assert sent.request == ("show_compact", {1: 3, 3: "d", 4: "t", 5: "p=1"})


def test_entries_of_the_queue_are_read_with_all_that_they_tell() -> None:
    entry = {
        1: "d",
        2: "t",
        3: "p=1",
        4: i32(2),
        5: "failed",
        6: "host-12",
        7: i64(20),
        8: "ann",
        11: i64(30),
        12: "job_1",
        13: i64(5),
        14: "no more disk",
        15: i64(10),
        16: "acidsql 1",
        17: "desk-manual",
        18: "4.0.1",
        20: "pool",
        21: i64(44),
        22: i64(43),
        23: i64(29),
        24: i64(6),
        99: "of a later version",
    }
    [found] = wire.show_compact(Wire("show_compact", {0: {1: [entry]}}).client, wire.ShowCompactRequest())
    assert translate.compaction_from_thrift(found) == CompactionInfo(
        id=5,
        database="d",
        table="t",
        partition="p=1",
        type=CompactionType.MAJOR,
        state=CompactionState.FAILED,
        worker="host-12",
        enqueued_ms=10,
        started_ms=20,
        ended_ms=30,
        job_id="job_1",
        error="no more disk",
        initiator="desk-manual",
        pool="pool",
        txn_id=43,
        next_txn_id=44,
        committed_ms=29,
        highest_write_id=6,
        worker_version="acidsql 1",
        initiator_version="4.0.1",
    )


def test_an_entry_may_tell_next_to_nothing() -> None:
    """Hive 3 leaves out most, and writes "None" for a job that there is not."""
    entry = {1: "d", 2: "t", 4: i32(1), 5: "initiated", 12: "None"}
    [found] = wire.show_compact(Wire("show_compact", {0: {1: [entry]}}).client, wire.ShowCompactRequest())
    assert translate.compaction_from_thrift(found) == CompactionInfo(
        0, "d", "t", None, CompactionType.MINOR, CompactionState.INITIATED
    )


@pytest.mark.parametrize(
    ("word", "state"),
    [*((str(state), state) for state in CompactionState), ("attempted", CompactionState.DID_NOT_INITIATE)],
)
def test_each_word_for_a_state_is_known(word: str, state: CompactionState) -> None:
    """Hive 3.1 says "attempted" where Hive 4 says "did not initiate"."""
    assert translate.compaction_state(word) is state


def test_an_unknown_word_for_a_state_is_an_error() -> None:
    with pytest.raises(MetastoreError, match="unknown compaction state: 'paused'"):
        translate.compaction_state("paused")


def test_requests_are_taken_back_by_their_ids() -> None:
    answer = {1: {3: {1: i64(3), 2: "Success", 3: "Successfully aborted compaction"}, 4: {1: i64(4), 2: "Error"}}}
    sent = Wire("abort_Compactions", {0: answer})
    found = wire.abort_compactions(sent.client, wire.AbortCompactionRequest(compactionIds=[3, 4]))
    assert {id: (one.status, one.message) for id, one in found.items()} == {
        3: ("Success", "Successfully aborted compaction"),
        4: ("Error", None),
    }
    assert sent.request == ("abort_Compactions", {1: [3, 4]})


def test_what_the_server_says_against_it_is_raised() -> None:
    sent = Wire("compact2", TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name"))
    with pytest.raises(TApplicationException, match="Invalid method name"):
        wire.compact(sent.client, wire.CompactionRequest(dbname="d", tablename="t", type=1))


def test_an_answer_without_a_result_is_an_error() -> None:
    with pytest.raises(TApplicationException, match="unknown result"):
        wire.compact(Wire("compact2", {}).client, wire.CompactionRequest(dbname="d", tablename="t", type=1))


def test_a_field_that_a_struct_has_not_is_no_field() -> None:
    with pytest.raises(AssertionError, match="bucket"):
        wire.CompactionRequest(bucket=1)
