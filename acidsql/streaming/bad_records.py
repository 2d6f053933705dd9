"""What happens to records that cannot be stored: an error, or they are counted, or kept in files beside the data."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from acidsql import fs
from acidsql.errors import InvalidValue
from acidsql.streaming.target import BadRecord
from acidsql.streaming.values import BadValue, shown

ERROR, SKIP = "error", "skip"
_IN_MEMORY = 1 << 20
"""Bytes of bad records that a transaction keeps in memory; what is more is in a temporary file."""


class KeptRecords:
    """The bad records of a transaction, as the lines of their file."""

    def __init__(self) -> None:
        self._lines: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed with the object)
        self.count = 0

    def add(self, bad: Sequence[BadRecord]) -> None:
        for one in bad:
            line = json.dumps({"record": _as_json(one.record), "error": one.error.message})
            self._lines.write(f"{line}\n".encode())
        self.count += len(bad)

    def copy_to(self, file: IO[bytes]) -> None:
        self._lines.seek(0)
        shutil.copyfileobj(self._lines, file)


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
            raise BadValue(f"{first.error.message} (in the record {shown(first.record)})") from first.error

    @property
    def are_kept(self) -> bool:
        return self._directory is not None

    def write(self, bad: KeptRecords, txn_id: int) -> None:
        """Keep the bad records of a transaction, if there are some and they are to be kept."""
        if self._directory is None or not bad.count:
            return
        filesystem, path = self._file(self._directory, txn_id)
        with filesystem.open_write(path) as file:
            bad.copy_to(file)
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
    if value is None or isinstance(value, str | bool | float) or (isinstance(value, int) and abs(value) < _WRITTEN):
        return value
    return shown(value)


_WRITTEN = 10**1000
"""Python writes no numbers of many more digits."""
