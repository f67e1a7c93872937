"""What somebody with a terminal in a container tries; runs inside as a program of its own.

`container_attempts.py TARGETS` prints, as JSON, the attempts that succeeded. Besides those of a local
workspace, it tries what only Docker has.
"""

import importlib
import json
import socket
import sys
from pathlib import Path

Targets = dict[str, str]


def connect_to_engine(targets: Targets) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(targets["engine"])
        return True


def connect_to_neighbor(targets: Targets) -> bool:
    with socket.create_connection((targets["neighbor"], 8080), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        return connection.recv(100).startswith(b"HTTP/1.1 ")


def connect_to_host(targets: Targets) -> bool:
    with socket.create_connection((targets["host"], int(targets["host_port"])), timeout=5):
        return True


def write_to_gateway(targets: Targets) -> bool:
    """Whoever can replace the gateway's socket reads what other workspaces send."""
    planted = Path(targets["gateway"], "planted")
    planted.touch()
    planted.unlink()
    return True


OF_DOCKER = {
    "connect to Docker's engine": connect_to_engine,
    "connect to a neighbor's IDE by its address": connect_to_neighbor,
    "connect to a server on all addresses of the host": connect_to_host,
    "replace the gateway's socket": write_to_gateway,
}


if __name__ == "__main__":
    # Beside this file, wherever it was copied to.
    sys.path.insert(0, str(Path(__file__).parent))
    common = importlib.import_module("sandbox_attempts")
    known, attempts = json.loads(sys.argv[1]), {**common.ATTEMPTS, **OF_DOCKER}
    print(json.dumps([name for name, each in attempts.items() if common.succeeds(each, known)]))  # noqa: T201
