"""Original files: files without event columns in a full-ACID table, and the row ids that Hive gives their rows.

They are there since before the table was transactional, or LOAD DATA put them into a base or delta. A row's identity
is made up by readers, all in the same way (``VectorizedOrcAcidRowBatchReader``: ``computeOffsetAndBucket``): the write
id of the directory, the ``bucket`` value of the file's number, and the row's number in all files of that number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from acidsql.errors import UnsupportedError
from acidsql.format.bucket import encode
from acidsql.format.directory import AcidFile
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.tail import Stripe


@dataclass(frozen=True)
class OriginalFile:
    """An original file and the identity of its rows.

    Attributes:
        file: The file.
        write_id: ``originalTransaction`` of its rows.
        bucket: Their ``bucket`` value.
        first_row_id: ``rowId`` of the first row; the others count on.
        stripes: Its stripes.
    """

    file: AcidFile
    write_id: int
    bucket: int
    first_row_id: int
    stripes: tuple[Stripe, ...]

    def row_id_at(self, offset: int) -> int:
        """``rowId`` of the first row that a reader gives who starts at a byte of the file.

        A stripe is read by whoever reads its first byte (``RecordReaderImpl``).
        """
        return self.first_row_id + sum(s.rows for s in self.stripes if s.offset < offset)


def number_originals(
    files: Sequence[AcidFile],
    directory: BaseName | DeltaName | None,
    stripes_of: Callable[[AcidFile], tuple[Stripe, ...]],
) -> Iterator[OriginalFile]:
    """Give the rows of original files their ids.

    Args:
        files: All original files of one directory (a base, a delta, or what is outside of them), also below it: rows
            are counted through them by path. Empty ones hold no rows.
        directory: The base or delta; None for what is outside.
        stripes_of: Reads the stripes of a file.

    Raises:
        UnsupportedError: When a file has no bucket number in its name: Hive could not number its rows either.
        AcidError: When a bucket number is out of range.
    """
    write_id, statement_id = 0, 0
    if isinstance(directory, DeltaName):
        write_id, statement_id = directory.min_write_id, directory.statement_id
    elif directory is not None:
        write_id = directory.write_id
    counted: defaultdict[int, int] = defaultdict(int)
    for file in sorted(files, key=lambda f: f.path):
        if not file.length:
            continue
        if file.bucket_id < 0:
            raise UnsupportedError(
                f"{file.path} has no bucket number in its name, so its rows have no row ids",
                hint="Hive's own files are named 000000_0, 000000_0_copy_1 and so on.",
            )
        stripes = stripes_of(file)
        yield OriginalFile(file, write_id, encode(file.bucket_id, statement_id), counted[file.bucket_id], stripes)
        counted[file.bucket_id] += sum(stripe.rows for stripe in stripes)
