"""Values of every type cross over unchanged, in both directions, also in rows that the other side rewrites."""

from __future__ import annotations

import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable

WIDE = (
    "id int, ti tinyint, si smallint, bi bigint, f float, d double, de decimal(38,18), d2 decimal(5,2), s string,"
    " vc varchar(5), ch char(4), bo boolean, bin binary, dt date, ts timestamp, ai array<int>, m map<string,int>,"
    " st struct<a:int,b:string>, nst array<struct<k:string,v:map<int,decimal(20,3)>>>,"
    " nts struct<t:timestamp,d:date,x:array<timestamp>>, x int"
)
# Literals that mean the same to both engines.
ROWS = [
    """SELECT 1, CAST(-128 AS tinyint), CAST(32767 AS smallint), CAST('-9223372036854775808' AS bigint),
       CAST(1.5 AS float), CAST('-Infinity' AS double),
       CAST('12345678901234567890.123456789012345678' AS decimal(38,18)),
       CAST('999.99' AS decimal(5,2)), 'żółć 😀', CAST('abc' AS varchar(5)), CAST('ab' AS char(4)), true,
       unhex('00ff'), date '0001-01-01', timestamp '1582-10-04 23:59:59.999999', array(1, 2), map('a', 1),
       named_struct('a', 1, 'b', 'x'),
       array(named_struct('k', 'p', 'v', map(1, CAST('1.5' AS decimal(20,3)), -2, CAST('-0.125' AS decimal(20,3))))),
       named_struct('t', timestamp '1500-01-01 01:02:03.000001', 'd', date '0001-01-01',
                    'x', array(timestamp '2024-02-29 12:34:56.123456')), 0""",
    """SELECT 2, CAST(NULL AS tinyint), CAST(NULL AS smallint), CAST(NULL AS bigint), CAST(NULL AS float),
       CAST(NULL AS double), CAST(NULL AS decimal(38,18)), CAST(NULL AS decimal(5,2)), CAST(NULL AS string),
       CAST(NULL AS varchar(5)), CAST(NULL AS char(4)), CAST(NULL AS boolean), CAST(NULL AS binary),
       CAST(NULL AS date), CAST(NULL AS timestamp), if(false, array(1), NULL), if(false, map('a', 1), NULL),
       if(false, named_struct('a', 1, 'b', 'x'), NULL),
       if(false, array(named_struct('k', 'p', 'v', map(1, CAST('1.5' AS decimal(20,3))))), NULL),
       if(false, named_struct('t', timestamp '1500-01-01 01:02:03', 'd', date '0001-01-01',
                              'x', array(timestamp '2024-02-29 12:34:56')), NULL), 0""",
    """SELECT 3, CAST(127 AS tinyint), CAST(-32768 AS smallint), 9223372036854775807L, CAST(0.1 AS float),
       CAST(0.1 AS double), CAST('-99999999999999999999.999999999999999999' AS decimal(38,18)),
       CAST('-1.5' AS decimal(5,2)), '', CAST('' AS varchar(5)), CAST('' AS char(4)), false, unhex(''),
       date '9999-12-31', timestamp '2024-02-29 12:34:56.123456', array(7, CAST(NULL AS int)),
       map('', CAST(NULL AS int)), named_struct('a', CAST(NULL AS int), 'b', CAST(NULL AS string)),
       array(named_struct('k', CAST(NULL AS string), 'v', map(0, CAST(NULL AS decimal(20,3))))),
       named_struct('t', CAST(NULL AS timestamp), 'd', CAST(NULL AS date),
                    'x', array(timestamp '1969-12-31 23:59:58.5')), 0""",
    """SELECT 4, CAST(1 AS tinyint), CAST(1 AS smallint), 1L, CAST('1e-40' AS float),
       CAST('1.7976931348623157E308' AS double), CAST('0.000000000000000001' AS decimal(38,18)),
       CAST('0.01' AS decimal(5,2)), 'a\\nb\\tc"d\\\\e', CAST('żółćx' AS varchar(5)), CAST('żółć' AS char(4)), true,
       unhex('deadbeef00'), date '1582-10-04', timestamp '9999-12-31 23:59:59.999999',
       array(5, 2147483647, -2147483647), map('k', 1, 'l', 2), named_struct('a', 7, 'b', ''),
       array(named_struct('k', '', 'v', map(9, CAST('99999999999999999.999' AS decimal(20,3))))),
       named_struct('t', timestamp '9999-12-31 23:59:59.999999', 'd', date '1582-10-15',
                    'x', array(timestamp '1582-10-15 00:00:00')), 0""",
]
CONDITIONS = [
    "ch = 'ab'",
    "vc = 'abc'",
    "de > 0",
    "d2 = 999.99",
    "dt < date '1582-10-15'",
    "ts = timestamp '2024-02-29 12:34:56.123456'",
    "bi < 0",
    "bo",
    "s LIKE 'ż%'",
    "ti IS NULL",
    "st.a IS NOT NULL AND size(ai) = 2",
]


