"""Workers are replaced one by one, under load, by a build that plans differently."""

import asyncio
import signal
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import select
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause

from codehub.contracts import workspace_workflow_id
from codehub.db.events import EventKind
from codehub.db.models import WorkspaceEvent
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Phase
from codehub.services.errors import OperationInProgress
from testkit.deployment import Deployment, Servers, open_deployment
from testkit.waiting import until

WORKSPACES = 8
OTHER_BUILD = "tests.chaos.other_build"
SWEEPS = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}
NONDETERMINISTIC = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR


@pytest.mark.timeout(600)
async def test_a_rolling_upgrade_to_other_plans_fails_and_duplicates_nothing(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_deployment(servers, tmp_path, **SWEEPS) as deployment:
        with ExitStack() as stack:
            old = [stack.enter_context(deployment.worker_process()) for _ in range(2)]
            load = Load(deployment)
            working = asyncio.create_task(load.run())
            for each in old:
                stack.enter_context(deployment.worker_process(module=OTHER_BUILD))
                await load.progress()
                await end(each)
            await load.progress()
            load.stop()
            workspaces = await working
        for workspace_id in workspaces:
            await check(deployment, workspace_id)
        assert {"CREATE_EMPTY_ARCHIVE", "PROVISIONING"} <= load.first_operations, (
            "one of the builds did nothing"
        )


class Load:
    """People who create workspaces, start them and stop them all the time."""

    def __init__(self, deployment: Deployment) -> None:
        self.first_operations: set[str] = set()
        self._site = deployment
        self._stopped = False
        self._lives = 0

    async def run(self) -> list[WorkspaceId]:
        found = await asyncio.gather(*(self._person() for _ in range(WORKSPACES)))
        return [workspace_id for own in found for workspace_id in own]

    def stop(self) -> None:
        self._stopped = True

    async def progress(self) -> None:
        """Wait until everyone has gone through another lifecycle of a workspace."""
        goal = self._lives + WORKSPACES

        async def lived() -> bool:
            return self._lives >= goal

        await until(lived, "the load goes on")

    async def _person(self) -> list[WorkspaceId]:
        made = []
        while not self._stopped:
            workspace_id = await self._site.create(DesiredState.ARCHIVED)
            made.append(workspace_id)
            await self._site.wake(workspace_id)
            await self._site.wait_for_phase(workspace_id, Phase.ARCHIVED)
            trail = await read_trail(self._site, workspace_id)
            self.first_operations.add(next(each.operation or "" for each in trail if each.operation))
            await self._site.move_to(workspace_id, DesiredState.STANDBY)
            await self._ask_for_archived(workspace_id)
            self._lives += 1
        return made

    async def _ask_for_archived(self, workspace_id: WorkspaceId) -> None:
        async def accepted() -> bool:
            try:
                await self._site.want(workspace_id, DesiredState.ARCHIVED)
            except OperationInProgress:
                return False
            return True

        await until(accepted, "ARCHIVED accepted")
        await self._site.wake(workspace_id)
        await self._site.wait_for_phase(workspace_id, Phase.ARCHIVED)


async def end(worker: subprocess.Popen[bytes]) -> None:
    worker.send_signal(signal.SIGTERM)

    async def ended() -> bool:
        return worker.poll() is not None

    await until(ended, "the old worker ended")


async def read_trail(deployment: Deployment, workspace_id: WorkspaceId) -> list[WorkspaceEvent]:
    async with deployment.database.transaction() as session:
        found = await session.scalars(
            select(WorkspaceEvent)
            .where(WorkspaceEvent.workspace_id == UUID(workspace_id))
            .order_by(WorkspaceEvent.id)
        )
        return list(found)


async def check(deployment: Deployment, workspace_id: WorkspaceId) -> None:
    """Assert that every operation was claimed once and completed, and that no replay failed."""
    kinds = Counter(each.kind for each in await read_trail(deployment, workspace_id))
    failed = (EventKind.ATTEMPT_FAILED, EventKind.OPERATION_FAILED, EventKind.ERROR_FOUND)
    assert not any(kinds[each] for each in failed), kinds
    assert kinds[EventKind.OPERATION_CLAIMED] == kinds[EventKind.OPERATION_COMPLETED]
    runs = [run async for run in deployment.client.list_workflows(runs_query(workspace_id))]
    assert runs
    for run in runs:
        history = await deployment.client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        causes = [
            event.workflow_task_failed_event_attributes.cause
            for event in history.events
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
        ]
        assert NONDETERMINISTIC not in causes


def runs_query(workspace_id: WorkspaceId) -> str:
    """All runs, because the builds plan the first one differently."""
    return f"WorkflowId = '{workspace_workflow_id(workspace_id)}'"
