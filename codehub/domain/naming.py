"""Names of containers, volumes and archives; the same inputs always give the same name."""

import re
from dataclasses import dataclass

from codehub.domain.conditions import WorkspaceId

WORKSPACE_LABEL = "codehub.io/workspace-id"
ARCHIVE_ROOT = "archives/"
META_SUFFIX = ".meta"

# Ids become path and host name parts, so nothing but the canonical spelling of a UUID is let through.
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ARCHIVE_KEY = re.compile(rf"archives/({_UUID})/({_UUID})/home\.tar\.(?:zst|gz)")


@dataclass(frozen=True)
class ArchiveName:
    """What an archive's key says: whose it is and which operation made it."""

    workspace_id: WorkspaceId
    archive_op_id: str


def parse_workspace_id(text: str) -> WorkspaceId:
    return WorkspaceId(_canonical(text))


def container_name(workspace_id: WorkspaceId) -> str:
    return f"codehub-ws-{_canonical(workspace_id)}"


def job_name(workspace_id: WorkspaceId) -> str:
    """The container of the one storage job that a workspace may have at a time."""
    return f"codehub-job-{_canonical(workspace_id)}"


def volume_name(workspace_id: WorkspaceId) -> str:
    return f"ws-{_canonical(workspace_id)}-home"


def parse_container_name(name: str) -> WorkspaceId | None:
    """Whose container has this name; None for any other container."""
    return _named(rf"codehub-ws-({_UUID})", name)


def parse_volume_name(name: str) -> WorkspaceId | None:
    """Whose volume has this name; None for any other volume."""
    return _named(rf"ws-({_UUID})-home", name)


def archive_key(workspace_id: WorkspaceId, archive_op_id: str) -> str:
    return f"{ARCHIVE_ROOT}{_canonical(workspace_id)}/{_canonical(archive_op_id)}/home.tar.zst"


def meta_key(key: str) -> str:
    """The commit marker beside an archive: uploaded last, so its presence says the archive is whole."""
    return key + META_SUFFIX


def parse_archive_key(key: str) -> ArchiveName | None:
    """Read an archive's or its meta's key; None for anything that we did not name."""
    match = _ARCHIVE_KEY.fullmatch(key.removesuffix(META_SUFFIX))
    return ArchiveName(WorkspaceId(match[1]), match[2]) if match else None


def _named(pattern: str, name: str) -> WorkspaceId | None:
    match = re.fullmatch(pattern, name)
    return WorkspaceId(match[1]) if match else None


def _canonical(identifier: str) -> str:
    if not re.fullmatch(_UUID, identifier):
        raise ValueError(f"not a canonical UUID: {identifier!r}")
    return identifier
