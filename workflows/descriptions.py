"""What the Temporal Web UI shows, and failures in the words of the domain."""

from temporalio import exceptions
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError, ChildWorkflowError, TimeoutType

from codehub.adapters.temporal.search_attributes import OPERATION, attributes_of
from codehub.contracts import OperationRequest
from codehub.domain.conditions import Snapshot
from codehub.domain.failures import EXPLANATIONS
from codehub.domain.states import ErrorReason, Operation

DATABASE_UNAVAILABLE = "DatabaseUnavailable"
NEXT_SWEEP = "The next sweep goes on from here."
NO_DATABASE = f"PostgreSQL does not answer. {NEXT_SWEEP}"


def operation_attributes(claimed: OperationRequest) -> TypedSearchAttributes:
    """An operation is found by its workspace, its owner and its name."""
    whose = attributes_of(claimed.workspace_id, claimed.owner_id)
    return TypedSearchAttributes(
        [*whose.search_attributes, SearchAttributePair(OPERATION, claimed.operation)]
    )


def summary_of(claimed: OperationRequest) -> str:
    return f"{claimed.operation} {claimed.workspace_id}"


def describe(snapshot: Snapshot | None) -> str:
    """One line for a person: where it is, where it should be, what is done about it, what is wrong."""
    if snapshot is None:
        return "There is no such workspace."
    line = f"{snapshot.phase}, wanted {snapshot.desired_state}"
    if snapshot.operation is not Operation.NONE:
        line += f", {snapshot.operation}"
    if snapshot.error_reason is not None:
        line += f": {snapshot.error_reason} ({snapshot.error_message})"
    if snapshot.waiting_for:
        line += f"; waiting for {' and '.join(snapshot.waiting_for)} since {snapshot.waiting_since}"
    return line


def interruption_of(error: BaseException) -> str:
    """Why a run ended before it had arrived: most likely the database does not answer."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if not isinstance(cause, ApplicationError) or cause.type == DATABASE_UNAVAILABLE:
        return NO_DATABASE
    return f"A step failed ({cause.type}: {cause.message}). {NEXT_SWEEP}"


def failure_of(error: ChildWorkflowError) -> tuple[ErrorReason, str]:
    """Why the attempt ended; what nobody foresaw counts as a failed action, which is tried again."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
        if isinstance(cause, ApplicationError) and cause.type in set(ErrorReason):
            return ErrorReason(cause.type), cause.message
        if isinstance(cause, exceptions.TimeoutError) and cause.type is not TimeoutType.HEARTBEAT:
            return ErrorReason.TIMEOUT, EXPLANATIONS[ErrorReason.TIMEOUT]
    return ErrorReason.ACTION_FAILED, f"{type(cause).__name__}: {cause}"
