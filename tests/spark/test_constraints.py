"""Constraints that come and go with ALTER TABLE, those that are only declared, and how they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from acidsql.errors import AcidError, AnalysisError, ConstraintViolation, LockTimeout
from acidsql.metastore.model import Constraint, ConstraintKind, LockComponent, LockRequest, LockType, Operation, Table
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.tree import tree

Rows = list[tuple[object, ...]]


def rows(acid: AcidSession, text: str) -> Rows:
    return sorted((tuple(r) for r in acid.sql(text).collect()), key=repr)


def emp_of(acid: AcidSession) -> Table:
    return acid.metastore.get_table("default", "emp")


def names(acid: AcidSession) -> set[str | None]:
    return {c.name for c in emp_of(acid).constraints}


@pytest.fixture
def emp(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string, salary int)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 50), (2, 'Bob', -5), (3, NULL, 60)")
    return acid


# --- CHECK -----------------------------------------------------------------------------------------------------------


def test_a_check_binds_the_rows_that_come_and_leaves_those_that_are_there(emp: AcidSession) -> None:
    assert emp.sql("ALTER TABLE emp ADD CONSTRAINT Paid CHECK (salary > 0) ENABLE NOVALIDATE RELY").columns == []
    emp.sql("ALTER TABLE emp ADD CONSTRAINT known CHECK (name <> 'X')")
    assert rows(emp, "SELECT id FROM emp WHERE salary < 0") == [(2,)]
    with pytest.raises(ConstraintViolation, match="salary > 0"):
        emp.sql("INSERT INTO emp VALUES (4, 'Dan', 0)")
    with pytest.raises(ConstraintViolation, match="salary > 0"):
        emp.sql("UPDATE emp SET name = 'bob' WHERE id = 2")
    with pytest.raises(ConstraintViolation, match="name <> 'X'"):
        emp.sql(
            "MERGE INTO emp USING (SELECT 9 AS id) s ON emp.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (9, 'X', 1)"
        )
    emp.sql("UPDATE emp SET salary = 5 WHERE id = 2")
    emp.sql("ALTER TABLE emp DROP CONSTRAINT PAID")
    emp.sql("INSERT INTO emp VALUES (4, 'Dan', 0)")
    with pytest.raises(ConstraintViolation, match="name <> 'X'"):
        emp.sql("INSERT INTO emp VALUES (5, 'X', 1)")
    assert [(c.expression, c.name) for c in emp_of(emp).table_constraints] == [("name <> 'X'", "known")]


def test_change_column_declares_constraints_by_name(emp: AcidSession) -> None:
    emp.sql("ALTER TABLE emp CHANGE COLUMN salary pay int CONSTRAINT filled DEFAULT 7 ENABLE COMMENT 'a month'")
    emp.sql("ALTER TABLE emp CHANGE pay pay bigint CONSTRAINT small CHECK (pay < 1000) ENABLE")
    emp.sql("ALTER TABLE emp CHANGE id id int CONSTRAINT there NOT NULL ENABLE")
    assert names(emp) == {"filled", "small", "there"}
    emp.sql("INSERT INTO emp (id) VALUES (4)")
    assert rows(emp, "SELECT * FROM emp WHERE id = 4") == [(4, None, 7)]
    for wrong in ("(NULL, 'x', 1)", "(5, 'x', 1000)"):
        with pytest.raises(ConstraintViolation):
            emp.sql(f"INSERT INTO emp VALUES {wrong}")
    for name in ("filled", "small", "there"):
        emp.sql(f"ALTER TABLE emp DROP CONSTRAINT {name}")
    emp.sql("INSERT INTO emp (name) VALUES ('x')")
    assert rows(emp, "SELECT * FROM emp WHERE id IS NULL") == [(None, "x", None)]
    assert emp_of(emp).columns[2].comment == "a month"


def test_not_null_looks_at_the_rows_unless_it_is_told_not_to(emp: AcidSession) -> None:
    with pytest.raises(AnalysisError, match="some rows have NULL in it"):
        emp.sql("ALTER TABLE emp CHANGE name name string CONSTRAINT known NOT NULL ENABLE")
    emp.sql("ALTER TABLE emp CHANGE name name string CONSTRAINT known NOT NULL ENABLE NOVALIDATE")
    assert rows(emp, "SELECT id FROM emp WHERE name IS NULL") == [(3,)]
    with pytest.raises(ConstraintViolation):
        emp.sql("INSERT INTO emp VALUES (4, NULL, 1)")


def test_add_and_drop_advance_the_write_id_and_wait_for_writers(emp: AcidSession) -> None:
    """Hive's testAddAndDropConstraintAdvancingWriteIds."""

    def high() -> int:
        [valid] = emp.metastore.get_valid_write_ids(["default.emp"], emp.metastore.get_valid_txns())
        return valid.high_watermark

    assert high() == 1
    emp.sql("ALTER TABLE emp ADD CONSTRAINT pk PRIMARY KEY (id) DISABLE NOVALIDATE")
    assert high() == 2
    emp.sql("ALTER TABLE emp DROP CONSTRAINT pk")
    assert high() == 3
    emp.sql("ALTER TABLE emp DROP CONSTRAINT IF EXISTS pk")
    assert high() == 3
    [txn] = emp.metastore.open_txns(user="olga", host="far")
    held = LockComponent(LockType.EXCL_WRITE, "default", "emp", operation=Operation.UPDATE)
    emp.metastore.lock(LockRequest((held,), txn, "olga", "far"))
    emp.sql("SET acidsql.lock.timeout = 100ms")
    with pytest.raises(LockTimeout):
        emp.sql("ALTER TABLE emp ADD CONSTRAINT c CHECK (id > 0)")
    emp.metastore.commit_txn(txn)


