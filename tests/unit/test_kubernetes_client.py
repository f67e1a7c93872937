"""The client of Kubernetes tells outages from absence, and a stale watch from a quiet one."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import temporalio.converter
from aiohttp import web
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod
from temporalio.api.failure.v1 import Failure

from codehub.adapters.kubernetes.changes import KubernetesChanges
from codehub.adapters.kubernetes.client import Kubernetes, NoConfiguration, open_kubernetes
from codehub.adapters.kubernetes.following import wait_until_gone
from codehub.adapters.kubernetes.instances import KubernetesInstances
from codehub.adapters.kubernetes.jobs import attendance
from codehub.adapters.kubernetes.jobs.outcome import has_ended
from codehub.adapters.kubernetes.options import TRAITS_ANNOTATION, Component, KubernetesOptions
from codehub.adapters.kubernetes.transport import MAX_REFUSALS
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import container_name
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput
from testkit.waiting import DEADLINE_SECONDS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
WORKSPACE_ID = WorkspaceId("0b0e5a3e-6c1f-4a54-9d0a-0d6a3c2f9a11")
OPTIONS = KubernetesOptions()


@asynccontextmanager
async def cluster(tmp_path: Path, handler: Handler) -> AsyncIterator[Kubernetes]:
    """Open a client of a server that responds as a test wants it to."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    path = tmp_path / f"{uuid4()}.kubeconfig"
    path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{port}")))
    try:
        async with open_kubernetes(path, "workspaces") as kubernetes:
            yield kubernetes
    finally:
        await runner.cleanup()


def kubeconfig(server: str) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def failure(code: int, reason: str, **headers: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    body["message"] = f"{reason} ({code})"
    return web.Response(
        status=code, body=json.dumps(body).encode(), headers={"Content-Type": "application/json", **headers}
    )


def new_pod() -> Pod:
    labels = OPTIONS.labels(WORKSPACE_ID, Component.WORKSPACE)
    metadata = ObjectMeta(name=container_name(WORKSPACE_ID), uid="1", resourceVersion="7", labels=labels)
    return Pod(metadata=metadata)


def pod() -> dict[str, Any]:
    return new_pod().to_dict()


def listing(*items: dict[str, Any]) -> web.Response:
    return web.json_response({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": list(items)})


async def test_only_the_api_itself_can_say_that_something_is_absent(tmp_path: Path) -> None:
    async def absent(_: web.Request) -> web.Response:
        return failure(404, "NotFound")

    async with cluster(tmp_path, absent) as kubernetes:
        assert await KubernetesInstances(kubernetes, OPTIONS).observe(WORKSPACE_ID) is ContainerFact.ABSENT


@pytest.mark.parametrize(
    "response",
    [
        lambda: web.Response(status=404, text="no such path", content_type="text/html"),
        lambda: web.Response(status=404, headers={"Content-Type": ""}),
        lambda: web.Response(status=200, text="<html>sign in</html>", content_type="text/html"),
        lambda: web.Response(status=502, text="bad gateway"),
        lambda: web.Response(status=502, text="bad gateway", content_type="application/json"),
        lambda: web.json_response(["bad gateway"], status=502),
        lambda: failure(401, "Unauthorized"),
        lambda: failure(403, "Forbidden"),
        lambda: failure(500, "InternalError"),
        lambda: failure(504, "Timeout"),
    ],
)
async def test_any_other_response_is_an_outage(tmp_path: Path, response: Callable[[], web.Response]) -> None:
    async def handler(_: web.Request) -> web.Response:
        return response()

    async with cluster(tmp_path, handler) as kubernetes:
        instances, volumes = KubernetesInstances(kubernetes, OPTIONS), KubernetesVolumes(kubernetes, OPTIONS)
        for call in (
            instances.observe(WORKSPACE_ID),
            instances.list_all(),
            volumes.observe(WORKSPACE_ID),
            volumes.list_all(),
            kubernetes.read_version() if response().status != 200 else volumes.list_all(),
        ):
            with pytest.raises(Transient) as caught:
                await call
            assert caught.value.reason is ErrorReason.UNREACHABLE


@pytest.mark.parametrize(
    "response",
    [lambda: web.Response(status=503, text="no healthy upstream"), lambda: failure(500, "InternalError")],
    ids=["of a load balancer", "of the API"],
)
async def test_temporal_can_store_the_failure_and_its_causes(
    tmp_path: Path, response: Callable[[], web.Response]
) -> None:
    async def handler(_: web.Request) -> web.Response:
        return response()

    async with cluster(tmp_path, handler) as kubernetes:
        with pytest.raises(Transient) as caught:
            await KubernetesVolumes(kubernetes, OPTIONS).provision(WORKSPACE_ID)
    converter = temporalio.converter.DataConverter.default
    stored = Failure()
    converter.failure_converter.to_failure(caught.value, converter.payload_converter, stored)
    assert "does not answer" in stored.message


async def test_an_overloaded_server_is_asked_again_when_it_says(tmp_path: Path) -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.path)
        if len(asked) < 3:
            return web.Response(status=429, headers={"Retry-After": "0"}, text="too many requests")
        return listing(pod())

    async with cluster(tmp_path, handler) as kubernetes:
        found = await KubernetesInstances(kubernetes, OPTIONS).list_all()
    assert found == {WORKSPACE_ID: ContainerFact.NOT_READY}
    assert len(asked) == 3


async def test_a_server_that_stays_overloaded_is_an_outage_in_its_own_words(tmp_path: Path) -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.path)
        return failure(429, f"refusal {len(asked)}", **{"Retry-After": "0"})

    async with cluster(tmp_path, handler) as kubernetes:
        with pytest.raises(Transient, match=f"refusal {MAX_REFUSALS + 1} ") as caught:
            await KubernetesInstances(kubernetes, OPTIONS).list_all()
    assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_a_refused_change_says_why_and_an_overloaded_server_is_an_outage(tmp_path: Path) -> None:
    for code, reason in ((403, ErrorReason.ACTION_FAILED), (422, ErrorReason.ACTION_FAILED), (503, None)):

        async def handler(request: web.Request, code: int = code) -> web.Response:
            return failure(404, "NotFound") if request.method == "GET" else failure(code, "Refused")

        async with cluster(tmp_path, handler) as kubernetes:
            with pytest.raises(Transient) as caught:
                await KubernetesVolumes(kubernetes, OPTIONS).provision(WORKSPACE_ID)
            assert caught.value.reason is (reason or ErrorReason.UNREACHABLE)


async def test_a_sweep_is_one_request_however_many_there_are(tmp_path: Path) -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.path)
        return listing(*(pod() for _ in range(1000)))

    async with cluster(tmp_path, handler) as kubernetes:
        await KubernetesInstances(kubernetes, OPTIONS).list_all()
    assert asked == ["/api/v1/namespaces/workspaces/pods"]


