"""Examples of Spark's own documentation of its functions: a change stores what a query answers, under every setting.

A change runs in a session of acidsql's own, where Spark asks some settings anew (``SQLConf.get`` inside of an
expression); which these are no list can promise for each version of Spark, so they are all tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import acidsql
from acidsql.catalyst.sessions import _ASKED_LATE
from acidsql.session import AcidSession
from tests.oracle.spark_conf import settings

pytestmark = [pytest.mark.spark, pytest.mark.long]

Evaluate = Callable[[Sequence[str]], Sequence[str | None]]
Found = Mapping[str, str | None]
REFUSED = "refused"
ERRORS = (PySparkException, Py4JJavaError)
PLANNING = re.compile(
    r"spark\.sql\.(?!ansi|json|csv|icu|legacy|map|decimal|time|binary|collation|variant|lpad|fun|char)"
)
"""Settings that are not about what an expression gives: of plans, files, catalogs, streams."""
AT_ONCE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}


@pytest.fixture(scope="module")
def theirs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of Spark's with one row: a NULL of two types, which keep an expression from being constant."""
    path = str(tmp_path_factory.mktemp("theirs") / "t")
    spark.sql("SELECT CAST(NULL AS string) AS s, CAST(NULL AS int) AS n").write.parquet(path)
    return f"parquet.`{path}`"


@pytest.fixture(scope="module")
def ours(spark: SparkSession, theirs: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcidSession]:
    with acidsql.connect(spark, warehouse=tmp_path_factory.mktemp("ours") / "warehouse") as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (s string, n int, found array<string>)")
        acid.sql(f"INSERT INTO t SELECT s, n, NULL FROM {theirs}")
        yield acid


def texts(expressions: Sequence[str]) -> str:
    return f"array({', '.join(f'CAST({e} AS string)' for e in expressions)})"


def each(evaluate: Evaluate, expressions: Sequence[str]) -> dict[str, str | None]:
    """What each of the expressions gives: as many at a time as are not refused."""
    try:
        return dict(zip(expressions, evaluate(expressions), strict=True))
    except ERRORS:
        if len(expressions) == 1:
            return {expressions[0]: REFUSED}
    half = len(expressions) // 2
    return each(evaluate, expressions[:half]) | each(evaluate, expressions[half:])


@pytest.fixture(scope="module")
def asked(spark: SparkSession, theirs: str) -> Evaluate:
    """By a query of Spark's own."""

    def evaluate(expressions: Sequence[str]) -> Sequence[str | None]:
        [[found]] = spark.sql(f"SELECT {texts(expressions)} FROM {theirs}").collect()
        return list(found)

    return evaluate


def stored(acid: AcidSession, statement: str) -> Evaluate:
    """By a statement that changes a table."""

    def evaluate(expressions: Sequence[str]) -> Sequence[str | None]:
        acid.sql(statement.format(texts(expressions)))
        [[found]] = acid.sql("SELECT found FROM t").collect()
        return list(found)

    return evaluate


@pytest.fixture(scope="module")
def examples(spark: SparkSession, asked: Evaluate) -> list[str]:
    """All that give the same twice, each as it stands there and with columns where it has constants."""
    found: dict[str, None] = {}
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        if not re.fullmatch(r"\w+", name):
            continue
        usage = "\n".join(r[0] for r in spark.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect())
        for text in re.findall(r"^\s*> SELECT (.*);\s*$", usage, re.MULTILINE):
            if not re.search(r"\bFROM\b|\bOVER\b|--|#", text):
                found[text] = None
                varied = re.sub(r"(?<=[(,] )('[^'\\]*')(?=[,)])|(?<=\()('[^'\\]*')(?=[,)])", r"nvl(s, \1\2)", text)
                found[re.sub(r"(?<=[(,] )(\d+)(?=[,)])", r"nvl(n, \1)", varied)] = None
    scalar = [e for e in found if _is_scalar(spark, e)]
    first, second = each(asked, scalar), each(asked, scalar)
    return [e for e in scalar if REFUSED != first[e] == second[e]]


def _is_scalar(spark: SparkSession, expression: str) -> bool:
    """Whether it is what SET may assign: no aggregate, no generator, one column."""
    text = f"SELECT 1 FROM VALUES (CAST(NULL AS string), 1) v(s, n) WHERE CAST({expression} AS string) = ''"
    try:
        return bool(spark.sql(text)._jdf.queryExecution().analyzed().deterministic())
    except ERRORS:
        return False


def late(spark: SparkSession) -> dict[str, str]:
    """All that is known to be asked late, with the other value than now."""
    given = {n: v for n, v in flipped(spark) if n.startswith(_ASKED_LATE)}
    return given | AT_ONCE


def flipped(spark: SparkSession) -> list[tuple[str, str]]:
    """The settings that are on or off, each with what it is not."""
    other = {"true": "false", "false": "true"}
    jvm: Any = spark._jvm
    companion = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    entries = list(companion.getConfigEntries().toArray())  # SET -v leaves internal ones out
    defaults = {str(e.key()): str(e.defaultValueString()) for e in entries}
    tried = [(n, other[spark.conf.get(n, v) or v]) for n, v in defaults.items() if v in other]
    return sorted((n, v) for n, v in tried if not PLANNING.match(n) and spark.conf.isModifiable(n))


def differences(
    spark: SparkSession, acid: AcidSession, asked: Evaluate, examples: list[str], plain: Found, given: dict[str, str]
) -> tuple[Found, list[object]]:
    """What Spark's query gives under some settings, and what a change stores otherwise."""
    differing: list[object] = []
    with settings(spark, given):
        expected = each(asked, examples)
        if expected == plain:  # ours is asked only where the setting tells something in Spark
            return expected, []
        answered = [e for e in examples if expected[e] != REFUSED]
        for statement in ("UPDATE t SET found = {}", "INSERT OVERWRITE t SELECT s, n, {} FROM t"):
            found = each(stored(acid, statement), answered)
            differing += [(given, statement, e, found[e], expected[e]) for e in answered if found[e] != expected[e]]
    return expected, differing


@pytest.mark.parametrize("writer", ["driver", "job"])
def test_all_examples_under_what_is_asked_late(
    spark: SparkSession, ours: AcidSession, asked: Evaluate, examples: list[str], writer: str
) -> None:
    ours.sql(f"SET acidsql.write.driver.rows = {20000 if writer == 'driver' else 0}")
    assert len(examples) > 400
    plain = each(asked, examples)
    changed, differing = differences(spark, ours, asked, examples, plain, late(spark))
    assert differing == []
    assert sum(changed[e] not in (plain[e], REFUSED) for e in examples) > 10, "the settings tell nothing"


def test_all_examples_under_each_setting(
    spark: SparkSession, ours: AcidSession, asked: Evaluate, examples: list[str]
) -> None:
    tried = flipped(spark)
    assert len(tried) > 60
    plain = each(asked, examples)
    found = {n: differences(spark, ours, asked, examples, plain, {n: v})[1] for n, v in tried}
    assert {n: differing for n, differing in found.items() if differing} == {}