# --- declared, and not enforced --------------------------------------------------------------------------------------


def test_keys_are_kept_and_bind_nobody(emp: AcidSession) -> None:
    emp.sql(
        "CREATE TRANSACTIONAL TABLE dept (id int, city string, CONSTRAINT dept_pk PRIMARY KEY (id, city) DISABLE"
        " NOVALIDATE RELY, boss int UNIQUE DISABLE NOVALIDATE)"
    )
    emp.sql("ALTER TABLE emp ADD CONSTRAINT emp_pk PRIMARY KEY (id) DISABLE NOVALIDATE RELY")
    emp.sql("ALTER TABLE emp ADD CONSTRAINT emp_uk UNIQUE (name, id) DISABLE NOVALIDATE")
    emp.sql("ALTER TABLE emp ADD CONSTRAINT fk FOREIGN KEY (id, name) REFERENCES dept (id, city) DISABLE NOVALIDATE")
    emp.sql("ALTER TABLE emp ADD CONSTRAINT boss FOREIGN KEY (id) REFERENCES emp (id) DISABLE NOVALIDATE RELY")
    emp.sql("ALTER TABLE emp ADD CONSTRAINT rich CHECK (salary > 100) DISABLE NOVALIDATE")
    emp.sql("ALTER TABLE emp CHANGE salary salary int NOT NULL DISABLE NOVALIDATE RELY")
    emp.sql("INSERT INTO emp VALUES (1, 'Ann', NULL), (NULL, NULL, 3)")
    kinds = ConstraintKind
    assert emp_of(emp).informational == (
        Constraint(kinds.PRIMARY_KEY, ("id",), rely=True),
        Constraint(kinds.UNIQUE, ("name", "id")),
        Constraint(kinds.FOREIGN_KEY, ("id", "name"), parent="default.dept", parent_columns=("id", "city")),
        Constraint(kinds.FOREIGN_KEY, ("id",), rely=True, parent="default.emp", parent_columns=("id",)),
        Constraint(kinds.CHECK, expression="salary > 100"),
        Constraint(kinds.NOT_NULL, ("salary",), rely=True),
    )
    emp.sql("ALTER TABLE emp CHANGE id number bigint")
    emp.sql("ALTER TABLE dept RENAME COLUMN city TO place")
    emp.sql("ALTER TABLE emp RENAME COLUMN salary TO pay")
    found = {c.name: c for c in emp_of(emp).informational}
    assert (found["emp_pk"].columns, found["emp_uk"].columns) == (("number",), ("name", "number"))
    assert (found["fk"].columns, found["fk"].parent_columns) == (("number", "name"), ("id", "place"))
    assert found["rich"].expression == "`pay` > 100"
    for name in ("boss", "emp_pk", "rich"):
        emp.sql(f"ALTER TABLE emp DROP CONSTRAINT {name}")
    assert len(emp_of(emp).informational) == 3


