"""The scheduled workflows."""

from dataclasses import replace

from temporalio import workflow

from activities.disk import DiskActivities
from activities.drift import DriftActivities
from activities.garbage import GarbageActivities
from activities.idle import IdleActivities
from activities.retention import RetentionActivities
from codehub.contracts import DiskResult, GcResult, ObserveResult, RetentionResult, SweepRequest, TtlResult
from workflows.policies import SWEEP
from workflows.steps import run_step


@workflow.defn
class ObserveWorkflow:
    """Wake workspaces that have drifted or have not converged."""

    @workflow.run
    async def run(self) -> ObserveResult:
        return await run_step(DriftActivities.wake_what_drifted, policy=SWEEP)


@workflow.defn
class TtlWorkflow:
    """Store activity first, so that no workspace is stopped because of outdated data."""

    @workflow.run
    async def run(self) -> TtlResult:
        request = SweepRequest(workflow.now())
        used = await run_step(IdleActivities.store_last_access, request, policy=SWEEP)
        stopped = await run_step(IdleActivities.stop_unused, request, policy=SWEEP)
        archived = await run_step(IdleActivities.archive_unused, request, policy=SWEEP)
        return TtlResult(used, stopped, archived)


@workflow.defn
class ArchiveGcWorkflow:
    """Collect garbage once. A failed listing or query skips the cycle."""

    @workflow.run
    async def run(self) -> GcResult:
        return await run_step(GarbageActivities.collect, SweepRequest(workflow.now()), policy=SWEEP)


@workflow.defn
class DiskWorkflow:
    """Measure the disk usage of a few workspaces."""

    @workflow.run
    async def run(self) -> DiskResult:
        return await run_step(DiskActivities.measure_homes, SweepRequest(workflow.now()), policy=SWEEP)


@workflow.defn
class RetentionWorkflow:
    """Remove workspaces before archives: the row of an archive outlives its workspace."""

    @workflow.run
    async def run(self) -> RetentionResult:
        request = SweepRequest(workflow.now())
        result = RetentionResult(
            workspaces=await run_step(RetentionActivities.remove_deleted_workspaces, request, policy=SWEEP),
            archives=await run_step(RetentionActivities.remove_collected_archives, request, policy=SWEEP),
            events=await run_step(RetentionActivities.remove_old_events, request, policy=SWEEP),
            sessions=await run_step(RetentionActivities.remove_ended_sessions, request, policy=SWEEP),
            tokens=await run_step(RetentionActivities.remove_ended_tokens, request, policy=SWEEP),
            usage=await run_step(RetentionActivities.remove_old_usage, request, policy=SWEEP),
        )
        if not workflow.patched("audit-log"):
            return result
        audit_log = await run_step(RetentionActivities.remove_old_audit_log, request, policy=SWEEP)
        return replace(result, audit_log=audit_log)
