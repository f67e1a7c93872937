"""A worker that kills itself once, before or after a given activity of one workspace.

`python -m testkit.crash_points before:upload_archive WORKSPACE_ID CRASHED_FILE` runs one.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Protocol

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import WorkspaceId
from worker.__main__ import main

# The exit code of a killed worker, as a shell and Kubernetes report it.
KILLED = 128 + signal.SIGKILL
_processes = multiprocessing.get_context("forkserver")
# Importing the worker takes longer than most crashes: fork each worker from a process that has imported it.
_processes.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class CrashPoint:
    """A moment (`before` or `after`) of an activity; the file records that the crash has happened."""

    moment: str
    activity_name: str
    workspace_id: WorkspaceId
    crashed_file: Path

    @classmethod
    def parse(cls, text: str, workspace_id: WorkspaceId, crashed_file: Path) -> "CrashPoint":
        """Read `before:upload_archive`."""
        moment, _, activity_name = text.partition(":")
        return cls(moment, activity_name, workspace_id, crashed_file)

    def __str__(self) -> str:
        return f"{self.moment}:{self.activity_name}"

    def reached(self, moment: str) -> None:
        info = activity.info()
        if (moment, info.activity_type) != (self.moment, self.activity_name):
            return
        # The workflows of other workspaces and the sweeps have other ids.
        if not (info.workflow_id or "").startswith(workspace_workflow_id(self.workspace_id)):
            return
        try:
            self.crashed_file.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class CrashInterceptor(Interceptor):
    """Wraps every activity, local activities included."""

    def __init__(self, point: CrashPoint) -> None:
        self._point = point

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _Crash(next, self._point)


class _Crash(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, point: CrashPoint) -> None:  # noqa: A002
        super().__init__(next)
        self._point = point

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401
        self._point.reached("before")
        result = await super().execute_activity(input)
        self._point.reached("after")
        return result


class CrashingWorker(Protocol):
    """A worker that runs until it crashes."""

    async def exit_code(self) -> int | None:
        """Return the exit code, or None while it runs."""
        ...


class WorkerProcess:
    """A crashing worker on this machine."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process

    async def exit_code(self) -> int | None:
        code = self._process.exitcode
        return 128 - code if code is not None and code < 0 else code


@asynccontextmanager
async def crashing_process(
    point: CrashPoint, environment: Mapping[str, str]
) -> AsyncIterator[CrashingWorker]:
    """Run a worker with these settings that crashes at the point; kill it at the end."""
    log = Path(environment["CODEHUB_DATA_DIR"]) / "crashing-worker.log"
    process = _processes.Process(target=_run_worker, args=(point, dict(environment), log))
    process.start()
    try:
        yield WorkerProcess(process)
    finally:
        process.kill()
        process.join()


def _run_worker(point: CrashPoint, environment: dict[str, str], log: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab") as output:
        for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(output.fileno(), descriptor)
    sys.exit(main([CrashInterceptor(point)]))


if __name__ == "__main__":
    wanted, workspace, file = sys.argv[1:]
    sys.exit(main([CrashInterceptor(CrashPoint.parse(wanted, WorkspaceId(workspace), Path(file)))]))
