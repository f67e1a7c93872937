"""Describe a workspace with the words of codehub.words."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from cli.control_characters import printable
from cli.formatting import now, parse_time, round_duration, upcoming
from codehub.domain.conditions import Status
from codehub.domain.states import Operation, Phase
from codehub.words import (
    CHOICES,
    CODEHUB_ACTORS,
    CONDITIONS,
    DELETION_FAILED,
    EVENTS,
    FAILURES,
    HEADING_TO,
    NEXT_CHANGES,
    NOT_OBSERVED,
    OPERATIONS,
    PHASES,
    PURGE_REQUEST,
    RECOVERING,
    STATE_REQUESTS,
    UNKNOWN_FAILURE,
    UNUSED,
)

Workspace = Mapping[str, Any]

PHASE_STYLES = {
    Phase.RUNNING: "green",
    Phase.STANDBY: "cyan",
    Phase.ARCHIVED: "blue",
    Phase.ERROR: "bold red",
    Phase.DELETING: "yellow",
    Phase.PENDING: "dim",
}


def phase_label(phase: str) -> str:
    """Return a phase or a desired state as people read it."""
    return PHASES[Phase(phase)].label


def phase_cell(workspace: Workspace) -> Text:
    phase = Phase.ERROR if workspace["needs_person"] else workspace["phase"]
    return Text(PHASES[phase].label, PHASE_STYLES.get(phase, ""))


def phase_meaning(workspace: Workspace) -> str:
    if workspace["needs_person"]:
        return f"{failure_headline(workspace)}. {PHASES[Phase.ERROR].sentence}"
    return PHASES[workspace["phase"]].sentence


def failure_headline(workspace: Workspace) -> str:
    if workspace["deleted_at"]:
        return DELETION_FAILED
    error = workspace["error"]
    return FAILURES[error["reason"]].headline if error else UNKNOWN_FAILURE.headline


def command(verb: str, workspace: Workspace) -> str:
    """Return the command to type, quoted for a shell."""
    return f"codehub ws {verb} {shlex.quote(workspace['name'])}"


def operation_text(workspace: Workspace) -> str:
    """Return the operation in progress, or nothing."""
    if workspace["recovering"]:
        return RECOVERING.badge
    operation = workspace["operation"]
    return "" if operation == Operation.NONE else OPERATIONS[operation].badge


def progress_text(workspace: Workspace) -> str:
    """Return the operation in progress or about to begin, or what the workspace waits for."""
    if waiting := workspace["waiting"]:
        return f"{waiting['message']} Waiting for {round_duration(now() - parse_time(waiting['since']))}."
    if text := operation_text(workspace):
        return text
    return "" if workspace["settled"] else HEADING_TO[workspace["desired_state"]].badge


def next_change_text(workspace: Workspace, from_: datetime | None = None) -> str:
    """Return what happens to an idle workspace, and when."""
    if workspace["needs_person"]:
        return "needs your decision"
    change = workspace["next_change"]
    if change is None:
        return ""
    return f"{NEXT_CHANGES[change['to']].lower()} {upcoming(change['at'], from_)} unless used"


def condition_text(key: str, condition: Workspace, at: datetime) -> str:
    since = condition["last_transition_time"]
    duration = f" (for {round_duration(at - parse_time(since))})" if since else ""
    return printable(f"{_meaning(key, condition)}{duration}")


def _meaning(key: str, condition: Workspace) -> str:
    if condition["status"] == Status.UNKNOWN:
        return NOT_OBSERVED
    words = CONDITIONS[key]
    return words.reasons.get(condition["reason"]) or words.otherwise or str(condition["message"])


def event_text(event: Workspace) -> str:
    """Return one line of the audit trail as a sentence without its period."""
    actor = event["actor"]
    name = "CodeHub" if actor in CODEHUB_ACTORS else actor
    return f"{name} {_event_sentence(event)}" + (f" {UNUSED}" if actor == "ttl" else "")


def _event_sentence(event: Workspace) -> str:
    detail, text = event["detail"], EVENTS[event["kind"]]
    if event["kind"] == "state_requested" and detail.get("to"):
        return PURGE_REQUEST if detail.get("purge") else STATE_REQUESTS[detail["to"]]
    if event["kind"] == "recovery_requested" and detail.get("choice"):
        return f"{text}: {CHOICES[detail['choice']].label}"
    if fields := detail.get("fields"):
        return f"{text}: {', '.join(fields)}"
    if event["error_reason"]:
        text += f": {FAILURES[event['error_reason']].headline}"
    if event["operation"]:
        text += f": {OPERATIONS[event['operation']].badge}"
    return text
