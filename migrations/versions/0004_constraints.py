"""Add the constraints of M2, and validate them without a lock."""

from migrations.steps import add_checks, drop_constraints, drop_not_null, set_not_null

revision = "0004_constraints"
down_revision = "0003_carry_over"

REQUIRED = ("phase", "phase_changed_at", "desired_state", "home_ctx")

USER_CHECKS = {
    "ck_users_role": "role IN ('user', 'admin')",
    "ck_users_failed_login_count": "failed_login_count >= 0",
}

WORKSPACE_CHECKS = {
    "ck_workspaces_phase": (
        "phase IN ('PENDING', 'ARCHIVED', 'STANDBY', 'RUNNING', 'ERROR', 'DELETING', 'DELETED')"
    ),
    "ck_workspaces_operation": (
        "operation IN ('NONE', 'PROVISIONING', 'RESTORING', 'STARTING', 'STOPPING', 'ARCHIVING', "
        "'CREATE_EMPTY_ARCHIVE', 'DELETING')"
    ),
    "ck_workspaces_desired_state": "desired_state IN ('ARCHIVED', 'STANDBY', 'RUNNING', 'DELETED')",
    "ck_workspaces_error_reason": (
        "error_reason IN ('Timeout', 'RetryExceeded', 'ActionFailed', 'DataLost', 'Unreachable', "
        "'ImagePullFailed', 'ContainerWithoutVolume', 'ArchiveCorrupted')"
    ),
    "ck_workspaces_error_ends_operation": (
        "phase <> 'ERROR' OR (operation = 'NONE' AND error_reason IS NOT NULL)"
    ),
    "ck_workspaces_operation_has_started": "(operation = 'NONE') = (op_started_at IS NULL)",
    "ck_workspaces_deletion_is_desired": "(desired_state = 'DELETED') = (deleted_at IS NOT NULL)",
    "ck_workspaces_purge_is_deletion": "deleted_at IS NOT NULL OR NOT purge",
    "ck_workspaces_error_count": "error_count >= 0",
    "ck_workspaces_standby_ttl_seconds": "standby_ttl_seconds > 0",
    "ck_workspaces_archive_ttl_seconds": "archive_ttl_seconds > 0",
}


def upgrade() -> None:
    add_checks("users", USER_CHECKS)
    add_checks("workspaces", WORKSPACE_CHECKS)
    set_not_null("workspaces", REQUIRED)


def downgrade() -> None:
    drop_not_null("workspaces", REQUIRED)
    drop_constraints("workspaces", list(WORKSPACE_CHECKS))
    drop_constraints("users", list(USER_CHECKS))
