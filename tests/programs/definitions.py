"""Random statements that change what a table is, and those that only look at it."""

from __future__ import annotations

from dataclasses import replace

from tests.programs.steps import Drawing, Step, in_partition
from tests.programs.tables import Column
from tests.programs.text import fill, no_hive, piece
from tests.programs.values import TYPES

# --- columns ---------------------------------------------------------------------------------------------------------


def add_column(draw: Drawing) -> Step:
    """A column behind the others: NULL in the rows that are there."""
    shape = draw.shape
    number = 1 + sum(c.name.startswith("c") for c in shape.columns)
    column = Column(f"c{number}n", TYPES[draw.one(sorted(TYPES))])
    after = replace(shape, columns=(*shape.columns, column))
    names = ", ".join(c.name for c in shape.fields)
    oracle = (  # made anew: its keys stay behind its columns
        "ALTER TABLE {t} RENAME TO narrower",
        after.create_oracle("{t}"),
        f"INSERT INTO {{t}} ({names}) SELECT {names} FROM narrower",
        "DROP TABLE narrower",
    )
    text = piece(f"ALTER TABLE {{t}} ADD COLUMNS ({column.name} {column.type.name}){_cascade(draw)}")
    return Step("alter", text, after, oracle)


def rename_column(draw: Drawing) -> Step | None:
    """Another name for a column; its DEFAULT goes with it."""
    shape = draw.shape
    columns = [c for c in shape.columns if c.name not in shape.buckets]
    if not columns:
        return None
    old = draw.one(columns)
    name = (old.name[:-1] if old.name.endswith("r") else f"{old.name}r") if draw.maybe(0.8) else f"{old.name}x"
    if any(c.name == name for c in shape.fields):
        return None
    new = replace(old, name=name)
    text = piece(f"ALTER TABLE {{t}} CHANGE COLUMN {old.name} {name} {old.type.name}{_cascade(draw)}")
    oracle = (f"ALTER TABLE {{t}} RENAME COLUMN {old.name} TO {name}",)
    return Step("alter", text, shape.with_column(old, new), oracle)


def widen_column(draw: Drawing) -> Step | None:
    """A wider type: old files keep the narrower one."""
    shape = draw.shape
    columns = [c for c in shape.payload if c.type.wider and c.name not in shape.buckets]
    if not columns:
        return None
    old = draw.one(columns)
    names = [w for w in old.type.wider if not draw.hive or w != "string"]
    if not names:
        return None
    new = replace(old, type=TYPES[draw.one(names)])
    text = piece(f"ALTER TABLE {{t}} CHANGE COLUMN {old.name} {new.name} {new.type.name}{_cascade(draw)}")
    oracle = (f"ALTER TABLE {{t}} ALTER COLUMN {old.name} SET DATA TYPE {new.type.oracle}",)
    return Step("alter", text, shape.with_column(old, new), oracle)


def _cascade(draw: Drawing) -> str:
    """Hive's partitions keep their old columns without it."""
    return " CASCADE" if draw.shape.keys else ""


def rename_table(draw: Drawing) -> Step:
    """Another name for the table."""
    return Step("rename", piece("ALTER TABLE {t} RENAME TO {new}"), draw.shape)


# --- partitions ------------------------------------------------------------------------------------------------------


def add_partition(draw: Drawing) -> Step:
    """A partition without rows; an error where it is there, but for IF NOT EXISTS."""
    clause, values = draw.partition()
    lenient = draw.hive or draw.maybe(0.6)
    text = fill(f"ALTER TABLE {{t}} ADD {'IF NOT EXISTS ' if lenient else ''}<p>", p=clause)
    error = "" if lenient else f"SELECT 1 FROM parts WHERE {in_partition(values)}"
    partition = "SELECT " + ", ".join(v.oracle for v in values.values())
    return Step("partition", text, draw.shape, partition=partition, error=error)


def drop_partition(draw: Drawing) -> Step:
    """A partition and its rows are gone; one that is not there is no error (``hive.exec.drop.ignorenonexistent``)."""
    partial = len(draw.shape.keys) > 1 and draw.maybe(0.3)
    clause, values = draw.partition(partial=partial)
    lenient = draw.hive or draw.maybe(0.6)
    hit = in_partition(values)
    text = fill(f"ALTER TABLE {{t}} DROP {'IF EXISTS ' if lenient else ''}<p>", p=clause)
    oracle = (f"DELETE FROM {{t}} WHERE {hit}", f"DELETE FROM parts WHERE {hit}")
    return Step("drop", text, draw.shape, oracle)


# --- reading ---------------------------------------------------------------------------------------------------------


def create_as(draw: Drawing) -> Step:
    """CREATE TABLE … AS: another table, with the rows of a query."""
    where = draw.where()
    body = fill("SELECT * FROM {t}<w>", w=where)
    partitioned = ""
    if draw.shape.keys and not draw.hive and draw.maybe():
        partitioned = f" PARTITIONED BY ({', '.join(k.name for k in draw.shape.keys)})"
    head = f"CREATE TABLE {{new}}{partitioned} STORED AS ORC TBLPROPERTIES ('transactional'='true') AS"
    return Step("create as", fill(f"{head} <b>", b=body), draw.shape, rows=body.oracle)


def older_version(draw: Drawing) -> Step:
    """The rows at an earlier write id. The runner knows them, and which write ids there are."""
    return Step("version", no_hive("SELECT * FROM {t} VERSION AS OF {version}"), draw.shape)


def compact(draw: Drawing) -> Step:
    """Rows and row ids stay; where there is nothing to put together it is refused."""
    clause, missing = piece(""), ""
    if draw.shape.keys:
        clause, values = draw.partition()
        clause = fill(" <p>", p=clause)
        missing = f"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM parts WHERE {in_partition(values)})"
    text = fill(f"ALTER TABLE {{t}}<p> COMPACT '{draw.one(['major', 'minor'])}' AND WAIT", p=clause)
    return Step("compact", text, draw.shape, error=missing)
