"""A terminal in a local workspace with a neighbor, from which everything that is not its own is attempted.

Also a program, `python -m tests.integration.terminal DIRECTORY sandboxed|plain`, to be run as another user.
"""

import asyncio
import json
import os
import secrets
import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codehub.adapters.local.ides import Ide
from codehub.adapters.local.instance_files import LOCK_NAME, SOCKETS_NAME, STATE_NAME, read_state
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.processes import find_processes
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.ports import InstanceRequest
from testkit.fakes import IMAGE
from tests.contracts.instance_harness import PATIENCE, ask, tiny_ide
from tests.integration.sandbox_attempts import __file__ as attempts_file

ATTEMPTS = Path(attempts_file)


def terminal_ide() -> Ide:
    ide = tiny_ide()
    return Ide(
        ide.command,
        ide.health_path,
        ide.keep_prefix,
        ide.environment,
        ide.headers,
        (*ide.visible, ATTEMPTS),
        ide.sandboxed_options,
    )


async def attempt_everything(directory: Path, *, sandboxed: bool) -> list[str]:
    """Return the attempts that succeeded."""
    root = LocalRoot.at(directory / "local")
    root.prepare()
    own, neighbor = (WorkspaceId(str(uuid.uuid4())) for _ in range(2))
    instances = LocalInstances(
        root.path, ides={IMAGE: terminal_ide()}, sandboxed=sandboxed, timeouts=PATIENCE
    )
    try:
        for each in (own, neighbor):
            await LocalVolumes(root.path).provision(each)
            (root.volume(each) / "diary").write_text("secret")
            await instances.start(InstanceRequest(each, IMAGE), lambda _: None)
        with targets(directory, root, own, neighbor) as known:
            words = (sys.executable, "-I", "-S", str(ATTEMPTS), json.dumps(known))
            upstream = await instances.find_upstream(own)
            answer = await ask(upstream, own, f"run/{chr(0).join(words).encode().hex()}")
            succeeded: list[str] = json.loads(answer)
            return succeeded
    finally:
        for each in (own, neighbor):
            await instances.stop(each)


@contextmanager
def targets(
    directory: Path, root: LocalRoot, own: WorkspaceId, neighbor: WorkspaceId
) -> Iterator[dict[str, str]]:
    (directory / "credentials.json").write_text(json.dumps({"password": "secret"}))
    (directory / "credentials.json").chmod(0o600)
    scratch = root.volume(own)
    abstract = f"codehub-test-{secrets.token_hex(8)}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0{abstract}")
        unix.listen()
        yield {
            "home": str(root.volume(neighbor)),
            "credentials": str(directory / "credentials.json"),
            "state": str(root.instance(own) / STATE_NAME),
            "pid": str(max(each.pid for each in find_processes(root.marker(neighbor)))),
            "secret": root.marker(neighbor),
            "socket": str(root.instance(neighbor) / SOCKETS_NAME / _socket_name(root.instance(neighbor))),
            "abstract": abstract,
            "port": str(server.getsockname()[1]),
            "lock": LOCK_NAME,
            "scratch": str(scratch) if scratch.exists() else os.curdir,
        }


def _socket_name(instance: Path) -> str:
    state = read_state(instance)
    assert state is not None
    return state.socket


if __name__ == "__main__":
    found = asyncio.run(attempt_everything(Path(sys.argv[1]), sandboxed=sys.argv[2] == "sandboxed"))
    print(json.dumps(found))  # noqa: T201
