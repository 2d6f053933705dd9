"""Random statements that write rows: INSERT in all its forms, UPDATE, DELETE, TRUNCATE, LOAD DATA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.programs.steps import ALWAYS, Drawing, File, Step, in_partition
from tests.programs.tables import Column
from tests.programs.text import Sql, fill, join, no_hive, piece

PLAIN = ("int", "string", "bigint", "date", "timestamp", "boolean")
"""Types whose literals Hive takes in VALUES."""


# --- where rows go ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """The PARTITION clause of an INSERT.

    Attributes:
        clause: Its text, with a blank before it, or nothing.
        columns: The columns that the query has to give.
        static: Values of the keys that it names.
    """

    clause: Sql
    columns: tuple[Column, ...]
    static: Mapping[str, Sql] = field(default_factory=dict)

    def oracle(self, body: Sql, into: str = "{t}") -> str:
        """The oracle's INSERT of what a query gives."""
        names = ", ".join([*(c.name for c in self.columns), *self.static])
        values = "".join(f", {v.oracle}" for v in self.static.values())
        return f"INSERT INTO {into} ({names}) SELECT q.*{values} FROM ({body.oracle}) q"

    @property
    def partition(self) -> str:
        """The oracle's query for the one partition that is named."""
        return "SELECT " + ", ".join(v.oracle for v in self.static.values())


def draw_target(draw: Drawing, forms: Sequence[str] = ("none", "static", "dynamic", "mixed")) -> Target:
    """PARTITION (k = 1), (k = 1, l), (k, l), or no clause."""
    shape = draw.shape
    form = draw.one(forms) if shape.keys else "none"
    if form == "mixed" and len(shape.keys) == 2:
        key, last = shape.keys
        value = draw.key_value(key)
        clause = fill(f" PARTITION ({key.name} = <v>, {last.name})", v=value)
        return Target(clause, (*shape.columns, last), {key.name: value})
    if form in ("static", "mixed"):
        clause, values = draw.partition()
        return Target(fill(" <p>", p=clause), shape.columns, values)
    named = f" PARTITION ({', '.join(k.name for k in shape.keys)})" if form == "dynamic" else ""
    return Target(piece(named), shape.fields)


# --- INSERT INTO -----------------------------------------------------------------------------------------------------


def insert_values(draw: Drawing) -> Step:
    """Rows of literals; into one partition, or into those that the rows name."""
    target = draw_target(draw)
    body = literal_rows(draw, target.columns)
    text = fill("INSERT INTO {t}<p> <b>", p=target.clause, b=body)
    return Step("insert", text, draw.shape, (target.oracle(body),))


def literal_rows(draw: Drawing, columns: Sequence[Column]) -> Sql:
    """A few rows of literals as a query; Hive is given VALUES where it takes their literals there."""
    rows = [join(", ", draw.row(columns)) for _ in range(draw.chance.randint(1, 4))]
    values = join(", ", [fill("(<r>)", r=row) for row in rows])
    selects = join(" UNION ALL ", [fill("SELECT <r>", r=row) for row in rows])
    if (hive := selects.hive) is not None and all(c.type.name in PLAIN for c in columns):
        hive = "VALUES " + re.sub(r"CAST\(NULL AS \w+\)", "NULL", values.hive or "")
    return Sql(f"VALUES {values.acid}", hive, f"VALUES {values.oracle}")


def insert_columns(draw: Drawing) -> Step:
    """A column list in any order, DEFAULT among the values; what is not named gets its default."""
    columns = _some(draw)
    rows = [[_or_default(draw, c, value) for c, value in zip(columns, draw.row(columns), strict=True)] for _ in "ab"]
    values = join(", ", [fill("(<r>)", r=join(", ", row)) for row in rows[: draw.one([1, 2])]])
    text = fill(f"INSERT INTO {{t}} ({', '.join(c.name for c in columns)}) VALUES <v>", v=values)
    return Step("insert", no_hive(text), draw.shape, (text.oracle,))


def _some(draw: Drawing) -> list[Column]:
    """The keys, the id and some other columns in any order."""
    columns = [c for c in draw.shape.fields if c in draw.shape.keys or c is draw.shape.id or draw.maybe()]
    draw.chance.shuffle(columns)
    return columns


def _or_default(draw: Drawing, column: Column, value: Sql) -> Sql:
    is_key = column in draw.shape.keys
    return piece("DEFAULT") if not is_key and draw.maybe(0.2) else value


def insert_select(draw: Drawing) -> Step:
    """Rows of the table itself, or of another one."""
    target = draw_target(draw)
    body = _query(draw, target.columns)
    text = fill("INSERT INTO {t}<p> <b>", p=target.clause, b=body)
    return Step("insert", text, draw.shape, (target.oracle(body),))


