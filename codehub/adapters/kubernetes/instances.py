"""IDE instances as Pods."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus

import httpx2
from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.claims import grow_claim, mark_claim
from codehub.adapters.kubernetes.client import (
    Kubernetes,
    ignore_statuses,
    status_of,
    translate_change_errors,
    translate_read_errors,
    uid_of,
)
from codehub.adapters.kubernetes.launch import Launch
from codehub.adapters.kubernetes.options import Component, KubernetesOptions
from codehub.adapters.kubernetes.pod_spec import configuration_of, differences, instance_pod, with_secrets
from codehub.adapters.kubernetes.pods import PodInfo, explain_exit
from codehub.adapters.kubernetes.reach import require_reachable
from codehub.adapters.kubernetes.removal import remove_pod
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Failure, Permanent, Transient
from codehub.domain.naming import container_name
from codehub.instance_ports import NO_AGENT, ask_for_ports, port_upstream
from codehub.ports import (
    InstanceRequest,
    ListeningPort,
    Outdated,
    PortUnavailable,
    Progress,
    Report,
    Upstream,
)

REPORTED_LINES = 10
REPORTED_LENGTH = 1500
_log = logging.getLogger(__name__)


class KubernetesInstances:
    """One Pod per workspace: the names of Pods are unique, so the name is the lock."""

    def __init__(self, kubernetes: Kubernetes, options: KubernetesOptions) -> None:
        self._kubernetes = kubernetes
        self._options = options

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        with translate_read_errors():
            found = await self._find(workspace_id)
        return ContainerFact.ABSENT if found is None else found.fact

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        with translate_read_errors():
            return {workspace_id: found.fact for workspace_id, found in (await self._list()).items()}

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        with translate_read_errors():
            if workspace_id is None:
                pods = await self._list()
            else:
                found = await self._find(workspace_id)
                pods = {workspace_id: found} if found else {}
        outdated = {each: self._differences(each, info) for each, info in pods.items()}
        return {each: changes for each, changes in outdated.items() if changes}

    async def start(self, request: InstanceRequest, report: Report) -> None:
        with translate_change_errors():
            claim = await mark_claim(self._kubernetes, self._options, request.workspace_id)
            existing, _ = await asyncio.gather(
                self._find(request.workspace_id), require_reachable(self._kubernetes, claim)
            )
            await grow_claim(self._kubernetes, self._options, claim)
            report(Progress("launch", unit="steps"))
            pod = await self._launch(request, existing)
            launch = Launch(self._kubernetes, self._options.timeouts)
            if failure := await launch.wait(pod, report):
                raise await self._give_up(request.workspace_id, uid_of(pod), failure)

    async def pull(self, image_ref: str, report: Report) -> None:
        """Return at once: the node that is chosen at the start pulls the image."""

    async def stop(self, workspace_id: WorkspaceId) -> None:
        with translate_change_errors():
            if found := await self._find(workspace_id):
                await self._remove(found, self._options.timeouts.stop)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        with translate_read_errors():
            found = await self._find(workspace_id)
        if found is None or found.fact is not ContainerFact.READY or not found.address:
            return None
        traits = found.traits
        return Upstream(found.address, traits.port, traits.keep_prefix, found.headers, traits.ide)

    async def find_port(self, workspace_id: WorkspaceId, port: int) -> Upstream | None:
        found = await self._find_running(workspace_id)
        if found is None:
            return None
        return port_upstream(found.address, _agent_port(found), port, found.reserved_ports, found.secret)

    async def list_ports(self, workspace_id: WorkspaceId) -> Sequence[ListeningPort]:
        found = await self._find_running(workspace_id)
        if found is None:
            return ()
        return await ask_for_ports(found.address, _agent_port(found), found.secret)

    async def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        # BAD_REQUEST: its container has not started yet.
        with translate_read_errors(), ignore_statuses(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
            lines = self._kubernetes.read_log(container_name(workspace_id), tail=tail, follow=follow)
            async for line in lines:
                yield line.encode()

    async def _list(self) -> dict[WorkspaceId, PodInfo]:
        labels = self._options.selector(Component.WORKSPACE)
        pods = [pod async for pod in self._kubernetes.client.list(Pod, labels=labels)]
        return {
            workspace_id: PodInfo.of(pod)
            for pod in pods
            if (workspace_id := self._options.workspace_of(pod.metadata, Component.WORKSPACE))
            and pod.metadata
            and pod.metadata.name == container_name(workspace_id)
        }

    async def _find(self, workspace_id: WorkspaceId) -> PodInfo | None:
        pod = await self._kubernetes.find(Pod, container_name(workspace_id))
        if pod is None or self._options.workspace_of(pod.metadata, Component.WORKSPACE) != workspace_id:
            return None
        return PodInfo.of(pod)

    async def _find_running(self, workspace_id: WorkspaceId) -> PodInfo | None:
        with translate_read_errors():
            found = await self._find(workspace_id)
        return found if found and found.runs and found.address else None

    def _differences(self, workspace_id: WorkspaceId, info: PodInfo) -> tuple[str, ...]:
        if not info.runs or info.image_ref is None:
            return ()
        wanted = instance_pod(InstanceRequest(workspace_id, info.image_ref), self._options)
        return differences(info.configuration, wanted)

    async def _launch(self, request: InstanceRequest, existing: PodInfo | None) -> Pod:
        """Return the Pod of the workspace, a new one unless one runs; another process may do the same."""
        wanted = instance_pod(request, self._options)
        while True:
            if existing and _is_reusable(existing, configuration_of(wanted)):
                return existing.pod
            if existing:
                await self._replace(existing)
            try:
                return await self._create(request, wanted)
            except httpx2.HTTPStatusError as error:
                # Another process created it first, so look again.
                if status_of(error) != HTTPStatus.CONFLICT:
                    raise
            existing = await self._find(request.workspace_id)

    async def _create(self, request: InstanceRequest, wanted: Pod) -> Pod:
        workspace_id, traits = request.workspace_id, self._options.traits_of(request.image_ref)
        pod = await self._kubernetes.client.create(with_secrets(wanted, workspace_id, self._options, traits))
        try:
            await mark_claim(self._kubernetes, self._options, workspace_id)
        except Transient:
            # The volume was removed meanwhile.
            await self._remove(PodInfo.of(pod), grace_seconds=0)
            raise
        return pod

    async def _replace(self, existing: PodInfo) -> None:
        if existing.has_exited:
            _log.warning("The instance %s ended and is replaced: %s", existing.name, explain_exit(existing))
        await self._remove(existing, self._options.timeouts.stop)

    async def _remove(self, info: PodInfo, grace_seconds: int) -> None:
        await remove_pod(self._kubernetes, info.pod, self._options.timeouts, grace_seconds=grace_seconds)

    async def _give_up(self, workspace_id: WorkspaceId, uid: str, failure: Failure) -> Failure:
        """Remove the instance, so that the next start creates a new one, and add what it said last."""
        found = await self._find(workspace_id)
        if found is None or found.uid != uid:
            return failure
        output = await self._last_output(workspace_id) if found.runs or found.has_exited else ""
        # Nothing in it has run, so nothing has to exit; a kubelet that cannot pull takes a minute otherwise.
        grace = 0 if isinstance(failure, Permanent) else self._options.timeouts.stop
        await self._remove(found, grace)
        if not output:
            return failure
        return type(failure)(failure.reason, f"{failure.message} Its last output: {output}")

    async def _last_output(self, workspace_id: WorkspaceId) -> str:
        chunks = [chunk async for chunk in self.read_log(workspace_id, tail=REPORTED_LINES, follow=False)]
        return b"".join(chunks).decode(errors="replace").strip()[-REPORTED_LENGTH:] or "nothing"


def _is_reusable(existing: PodInfo, configuration: str) -> bool:
    """Return whether a start leaves this Pod alone: it runs, or it will as it should."""
    if existing.is_terminating or existing.has_exited:
        return False
    return existing.runs or existing.configuration == configuration


def _agent_port(info: PodInfo) -> int:
    if info.traits.agent_port is None:
        raise PortUnavailable(NO_AGENT)
    return info.traits.agent_port
