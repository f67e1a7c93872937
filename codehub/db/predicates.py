"""The conditions of the partial indexes; queries use the same text, so that the planner picks the index."""

from codehub.domain.failures import RETRYABLE

IDLE_RUNNING = "deleted_at IS NULL AND phase = 'RUNNING' AND operation = 'NONE' AND desired_state = 'RUNNING'"
IDLE_STANDBY = "deleted_at IS NULL AND phase = 'STANDBY' AND operation = 'NONE' AND desired_state = 'STANDBY'"
# `counts_as_running` of the domain. In parentheses, because queries add conditions.
COUNTS_AS_RUNNING = (
    "((deleted_at IS NULL AND desired_state = 'RUNNING') OR phase = 'RUNNING' "
    "OR conditions->'infra.container_ready'->>'reason' IN ('Ready', 'NotReady'))"
)
# One expression, so that the database keeps statistics about it: otherwise it does not know that phase and
# desired state nearly always agree, and reads the whole table.
CONVERGED = "(operation = 'NONE' AND phase = desired_state)"
NOT_CONVERGED = f"deleted_at IS NULL AND phase <> 'ERROR' AND {CONVERGED} IS FALSE"
OPERATION_IN_PROGRESS = "deleted_at IS NULL AND operation <> 'NONE'"
NOT_DELETED = "deleted_at IS NULL"
# A workspace is shown while it is being deleted; a DELETED one can be undeleted for a while.
VISIBLE = "phase <> 'DELETED'"
DELETED = "phase = 'DELETED'"
# A recover request that the workflow has not carried out yet.
RECOVERING = "recover_requested_at IS DISTINCT FROM recover_handled_at"

# Not `phase = 'DELETING'`: if the wake was lost, a deletion still has its old phase, because the workflow
# writes it; and an operation that a dead run left has to be settled. A terminal error halts a deletion until
# a person decides, unless it is a purge.
_RETRYABLE = ", ".join(f"'{reason}'" for reason in sorted(RETRYABLE))
BEING_DELETED = (
    "deleted_at IS NOT NULL AND (phase <> 'DELETED' OR operation <> 'NONE') "
    f"AND (purge OR error_reason IS NULL OR error_reason IN ({_RETRYABLE}))"
)
# `LifecycleState.needs_person` in SQL; a test compares the two.
NEEDS_PERSON = (
    "operation = 'NONE' AND recover_requested_at IS NOT DISTINCT FROM recover_handled_at "
    "AND (deleted_at IS NULL AND phase = 'ERROR' OR deleted_at IS NOT NULL AND phase <> 'DELETED' "
    f"AND NOT purge AND error_reason NOT IN ({_RETRYABLE}))"
)

# An archive that nothing uses is ORPHANED during its grace period, and COLLECTED once it was deleted.
ORPHANED = "orphan_since IS NOT NULL AND deleted_at IS NULL"
COLLECTED = "deleted_at IS NOT NULL"
