"""Deployments with a replaced home store: what processes report and what workflows do."""

import asyncio
import subprocess
import sys

from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import Snapshot, WorkspaceId
from testkit.deployment import Deployment


async def refused(deployment: Deployment, module: str, **extra: str) -> str:
    """Run a process that must end by itself. Return the last line that it prints."""
    run = await asyncio.to_thread(
        subprocess.run,
        (sys.executable, "-m", module),
        env={**deployment.environment, **extra},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    return run.stderr.splitlines()[-1]


async def look_again(deployment: Deployment, workspace_id: WorkspaceId) -> Snapshot:
    """Let the workflow observe once more, and return the result."""
    await deployment.wake(workspace_id)
    await deployment.client.get_workflow_handle(workspace_workflow_id(workspace_id)).result()
    return await deployment.look(workspace_id)
