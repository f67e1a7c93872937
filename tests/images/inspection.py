"""Looking into images: how they are configured, what their files are, what a command says in them."""

import json
from typing import Any

from testkit.docker_engine import docker
from tests.images.restrictions import RESTRICTED


def configuration(image: str) -> dict[str, Any]:
    [found] = json.loads(docker("image", "inspect", image))
    return dict(found["Config"])


def labels(image: str) -> dict[str, str]:
    return dict(configuration(image)["Labels"])


def say(image: str, *command: str, options: tuple[str, ...] = ()) -> str:
    """What a command prints in the image, under all restrictions and without a network."""
    program, *arguments = command
    return docker(
        *("run", "--rm", "--network", "none", *RESTRICTED, *options, "--entrypoint", program),
        *(image, *arguments),
    )


def shell(image: str, script: str) -> str:
    return say(image, "sh", "-c", script)


def as_root(image: str, script: str) -> str:
    """For a look at everything, also where the image's own user may not go."""
    return say(image, "sh", "-c", script, options=("--user", "0:0"))


def programs(image: str, *names: str) -> list[str]:
    """Those of the programs that the image has."""
    return shell(image, f"for name in {' '.join(names)}; do command -v $name; done; true").split()
