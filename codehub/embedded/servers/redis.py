"""The embedded Redis: a password, a log of every write, and nothing but loopback."""

import sys
from pathlib import Path

from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import write_private
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.probes import exchange
from codehub.embedded.servers.base import Server, StackConfig

NAME = "redis"
PORT = "redis"
CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
dir .
daemonize no
# Only the append-only file: a snapshot as well would cost time.
appendonly yes
appendfsync everysec
save ""
"""


def child(config: StackConfig) -> Child:
    directory = config.data.server_directory(NAME)
    port = config.ports[PORT]
    password = config.credentials.redis_password

    async def prepare() -> None:
        configuration = CONFIGURATION.format(host=LOOPBACK, port=port, password=password)
        write_private(directory / "redis.conf", configuration)

    async def is_ready() -> bool:
        # While Redis loads its data, it responds to PING with an error.
        request = f"AUTH {password}\r\nPING\r\n"
        return await exchange(port, request.encode(), lines=2) == [b"+OK\r\n", b"+PONG\r\n"]

    return Child(
        name=NAME,
        title="Redis",
        command=(str(Path(sys.executable).with_name("redis-server")), "redis.conf"),
        directory=directory,
        address=f"{LOOPBACK}:{port}",
        is_ready=is_ready,
        prepare=prepare,
        external_setting="CODEHUB_REDIS_URL",
    )


def environment(config: StackConfig) -> dict[str, str]:
    address = f"{LOOPBACK}:{config.ports[PORT]}"
    return {"CODEHUB_REDIS_URL": f"redis://:{config.credentials.redis_password}@{address}/0"}


REDIS = Server(NAME, "Redis", (PORT,), child, environment)
