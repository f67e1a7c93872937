"""What the engine tells of a workspace's container, whether it was inspected or listed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from codehub.adapters.docker.images import ImageTraits, traits_of
from codehub.adapters.docker.options import CONFIGURATION_LABEL, IMAGE_REF_LABEL

# Those whose processes are there, also while they are not scheduled.
RUNNING_STATES = {"running", "paused"}


@dataclass(frozen=True)
class Seen:
    """A container; `host_port` is where its IDE is published, if it runs."""

    container_id: str
    running: bool
    traits: ImageTraits
    configuration: str
    image_ref: str | None
    host_port: int | None

    @property
    def is_left_alone(self) -> bool:
        """A start touches none of ours that runs; one without our label was made by somebody else."""
        return self.running and self.configuration != ""

    @classmethod
    def inspected(cls, answer: Mapping[str, Any]) -> Self:
        labels = answer["Config"]["Labels"] or {}
        traits = traits_of(labels)
        published = (answer["NetworkSettings"]["Ports"] or {}).get(f"{traits.port}/tcp") or []
        return cls(
            container_id=answer["Id"],
            running=answer["State"]["Running"],
            traits=traits,
            configuration=labels.get(CONFIGURATION_LABEL, ""),
            image_ref=labels.get(IMAGE_REF_LABEL),
            host_port=next((int(each["HostPort"]) for each in published), None),
        )

    @classmethod
    def listed(cls, answer: Mapping[str, Any]) -> Self:
        labels = answer["Labels"] or {}
        traits = traits_of(labels)
        return cls(
            container_id=answer["Id"],
            running=answer["State"] in RUNNING_STATES,
            traits=traits,
            configuration=labels.get(CONFIGURATION_LABEL, ""),
            image_ref=labels.get(IMAGE_REF_LABEL),
            host_port=next(
                (
                    each["PublicPort"]
                    for each in answer["Ports"]
                    if each.get("PrivatePort") == traits.port and "PublicPort" in each
                ),
                None,
            ),
        )
