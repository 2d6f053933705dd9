"""Small tables for TPC-DS and TPC-H: drawn at random, always alike, of the values that the queries ask for.

No generator of TPC's is used. What a query compares a column with (``i_category IN ('Books', …)``) becomes one of that
column's values, keys refer to rows that exist, and returns are of items that were sold: most queries find something.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.oracle import sparks_texts

Row = list[Any]
Columns = Sequence[tuple[str, str]]

FIRST_DAY, DAYS = dt.date(1998, 1, 1), 1826
FIRST_DATE_KEY = 2450815
"""Julian day of 1998-01-01, as TPC-DS counts."""

TPCDS = {
    "ss": ("store_sales", 700),
    "sr": ("store_returns", 200),
    "cs": ("catalog_sales", 700),
    "cr": ("catalog_returns", 200),
    "ws": ("web_sales", 700),
    "wr": ("web_returns", 200),
    "inv": ("inventory", 400),
    "s": ("store", 4),
    "cc": ("call_center", 3),
    "cp": ("catalog_page", 12),
    "web": ("web_site", 4),
    "wp": ("web_page", 8),
    "w": ("warehouse", 4),
    "c": ("customer", 80),
    "ca": ("customer_address", 40),
    "cd": ("customer_demographics", 60),
    "d": ("date_dim", DAYS),
    "hd": ("household_demographics", 30),
    "i": ("item", 50),
    "ib": ("income_band", 10),
    "p": ("promotion", 8),
    "r": ("reason", 10),
    "sm": ("ship_mode", 6),
    "t": ("time_dim", 96),
}
"""Table and number of its rows by the prefix of its columns."""
PARTITIONED = {
    "store_sales": "ss_store_sk",
    "catalog_sales": "cs_warehouse_sk",
    "web_sales": "ws_web_site_sk",
    "date_dim": "d_year",
    "lineitem": "l_returnflag",
    "orders": "o_orderstatus",
}
RETURNS = {"sr": "ss", "cr": "cs", "wr": "ws"}
REFERENCES = {
    "date": "d",
    "time": "t",
    "item": "i",
    "customer": "c",
    "cdemo": "cd",
    "hdemo": "hd",
    "addr": "ca",
    "store": "s",
    "promo": "p",
    "call_center": "cc",
    "catalog_page": "cp",
    "ship_mode": "sm",
    "warehouse": "w",
    "reason": "r",
    "page": "wp",
    "site": "web",
    "band": "ib",
}
"""What a column ``…_item_sk`` refers to, by the end of its name before ``_sk``."""


@dataclass(frozen=True)
class Data:
    """A table: its columns with their types, its rows, and perhaps the column that it is partitioned by."""

    name: str
    columns: Columns
    rows: Sequence[Row]

    @property
    def key(self) -> str | None:
        return PARTITIONED.get(self.name)

    def ddl(self, *, keys: bool) -> str:
        """The partition key, or all other columns."""
        return ", ".join(f"{n} {t.lower()}" for n, t in self.columns if (n == self.key) is keys)

    def ordered(self) -> list[Row]:
        """The rows with the partition key behind the other columns."""
        order = sorted(range(len(self.columns)), key=lambda n: self.columns[n][0] == self.key)
        return [[row[n] for n in order] for row in self.rows]


# --- what queries ask for --------------------------------------------------------------------------------------------

_LITERAL = r"'(?:[^']|'')*'|\d+(?:\.\d+)?"
_COMPARED = re.compile(rf"\b(\w+)\s*(?:=|<>|<=|>=|<|>)\s*(?:date\s*|CAST\()?({_LITERAL})", re.I)
_IN = re.compile(r"\b(\w+)\s+in\s*\(([^()]*)\)", re.I)
_BETWEEN = re.compile(rf"\b(\w+)\s+between\s+(?:date\s*)?({_LITERAL})\s+and\s+(?:date\s*)?({_LITERAL})", re.I)
_LIKE = re.compile(r"\b(\w+)\s+(?:not\s+)?like\s+('[^']*')", re.I)


def wanted(queries: Iterable[str]) -> dict[str, list[str]]:
    """Literals that columns are compared with, by column."""
    found: dict[str, set[str]] = {}
    for query in queries:
        pairs = [*_COMPARED.findall(query), *_LIKE.findall(query)]
        for column, listed in _IN.findall(query):
            pairs += [(column, literal) for literal in re.findall(_LITERAL, listed)]
        for column, low, high in _BETWEEN.findall(query):
            pairs += [(column, low), (column, high)]
        for column, literal in pairs:
            found.setdefault(column.lower(), set()).add(literal.strip("'").replace("''", "'").replace("%", "a"))
    return {column: sorted(values) for column, values in found.items()}


def value(chance: random.Random, type: str, pool: Sequence[str]) -> Any:
    """A value of a type, most often one that is asked for."""
    name, _, rest = type.lower().partition("(")
    asked = chance.choice(pool) if pool and chance.random() < 0.8 else None
    if name in ("int", "integer", "bigint"):
        return int(float(asked)) if asked is not None and re.fullmatch(r"[\d.]+", asked) else chance.randint(1, 60)
    if name == "decimal":
        scale = Decimal(1).scaleb(-int(rest.rstrip(")").split(",")[1]))
        limit = 10 ** (int(rest.split(",")[0]) - int(rest.rstrip(")").split(",")[1]))
        number = Decimal(asked) if asked is not None and re.fullmatch(r"[\d.]+", asked) else None
        if number is None or number >= limit:
            number = Decimal(chance.randint(1, min(20000, limit * 100 - 1))) / 100
        return number.quantize(scale)
    if name == "date":
        if asked is not None and re.fullmatch(r"\d{4}-\d\d-\d\d", asked):
            return dt.date.fromisoformat(asked) + dt.timedelta(chance.randint(-20, 20))
        return FIRST_DAY + dt.timedelta(chance.randrange(DAYS))
    length = int(rest.rstrip(")")) if rest else 60
    return (asked if asked is not None else chance.choice(("Ann", "Bob", "Cid", "red", "blue", "AA")))[:length]


# --- TPC-DS ----------------------------------------------------------------------------------------------------------


def tpcds(queries: Iterable[str]) -> list[Data]:
    """The 24 tables."""
    asked = wanted(queries)
    schema = {columns[0][0].split("_")[0]: columns for columns in sparks_texts.tpcds_columns()}
    assert schema.keys() == TPCDS.keys()
    drawn = {prefix: _draw(prefix, columns, asked) for prefix, columns in schema.items()}
    for returned, sold in RETURNS.items():
        _return(schema[returned], drawn[returned], schema[sold], drawn[sold])
    return [Data(name, schema[prefix], drawn[prefix]) for prefix, (name, _) in TPCDS.items()]


def _draw(prefix: str, columns: Columns, asked: Mapping[str, Sequence[str]]) -> list[Row]:
    chance = random.Random(prefix)
    count = TPCDS[prefix][1]
    rows = [[_tpcds_value(chance, prefix, n, c, asked) for c in columns] for n in range(count)]
    known = {"d": _calendar, "t": _clock}.get(prefix)
    if known is not None:
        for number, row in enumerate(rows):
            made = known(number)
            row[:] = [made.get(name, old) for (name, _), old in zip(columns, row, strict=True)]
    return rows


def _tpcds_value(
    chance: random.Random, prefix: str, number: int, column: tuple[str, str], asked: Mapping[str, Sequence[str]]
) -> Any:
    name, type = column
    own = name.removeprefix(f"{prefix}_")
    if own.endswith("_sk"):
        reference = next((r for end, r in REFERENCES.items() if own.removesuffix("_sk").endswith(end)), None)
        if reference == prefix or reference is None:
            return number + 1
        if reference == "d":
            return FIRST_DATE_KEY + chance.choice((730, 1095)) + chance.randrange(365)
        last = TPCDS[reference][1]
        key = chance.randrange(last) * 900 if reference == "t" else chance.randint(1, last)
        return None if chance.random() < 0.03 and name not in PARTITIONED.values() else key
    if own in ("ticket_number", "order_number"):
        return number // 3 + 1
    if own.endswith("_id") and "char" in type.lower():
        return f"AAAA{number // 2 if prefix in ('i', 's', 'web') else number:04d}"
    return None if chance.random() < 0.03 else value(chance, type, asked.get(name, ()))


def _calendar(number: int) -> dict[str, Any]:
    day = FIRST_DAY + dt.timedelta(number)
    quarter = (day.month + 2) // 3
    return {
        "d_date_sk": FIRST_DATE_KEY + number,
        "d_date": day,
        "d_month_seq": (day.year - 1900) * 12 + day.month - 1,
        "d_week_seq": 5100 + number // 7,
        "d_quarter_seq": (day.year - 1900) * 4 + quarter - 1,
        "d_year": day.year,
        "d_dow": (day.weekday() + 1) % 7,
        "d_moy": day.month,
        "d_dom": day.day,
        "d_qoy": quarter,
        "d_day_name": day.strftime("%A"),
        "d_quarter_name": f"{day.year}Q{quarter}",
    }


def _clock(number: int) -> dict[str, Any]:
    second = number * 900
    return {
        "t_time_sk": second,
        "t_time": second,
        "t_hour": second // 3600,
        "t_minute": second // 60 % 60,
        "t_second": 0,
        "t_meal_time": ("breakfast", "dinner", None)[number % 3],
    }


def _return(columns: Columns, rows: Sequence[Row], sold_columns: Columns, sold: Sequence[Row]) -> None:
    """Let returns be of sales: the same item, number and customer."""
    place = {name.split("_", 1)[1]: n for n, (name, _) in enumerate(sold_columns)}
    customer = "customer_sk" if "customer_sk" in place else "bill_customer_sk"
    chance = random.Random(columns[0][0])
    for row in rows:
        sale = chance.choice(sold)
        for n, (name, _) in enumerate(columns):
            own = name.split("_", 1)[1]
            if own in ("item_sk", "ticket_number", "order_number"):
                row[n] = sale[place[own]]
            elif own.endswith("customer_sk"):
                row[n] = sale[place[customer]]


# --- TPC-H -----------------------------------------------------------------------------------------------------------

_MONEY = "decimal(15,2)"
TPCH: dict[str, tuple[int, str]] = {
    "region": (5, "r_regionkey bigint, r_name string, r_comment string"),
    "nation": (25, "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string"),
    "supplier": (
        20,
        "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string,"
        f" s_acctbal {_MONEY}, s_comment string",
    ),
    "customer": (
        60,
        "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string,"
        f" c_acctbal {_MONEY}, c_mktsegment string, c_comment string",
    ),
    "part": (
        60,
        "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size int,"
        f" p_container string, p_retailprice {_MONEY}, p_comment string",
    ),
    "partsupp": (
        150,
        f"ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost {_MONEY}, ps_comment string",
    ),
    "orders": (
        300,
        f"o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice {_MONEY}, o_orderdate date,"
        " o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
    ),
    "lineitem": (
        900,
        f"l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity {_MONEY},"
        f" l_extendedprice {_MONEY}, l_discount {_MONEY}, l_tax {_MONEY}, l_returnflag string, l_linestatus string,"
        " l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string,"
        " l_comment string",
    ),
}
"""Number of rows and columns."""
_KEYS = {"region": 5, "nation": 25, "supp": 20, "cust": 60, "part": 60, "order": 300}
_COMMENTS = ("", "special requests", "Customer Complaints", "green forest")


def tpch(queries: Iterable[str]) -> list[Data]:
    """The eight tables."""
    asked = wanted(queries)
    made = []
    for name, (count, ddl) in TPCH.items():
        chance = random.Random(name)
        columns = [(c, t) for c, t in re.findall(r"(\w+) ([a-z]+(?:\([\d,]+\))?)", ddl)]
        rows = [[_tpch_value(chance, number, n, c, asked) for n, c in enumerate(columns)] for number in range(count)]
        made.append(Data(name, columns, rows))
    return made


def _tpch_value(
    chance: random.Random, number: int, place: int, column: tuple[str, str], asked: Mapping[str, Sequence[str]]
) -> Any:
    name, type = column
    own = name.split("_", 1)[1]
    if own.endswith("key"):
        if place == 0 and not name.startswith(("l_", "ps_")):
            return number + (0 if name in ("r_regionkey", "n_nationkey") else 1)
        last = _KEYS[own.removesuffix("key")]
        return number % 5 if own == "regionkey" else chance.randint(0 if own == "nationkey" else 1, last - 1)
    special: dict[str, Callable[[], Any]] = {
        "l_returnflag": lambda: chance.choice("ANR"),
        "l_linestatus": lambda: chance.choice("FO"),
        "o_orderstatus": lambda: chance.choice("FOP"),
        "l_linenumber": lambda: number % 4 + 1,
        "l_discount": lambda: Decimal(chance.randint(0, 10)) / 100,
        "c_phone": lambda: f"{chance.choice((13, 31, 23, 29, 30, 18, 17))}-555-{number}",
        "n_name": lambda: (asked.get("n_name") or ["FRANCE"])[number % len(asked.get("n_name") or ["FRANCE"])],
        "r_name": lambda: ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")[number],
        "p_name": lambda: chance.choice(("forest green", "green", "red")),
    }
    if name in special:
        return special[name]()
    if own == "comment":
        return chance.choice(_COMMENTS)
    if type == "date":
        return dt.date(chance.choice((1993, 1994, 1995, 1996)), chance.randint(1, 12), chance.randint(1, 28))
    return value(chance, type, asked.get(name, ()))
