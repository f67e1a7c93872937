"""Chooses the backend of `codehub up` and records the choice."""

import json
from dataclasses import dataclass
from typing import Final

from codehub.embedded.data_dir import DataDir, read_json, write_private
from codehub.settings import Settings
from codehub.settings.types import IMAGE_OF_INSTANCE

LOCAL: Final = "local"
LOCAL_DOCKER: Final = "local-docker"
KUBERNETES: Final = "k8s"
VARIABLE = "CODEHUB_WORKSPACES_INSTANCE_BACKEND"
RECORD_KEY = "instance_backend"

DESCRIPTIONS = {
    LOCAL: "Workspaces run as processes on this machine",
    LOCAL_DOCKER: "Workspaces run as Docker containers",
    KUBERNETES: "Workspaces run as pods on Kubernetes",
}


class BackendUnavailable(Exception):
    """The required backend cannot be used; the message is for a person."""


@dataclass(frozen=True)
class DockerStatus:
    """Whether workspaces can run in Docker."""

    version: str = ""
    missing: tuple[str, ...] = ()
    """Required images that Docker does not have."""

    problem: str = ""
    """Why workspaces cannot run in Docker, as part of a sentence; empty if they can."""

    remedy: str = ""


@dataclass(frozen=True)
class BackendChoice:
    """The chosen backend and a sentence about it."""

    backend: str
    sentence: str


def configured_backend(settings: Settings) -> str | None:
    """Return the backend that the settings name, directly or through the storage backend, or None."""
    workspaces = settings.workspaces
    is_set = workspaces.model_fields_set & {"instance_backend", "storage_backend"}
    return workspaces.instance_backend if is_set else None


def docker_images(settings: Settings) -> tuple[str, str]:
    """Return the images that Docker needs: the default workspace image and the storage job image."""
    workspaces = settings.workspaces
    is_set = "default_image_ref" in workspaces.model_fields_set
    workspace = workspaces.default_image_ref if is_set else IMAGE_OF_INSTANCE[LOCAL_DOCKER]
    return workspace, settings.docker.job_image


def needs_docker_probe(chosen: str | None, recorded: str | None) -> bool:
    """Return whether the choice depends on Docker."""
    return (chosen or recorded or LOCAL_DOCKER) == LOCAL_DOCKER


def decide_backend(
    chosen: str | None, recorded: str | None, docker: DockerStatus, image: str
) -> BackendChoice:
    """Choose the backend: the configured one, the recorded one, or Docker if it works, else local.

    Raise BackendUnavailable instead of switching to a backend that does not have the homes.
    """
    backend = chosen or recorded
    if backend is None:
        return _choose_available(docker, image)
    if backend == LOCAL_DOCKER and docker.problem:
        raise BackendUnavailable(_explain(recorded, docker))
    if backend == LOCAL_DOCKER:
        return _in_docker(image)
    return BackendChoice(
        backend, f"{DESCRIPTIONS[backend]}, as {f'{VARIABLE} says' if chosen else 'before'}."
    )


def _choose_available(docker: DockerStatus, image: str) -> BackendChoice:
    if not docker.problem:
        return _in_docker(image)
    remedy = f"; {docker.remedy}" if docker.missing else ""
    return BackendChoice(LOCAL, f"{DESCRIPTIONS[LOCAL]}: {docker.problem}{remedy}.")


def _in_docker(image: str) -> BackendChoice:
    return BackendChoice(LOCAL_DOCKER, f"{DESCRIPTIONS[LOCAL_DOCKER]} ({image}).")


def _explain(recorded: str | None, docker: DockerStatus) -> str:
    if recorded == LOCAL_DOCKER:
        return f"The homes of this CodeHub are Docker volumes, but {docker.problem}: {docker.remedy}."
    instead = f"or set the variable to {LOCAL}"
    return f"{VARIABLE} is {LOCAL_DOCKER}, but {docker.problem}: {docker.remedy}, {instead}."


def recorded_backend(data: DataDir) -> str | None:
    """Return the backend of the last start, or None before the first."""
    recorded = read_json(data.backend).get(RECORD_KEY)
    if recorded in DESCRIPTIONS:
        return str(recorded)
    # Older versions kept no record. They had only the local backend, which creates this directory.
    return LOCAL if data.local_homes.exists() else None


def record_backend(data: DataDir, backend: str) -> None:
    write_private(data.backend, json.dumps({RECORD_KEY: backend}, indent=2))
