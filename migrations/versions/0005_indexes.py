"""Build M2's indexes while the tables are in use."""

from alembic import op

from migrations.steps import create_indexes, drop_indexes

revision = "0005_indexes"
down_revision = "0004_constraints"

WORKSPACE_INDEXES = {
    "idle_running": (
        "(phase_changed_at) WHERE deleted_at IS NULL AND phase = 'RUNNING' AND operation = 'NONE' "
        "AND desired_state = 'RUNNING'"
    ),
    "idle_standby": (
        "(phase_changed_at) WHERE deleted_at IS NULL AND phase = 'STANDBY' AND operation = 'NONE' "
        "AND desired_state = 'STANDBY'"
    ),
    "running": (
        "(owner_user_id) WHERE deleted_at IS NULL AND (desired_state = 'RUNNING' OR phase = 'RUNNING')"
    ),
    "not_converged": (
        "(id) WHERE deleted_at IS NULL AND phase <> 'ERROR' "
        "AND (operation = 'NONE' AND phase = desired_state) IS FALSE"
    ),
    "being_deleted": (
        "(id) WHERE deleted_at IS NOT NULL AND (phase <> 'DELETED' OR operation <> 'NONE') "
        "AND (purge OR error_reason IS NULL OR error_reason IN ('ActionFailed', 'Unreachable'))"
    ),
    "operation": "(operation, op_started_at) WHERE deleted_at IS NULL AND operation <> 'NONE'",
    "error": "(phase_changed_at) WHERE deleted_at IS NULL AND phase = 'ERROR'",
    "owner": "(owner_user_id, created_at, id) WHERE deleted_at IS NULL",
}

INDEXES = {f"ix_workspaces_{name}": f"workspaces {rest}" for name, rest in WORKSPACE_INDEXES.items()}
# Without it the planner takes phase and desired state for independent, and reads the whole table to find the
# few rows where they differ.
STATISTICS = "st_workspaces_converged"
UNIQUE_INDEXES = {"uq_users_username_lower": "users (lower(username))"}


def upgrade() -> None:
    op.execute(f"DROP STATISTICS IF EXISTS {STATISTICS}")
    op.execute(
        f"CREATE STATISTICS {STATISTICS} ON (operation = 'NONE' AND phase = desired_state) FROM workspaces"
    )
    create_indexes(INDEXES)
    create_indexes(UNIQUE_INDEXES, kind="UNIQUE INDEX")


def downgrade() -> None:
    op.execute(f"DROP STATISTICS IF EXISTS {STATISTICS}")
    drop_indexes([*INDEXES, *UNIQUE_INDEXES])
