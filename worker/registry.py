"""What the worker can do: every workflow and every activity, each named once."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.worker import Interceptor, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.archive import ArchiveActivities
from activities.drift import DriftActivities
from activities.failing import FailureInterceptor
from activities.garbage import GarbageActivities
from activities.idle import IdleActivities
from activities.instance import InstanceActivities
from activities.looking import Eyes
from activities.retention import RetentionActivities
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from codehub.bootstrap import Policy, Ports
from workflows.archiving import Archiving
from workflows.converge import WorkspaceWorkflow
from workflows.create_empty_archive import CreateEmptyArchive
from workflows.deleting import Deleting
from workflows.gc import ArchiveGcWorkflow
from workflows.observe import ObserveWorkflow
from workflows.provisioning import Provisioning
from workflows.restoring import Restoring
from workflows.retention import RetentionWorkflow
from workflows.starting import Starting
from workflows.stopping import Stopping
from workflows.ttl import TtlWorkflow

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
PASSED_THROUGH = ("activities", "codehub", "workflows.describing", "workflows.policies", "workflows.steps")

# When a worker dies, its cached workflows go to another after this long.
STICKY_TIMEOUT = timedelta(seconds=2)

# Often enough for the heartbeat timeouts of `workflows.policies`, and for a progress bar.
HEARTBEAT_THROTTLE = timedelta(seconds=1)


def activities_of(ports: Ports, policy: Policy) -> list[Callable[..., Any]]:
    """Bind the activities to their ports."""
    workspace = WorkspaceActivities(ports.database, Eyes(ports.instances, ports.volumes, ports.archives))
    instance = InstanceActivities(ports.database, ports.instances, ports.board)
    volume = VolumeActivities(ports.database, ports.volumes, ports.archives, ports.board)
    archive = ArchiveActivities(ports.database, ports.jobs, ports.board)
    idle = IdleActivities(
        ports.database, ports.buffer, ports.convergence, policy.idle_times, policy.limits, ports.clock
    )
    garbage = GarbageActivities(ports.database, ports.archives, ports.convergence, policy.graces, ports.clock)
    retention = RetentionActivities(
        ports.database, ports.archives, policy.retention, policy.graces.undelete, ports.clock
    )
    drift = DriftActivities(ports.database, ports.instances, ports.volumes, ports.archives, ports.convergence)
    return [
        workspace.observe,
        workspace.claim,
        workspace.commit_archive,
        workspace.mark_restored,
        workspace.settle,
        workspace.record_failure,
        instance.start_instance,
        instance.stop_instance,
        volume.provision_volume,
        volume.remove_archived_volume,
        volume.remove_volume,
        archive.upload_archive,
        archive.upload_empty_archive,
        archive.restore_archive,
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
    ]


def create_worker(
    client: Client, task_queue: str, ports: Ports, policy: Policy, interceptors: Sequence[Interceptor] = ()
) -> Worker:
    """A worker for everything; run it with `await worker.run()`, which does not swallow a fatal error."""
    with _no_garbage_collection():
        return Worker(
            client,
            task_queue=task_queue,
            workflows=WORKFLOWS,
            activities=activities_of(ports, policy),
            interceptors=[FailureInterceptor(), *interceptors],
            workflow_runner=sandboxed_runner(),
            sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
            graceful_shutdown_timeout=policy.shutdown_grace,
            max_concurrent_activities=policy.concurrent_activities,
            max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        )


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
