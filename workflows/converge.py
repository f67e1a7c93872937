"""The workflow of a workspace: observe, plan, claim, run and settle until nothing is left to do."""

from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
)

from activities.workspace import WorkspaceActivities
from codehub.adapters.temporal.search_attributes import OPERATION, PHASE
from codehub.contracts import (
    AttemptEnded,
    AttemptFailed,
    ClaimRequest,
    ConvergeRequest,
    Observed,
    OperationRequest,
    SettleRequest,
    operation_workflow_id,
)
from codehub.domain.planner import Decision, Plan, plan
from codehub.domain.states import Operation
from workflows.descriptions import describe, failure_of, interruption_of, operation_attributes, summary_of
from workflows.policies import LEFTOVER_DELAY
from workflows.steps import run_local_step

# By name, because the sandbox imports this module and its imports again for each run.
WORKFLOW_OF = {
    Operation.PROVISIONING: "Provisioning",
    Operation.RESTORING: "Restoring",
    Operation.STARTING: "Starting",
    Operation.STOPPING: "Stopping",
    Operation.ARCHIVING: "Archiving",
    Operation.CREATE_EMPTY_ARCHIVE: "CreateEmptyArchive",
    Operation.DELETING: "Deleting",
}


@workflow.defn
class WorkspaceWorkflow:
    """Ends when the workspace has its desired state, or cannot reach it for now.

    Its id is the lock: one run per workspace. It never raises for a failed operation, because a wake that
    arrived meanwhile would be lost with the run.
    """

    def __init__(self) -> None:
        self._wakes = 1

    @workflow.signal
    def wake(self) -> None:
        """Observe again. Temporal lets no run complete before it has seen every signal."""
        self._wakes += 1

    @workflow.run
    async def run(self, request: ConvergeRequest) -> str:
        snapshot = None
        try:
            while self._wakes:
                self._wakes = 0
                snapshot = await self._converge(request)
        except (ActivityError, ApplicationError) as error:
            if workflow.cancellation_reason() is not None:
                raise
            # The row keeps its claim, and a later sweep starts another run.
            return interruption_of(error)
        return describe(snapshot)

    async def _converge(self, request: ConvergeRequest) -> Observed | None:
        snapshot = await self._observe(request)
        while snapshot is not None:
            self._show(snapshot)
            if workflow.info().is_continue_as_new_suggested():
                # The new run starts with an observation, so no wake is lost.
                workflow.continue_as_new(request)
            decided = _plan_of(snapshot)
            match decided.decision:
                case Decision.RUN:
                    snapshot = await self._run(snapshot, decided.operation, request)
                case Decision.SETTLE:
                    snapshot = await self._settle(snapshot.claimed_at, request)
                case _:
                    return snapshot
        return None

    async def _observe(self, request: ConvergeRequest) -> Observed | None:
        return await run_local_step(WorkspaceActivities.observe, request.workspace_id)

    async def _run(
        self, snapshot: Observed, operation: Operation, request: ConvergeRequest
    ) -> Observed | None:
        claim = ClaimRequest(snapshot.workspace_id, operation, str(workflow.uuid4()))
        claimed = await run_local_step(WorkspaceActivities.claim, claim)
        if claimed is None:
            return await self._observe(request)
        try:
            await self._execute(claimed)
        except WorkflowAlreadyStartedError:
            # A terminated run left this workflow behind, and it has not ended yet.
            await workflow.sleep(LEFTOVER_DELAY)
            return await self._observe(request)
        except ChildWorkflowError as error:
            if workflow.cancellation_reason() is not None:
                raise  # cancelled by an operator: the row keeps its claim, and the next sweep continues
            return await self._record_failure(error, claimed, request)
        return await self._settle(claimed.claimed_at, request)

    async def _execute(self, claimed: OperationRequest) -> None:
        workflow.upsert_search_attributes([OPERATION.value_set(claimed.operation)])
        await workflow.execute_child_workflow(
            WORKFLOW_OF[claimed.operation],
            claimed,
            id=operation_workflow_id(claimed),
            search_attributes=operation_attributes(claimed),
            static_summary=summary_of(claimed),
        )

    async def _settle(self, claimed_at: datetime | None, request: ConvergeRequest) -> Observed | None:
        settle = SettleRequest(request.workspace_id, _jitter(), claimed_at)
        return await self._continue(await run_local_step(WorkspaceActivities.settle, settle), request)

    async def _record_failure(
        self, error: ChildWorkflowError, claimed: OperationRequest, request: ConvergeRequest
    ) -> Observed | None:
        reason, message = failure_of(error)
        failed = AttemptFailed(request.workspace_id, reason, message, _jitter(), claimed.claimed_at)
        return await self._continue(await run_local_step(WorkspaceActivities.record_failure, failed), request)

    async def _continue(self, ended: AttemptEnded | None, request: ConvergeRequest) -> Observed | None:
        """Return the snapshot, or wait for the next attempt and observe again."""
        if ended is None or ended.retry_after_seconds is None:
            return ended.snapshot if ended else None
        workflow.set_current_details(f"{describe(ended.snapshot)}; next attempt soon")
        await workflow.sleep(timedelta(seconds=ended.retry_after_seconds))
        return await self._observe(request)

    def _show(self, snapshot: Observed) -> None:
        workflow.set_current_details(describe(snapshot))
        workflow.upsert_search_attributes(
            [PHASE.value_set(snapshot.phase), OPERATION.value_set(snapshot.operation)]
        )


def _plan_of(snapshot: Observed) -> Plan:
    """Return the recorded plan; older runs have none and compute it."""
    return snapshot.plan or plan(snapshot)


def _jitter() -> float:
    return workflow.random().uniform(-1, 1)
