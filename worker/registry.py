"""All workflows and activities."""

from collections.abc import Callable
from typing import Any

from activities.archive import ArchiveActivities
from activities.disk import DiskActivities
from activities.drift import DriftActivities
from activities.garbage import GarbageActivities
from activities.idle import IdleActivities
from activities.instance import InstanceActivities
from activities.observer import Observer
from activities.retention import RetentionActivities
from activities.step_monitor import StepMonitor
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from codehub.bootstrap import Ports
from codehub.contracts import StepQueue
from codehub.policy import Policy
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
from workflows.sweeps import ArchiveGcWorkflow, DiskWorkflow, ObserveWorkflow, RetentionWorkflow, TtlWorkflow

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
    DiskWorkflow,
    RetentionWorkflow,
]


Activities = list[Callable[..., Any]]


def activities_of(ports: Ports, policy: Policy) -> dict[StepQueue | None, Activities]:
    """Bind the activities to their ports. Return them by queue; None is the main one."""
    workspace = WorkspaceActivities(ports.database, Observer(ports.instances, ports.volumes, ports.archives))
    monitor = StepMonitor(ports.board, policy.stall)
    instance = InstanceActivities(ports.database, ports.instances, policy.allowed_images, monitor)
    volume = VolumeActivities(ports.database, ports.volumes, ports.archives, monitor)
    archive = ArchiveActivities(ports.database, ports.jobs, monitor)
    idle = IdleActivities(
        ports.database,
        ports.buffer,
        ports.convergence,
        policy.idle_times,
        policy.longest_idle_times,
        policy.limits,
        policy.steps.archives,
        ports.clock,
    )
    garbage = GarbageActivities(ports.database, ports.archives, ports.convergence, policy.graces, ports.clock)
    retention = RetentionActivities(
        ports.database, ports.archives, policy.retention, policy.graces.undelete, ports.clock
    )
    drift = DriftActivities(
        ports.database, ports.instances, ports.volumes, ports.archives, ports.jobs, ports.convergence
    )
    disk = DiskActivities(ports.database, ports.volumes, policy.limits, ports.clock)
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
            disk.measure_homes,
            retention.remove_deleted_workspaces,
            retention.remove_collected_archives,
            retention.remove_old_events,
            retention.remove_ended_sessions,
            retention.remove_ended_tokens,
            retention.remove_old_usage,
            retention.remove_old_audit_log,
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
