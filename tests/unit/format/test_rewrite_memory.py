"""A compaction's memory is that of a few stripes, however large the bucket is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STRIPES = 60
STRIPE_MB = 2
MOST_MB = STRIPES * STRIPE_MB // 2

SCRIPT = f"""
import os, resource, sys
import numpy as np, pyarrow as pa
from acidsql.format import rewrite
from acidsql.format.bucket import encode
from acidsql.format.inputs import InputFile
from acidsql.format.orc import read_keys, write_deletes
from acidsql.format.schema import EVENT_COLUMNS, KEY_COLUMNS, AcidStats, RecordKey, acid_metadata, event_type
from acidsql.format.stripes import StripeFile
from acidsql.fs import LocalFileSystem
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidWriteIdList

ROWS, SIZE = 2000, {STRIPE_MB} * 1000000 // 2000
fs, folder = LocalFileSystem(), sys.argv[1]
types = Struct((("b", parse_type("binary")),))

def events(first):
    ids = np.arange(first, first + ROWS, dtype=np.int64)
    same = pa.array(np.ones(ROWS, np.int64))
    rows = pa.StructArray.from_arrays([pa.array([os.urandom(SIZE) for _ in ids], pa.binary())], names=["b"])
    buckets = pa.array(np.full(ROWS, encode(0), np.int32))
    columns = [pa.array(np.zeros(ROWS, np.int32)), same, buckets, pa.array(ids), same, rows]
    return pa.record_batch(columns, names=list(EVENT_COLUMNS))

source = StripeFile(fs.open_write(folder + "/source"), event_type(types), compression="none")
last = []
for stripe in range({STRIPES}):
    source.write([events(stripe * ROWS)])
    last.append(RecordKey(1, encode(0), (stripe + 1) * ROWS - 1))
source.close(acid_metadata(AcidStats(inserts=source.rows), last))
keys = pa.table([[1] * {STRIPES}, [encode(0)] * {STRIPES}, [i * ROWS for i in range({STRIPES})]], names=KEY_COLUMNS)
write_deletes(fs, folder + "/deletes", types, keys, write_id=2)

work = rewrite.Rewrite(
    folder + "/target", types, "none", ValidWriteIdList("d.t", 2),
    (InputFile(folder + "/source", 0),), (InputFile(folder + "/deletes", 1),),
    sizes=rewrite.StripeSizes(group_bytes={STRIPE_MB} * 1000000),
)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = rewrite.rewrite_rows(fs, work)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert (done.rows, done.dropped, done.encoded) == ({STRIPES} * (ROWS - 1), {STRIPES}, {STRIPES}), done
print((after - before) >> 10)
"""


def test_given_a_bucket_of_many_stripes_when_all_are_encoded_anew_then_no_more_than_a_few_are_in_memory(
    tmp_path: Path,
) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target").stat().st_size > STRIPES * STRIPE_MB * 1_000_000 * 0.99
    assert int(done.stdout) < MOST_MB, done.stdout
