"""The statements that meet: small ones, whose effects on the rows tell one order from the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from acidsql.metastore.model import CompactionState as State
from acidsql.session import AcidSession
from tests.phases.encounter import Pause
from tests.phases.verdict import Answer, Rejection, Rows

Part: TypeAlias = Callable[[AcidSession, Path, Pause], Rows]
"""What another statement can come between, in a serial order too: one statement of SQL."""

PARTITIONED, PLAIN = "partitioned", "plain"
KINDS = (PARTITIONED, PLAIN)
"""The table ``t (id, v, p)``: partitioned by ``p``, or not."""


@dataclass(frozen=True)
class Statement:
    """A statement, or a few that follow one another.

    Attributes:
        name: What reports call it.
        parts: Its parts, by the kind of table.
        settings: Of its session.
        prepare: Run before anything is stopped: it belongs to the situation.
        writes: Whether it changes rows by writing files.
        maintains: Whether it changes files, but no rows.
        adds_what_it_reads: Whether it adds rows that depend on those of the same table, under a lock that Hive shares.
    """

    name: str
    parts: Mapping[str, tuple[Part, ...]]
    settings: Mapping[str, str] = field(default_factory=dict)
    prepare: Mapping[str, str] = field(default_factory=dict)
    writes: bool = False
    maintains: bool = False
    adds_what_it_reads: bool = False


def attempt(part: Part, acid: AcidSession, root: Path, pause: Pause) -> Answer:
    """The answer of a part; an error is one, too, but for one of the harness itself."""
    try:
        return part(acid, root, pause)
    except AssertionError:
        raise
    except Exception as e:
        return Rejection.of(e)


def ordered(rows: Rows) -> Rows:
    """Rows in an order that does not depend on how they were read."""
    return tuple(sorted(rows, key=str))


# --- parts -----------------------------------------------------------------------------------------------------------


def _sql(text: str) -> Part:
    def run(acid: AcidSession, root: Path, pause: Pause) -> Rows:
        return ordered(tuple(tuple(row) for row in acid.sql(text.format(root=root)).collect()))

    return run


def _read(text: str) -> Part:
    """A lazy answer that is collected at once, and later again: it is one snapshot, whole."""

    def run(acid: AcidSession, root: Path, pause: Pause) -> Rows:
        frame = acid.sql(text)
        pause("frame handed out", has_read=True)
        at_once = ordered(tuple(tuple(row) for row in frame.collect()))
        pause("frame collected", has_read=True)
        later = ordered(tuple(tuple(row) for row in frame.collect()))
        return at_once if at_once == later else (("at once", *at_once), ("later", *later))

    return run


def _compact(acid: AcidSession, root: Path, pause: Pause) -> Rows:
    """A worker's round; a refusal is an answer like any other, because no row depends on it."""
    outcomes = acid.compactor.run_once().outcomes
    return tuple(
        (str(o.state), o.message) for o in outcomes if o.state not in (State.READY_FOR_CLEANING, State.REFUSED)
    )


def _clean(acid: AcidSession, root: Path, pause: Pause) -> Rows:
    acid.compactor.run_once()
    return ()


# --- statements ------------------------------------------------------------------------------------------------------


def _both(name: str, *texts: str, writes: bool = False, **settings: str) -> Statement:
    parts = tuple(map(_sql, texts))
    named = {k.replace("_", "."): v for k, v in settings.items()}
    return Statement(name, {PARTITIONED: parts, PLAIN: parts}, named, writes=writes)


def _each(name: str, partitioned: str, plain: str | None = None, *, writes: bool = False) -> Statement:
    parts = {PARTITIONED: (_sql(partitioned),)}
    return Statement(name, parts | ({PLAIN: (_sql(plain),)} if plain else {}), writes=writes)


def _round(name: str, part: Part, settings: Mapping[str, str], request: str = "") -> Statement:
    prepare = {PARTITIONED: f"ALTER TABLE t PARTITION (p = 1) {request}", PLAIN: f"ALTER TABLE t {request}"}
    return Statement(name, dict.fromkeys(KINDS, (part,)), settings, prepare if request else {}, maintains=True)


