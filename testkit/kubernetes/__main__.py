"""Run a test cluster by hand: python -m testkit.kubernetes up|down|status|load|operate."""

# ruff: noqa: T201 (a command)

import argparse
import sys
import time
from pathlib import Path

from testkit.kubernetes import binaries
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.operator import operate


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testkit.kubernetes", description=__doc__)
    default = binaries.home() / "cluster"
    parser.add_argument("--directory", type=Path, default=default, help="where the cluster is (%(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a cluster; it runs until `down`")
    up.add_argument("--nodes", type=int, default=2)
    commands.add_parser("down", help="end the cluster and remove its directory")
    commands.add_parser("status", help="print whether the cluster runs and how to reach it")
    load = commands.add_parser("load", help="copy images of the Docker engine to all nodes")
    load.add_argument("images", nargs="+")
    commands.add_parser("operate", help="break it as the input says; see testkit/kubernetes/operator.py")
    return parser


def status(cluster: Cluster) -> bool:
    """Print how to reach the cluster; return whether it is ready."""
    if not cluster.control_plane.is_on:
        print(f"No cluster runs in {cluster.directory}.")
        return False
    ready = cluster.is_ready()
    print("Ready." if ready else "Not ready: see the logs in the directories of the machines.")
    for name, machine in cluster.nodes.items():
        print(f"{name}: {'on' if machine.is_on else 'off'}")
    print(f"Servers on this host have the address {cluster.host_address} in Pods.")
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    print(f"{binaries.kubectl()} get nodes")
    return ready


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    cluster = Cluster(options.directory)
    began = time.monotonic()
    match options.command:
        case "up" if not cluster.control_plane.is_on:
            cluster.start(options.nodes, outlive=True)
            print(f"Started in {time.monotonic() - began:.1f} s.")
        case "down":
            cluster.stop()
            print(f"Stopped in {time.monotonic() - began:.1f} s.")
            return 0
        case "load":
            cluster.load_images(*options.images)
        case "operate" if cluster.control_plane.is_on:
            operate(cluster, sys.stdin, sys.stdout)
            return 0
    return 0 if status(cluster) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except binaries.Unavailable as problem:
        sys.exit(f"No test cluster here: {problem}")
