"""Requirements of single tests beyond python3, make and git: skip without them, but fail in CI."""

import os
import shutil
from typing import NoReturn

import pytest

from codehub.adapters.local.sandbox import NoSandbox, require_bubblewrap

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
    "node": "nodejs",
    "npm": "npm",
    "openssl": "openssl",
    "nsenter": "util-linux",
    "promtool": "prometheus",
    "setpriv": "util-linux",
    "tar": "tar",
    "umount": "mount",
    "unshare": "util-linux",
}


def do_without(requirement: str, remedy: str) -> NoReturn:
    """End the test; tests/conftest.py prints one line for each missing requirement."""
    problem = f"{requirement} is missing: {remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)


def need_program(name: str) -> str:
    """Return the path of a program."""
    found = shutil.which(name)
    if found is None:
        do_without(name, f"apt-get install {PACKAGES[name]}")
    return found


def need_root() -> None:
    if os.geteuid() != 0:
        do_without("root", "run the tests as root")


def need_bubblewrap() -> None:
    try:
        require_bubblewrap()
    except NoSandbox:
        do_without("a working bubblewrap", "apt-get install bubblewrap, and allow user namespaces")


def do_without_engine() -> NoReturn:
    do_without("a Docker engine", "apt-get install docker.io, and start it")


def do_without_mounts() -> NoReturn:
    do_without("a loop device", "run the tests as root, where file systems can be mounted")
