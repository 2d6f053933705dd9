"""Conversion of files with an old schema to the current one: copied by orc-core, as Hive and Spark would read them.

orc-core (``ConvertTreeReaderFactory``) defines the conversion of values of a retyped column. So a file with such a
column is copied once by the Java reader and writer, in batches that never reach Python; Spark's readers, which are
limited to microseconds, are not involved.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.errors import CorruptFile, UnsupportedError
from acidsql.format.orc_types import are_same_columns
from acidsql.format.schema import event_type
from acidsql.format.tail import OrcFooter
from acidsql.types import Struct, to_orc

_OPTIONS = {
    "orc.force.positional.evolution": "true",
    "orc.proleptic.gregorian": "false",
    "orc.schema.evolution.case.sensitive": "false",
}
_PREFIXES = ("orc.", "hive.exec.orc.", "hive.orc.", "hive.io.file.")
"""Of Hadoop's settings of ORC, under its own names and those of Hive."""
_LEVELS = "orc.force.positional.evolution.level"
"""For how many levels of structs fields are found by position: below the columns they are found by name."""


def needs_conversion(footer: OrcFooter, row_type: Struct) -> bool:
    """Whether a file has columns of other types than the table has now, or structs with fields of other names; columns
    added later do not count."""
    present = Struct(row_type.fields[: len(footer.row_type.fields)])
    return len(footer.row_type.fields) > len(row_type.fields) or not are_same_columns(footer.row_type, present)


def convert(
    spark: SparkSession | None, path: str, footer: OrcFooter, row_type: Struct, target: str, length: int | None = None
) -> None:
    """Copy a file to one with the table's types, keeping rows and their order.

    Args:
        spark: Its JVM converts the file.
        path: The file.
        footer: Its footer.
        row_type: The table's data columns.
        target: The new file.
        length: The logical end of the file; None for its physical end.

    Raises:
        UnsupportedError: When there is no JVM.
        CorruptFile: When orc-core cannot convert the file.
    """
    jvm: Any = None if spark is None else spark._jvm
    if spark is None or jvm is None:
        raise UnsupportedError(
            f"{path} has columns of other types than the table: only a compactor with Spark can convert it",
            hint="Run the compactor in a session: acid.compactor.run_once().",
        )
    session: Any = spark._jsparkSession
    configuration = session.sessionState().newHadoopConf()
    for prefix in _PREFIXES:  # what somebody has set for files is not meant for these
        for name in configuration.getPropsWithPrefix(prefix):
            configuration.unset(prefix + name)
    for name, value in _OPTIONS.items():
        configuration.set(name, value)
    configuration.set(_LEVELS, "2" if footer.is_acid else "1")
    wanted = event_type(row_type) if footer.is_acid else row_type
    try:
        _copy(jvm.org.apache, configuration, fs.spark_path(path), fs.spark_path(target), to_orc(wanted), length)
    except Py4JJavaError as e:
        raise CorruptFile(f"{path} cannot be converted to the table's types: {e.java_exception.getMessage()}") from e


def _copy(apache: Any, configuration: Any, path: str, target: str, schema_text: str, length: int | None = None) -> None:
    schema = apache.orc.TypeDescription.fromString(schema_text)
    orc, place = apache.orc.OrcFile, apache.hadoop.fs.Path
    how = orc.readerOptions(configuration).useUTCTimestamp(True)
    reader = orc.createReader(place(path), how if length is None else how.maxLength(length))
    try:
        rows = reader.rows(reader.options().schema(schema))
        options = orc.writerOptions(configuration).setSchema(schema).overwrite(True).useUTCTimestamp(True)
        writer = orc.createWriter(place(target), options.compress(apache.orc.CompressionKind.ZLIB))
        try:
            batch = schema.createRowBatch()
            while rows.nextBatch(batch):
                writer.addRowBatch(batch)
        finally:
            writer.close()
            rows.close()
    finally:
        reader.close()
