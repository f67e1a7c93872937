"""Add the audit log: rows are added, never changed, and removed only by the retention function."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0020_audit_log"
down_revision = "0024_single_sign_on"

# No foreign key: an entry outlives the user that it is about.
AUDIT_LOG = """
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    action text NOT NULL,
    outcome text NOT NULL,
    actor text NOT NULL,
    actor_id uuid,
    address text,
    target text,
    target_id text,
    detail jsonb NOT NULL DEFAULT '{}'::jsonb,
    CONSTRAINT pk_audit_log PRIMARY KEY (id),
    CONSTRAINT ck_audit_log_outcome CHECK (outcome IN ('success', 'failure'))
"""
INDEXES = {
    "ix_audit_log_at": "audit_log (at)",
    "ix_audit_log_action_id": "audit_log (action, id)",
    "ix_audit_log_actor_lower": "audit_log (lower(actor), id)",
}
# Not even the retention function removes an entry of the last day.
REFUSE = """
    CREATE OR REPLACE FUNCTION refuse_audit_log_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND current_setting('codehub.removes_audit_log', true) = 'yes'
            AND OLD.at < now() - interval '1 day' THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
    END $$
"""
REMOVE = """
    CREATE OR REPLACE FUNCTION remove_old_audit_log(before timestamptz, most integer) RETURNS integer
    LANGUAGE plpgsql AS $$
    DECLARE removed integer;
    BEGIN
        PERFORM set_config('codehub.removes_audit_log', 'yes', true);
        DELETE FROM audit_log WHERE id = ANY (ARRAY(
            SELECT id FROM audit_log WHERE at < least(before, now() - interval '1 day') ORDER BY at LIMIT most
        ));
        GET DIAGNOSTICS removed = ROW_COUNT;
        PERFORM set_config('codehub.removes_audit_log', '', true);
        RETURN removed;
    END $$
"""
TRIGGERS = {
    "audit_log_rows": "BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW",
    "audit_log_truncate": "BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT",
}


def upgrade() -> None:
    with each_statement_by_itself():
        op.execute(f"CREATE TABLE IF NOT EXISTS audit_log ({AUDIT_LOG})")
        for name, definition in INDEXES.items():
            op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {definition}")
        op.execute(REFUSE)
        op.execute(REMOVE)
        for name, event in TRIGGERS.items():
            op.execute(f"CREATE OR REPLACE TRIGGER {name} {event} EXECUTE FUNCTION refuse_audit_log_change()")


def downgrade() -> None:
    op.execute("DROP TABLE IF EXISTS audit_log")
    op.execute("DROP FUNCTION IF EXISTS remove_old_audit_log")
    op.execute("DROP FUNCTION IF EXISTS refuse_audit_log_change")
