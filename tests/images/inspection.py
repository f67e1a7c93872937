"""Inspect images: their configuration, their files and the output of commands."""

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
    """Run a command in the image, under all restrictions and without a network; return its output."""
    program, *arguments = command
    return docker(
        *("run", "--rm", "--network", "none", *RESTRICTED, *options, "--entrypoint", program),
        *(image, *arguments),
    )


def shell(image: str, script: str) -> str:
    return say(image, "sh", "-c", script)


def as_root(image: str, script: str) -> str:
    """Run a script as root, which can read every file."""
    return say(image, "sh", "-c", script, options=("--user", "0:0"))


def programs(image: str, *names: str) -> list[str]:
    """Return the programs of these names that the image has."""
    return shell(image, f"for name in {' '.join(names)}; do command -v $name; done; true").split()
