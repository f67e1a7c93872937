"""Who takes part: everybody who can be had here, each with its processes on one core."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.api.load_generator import Target
from benchmarks.proxy.codehub import ours, transport
from benchmarks.proxy.nginx import installed, nginx, nginx_64k, nginx_auth, nginx_upstream
from benchmarks.proxy.peers import caddy, configurable_http_proxy, direct, traefik
from benchmarks.proxy.testbed import OTHER_CORES, VISITORS, CannotRun, Contestant, Stage, Visitor, server
from benchmarks.report import Report
from codehub.embedded.free_ports import choose_ports

Starter = Callable[[Stage], AbstractAsyncContextManager[Contestant]]
CONTESTANTS: Mapping[str, Starter] = {
    "direct": direct,
    "nginx": nginx,
    "nginx-auth": nginx_auth,
    "nginx-64k": nginx_64k,
    "caddy": caddy,
    "traefik": traefik,
    "chp": configurable_http_proxy,
    "ours": ours,
    "transport": transport,
}
# It tells where our time goes, but it is nothing that anybody could use.
DEFAULT = tuple(name for name in CONTESTANTS if name != "transport")


@asynccontextmanager
async def upstreams(directory: Path) -> AsyncIterator[Stage]:
    """The upstreams beside the load: pages from nginx if it is there, and the echo."""
    ports = choose_ports(["pages", "echo"], {})
    pages_port = ports["pages"] if installed() else ports["echo"]
    visitors = [Visitor() for _ in range(VISITORS)]
    stage = Stage(directory, pages_port, ports["echo"], visitors)
    command = (sys.executable, "-m", "benchmarks.proxy.upstream", str(stage.echo_port))
    ready = Target(stage.echo_port, "/", {})
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            server(command, os.environ, directory / "echo.log", ready, OTHER_CORES)
        )
        if installed():
            await stack.enter_async_context(nginx_upstream(stage))
        yield stage


@asynccontextmanager
async def contestants(
    stage: Stage, names: Sequence[str], report: Report
) -> AsyncIterator[Mapping[str, Contestant]]:
    """All of them at once, so that they can take turns; who cannot be had is left out, with the reason."""
    found = {}
    async with AsyncExitStack() as stack:
        for name in names:
            try:
                found[name] = await stack.enter_async_context(CONTESTANTS[name](stage))
            except CannotRun as error:
                report.say(f"without {name}: {error}")
            else:
                report.say(f"{name} is there")
        yield found
