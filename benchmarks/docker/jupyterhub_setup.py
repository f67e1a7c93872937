"""Install JupyterHub and configure it to make containers like CodeHub's."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.docker.testbed import IMAGES, START_SECONDS, Testbed
from benchmarks.peers import clean_environment, create_virtual_environment, install_from_npm, run
from codehub.adapters.docker.containers import HOME, TEMPORARY, USER
from codehub.adapters.docker.options import PROJECT_LABEL, Limits

PACKAGES = ("jupyterhub", "dockerspawner")
PROXY = "configurable-http-proxy"
PRINT_VERSIONS = "from importlib.metadata import version as v; print(*(f'{n} {v(n)}' for n in %r), sep=', ')"


@dataclass(frozen=True)
class Installation:
    """An installed hub; `environment` has the proxy in its PATH, and none of CodeHub's settings."""

    python: str
    environment: dict[str, str]
    versions: str


async def install_jupyterhub(directory: Path) -> Installation:
    python = await create_virtual_environment(directory, *PACKAGES)
    proxy = await install_from_npm(directory, PROXY)
    versions = await run(python, "-c", PRINT_VERSIONS % (PACKAGES,))
    environment = {**clean_environment(), "PATH": f"{Path(proxy).parent}:{os.environ['PATH']}"}
    return Installation(python, environment, f"{versions}, {PROXY} {await run(proxy, '--version')}")


def hub_configuration(testbed: Testbed, name: str, ports: Mapping[str, int], token: str) -> str:
    """Return a configuration file with ports, an API token and CodeHub's container options."""
    project, limits = testbed.project(name), testbed.options(name).limits
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
        "JupyterHub.spawner_class": "docker",
        "DockerSpawner.allowed_images": list(IMAGES.values()),
        "DockerSpawner.cmd": [HOME],
        "DockerSpawner.port": 8080,
        "DockerSpawner.prefix": project,
        # As in CodeHub: a container per start, the home in a volume.
        "DockerSpawner.remove": True,
        "DockerSpawner.volumes": {f"{project}-{{username}}": HOME},
        "DockerSpawner.environment": {"CODEHUB_BASE_PATH": "/"},
        "DockerSpawner.extra_create_kwargs": {
            "user": USER,
            "labels": {PROJECT_LABEL: project},
        },
        "DockerSpawner.mem_limit": limits.memory_bytes,
        "DockerSpawner.cpu_limit": limits.cpus,
        "DockerSpawner.extra_host_config": _host_configuration(testbed.name, limits),
        "DockerSpawner.start_timeout": START_SECONDS,
        "DockerSpawner.http_timeout": START_SECONDS,
    }
    return "\n".join(["c = get_config()", *(f"c.{key} = {value!r}" for key, value in settings.items())])


def _host_configuration(network: str, limits: Limits) -> dict[str, object]:
    """Return the same confinement as CodeHub's, in the terms of docker-py."""
    return {
        "network_mode": network,
        "init": True,
        "read_only": True,
        "tmpfs": {"/tmp": TEMPORARY},  # noqa: S108 (the container's)
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "memswap_limit": limits.memory_bytes,
        "pids_limit": limits.pids,
    }