def _query(draw: Drawing, columns: Sequence[Column]) -> Sql:
    if draw.maybe(0.3):
        listed = join(", ", [draw.source_select(c) for c in columns])
        where = draw.one(["", " WHERE s.id > 2", " WHERE s.v IS NULL", " WHERE s.id < 0"])
        return fill(f"SELECT <l> FROM {{s}} s{where}", l=listed)
    return fill("SELECT <l> FROM {t}<w>", l=join(", ", [draw.own_select(c) for c in columns]), w=draw.where())


def insert_by_name(draw: Drawing) -> Step:
    """The query's columns find their places by their names."""
    columns = _some(draw)
    listed = join(", ", [fill(f"<e> AS {c.name}", e=draw.own_select(c)) for c in columns])
    body = fill("SELECT <l> FROM {t}<w>", l=listed, w=draw.where())
    names = ", ".join(c.name for c in columns)
    text = fill("INSERT INTO {t} BY NAME <b>", b=body)
    return Step("insert", no_hive(text), draw.shape, (f"INSERT INTO {{t}} ({names}) {body.oracle}",))


def insert_with(draw: Drawing) -> Step:
    """A common table expression before INSERT."""
    inner = fill("SELECT * FROM {t}<w>", w=draw.where())
    listed = join(", ", [draw.own_select(c) for c in draw.shape.fields])
    text = fill("WITH q AS (<i>) INSERT INTO {t} SELECT <l> FROM q", i=inner, l=listed)
    oracle = fill("INSERT INTO {t} WITH q AS (<i>) SELECT <l> FROM q", i=inner, l=listed).oracle
    return Step("insert", no_hive(text), draw.shape, (oracle,))


def multi_insert(draw: Drawing) -> Step:
    """FROM source INSERT … INSERT …, both into the table."""
    own = draw.maybe()
    source = "{t} s" if own else "{s} s"
    legs, oracle = [], [f"CREATE OR REPLACE TEMP TABLE q AS SELECT * FROM {source}"]
    for where in draw.chance.sample(["", " WHERE s.id > 2", " WHERE s.id <= 2", " WHERE s.v IS NULL"], 2):
        target = draw_target(draw)
        listed = join(", ", [_leg(draw, c, own) for c in target.columns])
        renamed = where.replace("s.id", f"s.{draw.shape.id.name}").replace("s.v", f"s.{draw.shape.v.name}")
        tail = renamed if own else where
        legs.append(fill(f"INSERT INTO {{t}}<p> SELECT <l>{tail}", p=target.clause, l=listed))
        oracle.append(target.oracle(fill(f"SELECT <l> FROM q s{tail}", l=listed)))
    return Step("insert", no_hive(fill(f"FROM {source} <l>", l=join(" ", legs))), draw.shape, tuple(oracle))


def _leg(draw: Drawing, column: Column, own: bool) -> Sql:
    return piece(f"s.{column.name}") if own else draw.source_select(column)


# --- INSERT OVERWRITE ------------------------------------------------------------------------------------------------

FRESH = "CREATE OR REPLACE TEMP TABLE fresh AS SELECT * FROM {t} WHERE false"


def overwrite(draw: Drawing) -> Step:
    """The whole of a table without keys, one partition, or the partitions that the rows go to."""
    target = draw_target(draw)
    body = _query(draw, target.columns)
    text = fill("INSERT OVERWRITE TABLE {t}<p> <b>", p=target.clause, b=body)
    keys = [k.name for k in draw.shape.keys]
    is_one = len(target.static) == len(keys)
    hit = in_partition(target.static) or "true"
    if not is_one:
        same = " AND ".join(f"f.{k} IS NOT DISTINCT FROM {{t}}.{k}" for k in keys)
        hit = f"EXISTS (SELECT 1 FROM fresh f WHERE {same})"
    insert = "INSERT INTO {t} SELECT * FROM fresh"
    oracle = (FRESH, target.oracle(body, "fresh"), f"DELETE FROM {{t}} WHERE {hit}", insert)
    partition = target.partition if keys and is_one else ""
    return Step("overwrite", text, draw.shape, oracle, partition=partition)


def overwrite_if_not_exists(draw: Drawing) -> Step:
    """Nothing happens where the partition is there."""
    target = draw_target(draw, ("static",))
    body = _query(draw, target.columns)
    text = fill("INSERT OVERWRITE TABLE {t}<p> IF NOT EXISTS <b>", p=target.clause, b=body)
    is_new = f"NOT EXISTS (SELECT 1 FROM parts WHERE {in_partition(target.static)})"
    oracle = (
        FRESH,
        target.oracle(body, "fresh"),
        f"INSERT INTO {{t}} SELECT * FROM fresh WHERE {is_new}",
    )
    return Step("overwrite", no_hive(text), draw.shape, oracle, partition=target.partition)


# --- UPDATE, DELETE, TRUNCATE ----------------------------------------------------------------------------------------


def update(draw: Drawing) -> Step:
    """UPDATE, with an alias at times."""
    alias = not draw.hive and draw.maybe(0.2)
    where = draw.where()
    head = "UPDATE {t} AS x SET" if alias else "UPDATE {t} SET"
    text = fill(f"{head} <a><w>", a=draw.assignments("x." if alias else ""), w=where)
    made = no_hive(text) if alias else text
    return Step("update", made, draw.shape, (text.oracle,))


