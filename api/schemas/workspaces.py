"""Workspaces as the API shows them and takes them."""

from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue, model_validator

from api.schemas.base import (
    Description,
    Document,
    Form,
    ImageRef,
    Memo,
    Name,
    Timestamp,
    TtlSeconds,
)
from codehub.domain.conditions import Resource, Status
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase, parse_desired_state

EXAMPLE: dict[str, JsonValue] = {
    "id": "0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44",
    "name": "compiler",
    "description": "The new parser",
    "memo": None,
    "url": "http://127.0.0.1:8080/w/0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44/",
    "owner": {"id": "7d0c6a52-8a4e-4b0e-b7a4-0d7d5d0f6f10", "username": "ada"},
    "image_ref": "default",
    "instance_backend": "local",
    "storage_backend": "local-dir",
    "phase": "RUNNING",
    "phase_changed_at": "2026-11-16T09:30:04Z",
    "desired_state": "RUNNING",
    "operation": "NONE",
    "operation_started_at": None,
    "conditions": {
        "storage.volume_ready": {
            "status": "True",
            "reason": "Complete",
            "message": "The home is there.",
            "last_transition_time": "2026-11-16T09:30:02Z",
        }
    },
    "observed_at": "2026-11-16T09:31:00Z",
    "restart_to_apply": False,
    "error": None,
    "settled": True,
    "needs_person": False,
    "recovering": False,
    "waiting": None,
    "recover": None,
    "archive": None,
    "standby_ttl_seconds": None,
    "archive_ttl_seconds": None,
    "effective_standby_ttl_seconds": 600,
    "effective_archive_ttl_seconds": 1800,
    "next_change": {"to": "STANDBY", "at": "2026-11-16T09:40:04Z"},
    "last_access_at": None,
    "created_at": "2026-11-16T09:30:00Z",
    "updated_at": "2026-11-16T09:30:00Z",
    "deleted_at": None,
    "undelete_until": None,
    "version": 5,
}


class Owner(Document):
    """Whose it is."""

    id: UUID
    username: str


class ConditionView(Document):
    """One observed property, Kubernetes style."""

    status: Status
    reason: str
    message: str
    last_transition_time: Timestamp | None


class ErrorView(Document):
    """Why it stands still, and the ways out."""

    reason: ErrorReason
    message: str | None = Field(description="What happened, in one sentence.")
    explanation: str = Field(description="What it means and what to do.")
    recover_choices: list[RecoverChoice] = Field(description="What POST recover accepts now.")


class Waiting(Document):
    """Providers that the next step needs and that do not answer; it goes on by itself once they do."""

    resources: list[Resource] = Field(description="What the silent providers hold.")
    since: Timestamp
    message: str


class RecoverOption(Document):
    """One way out of an error."""

    choice: RecoverChoice
    meaning: str = Field(description="What it does.")
    consequence: str | None = Field(description="What it costs; `null` if nothing is given up.")


class ArchiveOption(Document):
    """An archive that `restore_archive` may go back to."""

    archive_op_id: UUID = Field(description="Send it as `archive`.")
    created_at: Timestamp | None
    size_bytes: int | None
    verified_at: Timestamp | None = Field(
        description="When all of it was last read and its checksum found right; `null` if never."
    )
    current: bool = Field(description="The one that is restored if none is named.")


class RecoverView(Document):
    """The ways to recover from the error."""

    choices: list[RecoverOption] = Field(description="What POST recover accepts now.")
    archives: list[ArchiveOption] = Field(description="For `restore_archive`, newest first.")
    undelete: bool = Field(description="It is a deletion that failed; POST undelete keeps the workspace.")


class CurrentArchive(Document):
    """The archive that it would be restored from."""

    size_bytes: int | None
    created_at: Timestamp | None


class NextChange(Document):
    """What happens next if nobody uses it."""

    to: DesiredState
    at: Timestamp


