"""Descriptions for the Temporal Web UI, and the translation of Temporal errors to failures."""

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
    """Return search attributes with the workspace, the owner and the operation."""
    workspace = attributes_of(claimed.workspace_id, claimed.owner_id)
    return TypedSearchAttributes(
        [*workspace.search_attributes, SearchAttributePair(OPERATION, claimed.operation)]
    )


def summary_of(claimed: OperationRequest) -> str:
    return f"{claimed.operation} {claimed.workspace_id}"


def describe(snapshot: Snapshot | None) -> str:
    """Describe the phase, the desired state, the operation and the error in one line."""
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
    """Explain why a run ended early; in most cases the database is down."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if not isinstance(cause, ApplicationError) or cause.type == DATABASE_UNAVAILABLE:
        return NO_DATABASE
    return f"A step failed ({cause.type}: {cause.message}). {NEXT_SWEEP}"


def failure_of(error: ChildWorkflowError) -> tuple[ErrorReason, str]:
    """Return why an attempt failed. An unexpected error counts as ACTION_FAILED, which is retried."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
        if isinstance(cause, ApplicationError) and cause.type in set(ErrorReason):
            return ErrorReason(cause.type), cause.message
        if isinstance(cause, exceptions.TimeoutError) and cause.type is not TimeoutType.HEARTBEAT:
            return ErrorReason.TIMEOUT, EXPLANATIONS[ErrorReason.TIMEOUT]
    return ErrorReason.ACTION_FAILED, f"{type(cause).__name__}: {cause}"
