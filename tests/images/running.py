"""Run a workspace's container as the Docker backend does."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import httpx

from testkit.docker_engine import docker
from testkit.waiting import until
from tests.images.restrictions import RESTRICTED


@dataclass(frozen=True)
class RunningWorkspace:
    """A container whose IDE answers."""

    name: str
    url: str
    secret: str

    def shell(self, script: str) -> str:
        return docker("exec", self.name, "bash", "-c", script)


@asynccontextmanager
async def running_workspace(image: str) -> AsyncIterator[RunningWorkspace]:
    name, secret = f"codehub-test-{uuid4()}", secrets.token_hex(32)
    docker("volume", "create", name)
    try:
        docker(
            *("run", "--detach", "--name", name, "--user", "1000:1000", *RESTRICTED),
            *("--volume", f"{name}:/home/coder", "--publish", "127.0.0.1::8080"),
            *("--env", f"HASHED_PASSWORD={secret}", image),
        )
        workspace = RunningWorkspace(name, f"http://{docker('port', name, '8080/tcp')}", secret)
        await until(lambda: _is_healthy(workspace), f"{image} to answer on /healthz")
        yield workspace
    finally:
        docker("rm", "--force", name)
        docker("volume", "rm", name)


async def _is_healthy(workspace: RunningWorkspace) -> bool:
    async with httpx.AsyncClient() as client:
        try:
            return (await client.get(f"{workspace.url}/healthz")).status_code == 200
        except httpx.TransportError:
            return False
