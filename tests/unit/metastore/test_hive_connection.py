"""Connections to a Hive Metastore: addresses, several servers, lost connections, servers that are none."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

import pytest

from acidsql.errors import InvalidValue, MetastoreError
from acidsql.metastore.hive.connection import MAX_IDLE, Address, Connections, parse_uris
from acidsql.metastore.model import Capabilities
from acidsql.settings import Settings
from tests.unit.metastore.conftest import QUICK, Connect, Serve
from tests.unit.metastore.scripted import Fault, ScriptedMetastore, black_hole, dead_uri, raw_server

LIMIT = 60
"""Seconds until a thread counts as hanging."""


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("thrift://hms:9083", [("hms", 9083)]),
            ("thrift://hms", [("hms", 9083)]),
            ("THRIFT://hms:1/", [("hms", 1)]),
            ("thrift://10.0.0.1:65535", [("10.0.0.1", 65535)]),
            ("thrift://[::1]:9084", [("::1", 9084)]),
            ("thrift://[fe80::1%eth0]", [("fe80::1%eth0", 9083)]),
            (" thrift://a:1 , thrift://b:2,thrift://[::1]", [("a", 1), ("b", 2), ("::1", 9083)]),
        ],
    )
    def test_are_read_from_uris(self, text: str, wanted: list[tuple[str, int]]) -> None:
        assert [(one.host, one.port) for one in parse_uris(text)] == wanted

    @pytest.mark.parametrize(
        "text",
        [
            "",
            ",",
            "hms:9083",
            "thrift:hms",
            "thrift://",
            "thrift://:9083",
            "http://hms:9083",
            "thrift://hms:0",
            "thrift://hms:65536",
            "thrift://hms:port",
            "thrift://::1:9083",
            "thrift://[hms]:9083",
            "thrift://user@hms:9083",
            "thrift://hms:9083/db",
            "thrift://a:1,",
            "thrift://a:1;thrift://b:1",
        ],
    )
    def test_of_another_form_are_refused_with_a_hint(self, text: str) -> None:
        with pytest.raises(InvalidValue, match="not the address") as caught:
            parse_uris(text)
        assert "thrift://host:9083" in (caught.value.hint or "")

    def test_are_shown_as_uris(self) -> None:
        assert [str(Address("hms", 1)), str(Address("::1", 2))] == ["thrift://hms:1", "thrift://[::1]:2"]


class TestSeveralServers:
    def test_in_sequence_the_first_that_answers_is_used(self, serve: Serve, connect: Connect) -> None:
        first, second = serve(get_all_databases=["one"]), serve(get_all_databases=["two"])
        assert connect(first, second).list_databases() == ["one"]
        assert second.connections == 0

    @pytest.mark.parametrize(
        "bad",
        [
            pytest.param(dead_uri, id="refuses connections"),
            pytest.param(lambda: "thrift://nobody.invalid:9083", id="is no host"),
            pytest.param(lambda: f"thrift://{'x' * 70}.invalid", id="has no name that can be looked up"),
        ],
    )
    def test_one_that_is_not_there_is_passed_over(self, serve: Serve, connect: Connect, bad: Callable[[], str]) -> None:
        good = serve(get_all_databases=["good"])
        assert connect(bad(), good).list_databases() == ["good"]

    def test_one_that_takes_no_connections_is_passed_over(self, serve: Serve, connect: Connect) -> None:
        good = serve(get_all_databases=["good"])
        with black_hole() as uri:
            session = connect(uri, good, acidsql_metastore_connect_timeout="200ms")
            assert session.list_databases() == ["good"]

    def test_one_that_says_nothing_is_passed_over(self, serve: Serve, connect: Connect) -> None:
        silent, good = serve(), serve(get_all_databases=["good"])
        silent.fail("set_ugi", *[Fault.IS_SILENT] * 10)
        session = connect(silent, good, acidsql_metastore_connect_timeout="200ms")
        assert session.list_databases() == ["good"]

    def test_one_that_dies_hands_over_to_the_next(self, serve: Serve, connect: Connect) -> None:
        first, second = serve(get_all_databases=["one"]), serve(get_all_databases=["two"])
        session = connect(first, second)
        first.close()
        assert session.list_databases() == ["two"]

    def test_at_random_all_of_them_are_used(self, serve: Serve) -> None:
        servers = [serve() for _ in range(2)]
        addresses = [one for server in servers for one in parse_uris(server.uri)]
        for _ in range(64):
            pool = Connections(addresses, Settings({"hive.metastore.uri.selection": "random"}), "ann")
            pool.call(lambda client: client.getVersion())
            pool.close()
        assert all(server.connections for server in servers)

    def test_that_are_all_dead_are_named_with_their_reasons(self, connect: Connect) -> None:
        uris = [dead_uri(), "thrift://nobody.invalid:9083"]
        with pytest.raises(MetastoreError) as caught:
            connect(*uris)
        assert caught.value.message.startswith("No Hive Metastore answers: ")
        assert all(uri in caught.value.message for uri in uris)
        assert "Kerberos" in (caught.value.hint or "")

    def test_are_all_tried_as_often_as_the_setting_says(self, serve: Serve, connect: Connect) -> None:
        servers = [serve() for _ in range(2)]
        for server in servers:
            server.fail("set_ugi", *[Fault.DIES_BEFORE] * 10)
        with pytest.raises(MetastoreError, match="No Hive Metastore answers"):
            connect(*servers, hive_metastore_connect_retries="3")
        assert [server.connections for server in servers] == [3, 3]

    def test_are_tried_again_after_the_delay(self, serve: Serve) -> None:
        pauses: list[float] = []
        server = serve(get_all_databases=["late"])
        server.fail("set_ugi", Fault.DIES_BEFORE, Fault.DIES_BEFORE)
        settings = Settings({**QUICK, "hive.metastore.client.connect.retry.delay": "7s"})
        connections = Connections(parse_uris(server.uri), settings, "ann", pauses.append)
        assert connections.call(lambda client: client.get_all_databases()) == ["late"]
        connections.close()
        assert pauses == [7.0, 7.0]


@pytest.mark.parametrize(("version", "is_open"), [("3.1.3", False), ("4.0.1", True)])
def test_a_metastore_does_itself_what_it_does_for_hive(
    serve: Serve, connect: Connect, version: str, is_open: bool
) -> None:
    found = connect(serve(getVersion=version)).capabilities
    assert found == Capabilities(
        True,
        True,
        True,
        has_open_queue=is_open,
        hides_new_tables=False,
        tells_creators=False,
        versions_places=False,
        compares_rows=False,
        reads_zstd=is_open,
    )


class TestALostConnection:
    @pytest.mark.parametrize("fault", [Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.CUTS])
    def test_is_made_anew_and_the_call_again(self, serve: Serve, connect: Connect, fault: Fault) -> None:
        server = serve(get_all_databases=["a"])
        session = connect(server)
        server.fail("get_all_databases", fault)
        assert session.list_databases() == ["a"]
        assert server.connections == 2

    def test_between_calls_costs_no_try(self, serve: Serve, connect: Connect) -> None:
        server = serve(get_all_databases=["a"])
        session = connect(server, hive_metastore_failure_retries="0")
        for _ in range(3):
            server.close_connections()
            assert session.list_databases() == ["a"]
        assert server.counts["get_all_databases"] == 3

    @pytest.mark.parametrize("retries", [0, 1, 3])
    def test_is_given_up_after_the_retries_of_the_setting(self, serve: Serve, connect: Connect, retries: int) -> None:
        server = serve(get_all_databases=["a"])
        session = connect(server, hive_metastore_failure_retries=str(retries))
        server.fail("get_all_databases", *[Fault.DIES_AFTER] * (retries + 1))
        with pytest.raises(MetastoreError, match="lost") as caught:
            session.list_databases()
        assert server.uri in caught.value.message
        assert "not known" in (caught.value.hint or "")
        assert server.counts["get_all_databases"] == retries + 1
        assert session.list_databases() == ["a"]

    def test_says_so_where_nobody_answers_any_more(self, serve: Serve, connect: Connect) -> None:
        """A commit whose answer is lost with the server may be there."""
        server = serve(get_all_databases=["a"])
        session = connect(server)
        server.fail("get_all_databases", Fault.DIES_AFTER)
        server.fail("set_ugi", *[Fault.DIES_BEFORE] * 10)
        with pytest.raises(MetastoreError, match=r"was lost: .*\. No Hive Metastore answers: ") as caught:
            session.list_databases()
        assert caught.value.hint == "Whether the last call was carried out is not known."

    def test_for_want_of_an_answer_in_time(self, serve: Serve, connect: Connect) -> None:
        server = serve(get_all_databases=["a"])
        session = connect(server, hive_metastore_client_socket_timeout="200ms")
        server.fail("get_all_databases", Fault.IS_SILENT)
        assert session.list_databases() == ["a"]
        server.fail("get_all_databases", Fault.IS_SILENT, Fault.IS_SILENT)
        with pytest.raises(MetastoreError, match="timeout"):
            session.list_databases()

    def test_takes_the_idle_ones_to_its_server_along(self, serve: Serve) -> None:
        """They ended with it most likely, and each of them would cost a try."""
        server = serve(get_all_databases=["a"])
        pool = Connections(parse_uris(server.uri), Settings(QUICK), "ann")
        _use_at_once(pool, 3)
        assert server.connections == 3
        server.fail("get_all_databases", Fault.DIES_AFTER)
        assert pool.call(lambda client: client.get_all_databases()) == ["a"]
        assert server.connections == 4
        pool.close()

    def test_time_out_zero_is_none(self, serve: Serve, connect: Connect) -> None:
        zero = {"hive_metastore_client_socket_timeout": "0s", "acidsql_metastore_connect_timeout": "0s"}
        assert connect(serve(get_all_databases=["a"]), **zero).list_databases() == ["a"]


class TestAServerThatIsNoMetastore:
    @pytest.mark.parametrize(
        "answer",
        [
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.6\r\n",
            bytes(range(256)) * 40,
            b"\x7f\xff\xff\xff" * 8,
            b"\x80\x01\x00\x02\x7f\xff\xff\xffset_ugi",
            b"\x80\x01\x00\x02\x00\x00\x00\x07set_ugi\x00\x00\x00\x00\x0f\x00\x00\x0b\x7f\xff\xff\xff",
            b"\x80\x01\x00\x02\x00\x00\x00\x07set_ugi\x00\x00\x00\x00\x0f\x00\x00\x0b\x00\x00\x00\x01\x7f\xff\xff\xff",
            b"\x80\x01\x00\x02\x00\x00\x00\x07set_ugi\x00\x00\x00\x00\x0f\x00\x00\x0b\x00\x00\x00\x01\x00\x00\x00\x01\xff",
            b"\x80\x01\x00\x02\x00\x00\x00\x07set_ugi\x00\x00\x00\x00\x77",
            b"\x80\x01\x00\x02\x00\x00\x00\x07set_ugi\x00\x00\x00\x00" + b"\x0c\x00\x09" * 5000,
            b"",
        ],
        ids=["HTTP", "SSH", "any bytes", "lengths", "name", "list", "string", "text", "type", "nesting", "nothing"],
    )
    def test_is_refused_whatever_it_says(self, connect: Connect, answer: bytes) -> None:
        def behave(connection: socket.socket) -> None:
            connection.recv(4096)
            connection.sendall(answer)

        with raw_server(behave) as uri, pytest.raises(MetastoreError, match="No Hive Metastore answers"):
            connect(uri)

    @pytest.mark.parametrize(
        "answer", [b"HTTP/1.1 200 OK\r\n", b"\x7f\xff\xff\xff", b"\x80\x01\x00\x02\x7f\xff\xff\xff"]
    )
    def test_is_refused_at_once_although_it_holds_the_connection(self, connect: Connect, answer: bytes) -> None:
        """Taken for a length, the first bytes would have the client wait for gigabytes."""
        done = threading.Event()

        def behave(connection: socket.socket) -> None:
            connection.sendall(answer)
            done.wait(LIMIT)

        with raw_server(behave) as uri:
            with pytest.raises(MetastoreError, match="No Hive Metastore answers") as caught:
                connect(uri)
            done.set()
        assert "timeout" not in caught.value.message

    @pytest.mark.parametrize("version", ["2.3.9", "1.2.1"])
    def test_of_an_old_version_is_refused(self, serve: Serve, connect: Connect, version: str) -> None:
        from acidsql.errors import UnsupportedError

        with pytest.raises(UnsupportedError, match=version):
            connect(serve(getVersion=version))

    def test_of_another_kind_is_refused(self, serve: Serve, connect: Connect) -> None:
        with pytest.raises(MetastoreError, match="no Hive Metastore"):
            connect(serve(getVersion="Impala"))

    def test_whose_answer_is_broken_later_is_a_lost_connection(self, serve: Serve, connect: Connect) -> None:
        server = serve(get_all_databases=["abc"])
        session = connect(server)
        for broken in (
            _replace(b"\x0f\x00\x00", b"\x77\x00\x00"),
            _replace(b"\x00\x00\x00\x03abc", b"\xff\xff\xff\x03abc"),
        ):
            server.fail("get_all_databases", broken)
            assert session.list_databases() == ["abc"]
            server.fail("get_all_databases", broken, broken)
            with pytest.raises(MetastoreError, match="lost"):
                session.list_databases()


def _replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda answer: answer.replace(old, new)


def _use_at_once(pool: Connections, count: int) -> None:
    """Have a number of threads in the middle of a call at the same time."""
    together = threading.Barrier(count)

    def work() -> None:
        pool.call(lambda client: (client.getVersion(), together.wait(LIMIT)))

    _run([work] * count)


def _run(works: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


class TestThePool:
    def test_one_connection_serves_one_caller(self, serve: Serve, connect: Connect) -> None:
        server = serve(get_all_databases=["a"])
        session = connect(server)
        for _ in range(5):
            session.list_databases()
        assert server.connections == 1

    def test_callers_at_the_same_time_get_their_own_answers(self, serve: Serve) -> None:
        server = serve(get_all_tables=lambda database: [f"t_{database}"])
        pool = Connections(parse_uris(server.uri), Settings(QUICK), "ann")

        def work(name: str) -> Callable[[], None]:
            def ask() -> None:
                for _ in range(50):
                    assert pool.call(lambda client: client.get_all_tables(name)) == [f"t_{name}"]

            return ask

        _run([work(f"d{i}") for i in range(6)])
        assert server.counts["get_all_tables"] == 300
        pool.close()

    def test_keeps_no_more_connections_than_it_may(self, serve: Serve) -> None:
        server = serve()
        pool = Connections(parse_uris(server.uri), Settings(QUICK), "ann")
        _use_at_once(pool, MAX_IDLE + 3)
        _use_at_once(pool, MAX_IDLE)
        assert server.connections == MAX_IDLE + 3
        pool.close()

    def test_is_of_no_use_after_closing(self, serve: Serve, connect: Connect) -> None:
        session = connect(serve(get_all_databases=["a"]))
        session.close()
        session.close()
        with pytest.raises(MetastoreError, match="closed"):
            session.list_databases()

    def test_may_be_closed_while_a_call_is_under_way(self, serve: Serve) -> None:
        entered, go_on = threading.Event(), threading.Event()

        def slow() -> list[str]:
            entered.set()
            go_on.wait(LIMIT)
            return ["a"]

        server = serve(get_all_databases=slow)
        pool = Connections(parse_uris(server.uri), Settings(QUICK), "ann")

        def work() -> None:
            assert pool.call(lambda client: client.get_all_databases()) == ["a"]

        def close() -> None:
            entered.wait(LIMIT)
            pool.close()
            go_on.set()

        _run([work, close])
        assert not pool._idle

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
    def test_throws_a_connection_away_that_was_interrupted(self, serve: Serve, interrupt: type[BaseException]) -> None:
        """The rest of its answer would be read by the next call."""
        server = serve(get_all_databases=["a"], get_all_tables=["t"])
        pool = Connections(parse_uris(server.uri), Settings(QUICK), "ann")

        def interrupted(client: object) -> None:
            client.send_get_all_databases()  # type: ignore[attr-defined]
            raise interrupt

        with pytest.raises(interrupt):
            pool.call(interrupted)
        assert pool.call(lambda client: client.get_all_tables("d")) == ["t"]
        assert server.connections == 2
        pool.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
class TestAForkedChild:
    def test_makes_its_own_connection(self, serve: Serve) -> None:
        server = serve(get_all_databases=["a"])
        pool = Connections(parse_uris(server.uri), Settings(QUICK), "ann")
        pool.call(lambda client: client.get_all_databases())
        assert _in_a_child(lambda: pool.call(lambda client: client.get_all_databases()) == ["a"])
        assert pool.call(lambda client: client.get_all_databases()) == ["a"]
        assert server.connections == 2
        pool.close()

    def test_closes_nothing_of_its_parent(self, serve: Serve) -> None:
        server = serve(get_all_databases=["a"])
        pool = Connections(parse_uris(server.uri), Settings(QUICK), "ann")
        pool.call(lambda client: client.get_all_databases())
        assert _in_a_child(lambda: pool.close() is None)
        pool.call(lambda client: client.get_all_databases())
        assert server.connections == 1
        pool.close()

    def test_does_not_wait_for_a_thread_that_is_not_there(self, serve: Serve) -> None:
        pool = Connections(parse_uris(serve(get_all_databases=["a"]).uri), Settings(QUICK), "ann")
        with pool._lock:
            assert _in_a_child(lambda: pool.call(lambda client: client.get_all_databases()) == ["a"])
        pool.close()


def _in_a_child(work: Callable[[], bool]) -> bool:
    """Whether something holds in a forked child; one that hangs is killed by its alarm."""
    import signal

    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def test_the_user_is_told_to_the_server(serve: Serve) -> None:
    seen: list[tuple[str, list[str]]] = []
    server: ScriptedMetastore = serve(set_ugi=lambda user, groups: seen.append((user, groups)) or groups)
    Connections(parse_uris(server.uri), Settings(QUICK), "ann").call(lambda client: client.getVersion())
    assert seen == [("ann", ["ann"])]
