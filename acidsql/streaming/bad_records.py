"""What happens to records that cannot be stored: an error, or they are counted, or kept in files beside the data."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Mapping, Sequence
from typing import Any

from acidsql import fs
from acidsql.errors import InvalidValue
from acidsql.streaming.target import BadRecord
from acidsql.streaming.values import BadValue

ERROR, SKIP = "error", "skip"


class BadRecords:
    """What a connection does with bad records.

    Args:
        policy: ``error``, ``skip``, or a directory: there each transaction that has met some writes the file
            ``bad_records_<transaction>.json`` before its commit, with a line of JSON for each record: the record, and
            why it is bad. The file of a transaction that fails is removed; one that a killed process has left belongs
            to a transaction that is aborted.

    Raises:
        InvalidValue: When it is none of them.
    """

    def __init__(self, policy: str) -> None:
        if not isinstance(policy, str) or not policy:
            raise InvalidValue(f"{policy!r} says not what to do with bad records: error, skip, or a directory")
        self._fails = policy == ERROR
        self._directory = None if policy in (ERROR, SKIP) else fs.qualify(policy)

    def check(self, bad: Sequence[BadRecord]) -> None:
        """Raises: BadValue for the first one where the policy is ``error``."""
        if bad and self._fails:
            first = bad[0]
            raise BadValue(f"{first.error.message} (in the record {first.record!r:.80})") from first.error

    @property
    def are_kept(self) -> bool:
        return self._directory is not None

    def write(self, bad: Sequence[BadRecord], txn_id: int) -> None:
        """Keep the bad records of a transaction, if there are some and they are to be kept."""
        if self._directory is None or not bad:
            return
        filesystem, path = self._file(self._directory, txn_id)
        lines = [json.dumps({"record": _as_json(one.record), "error": one.error.message}) for one in bad]
        filesystem.write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
        filesystem.sync(directories=[path, path.rpartition("/")[0]])

    def discard(self, txn_id: int) -> None:
        """Remove what :meth:`write` has written for a transaction that did not commit."""
        if self._directory is not None:
            filesystem, path = self._file(self._directory, txn_id)
            filesystem.delete(path)

    @staticmethod
    def _file(directory: str, txn_id: int) -> tuple[fs.FileSystem, str]:
        filesystem, path = fs.resolve(directory)
        return filesystem, fs.join(path, f"bad_records_{txn_id:07d}.json")


def _as_json(value: Any) -> Any:
    """A record as JSON; what JSON has no type for as text."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime.date | decimal.Decimal):
        return str(value)
    return value if value is None or isinstance(value, str | bool | int | float) else repr(value)
