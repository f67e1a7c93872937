"""Probes of a real Docker engine, of a missing one and of engines that respond badly."""

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web

from codehub.embedded.docker_probe import probe_and_pull, probe_docker
from codehub.settings import Settings
from testkit.needs import do_without_engine
from tests.stand_in_engine import StandInEngine, stand_in_engine

WORKSPACE, JOB = IMAGES = ("codehub-workspace:latest", "codehub-storage-job:latest")
# An empty tar.
EMPTY_IMAGE = b"\0" * 10240
NO_REGISTRY = "127.0.0.1:1/codehub-workspace:latest"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[StandInEngine]:
    async with stand_in_engine(tmp_path / "docker.sock") as running:
        yield running


@pytest.fixture
def docker_url() -> str:
    """The URL of a real engine; CI has one."""
    url = Settings().docker.url
    path = url.removeprefix("unix://")
    if not Path(path).is_socket():
        do_without_engine()
    return url


@pytest.fixture
async def real_image(docker_url: str) -> AsyncIterator[str]:
    """Create an image on the real engine, and remove it afterwards."""
    name = f"codehub-test-{uuid4().hex}"
    connector = aiohttp.UnixConnector(docker_url.removeprefix("unix://"))
    async with aiohttp.ClientSession("http://docker", connector=connector) as session:
        parameters = {"fromSrc": "-", "repo": name, "tag": "latest"}
        async with session.post("/images/create", params=parameters, data=EMPTY_IMAGE) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()
        try:
            yield f"{name}:latest"
        finally:
            await (await session.delete(f"/images/{name}:latest")).read()


@pytest.fixture
def silent_socket(tmp_path: Path) -> Iterator[Path]:
    """A socket that accepts connections and never responds."""
    path = tmp_path / "silent.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        yield path


async def test_a_real_engine_has_its_images(docker_url: str, real_image: str) -> None:
    found = await probe_docker(docker_url, [real_image], publish_ports=True)
    assert (found.missing, found.problem, found.remedy) == ((), "", "")
    assert found.version[0].isdigit()


async def test_a_real_engine_reports_missing_images(docker_url: str, real_image: str) -> None:
    missing = f"{real_image}-not"
    found = await probe_docker(docker_url, [real_image, missing])
    assert found.missing == (missing,)
    assert found.problem == f"Docker has no image {missing}"


async def test_a_real_engine_explains_why_it_cannot_pull(docker_url: str) -> None:
    said: list[str] = []
    found = await probe_and_pull(docker_url, [NO_REGISTRY], said.append)
    assert said == [f"Docker has no image {NO_REGISTRY}: pulling it (at most 60 s) ..."]
    assert found.problem.startswith(f"Docker has no image {NO_REGISTRY} and cannot pull it (")
    assert "127.0.0.1:1" in found.problem.partition("(")[2]
    assert found.remedy == "pull or build the missing image, or choose another one"


async def test_a_missing_socket(tmp_path: Path) -> None:
    found = await probe_and_pull(f"unix://{tmp_path}/none.sock", IMAGES, pytest.fail)
    assert (found.version, found.problem, found.remedy) == ("", "Docker does not answer", "start Docker")


async def test_a_socket_without_a_listener(tmp_path: Path) -> None:
    left_behind = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left_behind))
    assert (await probe_docker(f"unix://{left_behind}", IMAGES)).problem == "Docker does not answer"


async def test_a_socket_that_never_responds(silent_socket: Path) -> None:
    found = await probe_docker(f"unix://{silent_socket}", IMAGES, seconds=0.2)
    assert found.problem.startswith("Docker does not answer within")
    assert found.remedy == "restart Docker"


async def test_another_server_that_responds(tmp_path: Path) -> None:
    async def greet(_request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/{anything:.*}", greet)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(tmp_path / "other.sock")).start()
    found = await probe_docker(f"unix://{tmp_path}/other.sock", IMAGES)
    await runner.cleanup()
    assert found.problem.startswith("the server at that address is not Docker (")
    assert found.remedy == "correct CODEHUB_DOCKER_URL"


async def test_an_engine_with_both_images(engine: StandInEngine) -> None:
    engine.images.update(IMAGES)
    found = await probe_and_pull(engine.url, IMAGES, pytest.fail)
    assert (found.version, found.problem, engine.pulled) == ("99.1", "", [])


async def test_an_engine_elsewhere_is_refused_unless_ports_are_published(engine: StandInEngine) -> None:
    engine.images.update(IMAGES)
    engine.kernel = "6.6.0-linuxkit"
    found = await probe_docker(engine.url, IMAGES)
    assert found.problem.startswith("the Docker engine is not on this machine")
    assert "CODEHUB_DOCKER_PUBLISH_PORTS=true" in found.remedy
    assert (await probe_docker(engine.url, IMAGES, publish_ports=True)).problem == ""


async def test_an_engine_by_tcp_is_not_taken_for_one_on_this_machine(engine: StandInEngine) -> None:
    engine.images.update(IMAGES)
    found = await probe_docker(engine.tcp_url, IMAGES)
    assert found.problem.startswith("the Docker engine is not on this machine")
    assert (await probe_docker(engine.tcp_url, IMAGES, publish_ports=True)).problem == ""


async def test_an_image_of_an_older_release_is_refused_unless_ports_are_published(
    engine: StandInEngine,
) -> None:
    engine.images.update(IMAGES)
    engine.labels.clear()
    found = await probe_docker(engine.url, IMAGES)
    assert found.problem == f"the image {WORKSPACE} lacks the agent of this release"
    assert found.remedy == "`make images` builds it again"
    engine.images.add("acme/ide")
    assert (await probe_docker(engine.url, ["acme/ide"])).remedy == "build it on CodeHub's image"
    assert (await probe_docker(engine.url, IMAGES, publish_ports=True)).problem == ""


async def test_a_probe_pulls_nothing(engine: StandInEngine) -> None:
    found = await probe_docker(engine.url, IMAGES)
    assert found.missing == IMAGES
    assert found.problem == f"Docker has no image {WORKSPACE} and no image {JOB}"
    assert found.remedy == "`make images` builds them"
    assert engine.pulled == []


async def test_missing_images_are_pulled(engine: StandInEngine) -> None:
    said: list[str] = []
    engine.images.add(WORKSPACE)
    engine.in_registry.add(JOB)
    found = await probe_and_pull(engine.url, IMAGES, said.append)
    assert (found.problem, engine.pulled) == ("", [JOB])
    assert said == [f"Docker has no image {JOB}: pulling it (at most 60 s) ..."]


async def test_a_refused_pull_ends_the_attempts(engine: StandInEngine) -> None:
    found = await probe_and_pull(engine.url, IMAGES, lambda _words: None)
    assert engine.pulled == [WORKSPACE]
    assert found.missing == (WORKSPACE,)
    assert found.problem == (
        f"Docker has no image {WORKSPACE} and cannot pull it (pull access denied, repository does not exist)"
    )
    assert found.remedy == "`make images` builds it"


async def test_a_pull_that_takes_too_long_is_abandoned(engine: StandInEngine) -> None:
    engine.registry_answers.clear()
    found = await probe_and_pull(engine.url, [WORKSPACE], lambda _words: None, pull_seconds=0.2)
    assert found.problem.startswith(f"Docker has no image {WORKSPACE} and cannot pull it (not within")