ONLY_WORKER = {"hive.compactor.initiator.on": "false", "hive.compactor.cleaner.on": "false"}
ONLY_CLEANER = {"hive.compactor.initiator.on": "false"}
_SOURCE = "(SELECT 1 AS id, 'm' AS v, 1 AS p UNION ALL SELECT 5, 'm', 1 UNION ALL SELECT 7, 'm', 3) s"
_MERGE = (
    f"MERGE INTO t USING {_SOURCE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v)"
    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)"
)
_MERGE_INSERT = f"MERGE INTO t USING {_SOURCE} ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)"
_MERGE_EVOLVING = (
    "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT {id} AS id, 'e' AS v, '{new}' AS {new}, 3 AS p) s ON t.id = s.id"
    " WHEN NOT MATCHED THEN INSERT *"
)
_CREATE = "CREATE TRANSACTIONAL TABLE t (id int, v string"

_STATEMENTS = (
    _both("insert values", "INSERT INTO t VALUES (4, 'd', 1)", writes=True),
    _both("insert from itself", "INSERT INTO t SELECT id + 10, v, p FROM t", writes=True),
    _both("insert into a new partition", "INSERT INTO t VALUES (5, 'e', 1), (5, 'e', 3)", writes=True),
    _each(
        "overwrite static",
        "INSERT OVERWRITE t PARTITION (p = 1) VALUES (6, 'f')",
        "INSERT OVERWRITE t VALUES (6, 'f', 1)",
        writes=True,
    ),
    _both("overwrite dynamic", "INSERT OVERWRITE t SELECT 7, 'g', p FROM VALUES (2), (3) AS x (p)", writes=True),
    _both("overwrite from itself", "INSERT OVERWRITE t SELECT id, concat(v, '!'), p FROM t", writes=True),
    _both("update", "UPDATE t SET v = concat(v, '+')", writes=True),
    _both("delete", "DELETE FROM t WHERE id % 2 = 1", writes=True),
    _both("merge", _MERGE, writes=True),
    _both("merge insert only", _MERGE_INSERT, writes=True),
    _both("merge with schema evolution", _MERGE_EVOLVING.format(id=5, new="w"), writes=True),
    _both("merge with another new column", _MERGE_EVOLVING.format(id=6, new="y"), writes=True),
    _both("merge over many partitions", _MERGE, writes=True, hive_locks_max_partitions="1"),
    _both("create as", "CREATE TRANSACTIONAL TABLE x AS SELECT id, v, p FROM t", writes=True),
    _both("create and insert", "CREATE TRANSACTIONAL TABLE x (id int)", "INSERT INTO x VALUES (30)"),
    _each("drop partition", "ALTER TABLE t DROP IF EXISTS PARTITION (p = 2)"),
    _each("add partition", "ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 3)"),
    _each("rename partition", "ALTER TABLE t PARTITION (p = 2) RENAME TO PARTITION (p = 3)"),
    _both("add columns", "ALTER TABLE t ADD COLUMNS (w string)"),
    _both("rename table", "ALTER TABLE t RENAME TO u"),
    _both("set location", "ALTER TABLE t SET LOCATION '{root}/elsewhere'"),
    Statement(
        "drop and create",
        {
            PARTITIONED: (_sql("DROP TABLE t"), _sql(f"{_CREATE}) PARTITIONED BY (p int)")),
            PLAIN: (_sql("DROP TABLE t"), _sql(f"{_CREATE}, p int)")),
        },
    ),
    _both("truncate", "TRUNCATE TABLE t", writes=True),
    _each(
        "load",
        "LOAD DATA INPATH '{root}/in/two' INTO TABLE t PARTITION (p = 1)",
        "LOAD DATA INPATH '{root}/in/three' INTO TABLE t",
        writes=True,
    ),
    _round("major compaction", _compact, ONLY_WORKER, "COMPACT 'major'"),
    _round("minor compaction", _compact, ONLY_WORKER, "COMPACT 'minor'"),
    _round("cleaner", _clean, ONLY_CLEANER),
    _round("major compaction and cleaner", _compact, ONLY_CLEANER, "COMPACT 'major'"),
    Statement("select", dict.fromkeys(KINDS, (_read("SELECT * FROM t"),))),
    Statement("select twice", dict.fromkeys(KINDS, (_read("SELECT a.id, b.v FROM t a JOIN t b ON a.id = b.id"),))),
)

_SKEWED = (
    *("insert from itself", "merge", "merge insert only", "merge over many partitions"),
    *("merge with schema evolution", "merge with another new column"),
)
STATEMENTS = tuple(replace(s, adds_what_it_reads=s.name in _SKEWED) for s in _STATEMENTS)
BY_NAME = {s.name: s for s in STATEMENTS}
