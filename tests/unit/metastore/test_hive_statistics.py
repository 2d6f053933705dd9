"""What is asked of a Hive Metastore when ANALYZE has counted, and when a view is made."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hive_metastore import ttypes

from acidsql.errors import UnsupportedError
from acidsql.metastore.hive import translate
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


def test_statistics_of_columns_are_refused_before_anything_is_asked(serve: Serve, connect: Connect) -> None:
    server = serve()
    found = Statistics({}, (ColumnStatistics("a", "int", 0),))
    with pytest.raises(UnsupportedError, match="columns"):
        connect(server).set_statistics(PLAIN, 6, SEEN, {"": found})
    assert not server.counts


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
