"""Partition names (``p=1/q=even``) as used in paths, locks and the catalog; names and directories of databases and
tables (Hive's ``Warehouse``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from acidsql.errors import AnalysisError

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The value of a partition key that is NULL or the empty string."""

LONGEST_NAME = 255
"""Bytes of the name of a directory, on file systems in use."""

NO_NUL = "a NUL character, which no name of a file can have"
"""What is wrong with a value of a partition key that has one: none is escaped, by Hive neither."""

_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_CHARACTER = re.compile("%[0-9A-Fa-f]{2}|.", re.DOTALL)
_MAX_ESCAPED = 12


_DATABASE_NAME = re.compile(r"[A-Za-z0-9_]+")
_TABLE_NAME = re.compile(r"[A-Za-z0-9_/]+")


def check_database_name(name: str) -> None:
    """Check that a name can be a directory in the warehouse (``MetaStoreUtils.validateName``; Spark's rule too).

    Raises:
        AnalysisError: When it is empty or has characters other than ASCII letters, digits and ``_``.
    """
    if not _DATABASE_NAME.fullmatch(name):
        raise AnalysisError(f"{name} is not a valid database name", hint="Use letters, digits and _.")


def check_table_name(name: str) -> None:
    """As :func:`check_database_name`, for tables and views: Hive allows a slash there and escapes it in the directory.

    ``hive.support.special.characters.tablename`` is true by default.
    """
    if not _TABLE_NAME.fullmatch(name):
        raise AnalysisError(f"{name} is not a valid table name", hint="Use letters, digits, _ and /.")


def escape_path_name(text: str) -> str:
    """A partition key or value in a path (``FileUtils.escapePathName``); :data:`DEFAULT_PARTITION` for ''."""
    if not text:
        return DEFAULT_PARTITION
    return _ESCAPED.sub(lambda m: f"%{ord(m[0]):02X}", text)


def unescape_path_name(text: str) -> str:
    """The inverse of :func:`escape_path_name`; a percent sign without two hexadecimal digits is kept."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)


def table_directory(name: str) -> str:
    """The name of a table's directory in that of its database: always a single path component.

    Any character but letters, digits and ``_`` becomes its code between dashes (``MetaStoreUtils.encodeTableName``).
    """
    return "".join(c if c.isalpha() or c.isdecimal() or c == "_" else f"-{ord(c)}-" for c in name)


def other_spellings(name: str) -> Iterator[str]:
    """Other paths of the same partition: some letters and digits of its last part are escaped, which readers undo."""
    head, slash, last = name.rpartition("/")
    characters = _CHARACTER.findall(last)
    plain = [i for i, c in enumerate(characters) if c.isascii() and c.isalnum()][-_MAX_ESCAPED:]
    for number in range(1, 1 << len(plain)):
        chosen = {place for bit, place in enumerate(reversed(plain)) if number >> bit & 1}
        spelt = (f"%{ord(c):02X}" if i in chosen else c for i, c in enumerate(characters))
        yield f"{head}{slash}{''.join(spelt)}"


def partition_name(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """``p=1/q=even``: keys in lower case, both sides escaped; NULL and '' are :data:`DEFAULT_PARTITION`."""
    if len(keys) != len(values):
        raise AnalysisError(f"{len(keys)} partition keys, but {len(values)} values")
    pairs = zip(keys, values, strict=True)
    return "/".join(f"{escape_path_name(key.lower())}={escape_path_name(value or '')}" for key, value in pairs)


def key_texts(values: Sequence[str]) -> list[str | None]:
    """The texts of a partition's keys as the catalog has them; None for the default partition."""
    return [None if value == DEFAULT_PARTITION else value for value in values]


def parse_partition_name(name: str) -> tuple[tuple[str, str], ...]:
    """Keys and values of a partition's name or relative path, unescaped; NULL stays :data:`DEFAULT_PARTITION`.

    Raises:
        AnalysisError: When a part is not ``key=value``.
    """
    pairs = []
    for part in name.strip("/").split("/"):
        key, sign, value = part.partition("=")
        if not (sign and key):
            raise AnalysisError(f"Not a partition name: {name!r}", hint="Partition names look like p=1/q=even.")
        pairs.append((unescape_path_name(key), unescape_path_name(value)))
    return tuple(pairs)
