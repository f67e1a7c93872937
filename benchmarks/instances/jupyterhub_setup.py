"""Install JupyterHub with a spawner, and configure both."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers import clean_environment, create_virtual_environment, install_from_npm, run

PROXY = "configurable-http-proxy"
PRINT_VERSIONS = "from importlib.metadata import version as v; print(*(f'{n} {v(n)}' for n in %r), sep=', ')"


async def _no_home(_user: str) -> None:
    """Leave the home to the spawner."""


@dataclass(frozen=True)
class Spawner:
    """The package of a spawner, its settings, its environment, and how to create the home of a user."""

    package: str
    settings: Mapping[str, object]
    environment: Mapping[str, str] = field(default_factory=dict)
    make_home: Callable[[str], Awaitable[None]] = _no_home


@dataclass(frozen=True)
class Installation:
    """An installed hub; `environment` has the proxy in its PATH, and none of CodeHub's settings."""

    python: str
    environment: dict[str, str]
    versions: str


async def install_jupyterhub(directory: Path, spawner: Spawner) -> Installation:
    packages = ("jupyterhub", spawner.package)
    python = await create_virtual_environment(directory, *packages)
    proxy = await install_from_npm(directory, PROXY)
    versions = await run(python, "-c", PRINT_VERSIONS % (packages,))
    path = f"{Path(proxy).parent}:{os.environ['PATH']}"
    environment = {**clean_environment(), **spawner.environment, "PATH": path}
    return Installation(python, environment, f"{versions}, {PROXY} {await run(proxy, '--version')}")


def hub_configuration(spawner: Spawner, ports: Mapping[str, int], token: str) -> str:
    """Return a configuration file with ports, an API token and the settings of the spawner."""
    settings: dict[str, object] = {
        "JupyterHub.bind_url": f"http://127.0.0.1:{ports['proxy']}",
        "ConfigurableHTTPProxy.api_url": f"http://127.0.0.1:{ports['proxy_api']}",
        "JupyterHub.hub_port": ports["hub"],
        "JupyterHub.authenticator_class": "dummy",
        "Authenticator.allow_all": True,
        "JupyterHub.services": [{"name": "benchmark", "api_token": token}],
        "JupyterHub.load_roles": [{"name": "admin", "services": ["benchmark"]}],
        # The benchmark removes leftovers itself.
        "JupyterHub.cleanup_servers": False,
        **spawner.settings,
    }
    return "\n".join(["c = get_config()", *(f"c.{key} = {value!r}" for key, value in settings.items())])
