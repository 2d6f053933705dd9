"""Structs of Hive 4's metastore API that the bindings lack, or know an older form of.

Fields and their numbers are those of ``hive_metastore.thrift`` in Hive 4.0. A struct is declared by its fields;
reading and writing is Thrift's own (``TBase``). Unknown fields are skipped by either side.
"""

from __future__ import annotations

from typing import Any, cast

from hive_metastore import ttypes
from thrift.protocol.TBase import TBase
from thrift.Thrift import TApplicationException, TMessageType, TType

STRING, I32, I64, BOOL, STRUCT, LIST, MAP = (
    TType.STRING,
    TType.I32,
    TType.I64,
    TType.BOOL,
    TType.STRUCT,
    TType.LIST,
    TType.MAP,
)


class _Struct(TBase):  # type: ignore[misc]
    """A struct whose fields are given by name, None where they are left out."""

    thrift_spec: tuple[Any, ...] = ()

    def __init__(self, **values: Any) -> None:
        for field in self.thrift_spec:
            if field is not None:
                setattr(self, field[2], values.pop(field[2], None))
        assert not values, f"{type(self).__name__} has no field {', '.join(values)}"


def _fields(*fields: tuple[int, str] | tuple[int, str, Any]) -> tuple[Any, ...]:
    """A ``thrift_spec`` from types and names; the numbers count from 1."""
    spec: list[Any] = [None]
    for number, (type, name, *detail) in enumerate(fields, 1):
        spec.append((number, type, name, "UTF8" if type == STRING else detail[0] if detail else None, None))
    return tuple(spec)


class CompactionRequest(_Struct):
    """Hive 4.0 added the pool, the number of buckets and the order."""

    thrift_spec = _fields(
        (STRING, "dbname"),
        (STRING, "tablename"),
        (STRING, "partitionname"),
        (I32, "type"),
        (STRING, "runas"),
        (MAP, "properties", (STRING, "UTF8", STRING, "UTF8", False)),
        (STRING, "initiatorId"),
        (STRING, "initiatorVersion"),
        (STRING, "poolName"),
        (I32, "numberOfBuckets"),
        (STRING, "orderByClause"),
    )


class CompactionResponse(_Struct):
    thrift_spec = _fields((I64, "id"), (STRING, "state"), (BOOL, "accepted"), (STRING, "errormessage"))


class ShowCompactRequest(_Struct):
    """Empty in Hive 3; Hive 4 filters on the server."""

    thrift_spec = _fields(
        (I64, "id"),
        (STRING, "poolName"),
        (STRING, "dbName"),
        (STRING, "tbName"),
        (STRING, "partName"),
        (I32, "type"),
        (STRING, "state"),
        (I64, "limit"),
        (STRING, "order"),
    )


class ShowCompactResponseElement(_Struct):
    """One entry of the queue or of the history."""

    thrift_spec = _fields(
        (STRING, "dbname"),
        (STRING, "tablename"),
        (STRING, "partitionname"),
        (I32, "type"),
        (STRING, "state"),
        (STRING, "workerid"),
        (I64, "start"),
        (STRING, "runAs"),
        (I64, "hightestTxnId"),
        (STRING, "metaInfo"),
        (I64, "endTime"),
        (STRING, "hadoopJobId"),
        (I64, "id"),
        (STRING, "errorMessage"),
        (I64, "enqueueTime"),
        (STRING, "workerVersion"),
        (STRING, "initiatorId"),
        (STRING, "initiatorVersion"),
        (I64, "cleanerStart"),
        (STRING, "poolName"),
        (I64, "nextTxnId"),
        (I64, "txnId"),
        (I64, "commitTime"),
        (I64, "hightestWriteId"),
    )


class ShowCompactResponse(_Struct):
    thrift_spec = _fields(
        (LIST, "compacts", (STRUCT, [ShowCompactResponseElement, ShowCompactResponseElement.thrift_spec], False))
    )


class AbortCompactionRequest(_Struct):
    thrift_spec = _fields((LIST, "compactionIds", (I64, None, False)), (STRING, "type"), (STRING, "poolName"))


class AbortCompactionResponseElement(_Struct):
    thrift_spec = _fields((I64, "compactionId"), (STRING, "status"), (STRING, "message"))


