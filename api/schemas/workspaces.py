"""Workspaces: responses and requests."""

from enum import StrEnum
from typing import Annotated, Any, Self
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
from codehub.domain.disk import DiskLevel
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase, parse_desired_state

EXAMPLE: dict[str, JsonValue] = {
    "id": "0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44",
    "name": "compiler",
    "description": "The new parser",
    "memo": None,
    "url": "http://0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44.localhost:8080/",
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
    "out_of_reach": None,
    "recover": None,
    "archive": None,
    "disk": {
        "used_bytes": 1_200_000_000,
        "limit_bytes": 20_000_000_000,
        "own_limit_bytes": None,
        "level": "ok",
        "complete": True,
        "measured_at": "2026-11-16T09:31:00Z",
        "message": None,
    },
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
    """The user who owns a workspace."""

    id: UUID
    username: str


class ConditionView(Document):
    """One observed condition, in the style of Kubernetes."""

    status: Status
    reason: str
    message: str
    last_transition_time: Timestamp | None


class ErrorView(Document):
    """The error that stopped a workspace."""

    reason: ErrorReason
    message: str | None = Field(description="What happened.")
    explanation: str = Field(description="What that means, and what to do.")
    recover_choices: list[RecoverChoice] = Field(
        description="Deprecated: use `recover.choices` of the workspace.", deprecated=True
    )


class Waiting(Document):
    """Providers that the next step needs and that do not answer; it continues when they do."""

    resources: list[Resource] = Field(description="The resources of the providers that do not answer.")
    since: Timestamp
    message: str


class OutOfReach(Document):
    """The home is on a disk of a node that does not respond; it is neither lost nor usable."""

    since: Timestamp | None = Field(description="When the node stopped responding, as far as is known.")
    message: str
    last_archive_at: Timestamp | None = Field(
        description="When the last archive was made; `null` if there is none, or if nobody recorded it."
    )


class RecoverOption(Document):
    """One way to recover from an error, or to go on while the home is out of reach."""

    choice: RecoverChoice
    meaning: str = Field(description="What it does.")
    consequence: str | None = Field(description="What is lost; `null` if nothing is.")


class ArchiveOption(Document):
    """An archive that `restore_archive` can restore."""

    archive_op_id: UUID = Field(description="The value to send as `archive`.")
    created_at: Timestamp | None
    size_bytes: int | None
    verified_at: Timestamp | None = Field(description="When its checksum was last verified; `null` if never.")
    current: bool = Field(description="Whether it is restored if the request names no archive.")


class RecoverView(Document):
    """How to recover from the error, or how to go on while the home is out of reach."""

    choices: list[RecoverOption] = Field(description="The choices that POST recover accepts now.")
    archives: list[ArchiveOption] = Field(description="For `restore_archive`, newest first.")
    undelete: bool = Field(description="Whether a deletion failed; then POST undelete keeps the workspace.")


class CurrentArchive(Document):
    """The archive that a restore would use."""

    size_bytes: int | None
    created_at: Timestamp | None


class Disk(Document):
    """The disk space of a workspace: usage as last measured, and limit."""

    used_bytes: int | None = Field(description="`null` if it was never measured.")
    limit_bytes: int | None = Field(description="Above this, it does not start; `null` means no limit.")
    own_limit_bytes: int | None = Field(
        description="An administrator's limit, which replaces the installation's; 0 means no limit."
    )
    level: DiskLevel = Field(description="`high` from 80 % of the limit on, `critical` from 90 % on.")
    complete: bool = Field(
        description="Whether the measurement was complete; otherwise it uses at least `used_bytes`."
    )
    measured_at: Timestamp | None
    message: str | None = Field(description="What the owner should do; `null` means nothing.")


class DiskLimit(Form):
    """A limit that replaces the installation's."""

    model_config = ConfigDict(json_schema_extra={"example": {"limit_bytes": 53_687_091_200}})

    limit_bytes: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(
        description="0 means no limit; `null` returns to the installation's limit."
    )


class NextChange(Document):
    """The next change of state if nobody uses the workspace."""

    to: DesiredState
    at: Timestamp


class Workspace(Document):
    """A workspace: the state that its owner wants, and what was last observed."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    id: str
    name: str
    description: str | None
    memo: str | None
    url: str = Field(description="The address of its IDE.")
    owner: Owner
    image_ref: str
    instance_backend: str
    storage_backend: str
    phase: Phase
    phase_changed_at: Timestamp
    desired_state: DesiredState
    operation: Operation = Field(description="The running operation; `NONE` if there is none.")
    operation_started_at: Timestamp | None
    conditions: dict[str, ConditionView]
    observed_at: Timestamp | None
    restart_to_apply: bool = Field(
        description="It runs with an earlier image or limits, as `infra.configuration_current` explains."
    )
    error: ErrorView | None
    settled: bool = Field(description="Nothing happens until somebody requests a change or a TTL expires.")
    needs_person: bool = Field(
        description="It has an error, possibly in a deletion, that only recover or a purge ends."
    )
    recover: RecoverView | None = Field(
        description="How to recover; `null` unless it needs a person or its home is out of reach."
    )
    recovering: bool = Field(description="A recovery was requested and has not been carried out yet.")
    waiting: Waiting | None = Field(description="`null` unless a provider does not answer.")
    out_of_reach: OutOfReach | None = Field(
        description="`null` unless the home is on a disk of a node that does not respond."
    )
    archive: CurrentArchive | None
    disk: Disk
    standby_ttl_seconds: int | None = Field(description="`null` means the configured default.")
    archive_ttl_seconds: int | None = Field(description="`null` means the configured default.")
    effective_standby_ttl_seconds: int = Field(description="What counts; never more than the bound.")
    effective_archive_ttl_seconds: int = Field(description="What counts; never more than the bound.")
    next_change: NextChange | None
    last_access_at: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp
    deleted_at: Timestamp | None
    undelete_until: Timestamp | None = Field(description="Until when it can be undeleted, at least.")
    version: int = Field(description="The number of visible changes; the ETag contains it.")


class WorkspacePage(Document):
    """Workspaces, newest first."""

    items: list[Workspace]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; `null` at the end.")


class RequestedState(StrEnum):
    """The states that can be requested; PENDING means ARCHIVED. Deletion is a request of its own."""

    RUNNING = "RUNNING"
    STANDBY = "STANDBY"
    ARCHIVED = "ARCHIVED"
    PENDING = "PENDING"

    @property
    def desired(self) -> DesiredState:
        return parse_desired_state(self)


def _drop_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _optional(description: str) -> Any:  # noqa: ANN401
    """Return a field that may be missing but not `null`."""
    return Field(default=None, description=description, json_schema_extra=_drop_default)


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

    image_ref: ImageRef | None = Field(None, description="The IDE or image; the configured one by default.")
    desired_state: RequestedState = RequestedState.RUNNING


class PatchWorkspace(_MetadataForm):
    """The fields to change. `null` clears a text, and resets a TTL to the default."""

    model_config = ConfigDict(json_schema_extra={"example": {"desired_state": "STANDBY"}})

    name: Name = _optional("A new name.")
    desired_state: RequestedState = _optional("The state that it should be in.")


class Recover(Form):
    """How to recover from an error; for lost or damaged data, a choice is required."""

    model_config = ConfigDict(json_schema_extra={"example": {"choice": "retry"}})

    choice: RecoverChoice | None = None
    archive: UUID | None = Field(
        None,
        description="For `restore_archive`: the `archive_op_id` of the archive; the current one by default.",
    )

    @model_validator(mode="after")
    def _check_archive(self) -> Self:
        if self.archive is not None and self.choice is not RecoverChoice.RESTORE_ARCHIVE:
            raise ValueError("must not contain `archive` unless `choice` is `restore_archive`")
        return self


class Deletion(Document):
    """The result of a request to delete."""

    workspace: Workspace
    purge: bool = Field(description="Whether no last archive is made, so that the deletion cannot be undone.")
    message: str


class Editor(Document):
    """An IDE or image for a new workspace."""

    image_ref: str = Field(description="The value to send as `image_ref`.")
    default: bool = Field(description="Whether workspaces without an `image_ref` get this one.")


class EditorList(Document):
    """The IDEs or images to choose from."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "items": [
                    {"image_ref": "code-server", "default": True},
                    {"image_ref": "jupyterlab", "default": False},
                ],
                "other_images": False,
            }
        }
    )

    items: list[Editor]
    other_images: bool = Field(
        description="Whether `image_ref` may also name other images, which administrators allow."
    )
