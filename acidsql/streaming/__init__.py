"""Rows and changes that arrive all the time, and those who write them, transaction by transaction."""

from acidsql.streaming.connection import Statistics, StreamingConnection
from acidsql.streaming.mutation import Mutation
from acidsql.streaming.published import NoSuchRow
from acidsql.streaming.records import Delimited, Json, RecordReader, Regex, Rows
from acidsql.streaming.sink import Sink
from acidsql.streaming.values import BadValue
from acidsql.streaming.worker import MutationTask, MutationWorker, OutOfOrder, Written

__all__ = [
    "BadValue",
    "Delimited",
    "Json",
    "Mutation",
    "MutationTask",
    "MutationWorker",
    "NoSuchRow",
    "OutOfOrder",
    "RecordReader",
    "Regex",
    "Rows",
    "Sink",
    "Statistics",
    "StreamingConnection",
    "Written",
]
