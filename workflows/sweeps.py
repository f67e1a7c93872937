"""The scheduled workflows."""

from temporalio import workflow

from activities.drift import DriftActivities
from activities.garbage import GarbageActivities
from activities.idle import IdleActivities
from activities.retention import RetentionActivities
from codehub.contracts import GcResult, ObserveResult, RetentionResult, SweepRequest, TtlResult
from workflows.policies import SWEEP
from workflows.steps import change


@workflow.defn
class ObserveWorkflow:
    """Wake what drifted and what has not converged, and nothing else."""

    @workflow.run
    async def run(self) -> ObserveResult:
        return await change(DriftActivities.wake_what_drifted, policy=SWEEP)


@workflow.defn
class TtlWorkflow:
    """Store who used what first, so that nobody is stopped on old news."""

    @workflow.run
    async def run(self) -> TtlResult:
        request = SweepRequest(workflow.now())
        used = await change(IdleActivities.store_last_access, request, policy=SWEEP)
        stopped = await change(IdleActivities.stop_unused, request, policy=SWEEP)
        archived = await change(IdleActivities.archive_unused, request, policy=SWEEP)
        return TtlResult(used, stopped, archived)


@workflow.defn
class ArchiveGcWorkflow:
    """One collection; a listing or a query that fails skips it."""

    @workflow.run
    async def run(self) -> GcResult:
        return await change(GarbageActivities.collect, SweepRequest(workflow.now()), policy=SWEEP)


@workflow.defn
class RetentionWorkflow:
    """Workspaces before archives: the record of a workspace's archive outlives the workspace."""

    @workflow.run
    async def run(self) -> RetentionResult:
        request = SweepRequest(workflow.now())
        return RetentionResult(
            workspaces=await change(RetentionActivities.remove_deleted_workspaces, request, policy=SWEEP),
            archives=await change(RetentionActivities.remove_collected_archives, request, policy=SWEEP),
            events=await change(RetentionActivities.remove_old_events, request, policy=SWEEP),
            sessions=await change(RetentionActivities.remove_ended_sessions, request, policy=SWEEP),
            tokens=await change(RetentionActivities.remove_ended_tokens, request, policy=SWEEP),
            usage=await change(RetentionActivities.remove_old_usage, request, policy=SWEEP),
        )
