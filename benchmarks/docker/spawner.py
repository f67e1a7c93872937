"""DockerSpawner, configured to make containers like CodeHub's."""

from benchmarks.docker.testbed import IMAGES, Testbed
from benchmarks.instances.contestants import START_SECONDS
from benchmarks.instances.jupyterhub_setup import Spawner
from codehub.adapters.docker.containers import HOME, TEMPORARY, USER
from codehub.adapters.docker.options import PROJECT_LABEL, Limits

NAME = "jupyterhub"


def docker_spawner(testbed: Testbed) -> Spawner:
    project = testbed.project(NAME)

    async def make_home(user: str) -> None:
        volume = {"Name": f"{project}-{user}", "Labels": {PROJECT_LABEL: project}}
        await testbed.engine.volumes.create(volume)

    return Spawner("dockerspawner", _settings(testbed, project), make_home=make_home)


def _settings(testbed: Testbed, project: str) -> dict[str, object]:
    limits = testbed.options(NAME).limits
    return {
        "JupyterHub.spawner_class": "docker",
        "DockerSpawner.allowed_images": list(IMAGES.values()),
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
