"""JupyterHub with a spawner, the same images and limits as CodeHub, and otherwise default settings."""

import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import aiohttp

from benchmarks.instances.contestants import Failed
from benchmarks.instances.jupyterhub_setup import Spawner, hub_configuration, install_jupyterhub
from benchmarks.servers import background_process
from codehub.domain.states import Operation
from codehub.embedded.free_ports import choose_ports
from testkit.waiting import until

EVENT = b"data:"


@dataclass
class JupyterHub:
    """A running hub; each number is a user with one home for all images."""

    spawner: Spawner
    versions: str
    api: aiohttp.ClientSession

    async def prepare(self, _reference: str, number: int) -> None:
        await self.spawner.make_home(user_name(number))
        async with self.api.post(f"/hub/api/users/{user_name(number)}") as response:
            # CONFLICT: the user exists already, because all images share one home.
            if response.status not in {HTTPStatus.CREATED, HTTPStatus.CONFLICT}:
                raise Failed(await response.text())

    async def start(self, reference: str, number: int) -> None:
        path = f"/hub/api/users/{user_name(number)}/server"
        async with self.api.post(path, json={"image": reference}) as response:
            if response.status == HTTPStatus.ACCEPTED:
                await self._follow(f"{path}/progress")
            elif response.status != HTTPStatus.CREATED:
                raise Failed(f"JupyterHub returned {response.status}: {await response.text()}")

    async def stop(self, _reference: str, number: int) -> None:
        async with self.api.delete(f"/hub/api/users/{user_name(number)}/server") as response:
            if response.status == HTTPStatus.ACCEPTED:
                await until(lambda: self._is_gone(number), f"the server of {user_name(number)} is gone")
            elif response.status != HTTPStatus.NO_CONTENT:
                raise Failed(f"JupyterHub returned {response.status}: {await response.text()}")

    async def step_seconds(self, _reference: str, _number: int, _operation: Operation) -> Mapping[str, float]:
        return {}

    async def _follow(self, path: str) -> None:
        """Follow the progress events of a start that takes longer than JupyterHub lets a request wait."""
        async with self.api.get(path) as stream:
            async for line in stream.content:
                event = json.loads(line.removeprefix(EVENT)) if line.startswith(EVENT) else {}
                if event.get("ready"):
                    return
                if event.get("failed"):
                    raise Failed(event["message"])
        raise Failed("JupyterHub's events ended before the server was ready")

    async def _is_gone(self, number: int) -> bool:
        async with self.api.get(f"/hub/api/users/{user_name(number)}") as response:
            return not (await response.json())["servers"]


@asynccontextmanager
async def jupyterhub(spawner: Spawner) -> AsyncIterator[JupyterHub]:
    """Run a hub; raise Unavailable if it cannot be installed here."""
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as temporary:
        directory = Path(temporary)
        installed = await install_jupyterhub(directory, spawner)
        ports, token = choose_ports(["proxy", "proxy_api", "hub"], {}), secrets.token_hex(16)
        configuration = directory / "jupyterhub_config.py"
        configuration.write_text(hub_configuration(spawner, ports, token))
        command = (installed.python, "-m", "jupyterhub", "-f", str(configuration))
        with background_process(command, installed.environment, directory / "hub.log"):
            async with _client(ports["hub"], token) as api:
                await until(lambda: _is_ready(api), "JupyterHub is ready")
                yield JupyterHub(spawner, installed.versions, api)


def _client(port: int, token: str) -> aiohttp.ClientSession:
    # No timeout: JupyterHub has its own.
    headers, timeout = {"Authorization": f"token {token}"}, aiohttp.ClientTimeout(total=None)
    return aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers, timeout=timeout)


async def _is_ready(api: aiohttp.ClientSession) -> bool:
    try:
        async with api.get("/hub/api/users") as response:
            return response.status == HTTPStatus.OK
    except aiohttp.ClientError:
        return False


def user_name(number: int) -> str:
    return f"user{number}"