async def test_a_deletion_names_the_object_the_version_and_the_grace(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        return web.json_response({})

    async with cluster(tmp_path, handler) as kubernetes:
        await kubernetes.delete(Pod, "name", uid="1", resource_version="7", grace_seconds=0)
    preconditions = {"uid": "1", "resourceVersion": "7"}
    assert bodies == [{"gracePeriodSeconds": 0, "preconditions": preconditions}]


@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_watch_whose_version_is_forgotten_lists_again_and_tells_what_is_gone(
    tmp_path: Path, in_stream: bool
) -> None:
    lists: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        if "pods" not in request.path:
            return failure(503, "ServiceUnavailable")
        if request.query.get("watch") != "true":
            lists.append(request.path)
            return listing(pod()) if len(lists) == 1 else listing()
        if not in_stream:
            return failure(410, "Expired")
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        return web.Response(text=json.dumps({"type": "ERROR", "object": status}) + "\n")

    async with cluster(tmp_path, handler) as kubernetes, asyncio.timeout(DEADLINE_SECONDS):
        changes = KubernetesChanges(kubernetes, OPTIONS).follow()
        assert await anext(changes) == WORKSPACE_ID
        await changes.aclose()  # type: ignore[attr-defined]
    assert len(lists) == 2


async def test_a_watch_that_a_fault_of_ours_ends_is_not_silent(tmp_path: Path) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        found = pod()
        found["metadata"]["annotations"] = {TRAITS_ANNOTATION: "not JSON"}
        return listing(found)

    async with cluster(tmp_path, handler) as kubernetes, asyncio.timeout(DEADLINE_SECONDS):
        with pytest.raises(json.JSONDecodeError):
            await anext(KubernetesChanges(kubernetes, OPTIONS).follow())


@pytest.mark.parametrize("code", [None, 410, 429, 503])
async def test_a_step_that_follows_an_object_reads_it_when_its_watch_is_cut(
    tmp_path: Path, code: int | None
) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "true":
            return failure(404, "NotFound")
        if code is not None:
            return failure(code, "Refused", **{"Retry-After": "0"})
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with cluster(tmp_path, handler) as kubernetes:
        assert await wait_until_gone(kubernetes, Pod, new_pod(), DEADLINE_SECONDS)


async def test_a_step_that_may_not_watch_says_so(tmp_path: Path) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return failure(403, "Forbidden")

    async with cluster(tmp_path, handler) as kubernetes:
        with pytest.raises(httpx2.HTTPStatusError):
            await wait_until_gone(kubernetes, Pod, new_pod(), DEADLINE_SECONDS)


async def test_a_log_that_cannot_be_read_is_not_requested_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attendance, "REREAD_SECONDS", DEADLINE_SECONDS)
    logs: list[str] = []
    observations: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/log"):
            logs.append(request.path)
            return failure(404, "NotFound")
        observations.append(request.path)
        phase = "Running" if len(observations) < 8 else "Succeeded"
        return web.json_response({**pod(), "status": {"phase": phase}})

    async with cluster(tmp_path, handler) as kubernetes:
        running = await kubernetes.client.get(Pod, container_name(WORKSPACE_ID))
        output = JobOutput(lambda _: None)
        ended = await attendance.Attendance(kubernetes, OPTIONS, running, output).attend()
    assert has_ended(ended)
    assert len(logs) == 1


async def test_a_process_that_cannot_know_its_cluster_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoConfiguration, match="missing"):
        async with open_kubernetes(tmp_path / "missing", "workspaces"):
            pass
