"""Options for all Pods and claims of an installation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lightkube.core.client import LabelSelector
from lightkube.models.meta_v1 import ObjectMeta

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import WORKSPACE_LABEL, parse_workspace_id
from codehub.image_traits import ImageTraits

# Installations can share a namespace; each one sees only its own Pods and claims.
PROJECT_LABEL = "codehub.io/project"
# Network policies select Pods by it.
COMPONENT_LABEL = "codehub.io/component"
# What a Pod was made from, as JSON.
CONFIGURATION_ANNOTATION = "codehub.io/configuration"
# The requested image. `default` can mean another image at the next start.
IMAGE_REF_ANNOTATION = "codehub.io/image-ref"
# The traits of its image, as JSON: Kubernetes does not tell the labels of images.
TRAITS_ANNOTATION = "codehub.io/image-traits"
# The secret that the IDE expects with every request; the Pod's environment has it too.
SECRET_ANNOTATION = "codehub.io/secret"  # noqa: S105 (a name)
# On a claim: who used it last. Writing it changes the resource version, so that a racing removal fails.
USER_ANNOTATION = "codehub.io/last-user"
# On a volume that was set aside: since when.
SET_ASIDE_ANNOTATION = "codehub.io/set-aside-at"
# On the marker: the identity of the home store.
STORE_LABEL = "codehub.io/home-store"
# As in the labels of images/workspace/Dockerfile.
OWN_IMAGE = ImageTraits(
    read_only_root=True,
    secret_variable="HASHED_PASSWORD",  # noqa: S106 (a name)
    secret_header="Cookie: code-server-session={secret}",  # noqa: S106 (a pattern)
    agent_port=3129,
    socket_arguments="--socket={socket} --socket-mode=666 /home/coder",
)
DEFAULT_NAMES = {"", "default"}
# No process in a workspace runs as root, regardless of the image; files of a new volume belong to this group.
USER_ID = 1000
MIB = 1024 * 1024
GIB = 1024 * MIB


class Component(StrEnum):
    """What an object is for."""

    WORKSPACE = "workspace"
    STORAGE_JOB = "storage-job"
    HOME = "home"
    # The volume of a home on a lost node that a person gave up for an archive.
    SET_ASIDE_HOME = "set-aside-home"
    STORE = "home-store"


@dataclass(frozen=True)
class Resources:
    """What the scheduler reserves for one Pod, and the limits of its use."""

    memory_bytes: int = 2 * GIB
    cpus: float = 2.0
    requested_memory_bytes: int = 512 * MIB
    requested_cpus: float = 0.1
    # Files outside of the home: /tmp and logs. A Pod that uses more is evicted.
    temporary_bytes: int = 10 * GIB


@dataclass(frozen=True)
class Placement:
    """Where Pods may run, and how; the defaults are those of the cluster."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    # As in the API: key, operator, value, effect, tolerationSeconds.
    tolerations: tuple[Mapping[str, Any], ...] = ()
    runtime_class: str | None = None
    priority_class: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    image_pull_policy: str = "IfNotPresent"


@dataclass(frozen=True)
class Claims:
    """How to create the claims of new homes."""

    # None: the default class of the cluster.
    storage_class: str | None = None
    size_bytes: int = 10 * GIB
    access_mode: str = "ReadWriteOnce"


@dataclass(frozen=True)
class Timeouts:
    """Timeouts in seconds."""

    # From the creation of a Pod until its container runs: scheduling, attaching, pulling.
    launch: float = 600.0
    # From then on until the IDE accepts traffic.
    start: float = 60.0
    # How long the IDE may take to exit before it is killed.
    stop: int = 10
    # How long a call waits for an object that is being removed, before the step is tried again.
    removal: float = 60.0
    # How long failed pulls of an image may go on: registries have outages of seconds.
    pull_failures: float = 15.0
    # How long after its grace a Pod may be terminating before it is removed by force: its node is lost.
    force: float = 300.0
    # How long a claim may be terminating.
    claim_removal: float = 300.0
    # Period and timeout of the readiness probe.
    probe: int = 2


@dataclass(frozen=True)
class Egress:
    """The egress gateway of the cluster: its Service as host:port, and the key of the workspaces' tokens."""

    address: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class KubernetesOptions:
    """The options of one installation."""

    project: str = "codehub"
    # Below which browsers see an IDE; it can contain {id}.
    base_path: str = "/"
    # For all programs in workspaces.
    environment: Mapping[str, str] = field(default_factory=dict)
    # None: Pods connect to the network of the cluster directly, as far as network policies allow.
    egress: Egress | None = None
    default_image: str = "codehub-workspace:latest"
    # By name of the image, without tag; others are like CodeHub's own.
    image_traits: Mapping[str, ImageTraits] = field(default_factory=dict)
    resources: Resources = Resources()
    placement: Placement = Placement()
    claims: Claims = Claims()
    timeouts: Timeouts = Timeouts()
    job_image: str = "codehub-storage-job:latest"
    job_resources: Resources = Resources(memory_bytes=512 * MIB)

    @property
    def marker_name(self) -> str:
        """The name of the object whose label identifies this home store."""
        return f"codehub-store-{self.project}"

    def resolve_image(self, image_ref: str) -> str:
        """Return the image that a start uses for this image_ref."""
        return self.default_image if image_ref in DEFAULT_NAMES else image_ref

    def traits_of(self, image_ref: str) -> ImageTraits:
        """Return the traits of an image. Those that are not configured are built on CodeHub's own."""
        name, _, _ = self.resolve_image(image_ref).partition("@")
        # A colon before the last slash belongs to the registry's port.
        directory, slash, last = name.rpartition("/")
        untagged = directory + slash + last.partition(":")[0]
        return self.image_traits.get(untagged, OWN_IMAGE)

    def base_path_of(self, workspace_id: WorkspaceId) -> str:
        return self.base_path.replace("{id}", workspace_id)

    def labels(self, workspace_id: WorkspaceId, component: Component) -> dict[str, str]:
        return {
            WORKSPACE_LABEL: workspace_id,
            PROJECT_LABEL: self.project,
            COMPONENT_LABEL: component,
        }

    def selector(self, component: Component) -> LabelSelector:
        """Return the labels that select this installation's objects in a listing."""
        return {PROJECT_LABEL: self.project, COMPONENT_LABEL: component}

    def workspace_of(self, metadata: ObjectMeta | None, component: Component) -> WorkspaceId | None:
        """Return the workspace that the labels name, or None if they are not of this installation."""
        labels = (metadata.labels if metadata else None) or {}
        if any(labels.get(name) != value for name, value in self.selector(component).items()):
            return None
        try:
            return parse_workspace_id(labels.get(WORKSPACE_LABEL, ""))
        except ValueError:
            return None
