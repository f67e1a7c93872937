"""A stand-in for a Docker engine on a UNIX socket, with the calls of a probe."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from aiohttp import web

VERSION = {"Version": "99.1", "ApiVersion": "1.41"}
AGENT = {"codehub.io/socket-arguments": "{socket}"}


@dataclass
class StandInEngine:
    """Its images and volumes, the images that it can pull, and the requests that it received."""

    url: str
    tcp_url: str = ""
    images: set[str] = field(default_factory=set)
    in_registry: set[str] = field(default_factory=set)
    pulled: list[str] = field(default_factory=list)
    registry_answers: asyncio.Event = field(default_factory=asyncio.Event)
    is_shutting_down: bool = False
    kernel: str = field(default_factory=lambda: os.uname().release)
    # Of every image.
    labels: dict[str, str] = field(default_factory=lambda: {**AGENT})
    engine_id: str = field(default_factory=lambda: str(uuid4()))
    # By name, with their labels.
    volumes: dict[str, dict[str, str] | None] = field(default_factory=dict)

    async def version(self, _request: web.Request) -> web.Response:
        return web.json_response({**VERSION, "KernelVersion": self.kernel})

    async def info(self, _request: web.Request) -> web.Response:
        return web.json_response({"ID": self.engine_id})

    async def inspect(self, request: web.Request) -> web.Response:
        if request.match_info["image"] in self.images:
            return web.json_response({"Id": "sha256:0", "Config": {"Labels": self.labels}})
        return web.json_response({"message": "No such image"}, status=404)

    async def pull(self, request: web.Request) -> web.Response:
        image = request.query["fromImage"]
        self.pulled.append(image)
        await self.registry_answers.wait()
        if image not in self.in_registry:
            # Like a real engine, which has sent the status before it knows.
            return web.json_response({"error": "pull access denied,\nrepository does not exist."})
        self.images.add(image)
        return web.json_response({"status": f"Downloaded {image}"})

    async def list_volumes(self, _request: web.Request) -> web.Response:
        return web.json_response({"Volumes": [self._volume(name) for name in self.volumes]})

    async def create_volume(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        self.volumes.setdefault(wanted["Name"], wanted["Labels"])
        return web.json_response(self._volume(wanted["Name"]), status=201)

    async def inspect_volume(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if self.is_shutting_down:
            return web.json_response({"message": "shutting down"}, status=503)
        if name in self.volumes:
            return web.json_response(self._volume(name))
        return web.json_response({"message": "no such volume"}, status=404)

    async def delete_volume(self, request: web.Request) -> web.Response:
        found = self.volumes.pop(request.match_info["name"], {})
        return web.Response(status=404 if found == {} else 204)

    async def list_containers(self, _request: web.Request) -> web.Response:
        return web.json_response([])

    def _volume(self, name: str) -> dict[str, object]:
        return {"Name": name, "Labels": self.volumes[name]}


@asynccontextmanager
async def stand_in_engine(socket: Path, images: Iterable[str] = ()) -> AsyncIterator[StandInEngine]:
    engine = StandInEngine(f"unix://{socket}", images=set(images))
    app = web.Application()
    app.router.add_get("/version", engine.version)
    app.router.add_get("/v1.41/version", engine.version)
    app.router.add_get("/v1.41/info", engine.info)
    app.router.add_get("/v1.41/images/{image:.+}/json", engine.inspect)
    app.router.add_post("/v1.41/images/create", engine.pull)
    app.router.add_get("/v1.41/containers/json", engine.list_containers)
    app.router.add_get("/v1.41/volumes", engine.list_volumes)
    app.router.add_post("/v1.41/volumes/create", engine.create_volume)
    app.router.add_get("/v1.41/volumes/{name}", engine.inspect_volume)
    app.router.add_delete("/v1.41/volumes/{name}", engine.delete_volume)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(socket)).start()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port, *_ = runner.addresses[-1]
    engine.tcp_url = f"tcp://{host}:{port}"
    engine.registry_answers.set()
    try:
        yield engine
    finally:
        # It cannot be shut down while a pull waits.
        engine.registry_answers.set()
        await runner.cleanup()
