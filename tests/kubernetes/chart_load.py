"""Load for a release: requests to its proxies, workspaces that go up and down, workers that are killed."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from codehub.domain.conditions import WorkspaceId
from tests.kubernetes.chart import Chart
from tests.kubernetes.release import REQUEST_SECONDS, User

# Every operation of a workspace that exists: restoring, starting, stopping, archiving.
STATES = ("RUNNING", "STANDBY", "ARCHIVED")


@dataclass
class Load:
    """Requests one after another to the ready proxies, each with a connection of its own."""

    chart: Chart
    statuses: Counter[int]
    failures: list[str]

    async def run(self) -> None:
        while True:
            try:
                async with httpx.AsyncClient(timeout=REQUEST_SECONDS, trust_env=False) as client:
                    url = await asyncio.to_thread(self.chart.proxy_url)
                    self.statuses[(await client.get(f"{url}/healthz")).status_code] += 1
            except httpx.HTTPError as error:
                self.failures.append(repr(error))


@asynccontextmanager
async def under_load(chart: Chart) -> AsyncIterator[Load]:
    load = Load(chart, Counter(), [])
    running = asyncio.create_task(load.run())
    try:
        yield load
    finally:
        running.cancel()
        await asyncio.wait([running])


async def go_up_and_down(user: User, workspace_id: WorkspaceId, end: asyncio.Event) -> None:
    """Move a stopped workspace through all states until the end, and stop it there."""
    while not end.is_set():
        for state in STATES:
            await user.move_to(workspace_id, state)
    await user.move_to(workspace_id, "STANDBY")


async def kill_workers(chart: Chart, count: int, every_seconds: float) -> None:
    """Kill a worker this often: the one that has run longest."""
    for _ in range(count):
        await asyncio.sleep(every_seconds)
        pods = await asyncio.to_thread(chart.pods, "worker")
        oldest = min(filter(is_running, pods), key=lambda pod: str(pod["status"]["startTime"]))
        await asyncio.to_thread(kill_pod, chart, oldest)


def is_running(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Running"


def kill_pod(chart: Chart, pod: dict[str, Any]) -> None:
    """Kill all processes of a Pod at once, and have another take its place.

    The kubelet would start the container again, but later after each time.
    """
    name = pod["metadata"]["name"]
    killed = processes_of(name)
    assert killed, f"{name} has no process"
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    chart.api.delete(f"/api/v1/namespaces/{chart.namespace}/pods/{name}", gracePeriodSeconds=0)


def processes_of(pod_name: str) -> list[int]:
    """Return the processes in a Pod; the nodes are on this machine."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("HOSTNAME") == pod_name:
                found.append(process.pid)
    return found
