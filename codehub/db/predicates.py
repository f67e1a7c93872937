"""Which rows the partial indexes hold; queries repeat these very words, so the planner sees the match."""

from codehub.domain.failures import RETRYABLE

IDLE_RUNNING = "deleted_at IS NULL AND phase = 'RUNNING' AND operation = 'NONE' AND desired_state = 'RUNNING'"
IDLE_STANDBY = "deleted_at IS NULL AND phase = 'STANDBY' AND operation = 'NONE' AND desired_state = 'STANDBY'"
# `counts_as_running` of the domain. In parentheses, because queries add conditions of their own.
COUNTS_AS_RUNNING = (
    "((deleted_at IS NULL AND desired_state = 'RUNNING') OR phase = 'RUNNING' "
    "OR conditions->'infra.container_ready'->>'reason' IN ('Ready', 'NotReady'))"
)
# One expression, of which the database keeps statistics: it cannot know otherwise that phase and desired
# state nearly always agree, and would read the whole table.
CONVERGED = "(operation = 'NONE' AND phase = desired_state)"
NOT_CONVERGED = f"deleted_at IS NULL AND phase <> 'ERROR' AND {CONVERGED} IS FALSE"
OPERATION_IN_PROGRESS = "deleted_at IS NULL AND operation <> 'NONE'"
NOT_DELETED = "deleted_at IS NULL"
# One that is being deleted is still shown to its owner; DELETED ones may be taken back for a while.
VISIBLE = "phase <> 'DELETED'"
DELETED = "phase = 'DELETED'"
# A person has decided how to leave an error, and the workflow has not carried it out yet.
RECOVERING = "recover_requested_at IS DISTINCT FROM recover_handled_at"

# Not `phase = 'DELETING'`: the phase is the workflow's to write, so a deletion whose wake-up was lost still
# has its old one; and an operation that a dead run left behind is still to be settled. A terminal error halts
# a deletion until a person decides, unless it is a purge.
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

# Of archives: the collector's work.
ORPHANED = "orphan_since IS NOT NULL AND deleted_at IS NULL"
COLLECTED = "deleted_at IS NOT NULL"
