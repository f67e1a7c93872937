"""JupyterHub with DockerSpawner: it starts the same images with the same limits, and else is as it comes."""

import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import aiohttp

from benchmarks.api.population import child
from benchmarks.docker.jupyterhub_setup import hub_configuration
from benchmarks.docker.peers import install_jupyterhub
from benchmarks.docker.testbed import Failed, Ground
from codehub.adapters.docker.options import PROJECT_LABEL
from codehub.domain.states import Operation
from codehub.embedded.free_ports import choose_ports
from testkit.waiting import until

WHO = "jupyterhub"
EVENT = b"data:"


@dataclass
class JupyterHub:
    """A user per number; what it answers is what its users see."""

    ground: Ground
    versions: str
    api: aiohttp.ClientSession

    async def prepare(self, _reference: str, number: int) -> None:
        labels = {PROJECT_LABEL: self.ground.project(WHO)}
        volume = {"Name": f"{self.ground.project(WHO)}-{_user(number)}", "Labels": labels}
        await self.ground.engine.volumes.create(volume)
        async with self.api.post(f"/hub/api/users/{_user(number)}") as answer:
            # There is one already: a user has one home for all images.
            if answer.status not in {HTTPStatus.CREATED, HTTPStatus.CONFLICT}:
                raise Failed(await answer.text())

    async def start(self, reference: str, number: int) -> None:
        path = f"/hub/api/users/{_user(number)}/server"
        async with self.api.post(path, json={"image": reference}) as answer:
            if answer.status == HTTPStatus.ACCEPTED:
                await self._follow(f"{path}/progress")
            elif answer.status != HTTPStatus.CREATED:
                raise Failed(f"JupyterHub answered {answer.status}: {await answer.text()}")

    async def stop(self, _reference: str, number: int) -> None:
        async with self.api.delete(f"/hub/api/users/{_user(number)}/server") as answer:
            if answer.status == HTTPStatus.ACCEPTED:
                await until(lambda: self._is_gone(number), f"the server of {_user(number)} is gone")
            elif answer.status != HTTPStatus.NO_CONTENT:
                raise Failed(f"JupyterHub answered {answer.status}: {await answer.text()}")

    async def look_back(self, _reference: str, _number: int, _operation: Operation) -> Mapping[str, float]:
        return {}

    async def _follow(self, path: str) -> None:
        """It takes longer than JupyterHub lets a request wait, so its events tell."""
        async with self.api.get(path) as stream:
            async for line in stream.content:
                event = json.loads(line.removeprefix(EVENT)) if line.startswith(EVENT) else {}
                if event.get("ready"):
                    return
                if event.get("failed"):
                    raise Failed(event["message"])
        raise Failed("JupyterHub's events ended before the server was ready")

    async def _is_gone(self, number: int) -> bool:
        async with self.api.get(f"/hub/api/users/{_user(number)}") as answer:
            return not (await answer.json())["servers"]


@asynccontextmanager
async def jupyterhub(ground: Ground) -> AsyncIterator[JupyterHub]:
    """A hub that answers; raise CannotRun if it cannot be had here."""
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as place:
        directory = Path(place)
        installed = await install_jupyterhub(directory)
        ports, token = choose_ports(["proxy", "proxy_api", "hub"], {}), secrets.token_hex(16)
        configuration = directory / "jupyterhub_config.py"
        configuration.write_text(hub_configuration(ground, WHO, ports, token))
        command = (installed.python, "-m", "jupyterhub", "-f", str(configuration))
        with child(command, installed.environment, directory / "hub.log"):
            async with _client(ports["hub"], token) as api:
                await until(lambda: _answers(api), "JupyterHub answers")
                yield JupyterHub(ground, installed.versions, api)


def _client(port: int, token: str) -> aiohttp.ClientSession:
    """JupyterHub itself has deadlines."""
    headers, timeout = {"Authorization": f"token {token}"}, aiohttp.ClientTimeout(total=None)
    return aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers, timeout=timeout)


async def _answers(api: aiohttp.ClientSession) -> bool:
    try:
        async with api.get("/hub/api/users") as answer:
            return answer.status == HTTPStatus.OK
    except aiohttp.ClientError:
        return False


def _user(number: int) -> str:
    return f"user{number}"
