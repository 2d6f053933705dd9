"""What is asked of a Hive Metastore when ANALYZE has counted, and when a view is made."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hive_metastore import ttypes

from acidsql.metastore.hive import translate
from acidsql.metastore.hive.column_statistics import from_thrift, to_thrift
from acidsql.metastore.model import Column, ColumnStatistics, Partition, Statistics, Table
from acidsql.valid_ids import ValidWriteIdList
from tests.unit.metastore.conftest import Connect, Serve

PLAIN = Table("d", "t", "file:/w/d.db/t", (Column("a", "int"),), (), {"transactional": "true", "k": "v"}, owner="ann")
KEYED = Table("d", "t", "file:/w/d.db/t", (Column("a", "int"),), (Column("p", "int"),), {"transactional": "true"})
VIEW = Table(
    "d",
    "v",
    "",
    (Column("a", "int", "c"),),
    parameters={"k": "v"},
    table_type="VIRTUAL_VIEW",
    owner="ann",
    view_text="SELECT `a` FROM `d`.`t`",
    view_original="SELECT a FROM t",
)
SEEN = ValidWriteIdList("d.t", 5, (3,))
COUNTED = Statistics({"numRows": "7", "numFiles": "2", "totalSize": "9"}, exact=True)
EXACT = "COLUMN_STATS_ACCURATE"


class Asked(list[Any]):
    """Requests in their order."""

    def answer(self, value: Any) -> Any:
        def take(*request: Any) -> Any:
            self.append(request)
            return value

        return take


def test_numbers_go_with_the_write_id_and_what_was_seen(serve: Serve, connect: Connect) -> None:
    """The server judges by both whether they are exact, and must not list the files itself."""
    asked = Asked()
    table = translate.table_to_thrift(PLAIN)
    server = serve(
        get_table_req=ttypes.GetTableResult(table=table), alter_table_req=asked.answer(ttypes.AlterTableResponse())
    )
    connect(server).set_statistics(PLAIN, 6, SEEN, {"": COUNTED})
    [(request,)] = asked
    assert (request.writeId, request.validWriteIdList) == (6, SEEN.to_text())
    assert request.environmentContext.properties == {"DO_NOT_UPDATE_STATS": "true"}
    found = dict(request.table.parameters)
    assert json.loads(found.pop(EXACT)) == {"BASIC_STATS": "true"}
    assert found == {**PLAIN.parameters, **COUNTED.parameters}


def test_what_is_known_of_columns_stays_known(serve: Serve, connect: Connect) -> None:
    asked = Asked()
    table = translate.table_to_thrift(PLAIN)
    table.parameters[EXACT] = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'
    server = serve(
        get_table_req=ttypes.GetTableResult(table=table), alter_table_req=asked.answer(ttypes.AlterTableResponse())
    )
    session = connect(server)
    session.set_statistics(PLAIN, 6, SEEN, {"": COUNTED})
    session.set_statistics(PLAIN, 7, SEEN, {"": Statistics({"numFiles": "3"})})
    for [request] in asked:
        assert json.loads(request.table.parameters[EXACT])["COLUMN_STATS"] == {"a": "true"}
    assert asked[1][0].table.parameters["numFiles"] == "3"


def test_partitions_are_altered_together(serve: Serve, connect: Connect) -> None:
    asked = Asked()
    table = translate.table_to_thrift(KEYED)
    partitions = [
        translate.partition_to_thrift(Partition("d", "t", (value,), f"file:/w/d.db/t/p={value}"), table)
        for value in ("1", "2")
    ]
    server = serve(
        get_partitions_by_names=lambda database, name, names: partitions,
        alter_partitions_req=asked.answer(ttypes.AlterPartitionsResponse()),
    )
    connect(server).set_statistics(KEYED, 6, SEEN, {"p=1": COUNTED, "p=2": Statistics({"numRows": "0"}, exact=True)})
    [(request,)] = asked
    assert (request.writeId, request.validWriteIdList) == (6, SEEN.to_text())
    assert {p.values[0]: p.parameters["numRows"] for p in request.partitions} == {"1": "7", "2": "0"}
    assert all(EXACT in p.parameters for p in request.partitions)


def test_to_hive_3_nothing_is_said_to_be_exact(serve: Serve, connect: Connect) -> None:
    asked = Asked()
    table = translate.table_to_thrift(PLAIN)
    table.parameters[EXACT] = '{"BASIC_STATS":"true"}'
    server = serve(
        getVersion="3.1.3",
        get_table_req=ttypes.GetTableResult(table=table),
        alter_table_with_environment_context=asked.answer(None),
    )
    connect(server).set_statistics(PLAIN, 6, SEEN, {"": COUNTED})
    [(_, _, altered, context)] = asked
    assert altered.parameters["numRows"] == "7"
    assert EXACT not in altered.parameters
    assert context.properties == {"DO_NOT_UPDATE_STATS": "true"}


A = ColumnStatistics("a", "int", 3, distinct=5, low="-2", high="7")
ABOUT_A = Statistics(COUNTED.parameters, (A,), exact=True)


class Server:
    """A table, or two partitions, as a Hive Metastore keeps their parameters and statistics of columns.

    ``unseen``: somebody wrote what an ANALYZE does not see, so that no number is taken for exact (``ObjectStore``).
    """

    def __init__(self, table: Table, *, unseen: bool = False, version: str = "4.0.1") -> None:
        self.asked = Asked()
        self.unseen = unseen
        self.table = translate.table_to_thrift(table)
        self.partitions = [
            translate.partition_to_thrift(Partition("d", "t", (value,), f"file:/w/d.db/t/p={value}"), self.table)
            for value in ("1", "2")
        ]
        self.answers = {
            "getVersion": version,
            "get_table_req": lambda request: ttypes.GetTableResult(table=self.table),
            "get_partitions_by_names": lambda database, name, names: [
                p for p in self.partitions if f"p={p.values[0]}" in names
            ],
            "alter_table_req": lambda request: self.altered([request.table], ttypes.AlterTableResponse()),
            "alter_table_with_environment_context": lambda d, t, table, context: self.altered([table], None),
            "alter_partitions_req": lambda request: self.altered(request.partitions, ttypes.AlterPartitionsResponse()),
            "set_aggr_stats_for": self.set_columns,
        }

    def altered(self, places: list[Any], answer: Any) -> Any:
        for place in places:
            if self.unseen:
                place.parameters.pop(EXACT, None)
            if place.__class__ is ttypes.Table:
                self.table = place
            else:
                self.partitions = [place if p.values == place.values else p for p in self.partitions]
        self.unseen = False  # the write id that stands there now is the altering transaction's own
        return answer

    def set_columns(self, request: Any) -> bool:
        self.asked.append(request)
        by_name: dict[str | None, Any] = {None: self.table, **{f"p={p.values[0]}": p for p in self.partitions}}
        for one in request.colStats:
            parameters = by_name[one.statsDesc.partName].parameters
            accurate = {**json.loads(parameters.get(EXACT, "{}")), "COLUMN_STATS": {"a": "true"}}
            parameters[EXACT] = json.dumps(accurate)
        return True


def test_statistics_of_columns_follow_the_numbers(serve: Serve, connect: Connect) -> None:
    server = Server(PLAIN)
    connect(serve(**server.answers)).set_statistics(PLAIN, 6, SEEN, {"": ABOUT_A})
    [request] = server.asked
    assert (request.writeId, request.validWriteIdList, request.engine) == (6, SEEN.to_text(), "hive")
    assert not request.needMerge
    [found] = request.colStats
    place = found.statsDesc
    assert (place.isTblLevel, place.dbName, place.tableName, place.partName) == (True, "d", "t", None)
    [column] = found.statsObj
    assert (column.colName, column.colType) == ("a", "int")
    long = column.statsData.longStats
    assert (long.lowValue, long.highValue, long.numNulls, long.numDVs) == (-2, 7, 3, 5)
    assert json.loads(server.table.parameters[EXACT]) == {"BASIC_STATS": "true", "COLUMN_STATS": {"a": "true"}}


@pytest.mark.parametrize(("unseen", "version"), [(True, "4.0.1"), (False, "3.1.3")])
def test_statistics_of_columns_are_not_exact_where_the_number_of_rows_is_not(
    serve: Serve, connect: Connect, unseen: bool, version: str
) -> None:
    """The server would say that they are: the write id that it judges by is the ANALYZE's own by then."""
    server = Server(PLAIN, unseen=unseen, version=version)
    connect(serve(**server.answers)).set_statistics(PLAIN, 6, SEEN, {"": ABOUT_A})
    assert EXACT not in server.table.parameters
    assert server.table.parameters["numRows"] == "7"
    [request] = server.asked
    assert (request.validWriteIdList is None) == (version == "3.1.3")


