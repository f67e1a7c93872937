"""Runs activities as steps of a workflow."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.workflow import ActivityCancellationType

from codehub.contracts import queue_name
from workflows.policies import ROW, LocalStep, StepPolicy

Result = TypeVar("Result")


async def run_local_step(
    step: Callable[..., Coroutine[Any, Any, Result]], *arguments: object, policy: LocalStep = ROW
) -> Result:
    """Run a short database step as a local activity, because a task queue would cost more than the step."""
    return await workflow.execute_local_activity_method(step, args=arguments, **policy)


async def run_step(
    step: Callable[..., Coroutine[Any, Any, Result]], *arguments: object, policy: StepPolicy
) -> Result:
    """Run a step on any worker. After a cancellation, return only when the step has ended."""
    return await workflow.execute_activity_method(
        step,
        args=arguments,
        task_queue=_task_queue(policy),
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        **policy.options,
    )


def _task_queue(policy: StepPolicy) -> str | None:
    """Derive the queue from the workflow's own, which is in the history; settings can differ in a replay."""
    return queue_name(workflow.info().task_queue, policy.queue) if policy.queue else None
