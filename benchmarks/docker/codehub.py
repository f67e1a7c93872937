"""CodeHub as in production: PATCH through the API, Temporal, a worker process, and the row that settles."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus

import aiohttp

from benchmarks.api.population import api_of
from benchmarks.docker.testbed import Failed, Ground
from benchmarks.lifecycle.operation_steps import STEPS, step_times
from benchmarks.lifecycle.phase_waiter import Arrivals, listening
from benchmarks.servers import real_deployment, worker_of
from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.services.credentials import create_token
from testkit.deployment import Deployment
from testkit.rows import add_workspace

# Nobody uses these workspaces, and yet nobody else shall stop them.
LONG = {"TTL_STANDBY_SECONDS": "86400", "TTL_ARCHIVE_SECONDS": "86400"}
# The API asks and wakes in one request, so that the first two steps are one.
PARTS = ("PATCH: transaction, one call to Temporal", *STEPS[2:])


@dataclass(frozen=True)
class Course:
    """One change, from the request until the row said that it was through."""

    asked: datetime
    seen: datetime


@dataclass
class CodeHub:
    arrivals: Arrivals
    api: aiohttp.ClientSession
    workspaces: dict[tuple[str, int], WorkspaceId] = field(default_factory=dict)
    last: dict[WorkspaceId, Course] = field(default_factory=dict)

    @property
    def deployment(self) -> Deployment:
        return self.arrivals.deployment

    async def prepare(self, reference: str, number: int) -> None:
        async with self.deployment.database.transaction() as session:
            workspace_id = await add_workspace(
                session,
                self.deployment.owner,
                desired_state=DesiredState.STANDBY,
                phase_changed_at=datetime.now(UTC),
                image_ref=reference,
                instance_backend=self.deployment.settings.workspaces.instance_backend,
                storage_backend=self.deployment.settings.workspaces.storage_backend,
            )
        self.workspaces[reference, number] = workspace_id
        await self.deployment.wake(workspace_id)
        await self.arrivals.wait_for(workspace_id, Phase.STANDBY)

    async def start(self, reference: str, number: int) -> None:
        await self._change(self.workspaces[reference, number], DesiredState.RUNNING)

    async def stop(self, reference: str, number: int) -> None:
        await self._change(self.workspaces[reference, number], DesiredState.STANDBY)

    async def look_back(self, reference: str, number: int, operation: Operation) -> Mapping[str, float]:
        workspace_id = self.workspaces[reference, number]
        client, course = self.deployment.client, self.last[workspace_id]
        # The run's own end comes after the row has settled; the next turn shall not overlap it.
        await client.get_workflow_handle(workspace_workflow_id(workspace_id)).result()
        seconds = await step_times(client, workspace_id, operation, [course.asked], course.seen)
        return dict(zip(PARTS, seconds, strict=True))

    async def _change(self, workspace_id: WorkspaceId, desired: DesiredState) -> None:
        asked = datetime.now(UTC)
        path, form = f"/api/v1/workspaces/{workspace_id}", {"desired_state": desired.value}
        async with self.api.patch(path, json=form) as answer:
            if answer.status != HTTPStatus.OK:
                raise Failed(f"the API answered {answer.status}: {await answer.text()}")
        try:
            await self.arrivals.wait_for(workspace_id, Phase(desired.value))
        except (RuntimeError, TimeoutError) as error:
            raise Failed(f"the workspace did not come to {desired}: {error}") from error
        self.last[workspace_id] = Course(asked, datetime.now(UTC))


@asynccontextmanager
async def codehub(ground: Ground) -> AsyncIterator[CodeHub]:
    async with (
        real_deployment(**ground.environment("ours"), **LONG) as deployment,
        worker_of(deployment),
        api_of(deployment) as api,
        listening(deployment) as arrivals,
    ):
        token = await create_token(
            deployment.database, deployment.owner, "benchmark", expires_at=None, now=datetime.now(UTC)
        )
        headers = {"Authorization": f"Bearer {token.token}"}
        async with aiohttp.ClientSession(f"http://127.0.0.1:{api.port}", headers=headers) as session:
            yield CodeHub(arrivals, session)
