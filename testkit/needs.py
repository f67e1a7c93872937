"""What single tests need beyond python3, make and git: they are skipped without it, and in CI they fail."""

import os
import shutil
from typing import NoReturn

import pytest

from codehub.adapters.local.sandbox import bubblewrap

# The Debian package of each program.
PACKAGES = {
    "chattr": "e2fsprogs",
    "chromium": "chromium",
    "curl": "curl",
    "docker": "docker.io",
    "docker-compose": "docker-compose",
    "git": "git",
    "haproxy": "haproxy",
    "mkfs.ext4": "e2fsprogs",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "npm": "npm",
    "openssl": "openssl",
    "nsenter": "util-linux",
    "promtool": "prometheus",
    "setpriv": "util-linux",
    "tar": "tar",
    "unshare": "util-linux",
}


def do_without(part: str, remedy: str) -> NoReturn:
    """End the test; tests/conftest.py sums up what is missing, in one line for each part."""
    problem = f"{part} is missing: {remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)


def need_program(name: str) -> str:
    """Return its path."""
    found = shutil.which(name)
    if found is None:
        do_without(name, f"apt-get install {PACKAGES[name]}")
    return found


def need_root() -> None:
    if os.geteuid() != 0:
        do_without("root", "run the tests as root")


def need_bubblewrap() -> None:
    if bubblewrap() is None:
        do_without("a working bubblewrap", "apt-get install bubblewrap, and allow user namespaces")


def do_without_engine() -> NoReturn:
    do_without("a Docker engine", "apt-get install docker.io, and start it")


def do_without_mounts() -> NoReturn:
    do_without("a loop device", "run the tests as root, where file systems can be mounted")