def test_statistics_of_columns_go_with_each_partition(serve: Serve, connect: Connect) -> None:
    server = Server(KEYED)
    found = {"p=1": ABOUT_A, "p=2": ABOUT_A, "": Statistics({}, (A,))}
    connect(serve(**server.answers)).set_statistics(KEYED, 6, SEEN, found)
    [request] = server.asked
    assert [c.statsDesc.partName for c in request.colStats] == ["p=1", "p=2"]
    assert not any(c.statsDesc.isTblLevel for c in request.colStats)
    assert all("COLUMN_STATS" in p.parameters[EXACT] for p in server.partitions)


EACH_KIND = [
    (ColumnStatistics("c", "boolean", 1, trues=2, falses=3), "booleanStats"),
    (ColumnStatistics("c", "bigint", 1, distinct=4, low="-9223372036854775808", high="0"), "longStats"),
    (ColumnStatistics("c", "double", 1, distinct=4, low="-0.5", high="1e+300"), "doubleStats"),
    (ColumnStatistics("c", "varchar(9)", 1, distinct=4, average_length=2.5, max_length=9), "stringStats"),
    (ColumnStatistics("c", "binary", 1, average_length=2.5, max_length=9), "binaryStats"),
    (
        ColumnStatistics("c", "decimal(38,18)", 0, distinct=4, low="-99999999999999999999.999999999999999999"),
        "decimalStats",
    ),
    (ColumnStatistics("c", "decimal(10,2)", 0, distinct=4, low="-1.28", high="0.00"), "decimalStats"),
    (ColumnStatistics("c", "date", 0, distinct=4, low="1500-02-28", high="9999-12-31"), "dateStats"),
    (
        ColumnStatistics("c", "timestamp", 0, distinct=2, low="0001-01-01 00:00:00", high="2024-02-29 12:00:59"),
        "timestampStats",
    ),
    (ColumnStatistics("c", "string", 7, distinct=0, average_length=0.0, max_length=0), "stringStats"),
]


