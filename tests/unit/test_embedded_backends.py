"""The backend that `codehub up` chooses in every case."""

from itertools import product
from pathlib import Path

import pytest

from codehub.embedded.backends import (
    LOCAL,
    LOCAL_DOCKER,
    BackendUnavailable,
    DockerStatus,
    configured_backend,
    decide_backend,
    docker_images,
    needs_docker_probe,
    record_backend,
    recorded_backend,
)
from codehub.embedded.data_dir import DataDir
from codehub.providers import local_root_of
from codehub.settings import load_settings

IMAGE = "codehub-workspace:latest"
USABLE = DockerStatus(version="20.10.24")
AWAY = DockerStatus(problem="Docker does not answer", remedy="start Docker")
EMPTY = DockerStatus(
    version="20.10.24",
    missing=(IMAGE,),
    problem=f"Docker has no image {IMAGE} and cannot pull it (no such host)",
    remedy="`make images` builds it",
)

IN_DOCKER = f"Workspaces run as Docker containers ({IMAGE})."
LOCAL_AS_SET = "Workspaces run as processes on this machine, as CODEHUB_WORKSPACES_INSTANCE_BACKEND says."
LOCAL_AS_BEFORE = "Workspaces run as processes on this machine, as before."
LOCAL_WITHOUT_IMAGE = (
    f"Workspaces run as processes on this machine: Docker has no image {IMAGE} and cannot pull it "
    "(no such host); `make images` builds it."
)
# By the setting, the record and the result of the Docker probe.
CHOICES = {
    (None, None, USABLE): (LOCAL_DOCKER, IN_DOCKER),
    (None, None, AWAY): (LOCAL, "Workspaces run as processes on this machine: Docker does not answer."),
    (None, None, EMPTY): (LOCAL, LOCAL_WITHOUT_IMAGE),
    (None, LOCAL, USABLE): (LOCAL, LOCAL_AS_BEFORE),
    (None, LOCAL, AWAY): (LOCAL, LOCAL_AS_BEFORE),
    (None, LOCAL, EMPTY): (LOCAL, LOCAL_AS_BEFORE),
    (None, LOCAL_DOCKER, USABLE): (LOCAL_DOCKER, IN_DOCKER),
    (LOCAL, None, USABLE): (LOCAL, LOCAL_AS_SET),
    (LOCAL, None, AWAY): (LOCAL, LOCAL_AS_SET),
    (LOCAL, None, EMPTY): (LOCAL, LOCAL_AS_SET),
    (LOCAL, LOCAL, USABLE): (LOCAL, LOCAL_AS_SET),
    (LOCAL, LOCAL, AWAY): (LOCAL, LOCAL_AS_SET),
    (LOCAL, LOCAL, EMPTY): (LOCAL, LOCAL_AS_SET),
    (LOCAL, LOCAL_DOCKER, USABLE): (LOCAL, LOCAL_AS_SET),
    (LOCAL, LOCAL_DOCKER, AWAY): (LOCAL, LOCAL_AS_SET),
    (LOCAL, LOCAL_DOCKER, EMPTY): (LOCAL, LOCAL_AS_SET),
    (LOCAL_DOCKER, None, USABLE): (LOCAL_DOCKER, IN_DOCKER),
    (LOCAL_DOCKER, LOCAL, USABLE): (LOCAL_DOCKER, IN_DOCKER),
    (LOCAL_DOCKER, LOCAL_DOCKER, USABLE): (LOCAL_DOCKER, IN_DOCKER),
}
SET = "CODEHUB_WORKSPACES_INSTANCE_BACKEND is local-docker, but "
OR_LOCAL = ", or set the variable to local."
RECORDED = "The homes of this CodeHub are Docker volumes, but "
REFUSALS = {
    (None, LOCAL_DOCKER, AWAY): f"{RECORDED}Docker does not answer: start Docker.",
    (None, LOCAL_DOCKER, EMPTY): f"{RECORDED}{EMPTY.problem}: `make images` builds it.",
    (LOCAL_DOCKER, None, AWAY): f"{SET}Docker does not answer: start Docker{OR_LOCAL}",
    (LOCAL_DOCKER, None, EMPTY): f"{SET}{EMPTY.problem}: `make images` builds it{OR_LOCAL}",
    (LOCAL_DOCKER, LOCAL, AWAY): f"{SET}Docker does not answer: start Docker{OR_LOCAL}",
    (LOCAL_DOCKER, LOCAL, EMPTY): f"{SET}{EMPTY.problem}: `make images` builds it{OR_LOCAL}",
    # Without "or set it to local", because the homes would stay behind.
    (LOCAL_DOCKER, LOCAL_DOCKER, AWAY): f"{RECORDED}Docker does not answer: start Docker.",
    (LOCAL_DOCKER, LOCAL_DOCKER, EMPTY): f"{RECORDED}{EMPTY.problem}: `make images` builds it.",
}
BACKENDS = (None, LOCAL, LOCAL_DOCKER)


