"""The port forwarder of the agent: what a line may ask for, and what it gives away."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codehub.adapters.local.launcher import AGENT_VARIABLE, RUN_AGENT
from testkit.processes import free_port
from testkit.waiting import DEADLINE_SECONDS

REPOSITORY = Path(__file__).parents[2]
SECRET = "the-secret"  # noqa: S105


@contextmanager
def forwarder(directory: Path, **options: str) -> Iterator[Path]:
    """Run an agent whose IDE does nothing; yield the socket of its forwarder."""
    address = {"sockets": str(directory), "name": "ports.sock"}
    document = {"sockets": "", "ide_socket": "", "services": {"ports": {**address, **options}}}
    agent = subprocess.Popen(
        (sys.executable, "-I", "-S", "-c", RUN_AGENT, str(REPOSITORY), "sh", "-c", "echo ready; sleep 1000"),
        env={"PATH": os.environ["PATH"], AGENT_VARIABLE: json.dumps(document)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "ready\n"
        try:
            yield directory / "ports.sock"
        finally:
            agent.terminate()


@contextmanager
def greeter(host: str) -> Iterator[int]:
    """Listen on an address and greet everyone; yield the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:

        def greet() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello " + connection.recv(100))

        thread = threading.Thread(target=greet)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def ask(path: Path, message: bytes) -> bytes:
    """Return everything that comes back; nothing if the connection is ended."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(DEADLINE_SECONDS)
        connection.connect(str(path))
        try:
            connection.sendall(message)
            return b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:
            return b""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_follows_the_line_reaches_a_program_on_loopback(tmp_path: Path, host: str) -> None:
    with forwarder(tmp_path) as path, greeter(host) as port:
        assert ask(path, b"CONNECT %d\nyou" % port) == b"hello you"


def test_a_line_may_arrive_in_pieces(tmp_path: Path) -> None:
    with forwarder(tmp_path) as path, greeter("127.0.0.1") as port, socket.socket(socket.AF_UNIX) as client:
        client.settimeout(DEADLINE_SECONDS)
        client.connect(str(path))
        for piece in (b"CONN", b"ECT %d" % port, b"\nyou"):
            client.sendall(piece)
        assert client.recv(100) == b"hello you"


@pytest.mark.parametrize(
    "line",
    [
        b"CONNECT 0",
        b"CONNECT 65536",
        b"CONNECT -1",
        b"CONNECT 127.0.0.1",
        b"CONNECT",
        b"CONNECT  %d",
        b"CONNECT %d now",
        b"connect %d",
        b"CONNECT \xd9\xa3",
        b"GET / HTTP/1.1",
        b"",
        b"x" * 1000,
    ],
)
def test_other_lines_end_the_connection(tmp_path: Path, line: bytes) -> None:
    with forwarder(tmp_path) as path, greeter("127.0.0.1") as port:
        assert ask(path, line.replace(b"%d", str(port).encode()) + b"\nyou") == b""
        assert ask(path, b"CONNECT %d\nyou" % port) == b"hello you"


def test_reserved_ports_are_neither_opened_nor_listed(tmp_path: Path) -> None:
    with (
        greeter("127.0.0.1") as reserved,
        greeter("127.0.0.1") as other,
        forwarder(tmp_path, reserved=f"3128 {reserved}") as path,
    ):
        assert ask(path, b"CONNECT %d\nyou" % reserved) == b""
        listed = {each["port"] for each in json.loads(ask(path, b"LIST\n"))}
        assert other in listed
        assert reserved not in listed


def test_without_the_secret_nothing_is_opened_or_listed(tmp_path: Path) -> None:
    with forwarder(tmp_path, secret=SECRET) as path, greeter("127.0.0.1") as port:
        for start in (b"", b"wrong ", b"the-secretx ", b"the-secre "):
            assert ask(path, start + b"CONNECT %d\nyou" % port) == b""
            assert ask(path, start + b"LIST\n") == b""
        assert ask(path, b"the-secret CONNECT %d\nyou" % port) == b"hello you"
        assert json.loads(ask(path, b"the-secret LIST\n"))


def test_where_instances_share_a_network_only_their_own_ports_count(tmp_path: Path) -> None:
    marker, port = "INSTANCE=this one", free_port()
    serve = "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); print('ready', flush=True); s.accept()[0].sendall(b'mine')"  # noqa: E501
    own = subprocess.Popen(
        (sys.executable, "-c", serve, str(port)),
        env={"INSTANCE": "this one"},
        stdout=subprocess.PIPE,
        text=True,
    )
    with own, forwarder(tmp_path, marker=marker) as path, greeter("127.0.0.1") as foreign:
        assert own.stdout is not None
        assert own.stdout.readline() == "ready\n"
        try:
            assert [each["port"] for each in json.loads(ask(path, b"LIST\n"))] == [port]
            assert ask(path, b"CONNECT %d\nyou" % foreign) == b""
            assert ask(path, b"CONNECT %d\n" % port) == b"mine"
        finally:
            own.kill()
