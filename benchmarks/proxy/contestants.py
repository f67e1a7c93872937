"""Start the contestants that are available here, each with its processes on one core."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.api.load_generator import Target
from benchmarks.peers import Unavailable
from benchmarks.proxy.codehub import ours, transport
from benchmarks.proxy.nginx import installed, nginx, nginx_64k, nginx_auth, nginx_upstream
from benchmarks.proxy.peers import caddy, configurable_http_proxy, direct, traefik
from benchmarks.proxy.testbed import BROWSERS, OTHER_CORES, Browser, Contestant, Testbed, server
from benchmarks.report import Report
from codehub.embedded.free_ports import choose_ports

Starter = Callable[[Testbed], AbstractAsyncContextManager[Contestant]]
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
# The transport alone shows where the time goes, but is not usable as a proxy.
DEFAULT = tuple(name for name in CONTESTANTS if name != "transport")


@asynccontextmanager
async def upstreams(directory: Path) -> AsyncIterator[Testbed]:
    """Run the upstreams on the cores of the load: pages from nginx if installed, and the echo."""
    ports = choose_ports(["pages", "echo"], {})
    pages_port = ports["pages"] if installed() else ports["echo"]
    browsers = [Browser() for _ in range(BROWSERS)]
    testbed = Testbed(directory, pages_port, ports["echo"], browsers)
    socket = testbed.socket(testbed.echo_port)
    command = (sys.executable, "-m", "benchmarks.proxy.upstream", str(testbed.echo_port), str(socket))
    ready = Target(testbed.echo_port, "/", {})
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            server(command, os.environ, directory / "echo.log", ready, OTHER_CORES)
        )
        if installed():
            await stack.enter_async_context(nginx_upstream(testbed))
        yield testbed


@asynccontextmanager
async def contestants(
    testbed: Testbed, names: Sequence[str], report: Report
) -> AsyncIterator[Mapping[str, Contestant]]:
    """Start all of them, so that they can take turns; skip those that are unavailable."""
    running = {}
    async with AsyncExitStack() as stack:
        for name in names:
            try:
                running[name] = await stack.enter_async_context(CONTESTANTS[name](testbed))
            except Unavailable as error:
                report.log(f"without {name}: {error}")
            else:
                report.log(f"{name} is running")
        yield running