def test_the_tables_cover_every_case() -> None:
    assert {*CHOICES, *REFUSALS} == set(product(BACKENDS, BACKENDS, (USABLE, AWAY, EMPTY)))


@pytest.mark.parametrize(("case", "expected"), CHOICES.items())
def test_the_choice(case: tuple[str | None, str | None, DockerStatus], expected: tuple[str, str]) -> None:
    choice = decide_backend(*case, IMAGE)
    assert (choice.backend, choice.sentence) == expected


@pytest.mark.parametrize(("case", "message"), REFUSALS.items())
def test_homes_in_docker_are_not_left_behind(
    case: tuple[str | None, str | None, DockerStatus], message: str
) -> None:
    with pytest.raises(BackendUnavailable) as refused:
        decide_backend(*case, IMAGE)
    assert str(refused.value) == message


def test_any_other_configured_backend_is_used() -> None:
    sentence = "Workspaces run as pods on Kubernetes, as CODEHUB_WORKSPACES_INSTANCE_BACKEND says."
    assert decide_backend("k8s", None, AWAY, IMAGE).sentence == sentence


def test_docker_is_probed_only_if_it_matters() -> None:
    asked = {case for case in product(BACKENDS, BACKENDS) if needs_docker_probe(*case)}
    assert asked == {
        (None, None),
        (None, LOCAL_DOCKER),
        (LOCAL_DOCKER, None),
        (LOCAL_DOCKER, LOCAL),
        (LOCAL_DOCKER, LOCAL_DOCKER),
    }


@pytest.mark.parametrize(
    ("variables", "chosen"),
    [
        ({}, None),
        ({"CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local"}, LOCAL),
        ({"CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker"}, LOCAL_DOCKER),
        ({"CODEHUB_WORKSPACES_INSTANCE_BACKEND": ""}, None),
        ({"CODEHUB_WORKSPACES_STORAGE_BACKEND": "local-dir"}, LOCAL),
        ({"CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": "jupyterlab"}, None),
    ],
)
def test_setting_a_backend_chooses_it(variables: dict[str, str], chosen: str | None) -> None:
    assert configured_backend(load_settings(variables)) == chosen


def test_docker_needs_the_configured_images_or_the_defaults() -> None:
    assert docker_images(load_settings({})) == (IMAGE, "codehub-storage-job:latest")
    variables = {"CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": "ours:1", "CODEHUB_DOCKER_JOB_IMAGE": "job:2"}
    assert docker_images(load_settings(variables)) == ("ours:1", "job:2")


def test_a_directory_without_homes_has_no_backend_yet(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.create()
    assert recorded_backend(data) is None


@pytest.mark.parametrize("backend", [LOCAL, LOCAL_DOCKER])
def test_the_backend_is_recorded(tmp_path: Path, backend: str) -> None:
    record_backend(DataDir(tmp_path), backend)
    # Even if there are other files.
    DataDir(tmp_path).local_homes.mkdir()
    assert recorded_backend(DataDir(tmp_path)) == backend


@pytest.mark.parametrize("text", [None, "", "{", '{"instance_backend": "floppy"}'])
def test_homes_without_a_readable_record_are_local(tmp_path: Path, text: str | None) -> None:
    data = DataDir(tmp_path)
    data.local_homes.mkdir()
    if text is not None:
        data.backend.write_text(text)
    assert recorded_backend(data) == LOCAL


def test_local_homes_are_where_the_local_backend_keeps_them(tmp_path: Path) -> None:
    settings = load_settings({"CODEHUB_DATA_DIR": str(tmp_path)})
    assert DataDir(tmp_path).local_homes == local_root_of(settings)
