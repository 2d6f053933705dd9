"""The Hive of the tests, as far as it can be told without starting it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.services import hive, java
from tests.services.configuration import hive_settings, java_arguments, write_settings
from tests.services.hive import HiveServer
from tests.services.runs import Run, ServiceError


def test_settings_come_back_from_their_file(tmp_path: Path) -> None:
    settings = {"hive.exec.scratchdir": "file:///a b", "x": "<&>\"'"}

    write_settings(tmp_path / "conf" / "hive-site.xml", settings)

    root = ElementTree.parse(tmp_path / "conf" / "hive-site.xml").getroot()
    assert {entry.findtext("name"): entry.findtext("value") for entry in root} == settings


def test_all_of_hive_listens_on_the_loopback_address_and_lives_in_its_home() -> None:
    database = {"javax.jdo.option.ConnectionURL": "jdbc:postgresql://127.0.0.1:2/hive"}

    settings = hive_settings(Path("/home/of/run"), metastore=1, hiveserver2=3, database=database)

    assert settings["hive.metastore.uris"] == "thrift://127.0.0.1:1"
    assert settings["metastore.thrift.bind.host"] == "127.0.0.1"
    assert settings["hive.server2.thrift.bind.host"] == "127.0.0.1"
    assert settings["hive.server2.thrift.port"] == "3"
    assert settings["javax.jdo.option.ConnectionURL"] == "jdbc:postgresql://127.0.0.1:2/hive"
    for name in settings:
        if name.endswith((".dir", "dir", ".location", ".directory")):
            assert "/home/of/run/" in settings[name], name


def test_the_settings_come_first_on_the_class_path_and_the_jars_keep_their_order(tmp_path: Path) -> None:
    arguments = java_arguments(
        tmp_path, "metastore", "1g", [Path("/z.jar"), Path("/a.jar")], ["Main", "-p", "1"], ["-Dx"]
    )

    assert arguments[arguments.index("-cp") + 1] == f"{tmp_path}/conf:/z.jar:/a.jar"
    assert arguments[-3:] == ["Main", "-p", "1"]
    assert "-Dx" in arguments[: arguments.index("-cp")]
    assert f"-Dlog.file={tmp_path}/log/metastore.log" in arguments


def test_the_cache_must_be_where_hive_can_read_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyhive")
    monkeypatch.setattr(hive, "find_java", lambda: Path("java"))
    monkeypatch.setattr(hive, "postgres_is_possible", lambda: None)
    monkeypatch.setenv("ACIDSQL_TEST_CACHE", str(tmp_path / "plain"))
    assert hive.hive_is_possible() is None

    monkeypatch.setenv("ACIDSQL_TEST_CACHE", str(tmp_path / ".cache"))
    assert "ACIDSQL_TEST_CACHE" in (hive.hive_is_possible() or "")


def test_without_java_there_is_no_hive_and_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyhive")

    def none() -> Path:
        raise java.NoJavaError("no Java here")

    monkeypatch.setattr(hive, "find_java", none)

    assert hive.hive_is_possible() == "no Java here"


def test_without_postgresql_there_is_no_hive_and_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyhive")
    monkeypatch.setattr(hive, "find_java", lambda: Path("java"))
    monkeypatch.setattr(hive, "postgres_is_possible", lambda: "no PostgreSQL here")

    assert hive.hive_is_possible() == "no PostgreSQL here"


def test_without_the_client_there_is_no_hive_and_the_reason_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive, "find_spec", lambda name: None)

    assert "pyhive" in (hive.hive_is_possible() or "")


def test_what_does_not_run_cannot_be_asked(tmp_path: Path) -> None:
    server = HiveServer(cache=tmp_path)

    with pytest.raises(ServiceError, match="start it first"):
        server.status()
    server.stop()


def test_a_standing_hive_is_found_again_with_its_ports(tmp_path: Path) -> None:
    assert HiveServer.attach(cache=tmp_path) is None
    run = Run.new("hive", tmp_path / "runs", standing=True)
    (run.home / "run" / "ports.json").write_text('{"metastore": 21, "hiveserver2": 22, "compactor": 23}')

    found = HiveServer.attach(cache=tmp_path)

    assert found is not None
    assert (found.metastore_uri, found.port) == ("thrift://127.0.0.1:21", 22)
    assert (found.home, found.warehouse) == (run.home, run.home / "warehouse")
    assert found.status() == {}
    found.stop()
    assert HiveServer.attach(cache=tmp_path) is None


def test_the_command_line_says_that_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ACIDSQL_TEST_CACHE", str(tmp_path / "cache"))

    assert hive.main(["status"]) == 1
    assert hive.main(["sql", "SELECT 1"]) == 1
    assert capsys.readouterr().err == "Hive does not run\n" * 2
