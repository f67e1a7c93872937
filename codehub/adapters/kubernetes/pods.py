"""What the API reports about the Pod of an instance."""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Self

from lightkube.models.core_v1 import (
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
)
from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.client import metadata_of
from codehub.adapters.kubernetes.options import (
    CONFIGURATION_ANNOTATION,
    IMAGE_REF_ANNOTATION,
    SECRET_ANNOTATION,
    TRAITS_ANNOTATION,
)
from codehub.domain.conditions import ContainerFact
from codehub.health import Headers
from codehub.image_traits import ImageTraits
from codehub.instance_ports import RESERVED_PORTS

EXITED = {"Succeeded", "Failed"}
# Why a container waits: its image cannot be pulled. The first ones do not change by themselves.
HOPELESS = {"InvalidImageName", "ErrImageNeverPull"}
PULL_FAILURES = {
    *HOPELESS,
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "RegistryUnavailable",
}
# Its configuration cannot be used.
CREATE_FAILURES = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
# Reasons of a Pod that the cluster ended by itself.
NODE_LOST = {"NodeLost", "NodeShutdown", "Shutdown", "Terminated"}


def dump_traits(traits: ImageTraits) -> str:
    return json.dumps(asdict(traits), sort_keys=True)


def load_traits(text: str | None) -> ImageTraits:
    """Return recorded traits. A newer release may have recorded some that this one does not know."""
    recorded = json.loads(text) if text else {}
    known = {each.name for each in fields(ImageTraits)}
    return ImageTraits(**{name: value for name, value in recorded.items() if name in known})


@dataclass(frozen=True)
class PodInfo:
    """A Pod of an instance. While it runs, its IDE and agent listen at `address`."""

    pod: Pod = field(repr=False)
    name: str
    uid: str
    node: str | None
    traits: ImageTraits
    configuration: str
    image_ref: str | None
    address: str
    secret: str = field(repr=False)

    @classmethod
    def of(cls, pod: Pod) -> Self:
        metadata = metadata_of(pod)
        annotations = metadata.annotations or {}
        return cls(
            pod=pod,
            name=metadata.name or "",
            uid=metadata.uid or "",
            node=pod.spec.nodeName if pod.spec else None,
            traits=load_traits(annotations.get(TRAITS_ANNOTATION)),
            configuration=annotations.get(CONFIGURATION_ANNOTATION, ""),
            image_ref=annotations.get(IMAGE_REF_ANNOTATION),
            address=(pod.status.podIP if pod.status else None) or "",
            secret=annotations.get(SECRET_ANNOTATION, ""),
        )

    @property
    def fact(self) -> ContainerFact:
        if not self.runs:
            return ContainerFact.NOT_READY
        return ContainerFact.READY if self.has_condition("Ready") else ContainerFact.UNHEALTHY

    @property
    def phase(self) -> str:
        return (self.pod.status.phase if self.pod.status else None) or "Pending"

    @property
    def runs(self) -> bool:
        """Whether its IDE runs and may go on. Nobody knows it of a Pod on a lost node, whose phase stays."""
        return self.phase not in {"Pending", *EXITED} and not self.is_terminating and self.exit is None

    @property
    def has_exited(self) -> bool:
        return self.phase in EXITED or self.exit is not None

    @property
    def is_terminating(self) -> bool:
        return metadata_of(self.pod).deletionTimestamp is not None

    @property
    def headers(self) -> Headers:
        return self.traits.headers(self.secret)

    @property
    def reserved_ports(self) -> frozenset[int]:
        return reserved_ports(self.traits)

    @property
    def waiting(self) -> ContainerStateWaiting | None:
        """Why its container does not run yet."""
        status = self._container
        return status.state.waiting if status and status.state else None

    @property
    def exit(self) -> ContainerStateTerminated | None:
        """How its container ended."""
        status = self._container
        return status.state.terminated if status and status.state else None

    def condition(self, kind: str) -> PodCondition | None:
        conditions = (self.pod.status.conditions if self.pod.status else None) or []
        return next((each for each in conditions if each.type == kind), None)

    def has_condition(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"

    @property
    def _container(self) -> ContainerStatus | None:
        statuses = (self.pod.status.containerStatuses if self.pod.status else None) or []
        return statuses[0] if statuses else None


def reserved_ports(traits: ImageTraits) -> frozenset[int]:
    """Return the ports inside that are CodeHub's own."""
    return RESERVED_PORTS | {each for each in (traits.port, traits.agent_port) if each is not None}


def explain_exit(info: PodInfo) -> str:
    """Return why the instance ended, in one sentence without a full stop."""
    status = info.pod.status
    reason, message = (status.reason, status.message) if status else (None, None)
    if reason == "Evicted":
        return f"The cluster evicted it ({message or 'its node ran out of resources'})"
    if reason in NODE_LOST or (info.exit and info.exit.reason == "ContainerStatusUnknown"):
        return f"Its node {info.node} went down"
    if info.exit and info.exit.reason == "OOMKilled":
        return "It was killed because it used more memory than its limit"
    if info.exit:
        return f"It exited with status {info.exit.exitCode}"
    return f"It ended ({reason or info.phase})"
