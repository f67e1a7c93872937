"""Converts between database views and API documents."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from uuid import uuid4

from api.context import Context
from api.live.wire import LiveWorkspace
from api.schemas.workspaces import (
    ArchiveOption,
    ConditionView,
    CreateWorkspace,
    CurrentArchive,
    Disk,
    ErrorView,
    NextChange,
    OutOfReach,
    Owner,
    RecoverOption,
    RecoverView,
    Waiting,
    Workspace,
)
from codehub.db.views import WorkspaceView
from codehub.db.workspaces import Metadata, NewWorkspace
from codehub.domain.conditions import CONDITION_KEYS, Resource, WorkspaceId
from codehub.domain.disk import disk_level, effective_limit
from codehub.domain.failures import EXPLANATIONS
from codehub.domain.limits import IdleTimes, Usage, idle_times, next_idle_change
from codehub.domain.naming import volume_name
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import Phase
from codehub.formatting import format_size
from codehub.services.identity import Caller
from codehub.services.recovery import archives_to_restore, choices_of
from codehub.words import (
    CONTINUES_WITH_NODE,
    DISK_LEVELS,
    LAST_ARCHIVE,
    LAST_ARCHIVE_UNDATED,
    NO_ARCHIVE,
    PROVIDERS,
    choice_words,
)

# The response copies the fields that it has in common with the view, and computes all others.
_COMPUTED = frozenset({"conditions"})
_SAME_FIELDS = tuple(
    Workspace.model_fields.keys() & {field.name for field in fields(WorkspaceView)} - _COMPUTED
)
_read_same_fields = attrgetter(*_SAME_FIELDS)


def serialize(view: WorkspaceView, context: Context) -> Workspace:
    own = view.standby_ttl_seconds, view.archive_ttl_seconds
    times = idle_times(*own, context.idle_times, context.rules.longest)
    lifecycle = view.lifecycle
    return Workspace(
        **dict(zip(_SAME_FIELDS, _read_same_fields(view), strict=True)),
        id=view.workspace_id,
        url=context.options.origins.url_of(view.workspace_id, view.origin_number),
        owner=Owner(id=view.owner_user_id, username=view.owner_username),
        operation_started_at=view.op_started_at,
        conditions=_conditions(view),
        restart_to_apply=view.conditions.restart_to_apply is not None,
        error=_error(view),
        settled=lifecycle.is_settled,
        needs_person=lifecycle.needs_person,
        waiting=_waiting(view),
        out_of_reach=_out_of_reach(view),
        recover=_recover(view) if lifecycle.can_recover else None,
        archive=_archive(view),
        disk=_disk(view, context.limits.disk_bytes),
        effective_standby_ttl_seconds=round(times.standby.total_seconds()),
        effective_archive_ttl_seconds=round(times.archive.total_seconds()),
        next_change=_next_change(view, times),
        undelete_until=_undelete_until(view, context.options.undelete_period),
    )


def new_workspace(form: CreateWorkspace, caller: Caller, context: Context) -> NewWorkspace:
    workspace_id = WorkspaceId(str(uuid4()))
    return NewWorkspace(
        workspace_id=workspace_id,
        owner_user_id=caller.user_id,
        metadata=Metadata(**form.metadata_sent),
        image_ref=form.image_ref or context.options.default_image_ref,
        instance_backend=context.options.instance_backend,
        storage_backend=context.options.storage_backend,
        home_store_key=volume_name(workspace_id),
        desired_state=form.desired_state.desired,
    )


def serialize_live(view: WorkspaceView, context: Context) -> LiveWorkspace:
    text = serialize(view, context).model_dump_json()
    return LiveWorkspace(view.workspace_id, text, view.operation, view.op_started_at)


def etag_of(version: int) -> str:
    return f'"{version}"'


def _conditions(view: WorkspaceView) -> dict[str, ConditionView]:
    found = {key: getattr(view.conditions, field) for key, field in CONDITION_KEYS.items()}
    return {
        key: ConditionView(
            status=condition.status,
            reason=condition.reason,
            message=condition.message,
            last_transition_time=condition.last_transition_time,
        )
        for key, condition in found.items()
    }


def _error(view: WorkspaceView) -> ErrorView | None:
    if view.error_reason is None:
        return None
    return ErrorView(
        reason=view.error_reason,
        message=view.error_message,
        explanation=EXPLANATIONS[view.error_reason],
        recover_choices=list(choices_of(view)),
    )


def _waiting(view: WorkspaceView) -> Waiting | None:
    if not view.waiting_for or view.waiting_since is None:
        return None
    providers = " and ".join(PROVIDERS[each] for each in view.waiting_for)
    message = f"Waiting for {providers} to answer. It continues by itself."
    if Resource.VOLUME in view.waiting_for and (lost := _out_of_reach(view)):
        message = f"{lost.message} {CONTINUES_WITH_NODE}"
    return Waiting(resources=list(view.waiting_for), since=view.waiting_since, message=message)


def _out_of_reach(view: WorkspaceView) -> OutOfReach | None:
    if not view.lifecycle.out_of_reach:
        return None
    reach = view.conditions.volume_reachable
    return OutOfReach(
        since=reach.last_transition_time,
        message=f"{reach.message} {_last_archive(view)}",
        last_archive_at=view.archived_at if view.archive_key else None,
    )


def _last_archive(view: WorkspaceView) -> str:
    if view.archive_key is None:
        return NO_ARCHIVE
    if view.archived_at is None:
        return LAST_ARCHIVE_UNDATED
    return LAST_ARCHIVE.format(time=f"{view.archived_at.astimezone(UTC):%Y-%m-%d %H:%M}")


def _recover(view: WorkspaceView) -> RecoverView:
    choices = choices_of(view)
    words = {each: choice_words(each, out_of_reach=view.lifecycle.out_of_reach) for each in choices}
    return RecoverView(
        choices=[
            RecoverOption(choice=each, meaning=text.meaning, consequence=text.consequence)
            for each, text in words.items()
        ],
        archives=[
            ArchiveOption.model_validate(each, from_attributes=True) for each in archives_to_restore(view)
        ]
        if RecoverChoice.RESTORE_ARCHIVE in choices
        else [],
        undelete=view.deleted_at is not None and view.lifecycle.needs_person,
    )


def _archive(view: WorkspaceView) -> CurrentArchive | None:
    if view.archive_key is None:
        return None
    return CurrentArchive(size_bytes=view.archive_size_bytes, created_at=view.archived_at)


def _disk(view: WorkspaceView, installation: int | None) -> Disk:
    limit = effective_limit(view.disk_limit_bytes, installation)
    level = disk_level(view.disk_used_bytes or 0, limit)
    return Disk(
        used_bytes=view.disk_used_bytes,
        limit_bytes=limit,
        own_limit_bytes=view.disk_limit_bytes,
        level=level,
        complete=view.disk_complete is not False,
        measured_at=view.disk_measured_at,
        message=DISK_LEVELS[level].format(limit=format_size(limit or 0)) or None,
    )


def _next_change(view: WorkspaceView, times: IdleTimes) -> NextChange | None:
    usage = Usage(view.phase, view.operation, view.desired_state, view.last_access_at, view.phase_changed_at)
    change = next_idle_change(usage, times)
    return NextChange(to=change[0], at=change[1]) if change else None


def _undelete_until(view: WorkspaceView, period: timedelta) -> datetime | None:
    if view.deleted_at is None or view.purge or view.phase is Phase.ERROR:
        return None
    if view.phase is Phase.DELETED and view.archive_key is None:
        return None
    return view.deleted_at + period
