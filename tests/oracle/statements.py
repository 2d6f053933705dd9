"""A fixed program over every type: what it stores and answers must not hang on Spark's settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc

from acidsql.session import AcidSession
from tests.oracle.answers import Answer, ask
from tests.spark.test_golden_tables import adopt

KEYS = {
    "int": ("1", "-7"),
    "bigint": ("9223372036854775807", "0"),
    "string": ("'a b'", "'\u00e4/=%'"),
    "boolean": ("true", "false"),
    "date": ("DATE'2024-02-29'", "DATE'1500-02-28'"),
    "decimal(20,10)": ("0.0000000001", "1.5"),
    "timestamp": ("TIMESTAMP'2024-07-01 12:00:00'", "TIMESTAMP'1500-02-28 00:30:00'"),
    "double": ("CAST('0.5' AS double)", "CAST('1E10' AS double)"),
}
"""Two literals for a partition key of each type."""

COLUMNS = (
    "id int, c char(5), vc varchar(6), n decimal(10,2), d date, ts timestamp, f double, s string, b binary,"
    " st struct<a:int,b:string>, ar array<int>, m map<string,int>"
)
ROW = (
    "{0}, '{1}', '{1}', CAST('{0}.25' AS decimal(10,2)), DATE'{2}', TIMESTAMP'{2} 02:30:00.123456',"
    " CAST('{0}.5' AS double), '{1}', X'0{0}FF', named_struct('a', {0}, 'b', '{1}'), array({0}, NULL), map('{1}', {0})"
)
ROWS = [
    ROW.format(1, "ab", "2024-03-31"),
    ROW.format(2, "cd", "1500-02-28"),
    ROW.format(3, "ef", "0001-01-01"),
    ROW.format(4, "gh", "1582-10-04"),
]
SHOWN = (
    "id, c, vc, n, CAST(d AS string) AS d, CAST(ts AS string) AS ts, f, s, hex(b) AS b, to_json(st) AS st, ar,"
    " map_keys(m) AS m, p"
)
"""What does not hang on how Python shows a value."""

CHANGES = [
    f"CREATE TRANSACTIONAL TABLE t ({COLUMNS}) PARTITIONED BY (p string)",
    f"INSERT INTO t VALUES ({ROWS[0]}, 'x'), ({ROWS[1]}, 'y')",
    f"INSERT INTO t SELECT {ROWS[2]}, 'x'",
    f"INSERT INTO t PARTITION (p = 'z') SELECT {ROWS[3]}",
    "INSERT INTO t (id, p) VALUES (5, 'x'), (6, NULL)",
    "UPDATE t SET s = concat(s, '!') WHERE c = 'ab'",
    "UPDATE t SET n = 9.99, vc = 'new' WHERE id = 3",
    "UPDATE t SET s = 'old' WHERE ts < TIMESTAMP'1501-01-01 00:00:00' AND p <> 'x'",
    "DELETE FROM t WHERE d = DATE'1582-10-04'",
    "MERGE INTO t USING (SELECT 5 AS k, 'merged' AS w UNION ALL SELECT 7, 'new') s ON t.id = s.k"
    " WHEN MATCHED THEN UPDATE SET s = s.w WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (s.k, s.w, 'x')",
    "CREATE TRANSACTIONAL TABLE copy AS SELECT id, c, vc, d, ts, n, p FROM t",
    "INSERT OVERWRITE TABLE copy SELECT id, c, vc, d, ts, n, p FROM t WHERE p = 'x'",
]
QUESTIONS = [
    f"SELECT {SHOWN} FROM t",
    "SELECT id FROM t WHERE c = 'ab'",
    "SELECT id FROM t WHERE vc IN ('ab', 'new')",
    "SELECT id FROM t WHERE n BETWEEN 2 AND 9.99",
    "SELECT id FROM t WHERE d <= DATE'1500-02-28'",
    "SELECT id FROM t WHERE ts = TIMESTAMP'1500-02-28 02:30:00.123456'",
    "SELECT id FROM t WHERE st.a = 1 AND st.b = 'ab' AND p = 'x'",
    "SELECT id FROM t WHERE p IS NULL OR p > 'x'",
    "SELECT count(*), sum(id), max(s) FROM t",
    "SELECT p, count(ROW__ID.rowId) FROM t GROUP BY p",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.id = y.id - 1",
    "SELECT id, length(c), vc, CAST(d AS string) AS d, CAST(ts AS string) AS ts, n, p FROM copy",
]


def key_statements() -> list[str]:
    """A table for each type of a partition key: rows by VALUES, by SELECT and by a static key."""
    made = []
    for number, (type, (first, second)) in enumerate(KEYS.items()):
        made += [
            f"CREATE TRANSACTIONAL TABLE k{number} (id int) PARTITIONED BY (p {type})",
            f"INSERT INTO k{number} VALUES (1, {first}), (2, {second}), (3, NULL)",
            f"INSERT INTO k{number} SELECT 4, {first}",
            f"UPDATE k{number} SET id = id + 10 WHERE p = {second}",
        ]
        made.append(f"INSERT INTO k{number} PARTITION (p = {first}) VALUES (5)" if "CAST" not in first else "SELECT 1")
    return made


def key_questions() -> list[str]:
    made = []
    for number, (type, (first, _)) in enumerate(KEYS.items()):
        shown = "CAST(p AS string)" if type in ("date", "timestamp") else "p"
        made += [f"SELECT id, {shown} AS p FROM k{number}", f"SELECT id FROM k{number} WHERE p = {first}"]
        made.append(f"SHOW PARTITIONS k{number}")
    return made


def write_original(file: Path) -> None:
    """A file from before its table was transactional, of several stripes: row ids count on through all of them."""
    ids = list(range(3000))
    table = pa.table({"id": pa.array(ids, pa.int32()), "n": [f"n{n % 5}" for n in ids]})
    orc.write_table(table, file, stripe_size=8192, batch_size=128, compression="uncompressed")


OLD_FILES = [
    "CREATE TRANSACTIONAL TABLE l (id int, n string)",
    "LOAD DATA LOCAL INPATH '{folder}/000000_0' INTO TABLE l",
    "INSERT INTO l VALUES (5000, 'x'), (5001, NULL)",
    "DELETE FROM l WHERE id % 7 = 0 AND id < 3000",
    "UPDATE l SET n = 'u' WHERE id = 10",
]
OLD_FILES_QUESTIONS = [
    "SELECT count(*) FROM l",
    "SELECT count(*), sum(id) FROM l WHERE n = 'n3' AND id > 100",
    "SELECT sum(id), min(ROW__ID.rowId), max(ROW__ID.rowId), sum(ROW__ID.rowId) FROM l WHERE ROW__ID.writeId = 1",
    "SELECT a.id FROM l a JOIN l b ON a.id = b.id + 5000 WHERE b.id < 3",
    "SELECT * FROM {hive}",
    "SELECT count(*) FROM {hive} WHERE ROW__ID.rowId >= 0",
]
HIVE = "emp/13_major_cleaned"
"""What Hive's query-based compaction wrote: its event columns have lower-case names."""


