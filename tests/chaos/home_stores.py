"""Sites whose store of homes was exchanged: what processes say, and what workflows make of it."""

import asyncio
import subprocess
import sys

from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import Snapshot, WorkspaceId
from testkit.deployment import Deployment


async def refused(deployment: Deployment, module: str, **extra: str) -> str:
    """Run a process that must end by itself; the last line that it prints."""
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
    """Have its workflow look once more, and see what it made of that."""
    await deployment.wake(workspace_id)
    await deployment.client.get_workflow_handle(workspace_workflow_id(workspace_id)).result()
    return await deployment.look(workspace_id)