def _answer_conditions(w: SharedTable) -> None:
    for condition in CONDITIONS:
        w.answer_alike(f"SELECT id FROM {{t}} WHERE {condition}")
    w.answer_alike("SELECT count(*), sum(x), min(de), max(d2), min(bi), max(si), count(nst) FROM {t}")


@pytest.mark.parametrize("first", SIDES)
def test_wide_rows(both: Both, first: str) -> None:
    second = ACIDSQL if first == HIVE else HIVE
    w = both.table(WIDE, by=second)
    for row in ROWS:
        w.on(first, f"INSERT INTO {{t}} {row}")
    _answer_conditions(w)
    w.on(second, "UPDATE {t} SET x = x + 1 WHERE id IN (1, 4)")  # rewrites all values of what the other wrote
    w.on(
        second,
        "INSERT INTO {t} SELECT id + 100, ti, si, bi, f, d, de, d2, s, vc, ch, bo, bin, dt, ts, ai, m, st, nst, nts, x"
        " FROM {t}",
    )
    both.acid.sql("SET acidsql.write.driver.rows = 0")
    w.on(first, "UPDATE {t} SET x = x + 10 WHERE id > 2")
    both.acid.sql("SET acidsql.write.driver.rows = 20000")
    w.on(
        second,
        "UPDATE {t} SET s = 'changed', ti = CAST(5 AS tinyint), ts = timestamp '1200-02-29 00:00:00.5' WHERE id = 102",
    )
    _answer_conditions(w)
    w.on(first, "DELETE FROM {t} WHERE id IN (2, 103)")


DAYS = ["1582-10-04", "1582-10-15", "1200-02-29", "1000-01-01", "0004-02-29", "1969-12-31", "1900-02-28", "1500-02-28"]
TIMES = ["00:00:00", "12:00:00.5", "23:59:59.999999", "00:00:00.000001", "01:02:03", "23:59:58.123"]


def test_the_calendar(both: Both) -> None:
    cal = both.table("id int, dt date, ts timestamp, x int", by=HIVE)
    moments = [(i, day, TIMES[i % len(TIMES)]) for i, day in enumerate(DAYS)]
    for side, shift in ((HIVE, 0), (ACIDSQL, 100)):
        rows = ", ".join(f"({i + shift}, date '{d}', timestamp '{d} {t}', 0)" for i, d, t in moments)
        cal.on(side, f"INSERT INTO {{t}} VALUES {rows}")
    cal.hive("UPDATE {t} SET x = 1 WHERE id > 100").acid("UPDATE {t} SET x = 2 WHERE id < 100")
    for condition in (
        "dt < date '1582-10-05'",
        "ts < timestamp '1582-10-05 00:00:00'",
        "dt = date '1200-02-29'",
        "ts >= timestamp '1969-12-31 00:00:00'",
    ):
        cal.answer_alike(f"SELECT id FROM {{t}} WHERE {condition}")
    cal.answer_alike("SELECT CAST(min(dt) AS string), CAST(max(dt) AS string) FROM {t}")


def test_timestamps_do_not_move_with_the_session_time_zone(both: Both) -> None:
    tz = both.table("id int, ts timestamp, x int", by=ACIDSQL)
    tz.hive(
        "INSERT INTO {t} VALUES (1, timestamp '2024-07-01 12:00:00.123456', 0), (2, timestamp '1500-01-01 00:00:00', 0)"
    )
    spark = both.acid.spark
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        tz.acid(
            "INSERT INTO {t} VALUES (3, timestamp '2024-07-01 12:00:00.123456', 0)", "UPDATE {t} SET x = 1 WHERE id < 3"
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    tz.hive("UPDATE {t} SET x = 2").answer_alike("SELECT id FROM {t} WHERE ts > timestamp '2024-07-01 12:00:00'")
