"""Names of containers, volumes and archives; the same input always gives the same name."""

import re
from dataclasses import dataclass

from codehub.domain.conditions import WorkspaceId

WORKSPACE_LABEL = "codehub.io/workspace-id"
ARCHIVE_ROOT = "archives/"
META_SUFFIX = ".meta"

# Ids become parts of paths and host names, so only the canonical form of a UUID is allowed.
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ARCHIVE_KEY = re.compile(rf"archives/({_UUID})/({_UUID})/home\.tar\.(?:zst|gz)")


@dataclass(frozen=True)
class ArchiveName:
    """The workspace and the operation in the key of an archive."""

    workspace_id: WorkspaceId
    archive_op_id: str


def parse_workspace_id(text: str) -> WorkspaceId:
    return WorkspaceId(_canonical(text))


def container_name(workspace_id: WorkspaceId) -> str:
    return f"codehub-ws-{_canonical(workspace_id)}"


def job_name(workspace_id: WorkspaceId) -> str:
    """Return the container name of the storage job; a workspace has at most one at a time."""
    return f"codehub-job-{_canonical(workspace_id)}"


def volume_name(workspace_id: WorkspaceId) -> str:
    return f"ws-{_canonical(workspace_id)}-home"


def parse_container_name(name: str) -> WorkspaceId | None:
    """Return the workspace of this container, or None if it is not the container of a workspace."""
    return _parse(rf"codehub-ws-({_UUID})", name)


def parse_volume_name(name: str) -> WorkspaceId | None:
    """Return the workspace of this volume, or None if it is not the volume of a workspace."""
    return _parse(rf"ws-({_UUID})-home", name)


def archive_key(workspace_id: WorkspaceId, archive_op_id: str) -> str:
    return f"{ARCHIVE_ROOT}{_canonical(workspace_id)}/{_canonical(archive_op_id)}/home.tar.zst"


def meta_key(key: str) -> str:
    """Return the key of the commit marker; it is uploaded last, so if it exists the archive is complete."""
    return key + META_SUFFIX


def parse_archive_key(key: str) -> ArchiveName | None:
    """Parse the key of an archive or its meta; return None for any other key."""
    match = _ARCHIVE_KEY.fullmatch(key.removesuffix(META_SUFFIX))
    return ArchiveName(WorkspaceId(match[1]), match[2]) if match else None


def _parse(pattern: str, name: str) -> WorkspaceId | None:
    match = re.fullmatch(pattern, name)
    return WorkspaceId(match[1]) if match else None


def _canonical(identifier: str) -> str:
    if not re.fullmatch(_UUID, identifier):
        raise ValueError(f"not a canonical UUID: {identifier!r}")
    return identifier
