"""Values of both engines in one exact form: what each of them is asked for, and how its answer is read.

Text is taken where a driver or a client could round, pad or shift a value: dates and timestamps as strings, binary as
hex, nested types as JSON. Numbers are compared by value: a float as the 32 bits that it is.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
NESTED = ("array", "map", "struct")
_JSON_OPTIONS = "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?Z?")
_EXACT = Context(prec=80)
"""Decimals of Hive's have up to 38 digits; Python would round them to 28."""
_UNQUOTED_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|([{,])(-?[0-9][^:,"]*):')


@dataclass(frozen=True)
class Field:
    """A column: its name and its Hive type."""

    name: str
    type: str

    def asked_of_hive(self) -> str:
        """The expression by which Hive hands the value out."""
        name = f"`{self.name}`"
        if self.type in ("date", "timestamp"):
            return f"CAST({name} AS string)"
        return f"hex({name})" if self.type == "binary" else name

    def asked_of_acidsql(self) -> str:
        """The expression by which acidsql hands the value out."""
        name = f"`{self.name}`"
        if self.type.startswith(NESTED):
            return f"to_json({name}, {_JSON_OPTIONS})"
        if self.type in ("date", "timestamp") or self.type.startswith("decimal"):
            return f"CAST({name} AS string)"
        return f"hex({name})" if self.type == "binary" else name

    def normal(self, value: Any) -> Any:
        """A value, as either engine handed it out, in the one form."""
        if value is None:
            return None
        if self.type.startswith(NESTED):
            return _nested(json.loads(_with_quoted_keys(value), parse_float=Decimal))
        if self.type.startswith("decimal"):
            return _number(value)
        if self.type == "float":
            return float(struct.unpack("f", struct.pack("f", float(value)))[0]).hex()
        if self.type == "double":
            return float(value).hex()
        if self.type == "boolean":
            return bool(value)
        if self.type in ("tinyint", "smallint", "int", "bigint"):
            return int(value)
        return _time(str(value)) if self.type == "timestamp" else str(value)


def parse_fields(text: str) -> tuple[Field, ...]:
    """``id int, m map<string,int>`` as fields; commas inside brackets do not count."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    named = [p.strip().split(None, 1) for p in parts if p.strip()]
    return tuple(Field(name, type.replace(" ", "")) for name, type in named)


def loose(value: Any) -> Any:
    """A value of any query's answer, numbers by value."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float | Decimal):
        return _number(value)
    return str(value)


def _number(value: Any) -> str:
    return str(Decimal(str(value)).normalize(_EXACT))


def _time(text: str) -> str:
    """A timestamp without the zeros at its end."""
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        return text
    fraction = (found[3] or "").rstrip("0")
    return f"{found[1]} {found[2]}" + (f".{fraction}" if fraction else "")


def _with_quoted_keys(text: str) -> str:
    """Hive prints the keys of a ``map<int,…>`` without quotes."""
    return _UNQUOTED_KEY.sub(lambda m: m[0] if m[1] is None else f'{m[1]}"{m[2]}":', text)


def _nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _nested(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_nested(v) for v in value]
    if isinstance(value, str):
        return _time(value)
    if value is None or isinstance(value, bool):
        return value
    return _number(value)