def test_show_create_table_makes_the_same_constraints_again(emp: AcidSession) -> None:
    emp.sql("CREATE TRANSACTIONAL TABLE dept (id int, PRIMARY KEY (id) DISABLE NOVALIDATE)")
    emp.sql(
        "CREATE TRANSACTIONAL TABLE a (`the id` int CONSTRAINT there NOT NULL, b string DEFAULT 'x' CHECK (b <> ''),"
        " CONSTRAINT pk PRIMARY KEY (`the id`, b) DISABLE NOVALIDATE RELY, UNIQUE (b) DISABLE,"
        " CONSTRAINT fk FOREIGN KEY (`the id`) REFERENCES dept (id) NOT ENFORCED, CONSTRAINT c CHECK (`the id` > 0),"
        " CONSTRAINT d CHECK (b > 'a') DISABLE)"
    )
    text = emp.sql("SHOW CREATE TABLE a").collect()[0].createtab_stmt
    assert "  CHECK (b <> ''),\n  CONSTRAINT `c` CHECK (`the id` > 0))" in text
    assert "  UNIQUE (`b`) DISABLE NOVALIDATE,\n" in text
    made = emp.metastore.get_table("default", "a")
    emp.sql("DROP TABLE a")
    emp.sql(text)
    again = emp.metastore.get_table("default", "a")
    assert set(again.constraints) == set(made.constraints)
    given = {"there", "pk", "fk", "c", "d"}
    assert given <= {c.name for c in again.constraints}
    emp.sql("CREATE TRANSACTIONAL TABLE b LIKE a")
    assert emp.metastore.get_table("default", "b").checks == made.checks


def test_describe_formatted_lists_them_by_kind_as_hive_does(emp: AcidSession) -> None:
    emp.sql("ALTER TABLE emp ADD CONSTRAINT pk PRIMARY KEY (id, name) DISABLE NOVALIDATE")
    emp.sql("ALTER TABLE emp ADD CONSTRAINT uk UNIQUE (name) DISABLE NOVALIDATE")
    emp.sql("ALTER TABLE emp ADD CONSTRAINT fk FOREIGN KEY (name) REFERENCES emp (name) DISABLE NOVALIDATE")
    emp.sql("ALTER TABLE emp ADD CONSTRAINT c CHECK (id > 0)")
    emp.sql("ALTER TABLE emp CHANGE id id int CONSTRAINT nn NOT NULL ENABLE")
    found = [tuple(r) for r in emp.sql("DESCRIBE FORMATTED emp").collect()]
    blank, table = ("", None, None), ("Table:", "default.emp", None)
    assert found[found.index(("# Constraints", None, None)) :] == [
        ("# Constraints", None, None),
        *[blank, ("# Primary Key", None, None), table, ("Constraint Name:", "pk", None)],
        *[("Column Name:", "id", None), ("Column Name:", "name", None)],
        *[blank, ("# Foreign Keys", None, None), table, ("Constraint Name:", "fk", None)],
        *[("Parent Column Name:default.emp.name", "Column Name:name", "Key Sequence:1"), blank],
        *[blank, ("# Unique Constraints", None, None), table, ("Constraint Name:", "uk", None)],
        *[("Column Name:name", "Key Sequence:1", None), blank],
        *[blank, ("# Not Null Constraints", None, None), table, ("Constraint Name:", "nn", None)],
        *[("Column Name:", "id", None), blank],
        *[blank, ("# Check Constraints", None, None), table, ("Constraint Name:", "c", None)],
        *[("Check Value:", "id > 0", None), blank],
    ]


# --- refused ---------------------------------------------------------------------------------------------------------