def delete(draw: Drawing) -> Step:
    """DELETE of some rows, or of all."""
    where = draw.where(0.92)
    text = fill("DELETE FROM {t}<w>", w=where)
    return Step("delete", text, draw.shape, (text.oracle,))


def delete_all(draw: Drawing) -> Step:
    """DELETE without WHERE: the one that an insert-only table takes."""
    return Step("delete", no_hive("DELETE FROM {t}"), draw.shape, ("DELETE FROM {t}",))


def truncate(draw: Drawing) -> Step:
    """The table, a partition, or the partitions with a value of the first key."""
    keys = draw.shape.keys
    if not keys or draw.maybe(0.3):
        return Step("truncate", piece("TRUNCATE TABLE {t}"), draw.shape, ("DELETE FROM {t}",))
    partial = len(keys) > 1 and draw.maybe(0.3)
    clause, values = draw.partition(partial=partial)
    hit = in_partition(values)
    missing = "" if partial else f"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM parts WHERE {hit})"
    text = fill("TRUNCATE TABLE {t} <p>", p=clause)
    made = no_hive(text) if partial else text
    return Step("truncate", made, draw.shape, (f"DELETE FROM {{t}} WHERE {hit}",), error=missing)


# --- LOAD DATA -------------------------------------------------------------------------------------------------------


def load(draw: Drawing) -> Step:
    """A file of another writer becomes rows as it is."""
    over = draw.maybe(0.2)
    file, values = draw_file(draw)
    target = draw_target(draw, ("static",))
    head = f"LOAD DATA LOCAL INPATH '{{file}}' {'OVERWRITE ' if over else ''}INTO TABLE {{t}}<p>"
    insert = replace(target, columns=draw.shape.columns).oracle(values)
    hit = in_partition(target.static) or "true"
    oracle = (f"DELETE FROM {{t}} WHERE {hit}", insert) if over else (insert,)
    return Step("overwrite" if over else "load", fill(head, p=target.clause), draw.shape, oracle, file=file)


def draw_file(draw: Drawing) -> tuple[File, Sql]:
    """A file of a few rows, and the same rows as a query."""
    columns = draw.shape.columns
    drawn = [[draw.value(c) for c in columns] for _ in range(draw.chance.randint(1, 3))]
    rows = [[v if v.in_files else c.type.null for v, c in zip(row, columns, strict=True)] for row in drawn]
    values = join(", ", [fill("(<r>)", r=join(", ", [v.text for v in row])) for row in rows])
    return File(orc_schema(columns), tuple(tuple(v.stored for v in row) for row in rows)), fill("VALUES <v>", v=values)


def orc_schema(columns: Sequence[Column]) -> str:
    """The schema of a file with these columns."""
    return f"struct<{','.join(f'{c.name}:{c.type.name}' for c in columns)}>"


# --- statements that must fail ---------------------------------------------------------------------------------------


def mistake(draw: Drawing) -> Step:
    """A statement that fails, at once or after some rows: nothing may have changed then."""
    shape = draw.shape
    where = draw.where()
    hit = f"SELECT 1 FROM {{t}}{where.oracle} LIMIT 1"
    late = f"if({shape.id.name} > -100 OR {shape.id.name} IS NULL, raise_error('no'), 'x')"
    failing = join(", ", [late if c is shape.v else c.name for c in shape.fields])
    texts = [
        (fill("INSERT INTO {t} SELECT <l> FROM {t}<w>", l=failing, w=where), hit),
        (piece("INSERT INTO {t} VALUES (1)"), ALWAYS),
        (fill("ALTER TABLE {t} CHANGE nothing other int"), ALWAYS),
        (fill("ALTER TABLE {t} COMPACT 'never'"), ALWAYS),
    ]
    if shape.insert_only:
        texts.append((piece(f"UPDATE {{t}} SET {shape.v.name} = 'x'"), ALWAYS))
        texts.append((piece("DELETE FROM {t} WHERE true"), ALWAYS))
    elif shape.v.name not in shape.buckets:
        texts.append((fill(f"UPDATE {{t}} SET {shape.v.name} = {late}<w>", w=where), hit))
        merge = f"MERGE INTO {{t}} t USING {{s}} s ON false WHEN NOT MATCHED BY SOURCE THEN UPDATE SET {shape.v.name} ="
        texts.append(
            (piece(f"{merge} {late.replace(shape.id.name, f't.{shape.id.name}')}"), "SELECT 1 FROM {t} LIMIT 1")
        )
    fixed = [*shape.buckets, *(k.name for k in shape.keys)]
    texts += [(piece(f"UPDATE {{t}} SET {name} = NULL"), ALWAYS) for name in fixed]
    text, error = draw.one(texts)
    return Step("mistake", no_hive(text), shape, error=error)
