"""What the worker can do: every workflow and every activity, each named once."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.worker import Interceptor, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.archive import ArchiveActivities
from activities.drift import DriftActivities
from activities.failure_interceptor import FailureInterceptor
from activities.garbage import GarbageActivities
from activities.idle import IdleActivities
from activities.instance import InstanceActivities
from activities.observer import Observer
from activities.retention import RetentionActivities
from activities.step_monitor import StepMonitor
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from codehub.bootstrap import Ports
from codehub.contracts import StepQueue, queue_name
from codehub.policy import Policy, StepLimits
from worker.workers import Workers
from workflows.converge import WorkspaceWorkflow
from workflows.operations import (
    Archiving,
    CreateEmptyArchive,
    Deleting,
    Provisioning,
    Restoring,
    Starting,
    Stopping,
)
from workflows.sweeps import ArchiveGcWorkflow, ObserveWorkflow, RetentionWorkflow, TtlWorkflow

WORKFLOWS: list[type] = [
    WorkspaceWorkflow,
    Provisioning,
    Restoring,
    Starting,
    Stopping,
    Archiving,
    CreateEmptyArchive,
    Deleting,
    TtlWorkflow,
    ArchiveGcWorkflow,
    ObserveWorkflow,
    RetentionWorkflow,
]

# Our own modules are pure where workflows use them (the linters see to that); importing them anew into every
# sandbox costs more than the workflow itself. The modules that define workflows stay inside.
PASSED_THROUGH = ("activities", "codehub", "workflows.descriptions", "workflows.policies", "workflows.steps")

# When a worker dies, its cached workflows go to another after this long.
STICKY_TIMEOUT = timedelta(seconds=2)

# Often enough for the heartbeat timeouts of `workflows.policies`, and for a progress bar.
HEARTBEAT_THROTTLE = timedelta(seconds=1)


Activities = list[Callable[..., Any]]


def activities_of(ports: Ports, policy: Policy) -> dict[StepQueue | None, Activities]:
    """Bind the activities to their ports; by the queue that they are called on, None for the main one."""
    workspace = WorkspaceActivities(ports.database, Observer(ports.instances, ports.volumes, ports.archives))
    monitor = StepMonitor(ports.board, policy.stall)
    instance = InstanceActivities(ports.database, ports.instances, monitor)
    volume = VolumeActivities(ports.database, ports.volumes, ports.archives, monitor)
    archive = ArchiveActivities(ports.database, ports.jobs, monitor)
    idle = IdleActivities(
        ports.database,
        ports.buffer,
        ports.convergence,
        policy.idle_times,
        policy.limits,
        policy.steps.archives,
        ports.clock,
    )
    garbage = GarbageActivities(ports.database, ports.archives, ports.convergence, policy.graces, ports.clock)
    retention = RetentionActivities(
        ports.database, ports.archives, policy.retention, policy.graces.undelete, ports.clock
    )
    drift = DriftActivities(ports.database, ports.instances, ports.volumes, ports.archives, ports.convergence)
    return {
        None: [
            workspace.observe,
            workspace.claim,
            workspace.commit_archive,
            workspace.mark_restored,
            workspace.settle,
            workspace.record_failure,
            idle.store_last_access,
            idle.stop_unused,
            idle.archive_unused,
            garbage.collect,
            drift.wake_what_drifted,
            retention.remove_deleted_workspaces,
            retention.remove_collected_archives,
            retention.remove_old_events,
            retention.remove_ended_sessions,
            retention.remove_ended_tokens,
            retention.remove_old_usage,
        ],
        StepQueue.ARCHIVES: [archive.upload_archive, archive.upload_empty_archive],
        StepQueue.RESTORES: [archive.restore_archive],
        StepQueue.STARTS: [instance.start_instance],
        StepQueue.INSTANCES: [
            instance.stop_instance,
            instance.pull_image,
            volume.provision_volume,
            volume.remove_archived_volume,
            volume.remove_volume,
        ],
    }


def create_workers(
    client: Client, task_queue: str, ports: Ports, policy: Policy, interceptors: Sequence[Interceptor] = ()
) -> Workers:
    """One for each queue; run them with `await workers.run()`, which does not swallow a fatal error."""
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

    # All of them: a release without separate queues has scheduled every step on the main one.
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
    """Keep finalizers away while workflows are checked, which imports them anew.

    On Python 3.11 a finalizer that imports something in the middle of an import breaks it
    (python/cpython#91351), and the collector runs finalizers whenever it likes.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
