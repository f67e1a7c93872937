"""A Kubernetes cluster of several nodes, each a machine of its own, below one directory."""

import json
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from testkit.kubernetes import binaries, cgroups, control_plane, images, node
from testkit.kubernetes import credentials as users
from testkit.kubernetes import network as networks
from testkit.kubernetes.api import Api, is_true
from testkit.kubernetes.credentials import Credentials
from testkit.kubernetes.deadline import wait_until
from testkit.kubernetes.machine import Machine
from testkit.kubernetes.network import Network

# The machines run on this one's processors; without a limit each server would start a thread for every one.
ENVIRONMENT = {"GOMAXPROCS": "2", "PYTHONPATH": str(binaries.REPOSITORY)}


class Cluster:
    """A cluster in a directory; also one that another process started there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.credentials = Credentials(self.directory / "credentials")
        self.control_plane = Machine("control-plane", self.directory / "control-plane")
        self.nodes: dict[str, Machine] = {}
        self._outlive = False
        if self._record.exists():
            record = json.loads(self._record.read_text())
            self.network = Network(record["network"])
            self._name_nodes(record["nodes"])

    @property
    def _record(self) -> Path:
        return self.directory / "cluster.json"

    def _name_nodes(self, count: int) -> None:
        names = [f"node{number}" for number in range(1, count + 1)]
        self.nodes = {name: Machine(name, self.directory / name) for name in names}

    # -- the whole

    def start(
        self, nodes: int = 2, *, outlive: bool = False, audit_policy: Mapping[str, Any] | None = None
    ) -> None:
        """Start the cluster and return when all nodes are ready.

        It ends with the calling thread, unless it is to outlive it. With a policy, `audit_log` has the
        requests that the policy names.
        """
        binaries.require()
        if not 1 <= nodes <= networks.MAX_NODES:
            raise ValueError(f"A test cluster has 1 to {networks.MAX_NODES} nodes.")
        self.stop()
        self._outlive = outlive
        (self.directory / "control-plane" / "volumes").mkdir(parents=True)
        if audit_policy is not None:
            policy = self.control_plane.directory / control_plane.AUDIT_POLICY
            policy.write_text(json.dumps(audit_policy))
        self.control_plane.boot(outlive=outlive)
        self.network = networks.reserve(self.control_plane)
        self._record.write_text(json.dumps({"network": self.network.number, "nodes": nodes}))
        self._name_nodes(nodes)
        self.network.connect_control_plane(self.control_plane)
        addresses = control_plane.addresses(self.network)
        users.create(self.credentials, control_plane.url(self.network), addresses, list(self.nodes))
        self.start_server(control_plane.ETCD)
        self.start_server(control_plane.API_SERVER)
        for name in self.nodes:
            self._boot(name, outlive=outlive)
        self._wait_until(self._api_server_answers, "the API server answers")
        # These give up after ten seconds without an API server.
        for name in control_plane.CLIENTS:
            self.start_server(name)
        self._wait_until(self.is_ready, "all nodes are ready")

    def stop(self) -> None:
        """End everything and remove the directory; do nothing if there is no cluster."""
        for machine in self.nodes.values():
            machine.power_off()
        if self._record.exists():
            for name in self.nodes:
                cgroups.remove(self._cgroup(name))
            # Before the kernel removes it with the machine: from then on another cluster can have its name.
            self.network.release()
        self.control_plane.power_off()
        shutil.rmtree(self.directory, ignore_errors=True)

    def is_ready(self) -> bool:
        """Whether the API server answers and all nodes that are on are ready."""
        with self.api() as api:
            return api.answers() and self._ready_nodes(api) >= self._running_nodes()

    def _ready_nodes(self, api: Api) -> set[str]:
        return {each["metadata"]["name"] for each in api.list("/api/v1/nodes") if is_true(each, "Ready")}

    def _running_nodes(self) -> set[str]:
        return {name for name, machine in self.nodes.items() if machine.is_on}

    def _api_server_answers(self) -> bool:
        with self.api() as api:
            return api.answers()

    def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition of the cluster; fail at once if a server has ended."""
        _wait_for(condition, what, (self.control_plane, *self.nodes.values()))

    # -- what tests use

    @property
    def kubeconfig(self) -> Path:
        """Return the configuration of an administrator."""
        return self.credentials.kubeconfig(users.ADMIN)

    @property
    def audit_log(self) -> Path:
        return self.control_plane.directory / control_plane.AUDIT_LOG

    @property
    def host_address(self) -> str:
        """Return the address at which Pods reach servers on the host."""
        return self.network.host

    def api(self) -> Api:
        return Api(self.kubeconfig)

    def load_images(self, *names: str) -> None:
        """Copy images of the Docker engine to all nodes."""
        images.load_from_docker(self._machines_on(), names)

    def load_archive(self, archive: Path) -> None:
        images.load(self._machines_on(), archive)

    def _machines_on(self) -> Iterable[Machine]:
        return [machine for machine in self.nodes.values() if machine.is_on]

    # -- faults

    def kill(self, server: str, on: str | None = None) -> None:
        """Kill a server of the control plane, or of a node; return when it is gone."""
        self._machine(on).kill(server)

    def start_server(self, server: str, on: str | None = None) -> None:
        """Start a server that was killed; do not wait until it is ready."""
        command = self._commands(on)[server]
        self._machine(on).start(server, command, **ENVIRONMENT)

    def restart(self, server: str, on: str | None = None) -> None:
        self.kill(server, on)
        self.start_server(server, on)

    def freeze(self, server: str, on: str | None = None) -> None:
        """Suspend a server: connections to it stay open, but nothing answers."""
        self._machine(on).signal(server, signal.SIGSTOP)

    def thaw(self, server: str, on: str | None = None) -> None:
        self._machine(on).signal(server, signal.SIGCONT)

    def stop_node(self, name: str) -> None:
        """End a node like a power failure: its servers, its Pods and its network; keep its disk."""
        self.nodes[name].power_off()
        self.network.disconnect_node(self.control_plane, self.nodes[name])
        cgroups.remove(self._cgroup(name))

    def start_node(self, name: str) -> None:
        """Start a node again after a power failure, and return when it is ready."""
        self.boot_node(name)
        self._wait_until(self.is_ready, f"{name} is ready again")

    def boot_node(self, name: str, *, outlive: bool | None = None) -> None:
        """Start a node again without waiting for the cluster; it can outlive the calling thread."""
        self._boot(name, outlive=self._outlive if outlive is None else outlive)

    def start_ended_servers(self) -> None:
        """Start the servers that have ended, as the init system of a real machine does."""
        for on, machine in ((None, self.control_plane), *self.nodes.items()):
            for server in machine.ended() if machine.is_on else []:
                self.start_server(server, on)

    # -- parts

    def _machine(self, name: str | None) -> Machine:
        return self.control_plane if name is None else self.nodes[name]

    def _number(self, name: str) -> int:
        return list(self.nodes).index(name) + 1

    def _cgroup(self, name: str) -> str:
        return f"{self.network.interface}-{name}"

    def _commands(self, name: str | None) -> dict[str, tuple[str | Path, ...]]:
        if name is None:
            return control_plane.commands(self.control_plane.directory, self.network, self.credentials)
        return node.commands(self.nodes[name], self._number(name), self.network, self.credentials)

    def _boot(self, name: str, *, outlive: bool) -> None:
        machine = self.nodes[name]
        machine.boot(outlive=outlive)
        node.prepare(machine)
        self.network.connect_node(self.control_plane, machine, self._number(name))
        # Left behind by a run that was killed.
        cgroups.remove(self._cgroup(name))
        cgroups.create(self._cgroup(name))
        node.configure(machine, self._number(name), self.network, self.credentials, self._cgroup(name))
        self.start_server(node.CONTAINERD, name)
        # Servers elsewhere may be down: that is a fault of its own.
        _wait_for(_succeeds(machine, "ctr", "version"), f"containerd answers on {name}", (machine,))
        archive = machine.directory / "pause.tar"
        images.write_pause(archive)
        images.load([machine], archive)
        self.start_server(node.KUBELET, name)
        self.start_server(node.PROXY, name)


def _wait_for(condition: Callable[[], bool], what: str, machines: Iterable[Machine]) -> None:
    """Wait for a condition; fail at once if a server of these machines has ended."""

    def holds() -> bool:
        return condition() or _require_running(machines)

    wait_until(holds, what)


def _require_running(machines: Iterable[Machine]) -> bool:
    for machine in machines:
        for server in machine.ended():
            raise RuntimeError(f"{server} has ended on {machine.name}: {machine.tail(server)}")
    return False


def _succeeds(machine: Machine, *command: str) -> Callable[[], bool]:
    def succeeds() -> bool:
        try:
            machine.run(*command)
        except RuntimeError:
            return False
        return True

    return succeeds
