"""Notify listeners of changes to a workspace; they load the details."""

from alembic import op

revision = "0006_notify"
down_revision = "0005_indexes"

FUNCTION = """
CREATE FUNCTION notify_workspace() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed workspaces := coalesce(NEW, OLD);
BEGIN
    -- The trigger's argument is the channel.
    PERFORM pg_notify(TG_ARGV[0],
        json_build_object('id', changed.id, 'owner_user_id', changed.owner_user_id)::text);
    RETURN NULL;
END
$$
"""

VISIBLE = (
    "phase",
    "operation",
    "error_reason",
    "error_message",
    "name",
    "description",
    "memo",
    "desired_state",
    "archive_key",
    "deleted_at",
    "standby_ttl_seconds",
    "archive_ttl_seconds",
)
OLD_ROW = ", ".join(f"OLD.{column}" for column in VISIBLE)
NEW_ROW = ", ".join(f"NEW.{column}" for column in VISIBLE)

# The conditions keep frequent writes (observed_at, last_access_at) from calling the function.
TRIGGERS = {
    "ws_sse_insert": "AFTER INSERT ON workspaces FOR EACH ROW EXECUTE FUNCTION notify_workspace('ws_sse')",
    "ws_sse_update": (
        f"AFTER UPDATE ON workspaces FOR EACH ROW WHEN (NEW.phase <> 'DELETED' "
        f"AND ({OLD_ROW}) IS DISTINCT FROM ({NEW_ROW})) EXECUTE FUNCTION notify_workspace('ws_sse')"
    ),
    "ws_deleted_update": (
        "AFTER UPDATE ON workspaces FOR EACH ROW WHEN (NEW.phase = 'DELETED' AND OLD.phase <> 'DELETED') "
        "EXECUTE FUNCTION notify_workspace('ws_deleted')"
    ),
    "ws_deleted_delete": (
        "AFTER DELETE ON workspaces FOR EACH ROW WHEN (OLD.phase <> 'DELETED') "
        "EXECUTE FUNCTION notify_workspace('ws_deleted')"
    ),
}


def upgrade() -> None:
    op.execute(FUNCTION)
    for name, definition in TRIGGERS.items():
        op.execute(f"CREATE TRIGGER {name} {definition}")


def downgrade() -> None:
    for name in TRIGGERS:
        op.execute(f"DROP TRIGGER {name} ON workspaces")
    op.execute("DROP FUNCTION notify_workspace")
