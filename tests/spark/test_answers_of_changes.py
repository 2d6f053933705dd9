"""What a change answers is a DataFrame as any other."""

from __future__ import annotations

from acidsql.session import AcidSession


def test_answers_with_equal_counts_are_apart(acid: AcidSession) -> None:
    """Spark calls the columns of one and the same frame ambiguous where it is joined with itself."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    one, two = (acid.sql(f"UPDATE t SET id = id + 10 WHERE id = {n}") for n in (1, 2))
    joined = one.join(two, one.num_affected_rows == two.num_affected_rows)
    assert joined.select(one.num_updated_rows, two.num_deleted_rows).collect() == [(1, 0)]
    less = one.join(two, one.num_affected_rows > two.num_affected_rows, "left")
    assert less.select(one.num_updated_rows, two.num_updated_rows).collect() == [(1, None)]
