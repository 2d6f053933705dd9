"""Rows that arrive all the time: connections that write them, transaction by transaction."""

from acidsql.streaming.connection import Statistics, StreamingConnection
from acidsql.streaming.records import Delimited, Json, RecordReader, Regex, Rows
from acidsql.streaming.sink import Sink
from acidsql.streaming.values import BadValue

__all__ = [
    "BadValue",
    "Delimited",
    "Json",
    "RecordReader",
    "Regex",
    "Rows",
    "Sink",
    "Statistics",
    "StreamingConnection",
]