def run(acid: AcidSession, written_by: str, folder: Path) -> dict[str, Answer]:
    """Carry out all changes, ask all questions; answers by statement. The folder is made for this run alone."""
    folder.mkdir(parents=True)
    write_original(folder / "000000_0")
    acid.sql(f"SET acidsql.write.driver.rows = {20000 if written_by == 'driver' else 0}")
    answers = {}
    for text in [*CHANGES, *key_statements(), *OLD_FILES]:
        answers[text] = ask(acid.sql, text.replace("{folder}", str(folder)))
    adopt(acid, HIVE, folder / "hive")
    return {**answers, **questions(acid)}


def questions(acid: AcidSession) -> dict[str, Answer]:
    """The answers to the questions alone."""
    table = HIVE.split("/")[0]
    asked = [*QUESTIONS, *key_questions(), *OLD_FILES_QUESTIONS]
    return {text: ask(acid.sql, text.replace("{hive}", table)) for text in asked}


def differences(expected: dict[str, Answer], found: dict[str, Answer]) -> str:
    """What is not as expected, for a reader."""
    other: list[Any] = [
        {"statement": text, "expected": repr(answer)[:400], "found": repr(found.get(text))[:400]}
        for text, answer in expected.items()
        if found.get(text) != answer
    ]
    return json.dumps(other, indent=1, ensure_ascii=False) if other else ""
