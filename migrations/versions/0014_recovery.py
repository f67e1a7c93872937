"""Recovery: which archive to go back to, archives that a choice left behind, and all that needs a person."""

from alembic import op

from migrations.steps import add_checks, create_indexes, drop_constraints, each_statement_by_itself

revision = "0014_recovery"
down_revision = "0010_usage"

NEW_COLUMNS = {
    "workspaces": {"recover_archive_key": "text"},
    "archives": {"given_up_at": "timestamptz"},
}

CHOICE = "ck_workspaces_recover_choice"
CHOICES = {CHOICE: "recover_choice IN ('retry', 'restore_archive', 'use_disk', 'start_empty')"}
EARLIER_CHOICES = {CHOICE: "recover_choice IN ('retry', 'restore_archive', 'start_empty')"}
NEW_CHECKS = {
    "ck_workspaces_recover_archive": "recover_archive_key IS NULL OR recover_choice = 'restore_archive'"
}

INDEX = "ix_workspaces_error"
NEEDS_PERSON = {
    INDEX: (
        "workspaces (phase_changed_at) WHERE operation = 'NONE' "
        "AND recover_requested_at IS NOT DISTINCT FROM recover_handled_at "
        "AND (deleted_at IS NULL AND phase = 'ERROR' OR deleted_at IS NOT NULL AND phase <> 'DELETED' "
        "AND NOT purge AND error_reason NOT IN ('ActionFailed', 'Unreachable'))"
    )
}
IN_ERROR = {INDEX: "workspaces (phase_changed_at) WHERE deleted_at IS NULL AND phase = 'ERROR'"}


def upgrade() -> None:
    with each_statement_by_itself():
        for table, columns in NEW_COLUMNS.items():
            additions = (f"ADD COLUMN IF NOT EXISTS {name} {kind}" for name, kind in columns.items())
            op.execute(f"ALTER TABLE {table} {', '.join(additions)}")
    add_checks("workspaces", {**CHOICES, **NEW_CHECKS})
    create_indexes(NEEDS_PERSON)


def downgrade() -> None:
    create_indexes(IN_ERROR)
    drop_constraints("workspaces", list(NEW_CHECKS))
    # An open request that the earlier version does not know would hold up the CHECK; nothing was given up yet.
    op.execute("UPDATE workspaces SET recover_choice = 'retry' WHERE recover_choice = 'use_disk'")
    add_checks("workspaces", EARLIER_CHOICES)
    for table, columns in NEW_COLUMNS.items():
        op.execute(f"ALTER TABLE {table} " + ", ".join(f"DROP COLUMN IF EXISTS {name}" for name in columns))
