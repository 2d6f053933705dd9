"""Definition and parsing of settings, and the settings of a session."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from acidsql.errors import InvalidValue
from acidsql.settings.ignored import IGNORED

T = TypeVar("T")

_UNITS = {
    "ms": 0.001,
    "msec": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def parse_bool(text: str) -> bool:
    """``true`` or ``false``, in any letter case."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError("true or false")


def parse_seconds(text: str) -> float:
    """A duration as Hive writes it: ``300s``, ``50ms``, ``5min``; a bare number is seconds."""
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    unit = (m[2] if m[2] in _UNITS else m[2].rstrip("s")) if m else ""
    if m is None or (unit and unit not in _UNITS):
        raise ValueError("a duration such as 300s, 50ms or 5min")
    return float(m[1]) * _UNITS.get(unit, 1.0)


def _in_unit_of(default: str) -> Callable[[str], float]:
    """Parser of a Hive duration: a bare number is in the unit of the default (``TimeValidator``)."""
    unit = default.lstrip("0123456789.")

    def parse(text: str) -> float:
        return parse_seconds(f"{text}{unit}" if text.strip().replace(".", "", 1).isdigit() else text)

    parse.__doc__ = f"duration ({unit})"
    return parse


def parse_size(text: str) -> int:
    """A size in bytes: ``64mb``, ``1g``, or a bare number."""
    m = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if m is None or m[2] not in _SIZES:
        raise ValueError("a size such as 64mb")
    return int(m[1]) * _SIZES[m[2]]


def size_or_auto(text: str) -> int | None:
    """A size such as 64mb, or auto, which is None."""
    return None if text.strip().lower() == "auto" else parse_size(text)


def whole_number(text: str) -> int:
    """A number without sign or fraction."""
    if not re.fullmatch(r"\s*\d+\s*", text):
        raise ValueError("a whole number")
    return int(text)


def above_zero(text: str) -> int:
    """A whole number above 0."""
    if not whole_number(text):
        raise ValueError("a whole number above 0")
    return whole_number(text)


def ratio(text: str) -> float:
    """A ratio such as 0.1; it may exceed 1."""
    value = float(text)
    if not value >= 0:
        raise ValueError("a number of at least 0")
    return value


def txn_manager(text: str) -> str:
    """The class ``DbTxnManager``."""
    if text.rpartition(".")[2].strip() != "DbTxnManager":
        raise ValueError("…DbTxnManager, the only transaction manager")
    return text


def choice(*allowed: str) -> Callable[[str], str]:
    """Parser of one of these words, in any letter case."""

    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(" or ".join(allowed))
        return text.lower()

    parse.__doc__ = ", ".join(allowed)
    return parse


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting: its name, parser, default text and description."""

    name: str
    parse: Callable[[str], T]
    default: str
    doc: str


REGISTRY: dict[str, Setting[Any]] = {}


def define(name: str, parse: Callable[[str], T], default: str, doc: str) -> Setting[T]:
    """Define a setting and register it under its name."""
    if parse is parse_seconds and name.startswith("hive."):
        parse = cast(Callable[[str], T], _in_unit_of(default))
    setting = Setting(name, parse, default, doc)
    REGISTRY[name] = setting
    return setting


_POOL_THREADS = re.compile(r"hive\.compactor\.worker\.(?!pool\.)([a-z0-9_-]+)\.threads")
"""Hive's setting for the number of workers of a pool."""
_OLD_NAMES = {"hive.compactor.history.retention.attempted": "hive.compactor.history.retention.did.not.initiate"}
"""Hive 3 names and their current ones."""


def canonical(name: str) -> str:
    """The registered name of a setting; unknown names are returned in lower case.

    A metastore's own configuration has ``hive.compactor.…`` and ``hive.txn.…`` as ``metastore.…`` (``MetastoreConf``).
    """
    name = name.lower()
    own = f"hive.{name.partition('.')[2]}" if name.startswith("metastore.") else name
    own = _OLD_NAMES.get(own, own)
    return own if is_known(own) else name


def is_known(name: str) -> bool:
    """Whether a :func:`canonical` name is that of a setting, with or without effect."""
    return name in REGISTRY or name in IGNORED or bool(_POOL_THREADS.fullmatch(name))


def _typed(name: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as e:
        raise InvalidValue(f"Setting {name} takes {e}, not {text!r}") from e


class Settings(Mapping[str, str]):
    """The settings of one session: text by name, typed values by :class:`Setting`.

    Hive settings without effect (:data:`IGNORED`) can be set too and keep their text.
    """

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._texts: dict[str, str] = {}
        self._pools: dict[str, int] = {}
        self._values: dict[str, Any] = {name: s.parse(s.default) for name, s in REGISTRY.items()}
        self._given = {name: str(text) for name, text in (values or {}).items()}
        for name, text in self._given.items():
            self.set(name, text)

    def set(self, name: str, text: str) -> None:
        """Change a setting.

        Raises:
            InvalidValue: When the name is unknown, or the text cannot be parsed.
        """
        own = canonical(name)
        if own in IGNORED:
            self._texts[own] = text
            return
        if pool := _POOL_THREADS.fullmatch(own):
            self._pools[pool[1]] = _typed(own, whole_number, text)
            self._texts[own] = text
            return
        setting = REGISTRY.get(own)
        if setting is None:
            near = difflib.get_close_matches(name.lower(), REGISTRY, n=1, cutoff=0.5)
            raise InvalidValue(f"Unknown setting {name!r}", hint=f"Did you mean {near[0]}?" if near else None)
        self._values[setting.name] = _typed(setting.name, setting.parse, text)
        self._texts[setting.name] = text

    def reset(self, name: str | None = None) -> None:
        """Give a setting the value that it had at the beginning; all of them without a name."""
        texts = Settings(self._given)._texts
        if name is not None:
            own = canonical(name)
            texts = {n: t for n, t in self._texts.items() if n != own} | {n: t for n, t in texts.items() if n == own}
        fresh = Settings(texts)
        self._texts, self._pools, self._values = fresh._texts, fresh._pools, fresh._values

    @property
    def worker_pools(self) -> Mapping[str, int]:
        """The compaction workers of each pool, by ``hive.compactor.worker.<pool>.threads``."""
        return self._pools

    def but(self, values: Mapping[str, str]) -> Settings:
        """These settings with some values replaced. Raises: InvalidValue as :meth:`set` does."""
        return Settings({**self._texts, **values}) if values else self

    def value(self, setting: Setting[T]) -> T:
        """The typed value of a setting."""
        return cast(T, self._values[setting.name])

    def __getitem__(self, name: str) -> str:
        if name in REGISTRY:
            return self._texts.get(name) or REGISTRY[name].default
        if not is_known(name):
            raise KeyError(name)
        return self._texts.get(name, "")

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTRY)

    def __len__(self) -> int:
        return len(REGISTRY)