@pytest.mark.parametrize(("column", "field"), EACH_KIND, ids=lambda v: v if isinstance(v, str) else v.type)
def test_each_type_has_its_kind_and_is_read_as_it_was_written(column: ColumnStatistics, field: str) -> None:
    made = to_thrift(column)
    assert made is not None
    assert [name for name, value in vars(made.statsData).items() if value is not None] == [field]
    back = from_thrift(made)
    assert back is not None
    if field == "doubleStats":
        assert [float(v or "") for v in (back.low, back.high)] == [-0.5, 1e300]
        back = replace(back, low=column.low, high=column.high)
    assert back == column


def test_what_a_kind_cannot_hold_is_left_out() -> None:
    made = to_thrift(ColumnStatistics("c", "date", 0, distinct=1, low="2024-01-01", high="+12345-01-01"))
    assert made is not None
    assert (made.statsData.dateStats.lowValue.daysSinceEpoch, made.statsData.dateStats.highValue) == (19723, None)
    decimal = to_thrift(ColumnStatistics("c", "decimal(10,2)", 0, distinct=1, low="-1.28", high="1.28"))
    assert decimal is not None
    low, high = decimal.statsData.decimalStats.lowValue, decimal.statsData.decimalStats.highValue
    assert (low.unscaled, high.unscaled, low.scale) == (b"\x80", b"\x00\x80", 2), "as Java's BigInteger has them"
    assert to_thrift(ColumnStatistics("c", "timestamp with local time zone", 0)) is None
    assert to_thrift(ColumnStatistics("c", "array<int>", 0)) is None


def test_statistics_of_columns_are_read_where_hive_keeps_them(serve: Serve, connect: Connect) -> None:
    asked = Asked()
    objects = [to_thrift(A)]
    session = connect(
        serve(
            get_table_statistics_req=asked.answer(ttypes.TableStatsResult(tableStats=objects)),
            get_partitions_statistics_req=asked.answer(ttypes.PartitionsStatsResult(partStats={"p=1": objects})),
            get_aggr_stats_for=asked.answer(ttypes.AggrStats(colStats=objects, partsFound=1)),
            get_partitions_pspec=[],
        )
    )
    assert session.column_statistics(PLAIN) == [A]
    assert session.column_statistics(KEYED, "p=1") == [A]
    assert session.column_statistics(KEYED, "p=2") == []
    assert session.column_statistics(KEYED) == [], "no partition, no statistics"
    assert [request.colNames for (request,) in asked] == [["a"]] * 3
    assert all(request.engine == "hive" for (request,) in asked)


def test_a_view_is_registered_as_hive_registers_one(serve: Serve, connect: Connect) -> None:
    asked = Asked()
    server = serve(
        get_database=ttypes.Database(name="d", locationUri="file:/w/d.db"),
        get_config_value="file:/w",
        create_table_req=asked.answer(None),
    )
    connect(server).create_table(VIEW)
    made = asked[0][0].table
    assert (made.tableType, made.viewOriginalText, made.viewExpandedText) == (
        "VIRTUAL_VIEW",
        "SELECT a FROM t",
        "SELECT `a` FROM `d`.`t`",
    )
    assert (made.sd.location, made.sd.serdeInfo.serializationLib) == (None, None)
    assert made.sd.inputFormat == "org.apache.hadoop.mapred.TextInputFormat"
    assert "numRows" not in made.parameters
    assert translate.table_from_thrift(made) == VIEW


def test_a_view_gets_another_query_and_no_location(serve: Serve, connect: Connect) -> None:
    asked = Asked()
    server = serve(
        get_table_req=ttypes.GetTableResult(table=translate.table_to_thrift(VIEW)),
        alter_table_req=asked.answer(ttypes.AlterTableResponse()),
    )
    changed = Table("d", "v", "", (Column("b", "int"),), table_type="VIRTUAL_VIEW", view_text="X", view_original="Y")
    connect(server).alter_table(changed)
    made = asked[0][0].table
    assert (made.viewExpandedText, made.viewOriginalText, made.sd.location) == ("X", "Y", None)
    assert [c.name for c in made.sd.cols] == ["b"]
