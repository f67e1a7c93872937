"""The storage job's image; tests/docker tests its archives and restores."""

import json

from testkit.docker_engine import docker
from tests.images.inspection import configuration, programs, say, shell
from tests.images.restrictions import RESTRICTED


def test_the_image_runs_read_only_and_without_capabilities(storage_job_image: str) -> None:
    said = docker("run", "--rm", "--network", "none", *RESTRICTED, storage_job_image, "--help")
    assert "Archive or restore the home on a volume." in said


def test_the_image_runs_the_storage_job(storage_job_image: str) -> None:
    assert configuration(storage_job_image)["Entrypoint"] == ["python3", "-m", "storage_job"]


def test_the_image_has_the_programs_that_the_job_runs(storage_job_image: str) -> None:
    assert len(programs(storage_job_image, "tar")) == 1
    say(storage_job_image, "python3", "-c", "import storage_job.job, storage_job.upload")


def test_the_image_has_no_other_package_of_codehub(storage_job_image: str) -> None:
    script = "import importlib.util as u, json; print(json.dumps([n for n in {names!r} if u.find_spec(n)]))"
    names = ["codehub", "api", "proxy", "worker", "workflows", "activities", "migrations", "cli", "tests"]
    assert json.loads(say(storage_job_image, "python3", "-c", script.format(names=names))) == []


def test_a_new_volume_belongs_to_the_workspace_user(storage_job_image: str) -> None:
    assert shell(storage_job_image, "stat -c %u:%g /data; ls -A /data") == "1000:1000"
    assert not configuration(storage_job_image).get("Volumes")