REFUSED = [
    ("ADD CONSTRAINT k PRIMARY KEY (id)", 10326, "1:25", "ENABLE/ENFORCED feature not supported yet"),
    ("ADD CONSTRAINT uk UNIQUE (id) ENABLE NOVALIDATE", 10326, "1:25", "Please use DISABLE/NOT ENFORCED instead"),
    ("ADD CONSTRAINT uk UNIQUE (id) DISABLE VALIDATE", 10326, "1:25", "VALIDATE feature not supported yet"),
    ("ADD CONSTRAINT d CHECK (id > 0) ENABLE VALIDATE", 10326, "1:25", "VALIDATE feature not supported yet"),
    ("ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES emp (id) ENABLE", 10325, "1:25", "ENABLE feature not supported"),
    ("ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES emp DISABLE", 10325, "1:25", "number of foreign key columns"),
    ("ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES nope (id) DISABLE", 10001, "1:67", "Parent table not found"),
    ("ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES emp (nope) DISABLE", 10002, "1:72", "nope"),
    ("ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES emp (salary) DISABLE", 40000, "1:25", "no corresponding primary"),
    ("ADD CONSTRAINT pk2 PRIMARY KEY (name) DISABLE", 40000, "1:25", "Primary key already exists"),
    ("ADD CONSTRAINT uk UNIQUE (nope) DISABLE", 10002, "1:47", "Invalid column reference nope"),
    ("ADD CONSTRAINT C CHECK (id > 0)", 40000, "1:36", "Constraint name already exists: c"),
    (f"ADD CONSTRAINT {'x' * 256} CHECK (id > 0)", 10326, "1:36", "exceeded maximum allowed length: 255"),
    ("ADD CONSTRAINT d CHECK (salary)", 10326, None, "boolean condition"),
    ("ADD CONSTRAINT d CHECK (nope > 0)", None, None, "nope"),
    ("ADD CONSTRAINT d CHECK (id IN (SELECT 1))", 10326, None, "subquery"),
    ("ADD CONSTRAINT d CHECK (rand() > 0)", 10326, None, "must be deterministic"),
    ("CHANGE id id int CONSTRAINT c NOT NULL", 40000, "1:49", "Constraint name already exists: c"),
    ("CHANGE id id int PRIMARY KEY", 10326, "1:38", "ENABLE/ENFORCED feature not supported yet"),
    ("CHANGE id id int NOT NULL ENABLE VALIDATE", 10326, "1:38", "VALIDATE feature not supported yet"),
    ("CHANGE id id int DEFAULT (SELECT 1)", 10326, None, "subquery"),
    ("DROP CONSTRAINT nope", 40000, "1:37", "The constraint: nope does not exist for the associated table"),
]


@pytest.mark.parametrize(("text", "code", "place", "piece"), REFUSED, ids=[r[0][:50] for r in REFUSED])
def test_a_constraint_that_cannot_be_is_refused_and_leaves_nothing(
    acid: AcidSession, warehouse: Path, text: str, code: int | None, place: str | None, piece: str
) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE emp (id int, name string, salary int, CONSTRAINT pk PRIMARY KEY (id) DISABLE,"
        " CONSTRAINT c CHECK (id < 9))"
    )
    table, files = emp_of(acid), tree(warehouse / "emp")
    with pytest.raises((AcidError, PySparkException)) as caught:
        acid.sql(f"ALTER TABLE emp     {text}")
    assert piece in str(caught.value)
    if code is not None:
        assert isinstance(caught.value, AcidError)
        assert caught.value.code == code
    if place is not None:
        assert isinstance(caught.value, AcidError)
        assert f"{caught.value.line}:{caught.value.column}" == place, str(caught.value)
    assert emp_of(acid) == table
    assert names(acid) == {"pk", "c"}
    assert tree(warehouse / "emp") == files
    nothing_is_open(acid)


def test_create_table_checks_the_same(acid: AcidSession) -> None:
    for columns, code in (
        ("a int PRIMARY KEY", 10326),
        ("a int, FOREIGN KEY (a) REFERENCES b (a)", 10325),
        ("a int CONSTRAINT x NOT NULL, b int CONSTRAINT X UNIQUE DISABLE", 40000),
        ("a int NOT NULL VALIDATE", 10326),
        ("a int, UNIQUE (b) DISABLE", 10002),
        ("a int PRIMARY KEY DISABLE, b int PRIMARY KEY DISABLE", 40000),
    ):
        with pytest.raises(AcidError) as caught:
            acid.sql(f"CREATE TRANSACTIONAL TABLE t ({columns})")
        assert (caught.value.code, caught.value.line) == (code, 1)
    assert acid.metastore.list_tables("default") == []


def test_a_table_of_sparks_own_is_sparks_to_alter(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE plain (a int) USING parquet")
    for text in ("ADD CONSTRAINT c CHECK (a > 0)", "DROP CONSTRAINT c"):
        with pytest.raises(PySparkException):
            acid.sql(f"ALTER TABLE plain {text}")
    with pytest.raises(AcidError) as caught:
        acid.sql("ALTER TABLE nope DROP CONSTRAINT c")
    assert caught.value.code == 10001
    acid.sql("DROP TABLE plain")
