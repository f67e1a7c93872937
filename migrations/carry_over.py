"""Convert the status of M1: one trigger, for existing rows and for those that M1 still writes."""

import json
from dataclasses import dataclass

from alembic import op

NOW = "$NOW"

# The terms of codehub.domain at that time, which later versions still read.
NOT_OBSERVED = ("Unknown", "NotObserved", "Not looked at yet.", None)
COMPLETE = ("True", "Complete", "The volume holds a complete home.", NOW)
NO_VOLUME = ("False", "Absent", "There is no volume.", NOW)
READY = ("True", "Ready", "The container takes traffic.", NOW)
NO_CONTAINER = ("False", "Absent", "There is no container.", NOW)
NO_ARCHIVE = ("False", "NoArchive", "Nothing has been archived yet.", NOW)
HEALTHY = ("True", "Healthy", "Nothing is wrong.", NOW)
FAILED = (
    "False",
    "RetryExceeded",
    "The previous version left this workspace in an error. Recover to look at it again.",
    NOW,
)

Condition = tuple[str, str, str, str | None]


@dataclass(frozen=True)
class State:
    """The columns for a status of M1."""

    phase: str
    desired_state: str
    volume: Condition = NOT_OBSERVED
    container: Condition = NOT_OBSERVED
    health: Condition = HEALTHY


# A home of M1 counts as complete, also in ERROR: if it is missing, that is a loss (DataLost), and must not
# become an empty home.
STATES = {
    # Requested, but not started by M1.
    "CREATED": State("PENDING", "RUNNING"),
    "PROVISIONING": State("STANDBY", "RUNNING", COMPLETE),
    "RUNNING": State("RUNNING", "RUNNING", COMPLETE, READY),
    "STOPPING": State("RUNNING", "STANDBY", COMPLETE, READY),
    "STOPPED": State("STANDBY", "STANDBY", COMPLETE),
    # After a recovery, the files are kept and nothing starts by itself.
    "ERROR": State("ERROR", "STANDBY", COMPLETE, health=FAILED),
    # M1 may have removed the home already.
    "DELETING": State("DELETING", "DELETED"),
    "DELETED": State("DELETED", "DELETED", NO_VOLUME, NO_CONTAINER),
}

FUNCTION = """
CREATE FUNCTION m1_carry_over() RETURNS trigger LANGUAGE plpgsql AS $function$
DECLARE
    carried record;
    transition_time text := to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
BEGIN
    SELECT * INTO STRICT carried
    FROM (VALUES {states}) AS states (status, phase, desired_state, conditions, error_reason, error_message)
    -- A deletion that M1 had only marked is still to be done.
    WHERE states.status = CASE WHEN NEW.deleted_at IS NULL OR NEW.status = 'DELETED' THEN NEW.status
        ELSE 'DELETING' END;
    NEW.phase := carried.phase;
    -- Not updated_at: nothing shall be stopped or archived for its idle time because of a migration.
    NEW.phase_changed_at := now();
    NEW.desired_state := carried.desired_state;
    NEW.conditions := replace(carried.conditions, '$NOW', transition_time)::jsonb;
    NEW.error_reason := carried.error_reason;
    NEW.error_message := carried.error_message;
    -- Later versions add keys of their own, so it has to be an object.
    IF coalesce(jsonb_typeof(NEW.home_ctx), 'null') <> 'object' THEN
        NEW.home_ctx := jsonb_strip_nulls(jsonb_build_object('m1', NEW.home_ctx));
    END IF;
    IF carried.desired_state = 'DELETED' THEN
        NEW.deleted_at := coalesce(NEW.deleted_at, NEW.updated_at);
    END IF;
    RETURN NEW;
END
$function$
"""

TRIGGER = """
CREATE TRIGGER m1_carry_over BEFORE INSERT OR UPDATE OF status, deleted_at, home_ctx ON workspaces
FOR EACH ROW EXECUTE FUNCTION m1_carry_over()
"""


def install() -> None:
    # Directly to the driver: Alembic would take the colons in JSON for parameters.
    op.get_bind().exec_driver_sql(FUNCTION.format(states=_values()))
    op.execute(TRIGGER)


def remove() -> None:
    op.execute("DROP TRIGGER m1_carry_over ON workspaces")
    op.execute("DROP FUNCTION m1_carry_over")


def _values() -> str:
    return ", ".join(_value(status, state) for status, state in STATES.items())


def _value(status: str, state: State) -> str:
    conditions = {
        "storage.volume_ready": _condition(state.volume),
        "storage.archive_ready": _condition(NO_ARCHIVE),
        "infra.container_ready": _condition(state.container),
        "policy.healthy": _condition(state.health),
    }
    _, reason, message, _ = state.health
    error = f"'{reason}', '{message}'" if state.health is FAILED else "NULL, NULL"
    return f"('{status}', '{state.phase}', '{state.desired_state}', '{json.dumps(conditions)}', {error})"


def _condition(condition: Condition) -> dict[str, str | None]:
    return dict(zip(("status", "reason", "message", "last_transition_time"), condition, strict=True))