class Workspace(Document):
    """A workspace: what its owner wants, and what was last observed."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    id: str
    name: str
    description: str | None
    memo: str | None
    url: str = Field(description="Where its IDE opens.")
    owner: Owner
    image_ref: str
    instance_backend: str
    storage_backend: str
    phase: Phase
    phase_changed_at: Timestamp
    desired_state: DesiredState
    operation: Operation = Field(description="What is under way; `NONE` for nothing.")
    operation_started_at: Timestamp | None
    conditions: dict[str, ConditionView]
    observed_at: Timestamp | None
    restart_to_apply: bool = Field(
        description="It runs with an earlier image or limits; `infra.configuration_current` says which."
    )
    error: ErrorView | None
    settled: bool = Field(description="Nothing will happen until somebody asks or a TTL expires.")
    needs_person: bool = Field(
        description="It has an error, maybe in its deletion, that only recover or a purge ends."
    )
    recover: RecoverView | None = Field(description="The ways out; `null` unless it needs a person.")
    recovering: bool = Field(description="A recovery was asked for and is about to be carried out.")
    waiting: Waiting | None = Field(description="`null` unless a provider does not answer.")
    archive: CurrentArchive | None
    standby_ttl_seconds: int | None = Field(description="`null` means the configured default.")
    archive_ttl_seconds: int | None = Field(description="`null` means the configured default.")
    effective_standby_ttl_seconds: int
    effective_archive_ttl_seconds: int
    next_change: NextChange | None
    last_access_at: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp
    deleted_at: Timestamp | None
    undelete_until: Timestamp | None = Field(description="A deletion can be taken back at least until then.")
    version: int = Field(description="Counts visible changes; the ETag is made of it.")


class WorkspacePage(Document):
    """Workspaces, newest first."""

    items: list[Workspace]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; `null` at the end.")


class RequestedState(StrEnum):
    """What may be asked for; PENDING is the older spelling of ARCHIVED. Deleting is a request of its own."""

    RUNNING = "RUNNING"
    STANDBY = "STANDBY"
    ARCHIVED = "ARCHIVED"
    PENDING = "PENDING"

    @property
    def desired(self) -> DesiredState:
        return parse_desired_state(self)


def _forget_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _left_out(description: str) -> Any:  # noqa: ANN401
    """A field that may be missing, but not `null`."""
    return Field(default=None, description=description, json_schema_extra=_forget_default)


class _MetadataForm(Form):
    """The fields that a person may write; each is a column of the same name."""

    name: Name
    description: Description | None = None
    memo: Memo | None = None
    standby_ttl_seconds: TtlSeconds | None = None
    archive_ttl_seconds: TtlSeconds | None = None

    @property
    def metadata_sent(self) -> dict[str, Any]:
        return self.model_dump(include=set(_MetadataForm.model_fields), exclude_unset=True)


class CreateWorkspace(_MetadataForm):
    """A new workspace."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"name": "compiler", "description": "The new parser"}}
    )

    image_ref: ImageRef | None = Field(None, description="IDE or image; the configured one unless given.")
    desired_state: RequestedState = RequestedState.RUNNING


class PatchWorkspace(_MetadataForm):
    """What to change; what is left out stays. `null` clears a text, and gives a TTL back to the default."""

    model_config = ConfigDict(json_schema_extra={"example": {"desired_state": "STANDBY"}})

    name: Name = _left_out("A new name.")
    desired_state: RequestedState = _left_out("Where it should be.")


class Recover(Form):
    """How to leave ERROR; for lost data the choice must be spelled out."""

    model_config = ConfigDict(json_schema_extra={"example": {"choice": "retry"}})

    choice: RecoverChoice | None = None
    archive: UUID | None = Field(
        None, description="For `restore_archive`: which one, by its `archive_op_id`; else the current one."
    )

    @model_validator(mode="after")
    def _name_archives_only_to_restore(self) -> Self:
        if self.archive is not None and self.choice is not RecoverChoice.RESTORE_ARCHIVE:
            raise ValueError("Only `restore_archive` takes an archive.")
        return self


class Deletion(Document):
    """What became of a deletion."""

    workspace: Workspace
    purge: bool = Field(description="No last archive is made, so it cannot be taken back.")
    message: str
