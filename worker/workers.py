"""Creates and runs the Temporal workers of this process, one for each task queue."""

import asyncio
import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Self

from temporalio.client import Client
from temporalio.worker import Interceptor, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.failure_interceptor import FailureInterceptor
from codehub.bootstrap import Ports
from codehub.contracts import StepQueue, queue_name
from codehub.policy import Policy, StepLimits
from worker.registry import WORKFLOWS, Activities, activities_of

# Linters keep the modules that workflows use pure, and importing them again into every sandbox costs more
# than the workflow itself. Only the modules that define workflows are imported there.
PASSED_THROUGH = ("activities", "codehub", "workflows.descriptions", "workflows.policies", "workflows.steps")

# The time after which the cached workflows of a dead worker move to another.
STICKY_TIMEOUT = timedelta(seconds=2)

# Short enough for the heartbeat timeouts in `workflows.policies` and for a progress bar.
HEARTBEAT_THROTTLE = timedelta(seconds=1)


class Workers:
    """Temporal workers that start and stop together."""

    def __init__(self, members: Sequence[Worker]) -> None:
        self._members = members
        self._running = AsyncExitStack()

    async def run(self) -> None:
        """Run until they are shut down. A fatal error of one ends all and is raised."""
        async with asyncio.TaskGroup() as tasks:
            for each in self._members:
                tasks.create_task(each.run())

    async def shutdown(self) -> None:
        """Return when no worker takes work and all steps have ended."""
        await asyncio.gather(*(each.shutdown() for each in self._members))

    async def __aenter__(self) -> Self:
        for each in self._members:
            await self._running.enter_async_context(each)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.push_async_callback(self.shutdown)
        await self._running.__aexit__(kind, error, traceback)


def create_workers(
    client: Client, task_queue: str, ports: Ports, policy: Policy, interceptors: Sequence[Interceptor] = ()
) -> Workers:
    """Create a worker for each queue. Run them with `await workers.run()`, which raises fatal errors."""
    activities = activities_of(ports, policy)

    def create(queue: str, steps: Activities, at_once: int, workflows: Sequence[type] = ()) -> Worker:
        return Worker(
            client,
            task_queue=queue,
            workflows=workflows,
            activities=steps,
            interceptors=[FailureInterceptor(), *interceptors],
            workflow_runner=sandboxed_runner(),
            sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
            graceful_shutdown_timeout=policy.shutdown_grace,
            max_concurrent_activities=at_once,
            max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        )

    # All activities: an older release scheduled every step on the main queue.
    everything = [each for steps in activities.values() for each in steps]
    with _no_garbage_collection():
        main = create(task_queue, everything, policy.steps.others, WORKFLOWS)
    others = [
        create(queue_name(task_queue, queue), activities[queue], at_once)
        for queue, at_once in _limits_of(policy.steps).items()
    ]
    return Workers([main, *others])


def _limits_of(steps: StepLimits) -> Mapping[StepQueue, int]:
    return {
        StepQueue.ARCHIVES: steps.archives,
        StepQueue.RESTORES: steps.restores,
        StepQueue.STARTS: steps.starts,
        StepQueue.INSTANCES: steps.others,
    }


def sandboxed_runner() -> SandboxedWorkflowRunner:
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    return SandboxedWorkflowRunner(restrictions=restrictions)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Prevent finalizers from running while the workflows are validated, which imports them again.

    On Python 3.11, a finalizer that imports something during an import breaks that import
    (python/cpython#91351), and garbage collection can run finalizers at any time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
