"""Recovery: the chosen archive, archives that a choice left behind, and an index of what needs a person."""

from alembic import op
from sqlalchemy import Connection, text

from migrations.errors import MigrationRefused
from migrations.steps import add_checks, create_indexes, drop_constraints, each_statement_by_itself

revision = "0014_recovery"
down_revision = "0013_retention"

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

# The previous version would collect archives that a recovery left behind, and take a discarded volume for a
# complete home.
NEEDS_THIS_VERSION = text("""
    SELECT id FROM workspaces WHERE phase <> 'DELETED' AND (
        (archive_key IS NULL AND home_ctx ->> 'restore_marker' = 'leftover')
        OR EXISTS (SELECT FROM archives WHERE workspace_id = workspaces.id
            AND given_up_at IS NOT NULL AND archives.deleted_at IS NULL))
    ORDER BY id LIMIT 21
""")
NAMED_AT_MOST = 20


def upgrade() -> None:
    with each_statement_by_itself():
        for table, columns in NEW_COLUMNS.items():
            additions = (f"ADD COLUMN IF NOT EXISTS {name} {kind}" for name, kind in columns.items())
            op.execute(f"ALTER TABLE {table} {', '.join(additions)}")
    add_checks("workspaces", {**CHOICES, **NEW_CHECKS})
    create_indexes(NEEDS_PERSON)


def downgrade() -> None:
    refuse_downgrade(op.get_bind())
    create_indexes(IN_ERROR)
    drop_constraints("workspaces", list(NEW_CHECKS))
    # The earlier version does not know this choice; nothing of an open request has been carried out yet.
    op.execute("UPDATE workspaces SET recover_choice = 'retry' WHERE recover_choice = 'use_disk'")
    add_checks("workspaces", EARLIER_CHOICES)
    for table, columns in NEW_COLUMNS.items():
        op.execute(f"ALTER TABLE {table} " + ", ".join(f"DROP COLUMN IF EXISTS {name}" for name in columns))


def refuse_downgrade(connection: Connection) -> None:
    ids = [str(found) for found in connection.scalars(NEEDS_THIS_VERSION)]
    if ids:
        more = " and more" if len(ids) > NAMED_AT_MOST else ""
        raise MigrationRefused(
            "The previous version would remove archives that were kept when somebody recovered a workspace. "
            f"Delete these workspaces first: {', '.join(ids[:NAMED_AT_MOST])}{more}."
        )
