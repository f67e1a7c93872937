"""CodeHub as in production: from PATCH through API, Temporal and a worker process to the settled row."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus

import aiohttp

from benchmarks.instances.contestants import Failed
from benchmarks.lifecycle.operation_steps import STEPS, step_times
from benchmarks.lifecycle.phase_waiter import PhaseWaiter, open_waiter
from benchmarks.servers import real_deployment, run_api
from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.services.credentials import create_token
from testkit.deployment import Deployment
from testkit.rows import BY, add_workspace

# The workspaces are idle, but must not be stopped.
LONG = {"TTL_STANDBY_SECONDS": "86400", "TTL_ARCHIVE_SECONDS": "86400"}
# With the API, request and wake are one step.
PARTS = ("PATCH: transaction, one call to Temporal", *STEPS[2:])


@dataclass(frozen=True)
class Change:
    """When a change was requested, and when the settled row was noticed."""

    requested: datetime
    noticed: datetime


@dataclass
class CodeHub:
    waiter: PhaseWaiter
    api: aiohttp.ClientSession
    workspaces: dict[tuple[str, int], WorkspaceId] = field(default_factory=dict)
    last: dict[WorkspaceId, Change] = field(default_factory=dict)

    @property
    def deployment(self) -> Deployment:
        return self.waiter.deployment

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
        await self.waiter.wait_for(workspace_id, Phase.STANDBY)

    async def start(self, reference: str, number: int) -> None:
        await self._change(self.workspaces[reference, number], DesiredState.RUNNING)

    async def stop(self, reference: str, number: int) -> None:
        await self._change(self.workspaces[reference, number], DesiredState.STANDBY)

    async def step_seconds(self, reference: str, number: int, operation: Operation) -> Mapping[str, float]:
        workspace_id = self.workspaces[reference, number]
        client, change = self.deployment.client, self.last[workspace_id]
        # The workflow ends after the row has settled; the next turn must not overlap it.
        await client.get_workflow_handle(workspace_workflow_id(workspace_id)).result()
        seconds = await step_times(client, workspace_id, operation, [change.requested], change.noticed)
        return dict(zip(PARTS, seconds, strict=True))

    async def _change(self, workspace_id: WorkspaceId, desired: DesiredState) -> None:
        requested = datetime.now(UTC)
        path, form = f"/api/v1/workspaces/{workspace_id}", {"desired_state": desired.value}
        async with self.api.patch(path, json=form) as response:
            if response.status != HTTPStatus.OK:
                raise Failed(f"the API returned {response.status}: {await response.text()}")
        try:
            await self.waiter.wait_for(workspace_id, Phase(desired.value))
        except (RuntimeError, TimeoutError) as error:
            raise Failed(f"the workspace did not reach {desired}: {error}") from error
        self.last[workspace_id] = Change(requested, datetime.now(UTC))


@asynccontextmanager
async def codehub(environment: Mapping[str, str]) -> AsyncIterator[CodeHub]:
    """Run a CodeHub with these settings, but without a worker."""
    async with (
        real_deployment(**environment, **LONG) as deployment,
        run_api(deployment) as api,
        open_waiter(deployment) as waiter,
    ):
        token = await create_token(
            deployment.database, deployment.owner, "benchmark", expires_at=None, by=BY, now=datetime.now(UTC)
        )
        headers = {"Authorization": f"Bearer {token.token}"}
        async with aiohttp.ClientSession(f"http://127.0.0.1:{api.port}", headers=headers) as session:
            yield CodeHub(waiter, session)