class AbortCompactResponse(_Struct):
    thrift_spec = _fields(
        (
            MAP,
            "abortedcompacts",
            (
                I64,
                None,
                STRUCT,
                [AbortCompactionResponseElement, AbortCompactionResponseElement.thrift_spec],
                False,
            ),
        )
    )


class FindNextCompactRequest(_Struct):
    """Hive 4.0 added the pool."""

    thrift_spec = _fields((STRING, "workerId"), (STRING, "workerVersion"), (STRING, "poolName"))


class CompactionInfoStruct(_Struct):
    """An entry of the queue, for a worker. Hive 4.0 added the pool, the number of buckets and the order."""

    thrift_spec = _fields(
        (I64, "id"),
        (STRING, "dbname"),
        (STRING, "tablename"),
        (STRING, "partitionname"),
        (I32, "type"),
        (STRING, "runas"),
        (STRING, "properties"),
        (BOOL, "toomanyaborts"),
        (STRING, "state"),
        (STRING, "workerId"),
        (I64, "start"),
        (I64, "highestWriteId"),
        (STRING, "errorMessage"),
        (BOOL, "hasoldabort"),
        (I64, "enqueueTime"),
        (I64, "retryRetention"),
        (STRING, "poolname"),
        (I32, "numberOfBuckets"),
        (STRING, "orderByClause"),
    )


class OptionalCompactionInfoStruct(_Struct):
    thrift_spec = _fields((STRUCT, "ci", [CompactionInfoStruct, CompactionInfoStruct.thrift_spec]))


class _CompactResult(_Struct):
    thrift_spec = ((0, STRUCT, "success", [CompactionResponse, CompactionResponse.thrift_spec], None),)


class _ShowCompactResult(_Struct):
    thrift_spec = ((0, STRUCT, "success", [ShowCompactResponse, ShowCompactResponse.thrift_spec], None),)


class _AbortCompactionsResult(_Struct):
    thrift_spec = ((0, STRUCT, "success", [AbortCompactResponse, AbortCompactResponse.thrift_spec], None),)


class _FindNextCompactResult(_Struct):
    thrift_spec = (
        (0, STRUCT, "success", [OptionalCompactionInfoStruct, OptionalCompactionInfoStruct.thrift_spec], None),
        (1, STRUCT, "o1", [ttypes.MetaException, ttypes.MetaException.thrift_spec], None),
    )


def compact(client: Any, request: CompactionRequest) -> Any:
    """``compact2`` with Hive 4's fields: a CompactionResponse."""
    return _call(client, "compact2", request, _CompactResult())


def show_compact(client: Any, request: ShowCompactRequest) -> list[Any]:
    """``show_compact`` with Hive 4's filters: the entries."""
    return list(_call(client, "show_compact", request, _ShowCompactResult()).compacts or ())


def abort_compactions(client: Any, request: AbortCompactionRequest) -> dict[int, Any]:
    """``abort_Compactions``: an element for each id that the server knows."""
    return dict(_call(client, "abort_Compactions", request, _AbortCompactionsResult()).abortedcompacts or {})


def find_next_compact(client: Any, request: FindNextCompactRequest) -> CompactionInfoStruct | None:
    """``find_next_compact2`` with Hive 4's pool: the entry that the worker has now, None where there is none."""
    return cast(
        "CompactionInfoStruct | None", _call(client, "find_next_compact2", request, _FindNextCompactResult()).ci
    )


def _call(client: Any, name: str, request: _Struct, result: Any) -> Any:
    """One call of a method with the single parameter ``1: rqst``, as generated code makes it."""
    output, input = client._oprot, client._iprot
    output.writeMessageBegin(name, TMessageType.CALL, client._seqid)
    output.writeStructBegin(f"{name}_args")
    output.writeFieldBegin("rqst", TType.STRUCT, 1)
    request.write(output)
    output.writeFieldEnd()
    output.writeFieldStop()
    output.writeStructEnd()
    output.writeMessageEnd()
    output.trans.flush()
    _, kind, _ = input.readMessageBegin()
    if kind == TMessageType.EXCEPTION:
        error = TApplicationException()
        error.read(input)
        input.readMessageEnd()
        raise error
    result.read(input)
    input.readMessageEnd()
    if getattr(result, "o1", None) is not None:
        raise result.o1
    if result.success is None:
        raise TApplicationException(TApplicationException.MISSING_RESULT, f"{name} failed: unknown result")
    return result.success
