"""Tables whose names collide wherever SQL allows it: the same in two databases, like databases, like struct columns."""

from __future__ import annotations

from tests.oracle.twins import Row, Twins

WORDS = ("x", "y", "z", None)


def _t(step: int, offset: int) -> list[Row]:
    return [(n * step + offset, WORDS[n % 4], n % 3 if n % 5 else None, n % 2 + 1) for n in range(9)]


TABLES: dict[str, tuple[str, str, list[Row]]] = {
    "a.t": ("id int, v string, n int", "p int", _t(1, 0)),
    "b.t": ("id int, v string, n int", "p int", _t(2, 1)),
    "a.u": (
        "id int, n int, t struct<id:int,v:string>",
        "k string",
        [(n, n * 2, None if n == 4 else (n + 1, WORDS[n % 4]), WORDS[n % 3] or "x") for n in range(5)],
    ),
    "b.u": (
        "id int, a struct<t:struct<id:int>,id:int>, b struct<t:int>",
        "",
        [(n + 2, ((n,), n + 3), (n * 2,)) for n in range(4)],
    ),
    "b.a": ("id int, v string", "", [(1, "x"), (3, "y"), (3, None), (None, "z")]),
}
"""Columns, partition keys and rows by name. ``b.a`` is called like a database; ``a.u.t`` and ``b.u.a`` are structs."""


def fill(twins: Twins) -> Twins:
    """Make the tables on both sides."""
    for database in ("a", "b"):
        twins.database(database)
    for name, (columns, keys, rows) in TABLES.items():
        twins.table(name, columns, rows, keys=keys)
    return twins
