"""An HTTP proxy in front of the API server that lets chosen requests fail."""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias

import aiohttp
from aiohttp import web
from yarl import URL

from testkit.kubernetes.cluster import Cluster

HOST = "127.0.0.1"
# Exactly as the API server says it.
JSON = {"Content-Type": "application/json"}
# The proxy sets its own.
NOT_FORWARDED = {"host", "content-length", "transfer-encoding", "connection"}


class Exchange:
    """One request of a client, and what a fault can do with it."""

    def __init__(self, request: web.BaseRequest, body: bytes, session: aiohttp.ClientSession) -> None:
        self.request = request
        self.body = body
        self._session = session

    @property
    def path(self) -> str:
        return self.request.path

    @property
    def kind(self) -> str:
        """Return the kind of object, such as `pods`."""
        parts = self.path.split("/")
        return parts[5] if parts[3:4] == ["namespaces"] and len(parts) > 5 else parts[-1]

    @property
    def is_watch(self) -> bool:
        return self.request.query.get("watch") == "true"

    @property
    def is_change(self) -> bool:
        return self.request.method != "GET"

    @property
    def target(self) -> str:
        """Return what identifies the same request when it is sent again."""
        watch = "watch " if self.is_watch else ""
        return f"{watch}{self.request.method} {self.path} {self.request.query.get('fieldSelector', '')}"

    def mentions(self, text: str) -> bool:
        return text in self.request.path_qs or text in self.body.decode(errors="replace")

    async def relay(self) -> web.StreamResponse:
        """Send it to the server, and the response to the client as it arrives."""
        async with self._sent() as received:
            response = web.StreamResponse(status=received.status, headers=_forwarded(received.headers))
            await response.prepare(self.request)
            async for content in received.content.iter_any():
                await response.write(content)
            await response.write_eof()
        return response

    async def lose_response(self) -> web.StreamResponse:
        """Let the server carry it out, but cut the connection before the client knows."""
        async with self._sent() as received:
            await received.read()
        return self.cut()

    def cut(self) -> web.StreamResponse:
        """End the connection without a response."""
        if self.request.transport is not None:
            self.request.transport.abort()
        return web.Response()

    def _sent(self) -> "aiohttp.client._RequestContextManager":
        return self._session.request(
            self.request.method,
            URL(self.request.raw_path, encoded=True),
            headers=_forwarded(self.request.headers),
            data=self.body or None,
        )


Fault: TypeAlias = Callable[[Exchange], Awaitable[web.StreamResponse]]


def respond(status: int, text: str = "", retry_after: int | None = None) -> Fault:
    """Respond in place of the server, as a load balancer does."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}

    async def fault(_: Exchange) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers=headers)

    return fault


def respond_with_status(status: int, reason: str, message: str) -> Fault:
    """Respond as the API server itself does."""
    document = json.dumps(_status(status, reason, message)).encode()

    async def fault(_: Exchange) -> web.StreamResponse:
        return web.Response(status=status, body=document, headers=JSON)

    return fault


def end_watch(status: int, reason: str) -> Fault:
    """Begin a watch and end it with this error."""
    event = {"type": "ERROR", "object": _status(status, reason, "injected")}
    line = json.dumps(event).encode() + b"\n"

    async def fault(_: Exchange) -> web.StreamResponse:
        return web.Response(body=line, headers=JSON)

    return fault


def slow(seconds: float) -> Fault:
    async def fault(exchange: Exchange) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await exchange.relay()

    return fault


async def cut(exchange: Exchange) -> web.StreamResponse:
    """Cut the connection before the request reaches the server."""
    return exchange.cut()


async def lose_response(exchange: Exchange) -> web.StreamResponse:
    return await exchange.lose_response()


async def stall(_: Exchange) -> web.StreamResponse:
    """Never respond."""
    await asyncio.Event().wait()
    raise AssertionError("cancelled when the client gives up")


async def begin_and_stall(exchange: Exchange) -> web.StreamResponse:
    """Begin a response and send nothing more, as a dead connection behind a load balancer."""
    response = web.StreamResponse()
    await response.prepare(exchange.request)
    return await stall(exchange)


@dataclass
class Rule:
    """Which requests fail, and how; each key of them this often at most."""

    fault: Fault
    selects: Callable[[Exchange], bool]
    limit: int | None = None
    key: Callable[[Exchange], str] = lambda _: ""
    hits: Counter[str] = field(default_factory=Counter)

    def takes(self, exchange: Exchange) -> bool:
        if not self.selects(exchange):
            return False
        key = self.key(exchange)
        if self.limit is not None and self.hits[key] >= self.limit:
            return False
        self.hits[key] += 1
        return True


class FaultProxy:
    """Accepts plain HTTP on loopback and forwards it to the API server. The first rule that fits applies."""

    def __init__(self, cluster: Cluster) -> None:
        self._configuration = json.loads(cluster.kubeconfig.read_text())
        self._authority = cluster.credentials.authority
        self.rules: list[Rule] = []
        self.port = 0

    @classmethod
    @asynccontextmanager
    async def to(cls, cluster: Cluster) -> AsyncIterator[Self]:
        proxy = cls(cluster)
        server = proxy._configuration["clusters"][0]["cluster"]["server"]
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=proxy._authority), limit=0)
        async with aiohttp.ClientSession(
            server, connector=connector, timeout=aiohttp.ClientTimeout(), auto_decompress=False
        ) as session:

            async def handle(request: web.BaseRequest) -> web.StreamResponse:
                return await proxy._handle(Exchange(request, await request.read(), session))

            runner = web.ServerRunner(web.Server(handle, handler_cancellation=True), shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, HOST, 0)
            await site.start()
            proxy.port = runner.addresses[0][1]
            try:
                yield proxy
            finally:
                await runner.cleanup()

    def write_kubeconfig(self, path: Path) -> Path:
        """Write the configuration of an administrator whose requests go through the proxy."""
        cluster = {"server": f"http://{HOST}:{self.port}"}
        clusters = [{**self._configuration["clusters"][0], "cluster": cluster}]
        path.write_text(json.dumps({**self._configuration, "clusters": clusters}))
        return path

    async def _handle(self, exchange: Exchange) -> web.StreamResponse:
        for rule in self.rules:
            if rule.takes(exchange):
                return await rule.fault(exchange)
        return await exchange.relay()


def _status(status: int, reason: str, message: str) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": status,
    }


def _forwarded(headers: "aiohttp.typedefs.LooseHeaders") -> dict[str, str]:
    return {name: value for name, value in dict(headers).items() if name.lower() not in NOT_FORWARDED}
