"""The columns of files by their names."""

from __future__ import annotations

from acidsql.metastore.model import Column, Table
from acidsql.plan.layout import EventFiles


def test_a_column_that_files_lack_has_a_name_of_none_in_them() -> None:
    """Two of one name cannot be read: a file of another table may have any name, before it is renamed here."""
    table = Table("d", "t", "", tuple(Column(name, "int") for name in "kxyz"))
    files = EventFiles(("__ACID_at_2", "__acid_at__"), (), (), False, own_names=False, by_position=False)
    assert len({name.lower() for name, _ in files.columns(table)}) == 4
