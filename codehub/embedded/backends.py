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

SENTENCES = {
    LOCAL: "Workspaces run as processes on this machine",
    LOCAL_DOCKER: "Workspaces run as Docker containers",
    KUBERNETES: "Workspaces run as pods on Kubernetes",
}


class BackendUnavailable(Exception):
    """The backend that it has to be cannot be used; the message is for a person."""


@dataclass(frozen=True)
class DockerFound:
    """What a look at Docker has shown."""

    version: str = ""
    missing: tuple[str, ...] = ()
    """Images that are needed and not there."""

    problem: str = ""
    """Why workspaces cannot run on it, as a part of a sentence; empty if they can."""

    remedy: str = ""


@dataclass(frozen=True)
class Choice:
    """What runs workspaces from now on, and the words for it."""

    backend: str
    sentence: str


def chosen_backend(settings: Settings) -> str | None:
    """The one that a person has set; what only goes with one backend chooses it too."""
    workspaces = settings.workspaces
    is_set = workspaces.model_fields_set & {"instance_backend", "storage_backend"}
    return workspaces.instance_backend if is_set else None


def docker_images(settings: Settings) -> tuple[str, str]:
    """What Docker needs: the image of a workspace that names none, and that of the storage job."""
    workspaces = settings.workspaces
    is_set = "default_image_ref" in workspaces.model_fields_set
    workspace = workspaces.default_image_ref if is_set else IMAGE_OF_INSTANCE[LOCAL_DOCKER]
    return workspace, settings.docker.job_image


def may_be_docker(chosen: str | None, recorded: str | None) -> bool:
    """Whether it is worth looking at Docker."""
    return (chosen or recorded or LOCAL_DOCKER) == LOCAL_DOCKER


def decide(chosen: str | None, recorded: str | None, docker: DockerFound, image: str) -> Choice:
    """Raise BackendUnavailable rather than change to a backend that does not have the homes."""
    backend = chosen or recorded
    if backend is None:
        return _whatever_works(docker, image)
    if backend == LOCAL_DOCKER and docker.problem:
        raise BackendUnavailable(_explain(recorded, docker))
    if backend == LOCAL_DOCKER:
        return _in_docker(image)
    return Choice(backend, f"{SENTENCES[backend]}, as {f'{VARIABLE} says' if chosen else 'before'}.")


def _whatever_works(docker: DockerFound, image: str) -> Choice:
    if not docker.problem:
        return _in_docker(image)
    remedy = f"; {docker.remedy}" if docker.missing else ""
    return Choice(LOCAL, f"{SENTENCES[LOCAL]}: {docker.problem}{remedy}.")


def _in_docker(image: str) -> Choice:
    return Choice(LOCAL_DOCKER, f"{SENTENCES[LOCAL_DOCKER]} ({image}).")


def _explain(recorded: str | None, docker: DockerFound) -> str:
    if recorded == LOCAL_DOCKER:
        return f"The homes of this CodeHub are Docker volumes, but {docker.problem}: {docker.remedy}."
    instead = f"or set the variable to {LOCAL}"
    return f"{VARIABLE} is {LOCAL_DOCKER}, but {docker.problem}: {docker.remedy}, {instead}."


KEY = "instance_backend"


def recorded_backend(data: DataDir) -> str | None:
    """The one that was used last; None if there was none yet."""
    recorded = read_json(data.backend).get(KEY)
    if recorded in SENTENCES:
        return str(recorded)
    # Before there was this record, there was only one backend, and its worker made this directory.
    return LOCAL if data.local_homes.exists() else None


def record_backend(data: DataDir, backend: str) -> None:
    write_private(data.backend, json.dumps({KEY: backend}, indent=2))
