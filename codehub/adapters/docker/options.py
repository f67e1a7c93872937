"""How containers are made: the same for every workspace."""

from dataclasses import dataclass

from codehub.adapters.docker.engine import ANSWER_SECONDS
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import WORKSPACE_LABEL, parse_workspace_id

# Several installations may share an engine; each sees only what is its own.
PROJECT_LABEL = "codehub.io/project"
# On the marker volume: tells this installation's homes from those on any other engine.
STORE_LABEL = "codehub.io/home-store"
# What a container was made from, as JSON: an exited one that says something else is made anew.
CONFIGURATION_LABEL = "codehub.io/configuration"
# The image that was asked for; `default` may mean another one at the next start.
IMAGE_REF_LABEL = "codehub.io/image-ref"
DEFAULT_NAMES = {"", "default"}
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

    @property
    def marker_name(self) -> str:
        """The volume whose label says which store of homes this is."""
        return f"codehub-store-{self.project}"

    def labels(self, workspace_id: WorkspaceId) -> dict[str, str]:
        return {WORKSPACE_LABEL: workspace_id, PROJECT_LABEL: self.project}

    def resolve_image(self, image_ref: str) -> str:
        """The image that a start uses for this image_ref."""
        return self.default_image if image_ref in DEFAULT_NAMES else image_ref

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
