"""What the control plane makes of a list of ports: a workspace can answer in the agent's place."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from codehub.domain import port_shares
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.instance_ports import LONGEST_LIST, MAX_PORTS, RESERVED_PORTS, ask_for_ports, port_upstream
from codehub.ports import ListeningPort


async def ask_one_that_answers(response: bytes, directory: Path) -> list[ListeningPort]:
    path = directory / "ports.sock"

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(response)
        writer.close()

    async with await asyncio.start_unix_server(respond, path):
        return list(await ask_for_ports(str(path), 0))


@pytest.mark.parametrize(
    ("document", "listed"),
    [
        ([{"port": 3000, "process": "node"}], [ListeningPort(3000, "node")]),
        ([{"port": 3000, "process": None}], [ListeningPort(3000, None)]),
        ([{"port": 3000, "process": "\x1b[31mred\n"}], [ListeningPort(3000, "[31mred")]),
        ([{"port": 3000, "process": "x" * 1000}], [ListeningPort(3000, "x" * 64)]),
        ([{"port": 3000, "process": ["node"]}], [ListeningPort(3000, None)]),
        ([{"port": port} for port in (0, -1, 65536, True, "3000", [3000], None, 1e3)], []),
        ([3000, "3000", None, [3000]], []),
        ({"port": 3000}, []),
        (None, []),
    ],
)
async def test_only_ports_and_printable_names_are_listed(
    tmp_path: Path, document: object, listed: list[ListeningPort]
) -> None:
    assert await ask_one_that_answers(json.dumps(document).encode(), tmp_path) == listed


async def test_a_list_has_a_greatest_length(tmp_path: Path) -> None:
    document = [{"port": port} for port in range(1, 2 * MAX_PORTS)]
    found = await ask_one_that_answers(json.dumps(document).encode(), tmp_path)
    assert [each.port for each in found] == list(range(1, MAX_PORTS + 1))


@pytest.mark.parametrize(
    "response", [b"", b"not json", b"\xff", b" " * (LONGEST_LIST + 1) + b"[]", b"[" * LONGEST_LIST]
)
async def test_anything_else_is_an_outage(tmp_path: Path, response: bytes) -> None:
    with pytest.raises(Transient) as caught:
        await ask_one_that_answers(response, tmp_path)
    assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_a_symlink_to_another_socket_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link.sock").symlink_to(tmp_path / "ports.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "ports.sock"))
        listening.listen()
        with pytest.raises(Transient):
            await ask_for_ports(str(tmp_path / "link.sock"), 0)


def test_the_secret_is_not_shown() -> None:
    upstream = port_upstream("127.0.0.1", 40000, 3000, frozenset(), "the-secret")
    assert upstream.preamble == b"the-secret CONNECT 3000\n"
    assert "the-secret" not in repr(upstream)


def test_what_is_never_opened_cannot_be_shared() -> None:
    assert port_shares.RESERVED_PORTS == RESERVED_PORTS
