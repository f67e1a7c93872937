"""How JupyterHub is told to make containers like ours; everything else is as it comes."""

from collections.abc import Mapping

from benchmarks.docker.testbed import IMAGES, START_SECONDS, Ground
from codehub.adapters.docker.containers import HOME, TEMPORARY, USER
from codehub.adapters.docker.options import PROJECT_LABEL, Limits


def hub_configuration(ground: Ground, who: str, ports: Mapping[str, int], token: str) -> str:
    """A configuration file: ports, who may ask, and containers that are made like ours."""
    project, limits = ground.project(who), ground.options(who).limits
    settings: dict[str, object] = {
        "JupyterHub.bind_url": f"http://127.0.0.1:{ports['proxy']}",
        "ConfigurableHTTPProxy.api_url": f"http://127.0.0.1:{ports['proxy_api']}",
        "JupyterHub.hub_port": ports["hub"],
        "JupyterHub.authenticator_class": "dummy",
        "Authenticator.allow_all": True,
        "JupyterHub.services": [{"name": "benchmark", "api_token": token}],
        "JupyterHub.load_roles": [{"name": "admin", "services": ["benchmark"]}],
        # The benchmark removes what is left by itself.
        "JupyterHub.cleanup_servers": False,
        "JupyterHub.spawner_class": "docker",
        "DockerSpawner.allowed_images": list(IMAGES.values()),
        "DockerSpawner.cmd": [HOME],
        "DockerSpawner.port": 8080,
        "DockerSpawner.prefix": project,
        # Like ours: a container per start, the home in a volume.
        "DockerSpawner.remove": True,
        "DockerSpawner.volumes": {f"{project}-{{username}}": HOME},
        "DockerSpawner.environment": {"CODEHUB_BASE_PATH": "/"},
        "DockerSpawner.extra_create_kwargs": {
            "user": USER,
            "labels": {PROJECT_LABEL: project},
        },
        "DockerSpawner.mem_limit": limits.memory_bytes,
        "DockerSpawner.cpu_limit": limits.cpus,
        "DockerSpawner.extra_host_config": _host_configuration(ground.name, limits),
        "DockerSpawner.start_timeout": START_SECONDS,
        "DockerSpawner.http_timeout": START_SECONDS,
    }
    return "\n".join(["c = get_config()", *(f"c.{name} = {value!r}" for name, value in settings.items())])


def _host_configuration(network: str, limits: Limits) -> dict[str, object]:
    """Confined like ours, in the words of its client."""
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
