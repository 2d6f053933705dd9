"""Pieces of SQL as each of the engines writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sql:
    """One piece of a statement, three times.

    ``{t}`` in it is the table that the program is about, ``{s}`` the source table, ``{new}`` a new name, ``{file}`` the
    path of a file.
    """

    acid: str
    hive: str | None
    """None where Hive has no such form, or is not known to have it."""
    oracle: str


Piece = Sql | str


def piece(part: Piece) -> Sql:
    """A text that all engines take as it stands."""
    return part if isinstance(part, Sql) else Sql(part, part, part)


def sql(acid: str, *, hive: str | None = "", oracle: str = "") -> Sql:
    """A text, and what it is where it is another one."""
    return Sql(acid, acid if hive == "" else hive, oracle or acid)


def no_hive(part: Piece) -> Sql:
    """A form that Hive is not asked for."""
    made = piece(part)
    return Sql(made.acid, None, made.oracle)


def fill(template: Piece, **parts: Piece) -> Sql:
    """A template with its ``<name>`` marks filled in."""
    made = piece(template)
    acid, hive, oracle = made.acid, made.hive, made.oracle
    for name, part in parts.items():
        mark, given = f"<{name}>", piece(part)
        if mark in acid:
            hive = None if hive is None or given.hive is None else hive.replace(mark, given.hive)
        acid, oracle = acid.replace(mark, given.acid), oracle.replace(mark, given.oracle)
    return Sql(acid, hive, oracle)


def join(separator: str, parts: Iterable[Piece]) -> Sql:
    """Pieces one after the other."""
    made = [piece(p) for p in parts]
    hive = None if any(p.hive is None for p in made) else separator.join(p.hive or "" for p in made)
    return Sql(separator.join(p.acid for p in made), hive, separator.join(p.oracle for p in made))


def string(value: str) -> Sql:
    """A string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return Sql(f"'{escaped}'", f"'{escaped}'", "'" + value.replace("'", "''") + "'")


def concat(one: Piece, other: Piece) -> Sql:
    """Two strings as one; NULL where one is."""
    return fill(sql("<a> || <b>", hive="concat(<a>, <b>)"), a=one, b=other)
