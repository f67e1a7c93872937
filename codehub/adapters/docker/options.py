"""How containers are made: the same for every workspace."""

from dataclasses import dataclass

from codehub.adapters.docker.engine import ANSWER_SECONDS
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import WORKSPACE_LABEL, parse_workspace_id

# Several installations may share an engine; each sees only what is its own.
PROJECT_LABEL = "codehub.io/project"
# What a container was made from: one that says something else is made anew.
CONFIGURATION_LABEL = "codehub.io/configuration"
MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What one container may use at most."""

    memory_bytes: int = 2048 * MIB
    cpus: float = 2.0
    pids: int = 1024


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds."""

    start: float = 60.0
    stop: int = 10
    health: float = 2.0
    # On top of a stop's own time.
    answer: float = ANSWER_SECONDS


@dataclass(frozen=True)
class DockerOptions:
    """One installation's ways."""

    project: str = "codehub"
    network: str = "codehub-workspaces"
    default_image: str = "codehub-workspace:latest"
    job_image: str = "codehub-storage-job:latest"
    # None lets the place of the store decide.
    job_network: str | None = None
    limits: Limits = Limits()
    job_limits: Limits = Limits(memory_bytes=512 * MIB, pids=128)
    patience: Patience = Patience()

    def labels(self, workspace_id: WorkspaceId) -> dict[str, str]:
        return {WORKSPACE_LABEL: workspace_id, PROJECT_LABEL: self.project}

    @property
    def filters(self) -> dict[str, list[str]]:
        """What leaves only this installation's workspaces in a listing."""
        return {"label": [WORKSPACE_LABEL, f"{PROJECT_LABEL}={self.project}"]}

    def owner_of(self, labels: dict[str, str] | None) -> WorkspaceId | None:
        """Whose it is, if it is this installation's at all."""
        found = labels or {}
        if found.get(PROJECT_LABEL) != self.project or WORKSPACE_LABEL not in found:
            return None
        try:
            return parse_workspace_id(found[WORKSPACE_LABEL])
        except ValueError:
            return None
