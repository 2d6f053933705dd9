"""The same rows twice: as ACID tables, and as Spark's own Parquet tables of the same names.

The plain tables live in a Spark session with a catalog of its own, above the same SparkContext. So both sides know
``a.t`` and ``spark_catalog.a.t``, and neither sees the other's tables: a name that acidsql does not resolve is an
error, not an answer of the plain table.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from acidsql.session import AcidSession
from tests.oracle.answers import Answer, Refusal, ask

Row = Sequence[Any]


def session_with_own_catalog(spark: SparkSession) -> SparkSession:
    """A Spark session that shares nothing but the SparkContext with another one."""
    jvm = spark._jvm
    assert jvm is not None
    made = getattr(jvm, "org.apache.spark.sql.classic.SparkSession")(spark._jsc.sc(), jvm.java.util.HashMap())
    return SparkSession(spark.sparkContext, made)


def fields(columns: str) -> StructType:
    """Columns as DDL, read by Spark."""
    made = StructType.fromDDL(columns)
    assert isinstance(made, StructType)
    return made


def table_of(spark: SparkSession, columns: str, rows: Sequence[Row]) -> DataFrame:
    """A local DataFrame of rows whose columns and types are given as DDL; what is ``char`` there are strings here."""
    schema = _arrow_schema(fields(re.sub(r"\b(?:var)?char\(\d+\)", "string", columns, flags=re.I)))
    values = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(values, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def _arrow_schema(schema: StructType) -> pa.Schema:
    zone: dict[str, Any] = (
        {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    )  # Spark 4.3
    return to_arrow_schema(schema, **zone)


class Twins:
    """An acidsql session and a plain Spark session that hold the same tables."""

    def __init__(self, acid: AcidSession, plain: SparkSession, folder: Path) -> None:
        self.acid, self.plain, self.folder = acid, plain, folder
        self._databases: list[str] = []
        self._tables: dict[str, tuple[str, str]] = {}

    def database(self, name: str) -> None:
        self.acid.sql(f"CREATE DATABASE {name}")
        self.plain.sql(f"CREATE DATABASE {name} LOCATION 'file:{self.folder}/plain/{name}'")
        self._databases.append(name)

    def use(self, database: str) -> None:
        self.acid.sql(f"USE {database}")
        self.plain.sql(f"USE {database}")

    def table(self, name: str, columns: str, rows: Sequence[Row], *, keys: str = "", worn: bool = True) -> None:
        """Make a table on both sides.

        Args:
            name: Its name, with the database.
            columns: Columns as DDL, those of ``keys`` left out.
            rows: Values in the order of the columns, then of the keys.
            keys: Partition keys as DDL.
            worn: Whether the ACID table also has rows that were deleted, and others that were written anew.
        """
        everything = ", ".join(filter(None, (columns, keys)))
        partitioned = f" PARTITIONED BY ({keys})" if keys else ""
        self.acid.sql(f"CREATE TRANSACTIONAL TABLE {name} ({columns}){partitioned}")
        names = ", ".join(f"`{f.name}`" for f in fields(keys)) if keys else ""
        partitioned = f" PARTITIONED BY ({names})" if keys else ""
        self.plain.sql(f"CREATE TABLE {name} ({everything}) USING parquet{partitioned}")
        self._tables[name] = (everything, fields(columns)[0].name)
        self.fill(name, rows, worn=worn)

    def fill(self, name: str, rows: Sequence[Row], *, worn: bool = True) -> None:
        """Put rows into an empty table of both sides."""
        columns, first = self._tables[name]
        if rows:
            table_of(self.plain, columns, rows).write.insertInto(name)
        frame = table_of(self.acid.spark, columns, rows)
        if worn and rows:
            self.acid.insert(table_of(self.acid.spark, columns, rows[::3]), name)
            self.acid.sql(f"DELETE FROM {name}")
        self.acid.insert(frame, name)
        if worn and rows:
            self.acid.sql(f"UPDATE {name} SET `{first}` = `{first}` WHERE hash(`{first}`) % 3 = 0")

    def overwrite(self, name: str, rows: Sequence[Row]) -> None:
        """Replace the rows of the ACID table, those of the partitions that get some; the plain one is left alone."""
        columns, _ = self._tables[name]
        self.acid.insert(table_of(self.acid.spark, columns, rows), name, overwrite=True)

    def both(self, text: str, *, ordered: bool = False) -> tuple[Answer, Answer]:
        """What acidsql answers, and what Spark does over the plain tables."""
        return ask(self.acid.sql, text, ordered=ordered), ask(self.plain.sql, text, ordered=ordered)

    def same(self, text: str, *, ordered: bool = False) -> Answer:
        """The answer, which must be the same of both."""
        ours, theirs = self.both(text, ordered=ordered)
        told = f"{text}\nacidsql: {ours}\nSpark:   {theirs}"
        assert ours == theirs, told
        return theirs

    def answered(self, text: str, *, ordered: bool = False) -> Answer:
        """As :meth:`same`, of a query that is meant to have an answer."""
        answer = self.same(text, ordered=ordered)
        assert not isinstance(answer, Refusal), f"{text}\n{answer}"
        return answer

    def close(self) -> None:
        """Remove the plain tables: their catalog is that of the whole run."""
        self.plain.sql("USE default")
        for name in self._databases:
            self.plain.sql(f"DROP DATABASE {name} CASCADE")
