"""The gateway on a TCP address, for instances that cannot use its socket."""

import subprocess
import sys

import pytest

from codehub.egress_tokens import make_preamble
from testkit.internet import WEB_PORT, Internet
from tests.egress.clients import KEY
from tests.egress.conftest import running_gateway

ADDRESS = ("198.51.100.1", 3128)
ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30) as connection:
    connection.sendall(sys.argv[3].encode())
    print(b"".join(iter(lambda: connection.recv(65536), b"")).decode())
"""


async def test_a_workspace_proves_itself_there_as_on_the_socket(
    internet: Internet, shared_database_url: str
) -> None:
    async with running_gateway(
        internet, shared_database_url, address=f"{ADDRESS[0]}:{ADDRESS[1]}"
    ) as gateway:
        workspace_id = (await gateway.client()).workspace_id
        request = f"GET http://site.example:{WEB_PORT}/ HTTP/1.1\r\n\r\n"
        assert "outside" in ask(internet, make_preamble(KEY, workspace_id) + request)
        assert "outside" not in ask(internet, make_preamble("another key", workspace_id) + request)


def ask(internet: Internet, text: str) -> str:
    command = (sys.executable, "-c", ASK, ADDRESS[0], str(ADDRESS[1]), text)
    run = subprocess.run(internet.outside_command(command), check=False, capture_output=True, text=True)
    return run.stdout


async def test_a_gateway_that_cannot_listen_ends_and_says_why(
    internet: Internet, shared_database_url: str
) -> None:
    with pytest.raises(AssertionError, match=r"cannot listen.*CODEHUB_EGRESS_ADDRESS"):
        async with running_gateway(internet, shared_database_url, address="203.0.113.200:3128"):
            pass
