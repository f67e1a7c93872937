"""The network of a test cluster: one segment for the host, the control plane, the nodes and all Pods.

Only one interface is on the host; everything else is inside the machines and vanishes with them. So Pods
come and go without a change to the host's interfaces, and Docker's firewall does not apply to them.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from testkit.kubernetes.machine import Machine, run

# Clusters side by side on one machine, and nodes of one cluster; both follow from the sizes of the subnets.
MAX_CLUSTERS = 32
MAX_NODES = 7
SWITCH = "switch"
POD_BRIDGE = "pods"
UPLINK = "uplink"


@dataclass(frozen=True)
class Network:
    """The addresses of the cluster with this number."""

    number: int

    @property
    def interface(self) -> str:
        return f"codehub-k8s{self.number}"

    @property
    def subnet(self) -> IPv4Network:
        return IPv4Network(f"10.244.{self.number * 8}.0/21")

    @property
    def services(self) -> IPv4Network:
        return IPv4Network(f"10.245.{self.number}.0/24")

    @property
    def host(self) -> str:
        return str(self.subnet[1])

    @property
    def control_plane(self) -> str:
        return str(self.subnet[2])

    def node(self, number: int) -> str:
        return str(self.subnet[256 * number + 1])

    def pods(self, number: int) -> tuple[str, str]:
        """Return the first and the last address of the Pods of a node."""
        return str(self.subnet[256 * number + 2]), str(self.subnet[256 * number + 254])

    def _with_length(self, address: str) -> str:
        return f"{address}/{self.subnet.prefixlen}"

    def connect_control_plane(self, machine: Machine) -> None:
        """Create the segment in the control plane's machine and put the host on it."""
        machine.run_ip("link", "add", SWITCH, "address", self._mac(0), "type", "bridge")
        machine.run_ip("addr", "add", self._with_length(self.control_plane), "dev", SWITCH)
        machine.run_ip("link", "set", SWITCH, "up")
        machine.run_ip("link", "set", "host", "master", SWITCH, "up")
        run("ip", "addr", "add", self._with_length(self.host), "dev", self.interface)
        run("ip", "link", "set", self.interface, "up")
        # The first node's kube-proxy translates the addresses of Services for the host.
        run("ip", "route", "add", str(self.services), "via", self.node(1))

    def connect_node(self, control_plane: Machine, node: Machine, number: int) -> None:
        """Put a node on the segment, with a bridge that its Pods will be attached to."""
        peer = ("peer", "name", UPLINK, "netns", str(node.pid))
        control_plane.run_ip("link", "add", node.name, "type", "veth", *peer)
        control_plane.run_ip("link", "set", node.name, "master", SWITCH, "up")
        node.run_ip("link", "add", POD_BRIDGE, "address", self._mac(number), "type", "bridge")
        node.run_ip("link", "set", UPLINK, "master", POD_BRIDGE, "up")
        node.run_ip("addr", "add", self._with_length(self.node(number)), "dev", POD_BRIDGE)
        node.run_ip("link", "set", POD_BRIDGE, "up")
        node.run_ip("route", "add", "default", "via", self.host)

    def disconnect_node(self, control_plane: Machine, node: Machine) -> None:
        """Remove a node's link now; the kernel removes it with the node, but at any time."""
        with _may_be_gone():
            control_plane.run_ip("link", "delete", node.name)

    def release(self) -> None:
        """Remove the interface; succeed if the kernel has removed it with the control plane's machine."""
        with _may_be_gone():
            run("ip", "link", "delete", self.interface)

    def _mac(self, machine: int) -> str:
        """Return a fixed address: that of a bridge would otherwise change with its members."""
        return f"02:c0:de:00:{self.number:02x}:{machine:02x}"


def reserve(control_plane: Machine) -> Network:
    """Return a network that no other cluster uses: whoever creates its interface has it."""
    for number in range(MAX_CLUSTERS):
        network = Network(number)
        peer = ("peer", "name", "host", "netns", str(control_plane.pid))
        try:
            run("ip", "link", "add", network.interface, "type", "veth", *peer)
        except RuntimeError as error:
            if "File exists" not in str(error):
                raise
        else:
            return network
    raise RuntimeError(f"{MAX_CLUSTERS} clusters run on this machine; stop one.")


@contextlib.contextmanager
def _may_be_gone() -> Iterator[None]:
    """Succeed if there is no such interface any more."""
    try:
        yield
    except RuntimeError as error:
        if "Cannot find device" not in str(error):
            raise
