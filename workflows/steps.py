"""Short ways to call activities, so that workflows read like the runbook."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.workflow import ActivityCancellationType

from codehub.contracts import queue_name
from workflows.policies import ROW, LocalStep, StepPolicy

Result = TypeVar("Result")


async def update_row(
    step: Callable[..., Coroutine[Any, Any, Result]], *arguments: object, policy: LocalStep = ROW
) -> Result:
    """A short database step: local, because a task queue would cost more than the step itself."""
    return await workflow.execute_local_activity_method(step, args=arguments, **policy)


async def change(
    step: Callable[..., Coroutine[Any, Any, Result]], *arguments: object, policy: StepPolicy
) -> Result:
    """A step that changes the world: any worker may run it; a cancelled one has ended when this returns."""
    return await workflow.execute_activity_method(
        step,
        args=arguments,
        task_queue=_queue_of(policy),
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        **policy.options,
    )


def _queue_of(policy: StepPolicy) -> str | None:
    """By the workflow's own queue, which its history holds; settings would differ between replays."""
    return queue_name(workflow.info().task_queue, policy.queue) if policy.queue else None
