"""Every step of the Hive-written tables reads as Hive itself read it: rows and row ids, in all directory forms.

``pb`` is here with one step only, for its size.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row

from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.session import AcidSession
from tests.spark.hive_tables import GOLDEN, register_golden

STEPS = sorted(str(p.parent.relative_to(GOLDEN)) for p in GOLDEN.glob("*/*/meta.json"))


def adopt(acid: AcidSession, step: str, target: Path) -> str:
    """Take a copy of a Hive-written directory in, with Hive's own DDL and the write ids that Hive's reader saw."""
    meta = json.loads((GOLDEN / step / "meta.json").read_text())
    shutil.copytree(GOLDEN / step / "data", target)
    [valid] = meta["validWriteIds"]
    hidden = ",".join(str(w) for w in valid["invalidWriteIds"])
    text = f"{valid['fullTableName']}:{valid['writeIdHighWaterMark']}:9223372036854775807::{hidden}"
    ddl = re.sub(r"LOCATION\s+'[^']*'", f"LOCATION '{target}'", meta["ddl"])
    ddl = ddl.replace("'transactional'='true'", f"'transactional'='true', 'acidsql.valid.write.ids'='{text}'")
    acid.sql(ddl)
    return str(meta["table"])


def _truncated(text: str) -> str:
    """A Hive timestamp as Spark can hold it: microseconds, trailing zeros of the fraction dropped."""
    seconds, _, fraction = text.partition(".")
    fraction = fraction[:6].rstrip("0")
    return f"{seconds}.{fraction}" if fraction else seconds


def _hive(value: Any, type: str) -> Any:
    """A value of rows.json in a form that can be compared."""
    if value is None or type.startswith(("int", "tiny", "small", "big", "string", "varchar", "char", "bool", "date")):
        return value
    if type.startswith("timestamp"):
        return _truncated(value)
    if type.startswith(("float", "double")):
        return _number(float(value))
    if type.startswith(("array", "map", "struct")):
        return _nested(json.loads(value))
    return value


def _nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _nested(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_nested(v) for v in value]
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", value):
        return _truncated(value)
    return _number(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _number(value: float) -> Any:
    return "nan" if math.isnan(value) else value


def _ours(value: Any, type: str, nested: bool = False) -> Any:
    """A collected value in the same form."""
    if isinstance(value, bytearray | bytes):
        return "hex:" + bytes(value).hex()
    if isinstance(value, dt.datetime):
        text = f"{value.year:04d}-{value:%m-%d %H:%M:%S}"
        return _truncated(f"{text}.{value.microsecond:06d}")
    if isinstance(value, dt.date):
        return f"{value.year:04d}-{value:%m-%d}"
    if isinstance(value, Decimal):
        return _number(float(value)) if nested else format(value, "f")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return _number(value)
    if hasattr(value, "asDict"):
        return {k: _ours(v, "", True) for k, v in value.asDict().items()}
    if isinstance(value, dict):
        return {k: _ours(v, "", True) for k, v in value.items()}
    if isinstance(value, list):
        return [_ours(v, "", True) for v in value]
    return _number(float(value)) if nested and isinstance(value, int) else value


def _single(value: Any, type: str) -> Any:
    """A float in single precision, whose shortest text differs between Hive and Python."""
    return str(np.float32(value)) if type.startswith("float") and isinstance(value, float) else value


def _key(row: list[Any]) -> str:
    return json.dumps(row, default=str, sort_keys=True)


def test_all_tables_are_here() -> None:
    tables = {s.split("/")[0] for s in STEPS}
    buckets = {t for t in tables if t.startswith("bk")}
    assert tables - buckets == {"ab", "dyn", "emp", "evo", "mm", "mmp", "orig", "ow", "pb", "un", "wide"}
    assert len(buckets) == 17


@pytest.mark.parametrize("step", STEPS)
def test_a_hive_written_step_reads_as_hive_read_it(acid: AcidSession, tmp_path: Path, step: str) -> None:
    table = register_golden(acid, step, tmp_path / "taken")
    has_row_ids = (GOLDEN / step / "rowid.json").exists()
    answer = json.loads((GOLDEN / step / f"{'rowid' if has_row_ids else 'rows'}.json").read_text())["rows"]

    names, types = [c.name for c in table.all_columns], [c.type for c in table.all_columns]
    shown = [f"string({c})" if t == "timestamp" else c for c, t in zip(names, types, strict=True)]  # PySpark: year 1
    rows = acid.sql(f"SELECT {'ROW__ID, ' if has_row_ids else ''}{', '.join(shown)} FROM {table.name}").collect()

    ours = [_our_row(row, types, has_row_ids) for row in rows]
    theirs = [_hive_row(row, types, has_row_ids) for row in answer]
    assert sorted(ours, key=_key) == sorted(theirs, key=_key)
    assert acid.sql(f"SELECT count(*) FROM {table.name}").collect()[0][0] == len(theirs)


def _our_row(row: Row, types: list[str], has_row_id: bool) -> list[Any]:
    values = [_single(_ours(v, t), t) for v, t in zip(row[has_row_id:], types, strict=True)]
    if not has_row_id:
        return values
    identity = {"writeid": row[0].writeId, "bucketid": row[0].bucketId, "rowid": row[0].rowId}
    return [json.dumps(identity, separators=(",", ":")), *values]


def _hive_row(row: list[Any], types: list[str], has_row_id: bool) -> list[Any]:
    # Hive shows the NULL of a string key as the name of its directory; it is NULL, as for every other type
    told = [None if v == DEFAULT_PARTITION else v for v in row[2 * has_row_id :]]
    values = [_single(_hive(v, t), t) for v, t in zip(told, types, strict=True)]
    return [row[0], *values] if has_row_id else values


@pytest.mark.parametrize("step", [s for s in STEPS if s.split("/")[0] in ("emp", "dyn", "wide")])
def test_a_hive_written_directory_is_taken_in_with_hives_own_ddl(acid: AcidSession, tmp_path: Path, step: str) -> None:
    table = adopt(acid, step, tmp_path / "adopted")
    rows = json.loads((GOLDEN / step / "rowid.json").read_text())["rows"]
    assert acid.sql(f"SELECT count(*) FROM {table}").collect()[0][0] == len(rows)
