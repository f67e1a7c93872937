"""A node of the test cluster: a machine with containerd, kubelet and kube-proxy."""

import json
from pathlib import Path

from testkit.kubernetes import binaries
from testkit.kubernetes import credentials as users
from testkit.kubernetes.credentials import Credentials
from testkit.kubernetes.images import PAUSE
from testkit.kubernetes.machine import Machine
from testkit.kubernetes.network import POD_BRIDGE, Network

CONTAINERD = "containerd"
KUBELET = "kubelet"
PROXY = "kube-proxy"
# All below /run, which each node has to itself: paths of sockets have to be short.
SOCKET = "/run/containerd/containerd.sock"
KUBELET_ROOT = "/run/kubelet"
# The kubelet sets them for the whole kernel; in a node it sets a copy.
KERNEL_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
PREPARATION = """
mount -t tmpfs -o mode=755 node /run
# A kubelet removes logs of Pods that it does not know, also those of another node's.
mount -t tmpfs -o mode=755 node /var/log
mkdir "$2" /run/settings
mount --bind "$1" "$2"
shift 2
for setting; do
  copy=/run/settings/$(basename "$setting")
  cat "/proc/sys/$setting" >"$copy"
  mount --bind "$copy" "/proc/sys/$setting"
done
"""

CONTAINERD_CONFIGURATION = """version = 2
root = "{directory}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def prepare(machine: Machine) -> None:
    """Give a booted machine its own /run and its own copy of the kernel's settings."""
    root = machine.directory / "kubelet"
    root.mkdir(exist_ok=True)
    machine.run("sh", "-ec", PREPARATION, "prepare", root, KUBELET_ROOT, *KERNEL_SETTINGS)


def configure(machine: Machine, number: int, network: Network, credentials: Credentials, cgroup: str) -> None:
    """Write the configuration files of a node."""
    directory = machine.directory
    (directory / "cni").mkdir(exist_ok=True)
    (directory / "cni" / "pods.conflist").write_text(json.dumps(_pod_network(directory, number, network)))
    (directory / "containerd.toml").write_text(
        CONTAINERD_CONFIGURATION.format(
            directory=directory, socket=SOCKET, pause=PAUSE, plugins=binaries.cni_directory()
        )
    )
    # On the host it may be a link into /run.
    (directory / "resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    kubelet = _kubelet(directory, network.node(number), credentials, cgroup)
    (directory / "kubelet.json").write_text(json.dumps(kubelet))


def commands(
    machine: Machine, number: int, network: Network, credentials: Credentials
) -> dict[str, tuple[str | Path, ...]]:
    return {
        CONTAINERD: ("containerd", "--config", machine.directory / "containerd.toml"),
        KUBELET: (
            binaries.built(KUBELET),
            f"--config={machine.directory}/kubelet.json",
            f"--kubeconfig={credentials.kubeconfig(users.node_user(machine.name))}",
            f"--root-dir={KUBELET_ROOT}",
            f"--cert-dir={machine.directory}/kubelet-certificates",
            f"--hostname-override={machine.name}",
            f"--node-ip={network.node(number)}",
            "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{SOCKET}",
            f"--pod-infra-container-image={PAUSE}",
            # The kernel of a container may not let it change its own.
            "--oom-score-adj=0",
        ),
        PROXY: (
            binaries.built(PROXY),
            f"--kubeconfig={credentials.kubeconfig(users.PROXY)}",
            f"--hostname-override={machine.name}",
            "--proxy-mode=iptables",
            "--healthz-bind-address=127.0.0.1:10256",
            # All Pods are on one segment: responses would bypass the translation.
            "--masquerade-all",
            # Settings of the whole kernel.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
            "--oom-score-adj=0",
        ),
    }


def _pod_network(directory: Path, number: int, network: Network) -> dict[str, object]:
    first, last = network.pods(number)
    pods = {
        "subnet": str(network.subnet),
        "gateway": network.node(number),
        "rangeStart": first,
        "rangeEnd": last,
    }
    bridge = {
        "type": "bridge",
        "bridge": POD_BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(directory / "addresses"),
            "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[pods]],
        },
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}


def _kubelet(directory: Path, address: str, credentials: Credentials, cgroup: str) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "authentication": {
            "anonymous": {"enabled": False},
            "x509": {"clientCAFile": str(credentials.authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        # A kubelet ends what it does not know below its root.
        "cgroupRoot": f"/{cgroup}",
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "resolvConf": str(directory / "resolv.conf"),
        "maxPods": 200,
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
        # Tests of lost nodes wait for the absence of these reports.
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "2s",
        "volumeStatsAggPeriod": "0s",
        # The host's disk may be fuller than a kubelet likes.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi"},
    }
