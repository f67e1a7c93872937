"""A workspace in the middle of each operation, held there until a test has broken something."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, job_name
from codehub.domain.states import DesiredState, Operation, Phase
from testkit.deployment import Deployment
from testkit.docker_engine import JOB_IMAGE, build, need_docker
from testkit.kubernetes.cluster import Cluster
from testkit.trees import Description
from testkit.waiting import until
from tests.chaos.crash_matrix import COURSES, prepare_workspace, request_end
from tests.contracts.kubernetes_harness import Namespace, processes_of
from tests.forwarded_stores import Gate
from tests.kubernetes.deployment import purge, wait_until_nothing_is_left

# An IDE that does not become ready while its home has this file.
HELD_IMAGE = "codehub-test-held"
HOLD = "hold"
STOPS = (Operation.STOPPING, Operation.DELETING)
OPERATIONS = (*STOPS, Operation.STARTING, Operation.ARCHIVING, Operation.RESTORING)
# Longer than a test holds an IDE that is told to stop.
STOP_SECONDS = 20
SETTINGS = {
    "CODEHUB_KUBERNETES_STOP_SECONDS": str(STOP_SECONDS),
    # What waits for a server that was down goes on soon after it is back.
    "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2",
}


def load_held_images(cluster: Cluster) -> None:
    need_docker(JOB_IMAGE)
    build(HELD_IMAGE, "tiny-ide.Dockerfile", "FLAG=held")
    cluster.load_images(f"{HELD_IMAGE}:latest", JOB_IMAGE)


@dataclass(frozen=True)
class Subject:
    """One workspace, its operation, and its home before that."""

    operation: Operation
    workspace_id: WorkspaceId
    home: Description

    @property
    def end(self) -> DesiredState:
        return COURSES[self.operation].end


@dataclass
class HeldOperations:
    """One workspace for each operation. An IDE or the archive store holds each in the middle."""

    deployment: Deployment
    namespace: Namespace
    gate: Gate
    subjects: dict[Operation, Subject] = field(default_factory=dict)

    async def prepare(self) -> None:
        """Bring the workspaces to where their operations begin."""
        prepared = await asyncio.gather(
            *(prepare_workspace(self.deployment, COURSES[each]) for each in OPERATIONS)
        )
        for operation, (workspace_id, home) in zip(OPERATIONS, prepared, strict=True):
            self.subjects[operation] = Subject(operation, workspace_id, home)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep all operations from finishing during the block."""
        hold = self.deployment.home(self.subjects[Operation.STARTING].workspace_id) / HOLD
        hold.touch()
        self.gate.close()
        self._signal_stopped_ides(signal.SIGSTOP)
        try:
            yield
        finally:
            hold.unlink()
            self.gate.open()
            self._signal_stopped_ides(signal.SIGCONT)

    async def begin(self) -> None:
        """Request all operations and return when each has changed the cluster, but has not finished."""
        for each in self.subjects.values():
            await request_end(self.deployment, COURSES[each.operation], each.workspace_id)
        for each in self.subjects.values():

            async def is_begun(subject: Subject = each) -> bool:
                return self._is_begun(subject)

            await until(is_begun, f"{each.operation} has begun")

    async def require_unfinished(self) -> None:
        for each in self.subjects.values():
            snapshot = await self.deployment.look(each.workspace_id)
            assert snapshot.operation is each.operation, f"{each.operation} was not interrupted"

    async def add_new(self) -> None:
        """Create another workspace, whose PROVISIONING begins now."""
        workspace_id = await self.deployment.create(DesiredState.STANDBY)
        await self.deployment.wake(workspace_id)
        self.subjects[Operation.PROVISIONING] = Subject(Operation.PROVISIONING, workspace_id, {})

    async def wait_until_complete(self) -> None:
        """Wait until all have what was requested, without an error."""
        for each in self.subjects.values():
            await self.deployment.wait_for_phase(each.workspace_id, Phase(each.end.value))
            snapshot = await self.deployment.look(each.workspace_id)
            assert (snapshot.error_reason, snapshot.error_count) == (None, 0), each.operation

    async def check_homes(self) -> None:
        """Check that nothing is lost or doubled. The archived home is restored for this."""
        archived = self.subjects[Operation.ARCHIVING].workspace_id
        assert not self.deployment.home(archived).exists()
        await self.deployment.move_to(archived, DesiredState.STANDBY)
        for each in self.subjects.values():
            if each.end is DesiredState.DELETED:
                assert not self.deployment.home(each.workspace_id).exists()
            elif each.home:
                assert self.deployment.describe_home(each.workspace_id) == each.home, each.operation
            assert _count_ides(each.workspace_id) == (each.end is DesiredState.RUNNING), each.operation

    async def purge(self) -> None:
        """Purge all workspaces, and wait until nothing is left of them in the cluster or on its nodes."""
        kept = [each for each in self.subjects.values() if each.end is not DesiredState.DELETED]
        await purge(self.deployment, *(each.workspace_id for each in kept))
        await wait_until_nothing_is_left(self.deployment, self.namespace.api)

        async def nothing_runs() -> bool:
            return not any(processes_of(each.workspace_id) for each in self.subjects.values())

        await until(nothing_runs, "no process of a purged workspace is left")

    def _is_begun(self, subject: Subject) -> bool:
        if subject.operation in STOPS:
            pod = self._find_pod(container_name(subject.workspace_id))
            return pod is not None and "deletionTimestamp" in pod["metadata"]
        if subject.operation is Operation.STARTING:
            pod = self._find_pod(container_name(subject.workspace_id))
            return pod is not None and pod["status"]["phase"] == "Running"
        pod = self._find_pod(job_name(subject.workspace_id))
        return pod is not None and pod["status"].get("podIP") in self.gate.held

    def _find_pod(self, name: str) -> dict[str, Any] | None:
        return self.namespace.api.find(f"{self.namespace.path}/pods/{name}")

    def _signal_stopped_ides(self, number: signal.Signals) -> None:
        for operation in STOPS:
            for pid in processes_of(self.subjects[operation].workspace_id):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)


def _count_ides(workspace_id: WorkspaceId) -> int:
    processes = processes_of(workspace_id)
    return sum(parent not in processes for parent in processes.values())
