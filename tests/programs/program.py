"""A random program: steps about one table, one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.programs import definitions, statements
from tests.programs.merges import merge
from tests.programs.steps import Drawing, File, Step
from tests.programs.tables import Shape, source_columns
from tests.programs.text import Sql, fill, join

Draw = Callable[[Drawing], "Step | None"]
ROWS: list[tuple[int, Draw]] = [
    (4, statements.insert_values),
    (3, statements.insert_select),
    (2, statements.insert_columns),
    (1, statements.insert_by_name),
    (1, statements.insert_with),
    (2, statements.multi_insert),
    (2, statements.overwrite),
    (1, statements.truncate),
    (2, statements.mistake),
    (1, definitions.add_column),
    (1, definitions.rename_column),
    (1, definitions.widen_column),
    (1, definitions.rename_table),
    (1, definitions.create_as),
    (2, definitions.older_version),
    (1, definitions.compact),
]
CHANGES: list[tuple[int, Draw]] = [(8, statements.update), (5, statements.delete), (10, merge)]
PARTITIONS: list[tuple[int, Draw]] = [
    (1, definitions.add_partition),
    (1, definitions.drop_partition),
    (1, statements.overwrite_if_not_exists),
    (1, statements.truncate),
]
FILES: list[tuple[int, Draw]] = [(2, statements.load)]


def draw_program(chance: random.Random, shape: Shape, length: int, *, hive: bool = False) -> tuple[Step, ...]:
    """Steps about a table; the first one puts rows into it. With ``hive`` each is one that Hive takes as well, but for
    those that say that they are not."""
    draws = _draws(shape)
    steps: list[Step] = []
    while len(steps) < length:
        [draw] = chance.choices([d for _, d in draws], weights=[w for w, _ in draws])
        made = (draw if steps else statements.insert_values)(Drawing(chance, shape, hive))
        if made is not None:
            steps.append(made)
            shape = made.shape
    return tuple(steps)


def draw_source(chance: random.Random, shape: Shape) -> Sql:
    """The INSERT that fills the source table: ids that are all different, and perhaps NULL once."""
    draw = Drawing(chance, shape, hive=True)
    ids = [str(n) for n in chance.sample(range(8), 4)] + ["NULL"] * chance.randrange(2)
    rows = [join(", ", [id, *draw.row(source_columns(shape)[1:])]) for id in ids]
    return fill("INSERT INTO {s} VALUES <r>", r=join(", ", [fill("(<r>)", r=row) for row in rows]))


def draw_files(chance: random.Random, shape: Shape) -> dict[str, tuple[File, Sql]]:
    """Files from before a table was transactional, by their paths in it, and the same rows as queries."""
    draw = Drawing(chance, shape, hive=False)
    places = ["000000_0", "000000_0_copy_1", "000001_0", "HIVE_UNION_SUBDIR_1/000000_0"]
    return {place: statements.draw_file(draw) for place in places[: chance.randint(1, 4)]}


def _draws(shape: Shape) -> list[tuple[int, Draw]]:
    made = list(ROWS)
    made += [(2, statements.delete_all)] if shape.insert_only else CHANGES
    if shape.keys:
        made += PARTITIONS
    if not shape.buckets:  # of a bucketed table the file has to be named after the bucket
        made += FILES
    return made
