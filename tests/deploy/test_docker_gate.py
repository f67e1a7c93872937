"""The gate to Docker passes the listed calls and nothing that imitates them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from codehub.adapters.docker.engine import UNAVAILABLE_MESSAGES
from testkit.waiting import until
from tests.deploy.gate import Gate, StandIn, exchange, gate_before, request, stand_in, status_of

ID = "0b1c2d3e-4f50-4162-8374-95a6b7c8d9e0"
WORKSPACE = f"codehub-ws-{ID}"
JOB = f"codehub-job-{ID}"
HOME = f"ws-{ID}-home"
MARKER = "codehub-store-codehub"
CONTAINER_ID = "0123456789abcdef" * 4
FOREIGN_NAMES = (
    "/codehub-postgres-1",
    f"/x{WORKSPACE}",
    f"/{WORKSPACE}x",
    f"/codehub-evil-{ID}",
    "/codehub-ws-",
)
FOREIGN_IDS = tuple(f"{number:064x}" for number in range(len(FOREIGN_NAMES)))

LOOKS = (
    "GET /_ping",
    "HEAD /_ping",
    "GET /version",
    "GET /info",
    f"GET /volumes/{MARKER}",
    "GET /events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D",
    "GET /containers/json?all=true&filters=%7B%7D",
    f"GET /containers/{WORKSPACE}/json",
    f"GET /containers/{WORKSPACE}/logs?stdout=1&follow=1",
    f"GET /v1.41/containers/{WORKSPACE}/json",
)
CHANGES = (
    "GET /system/df",
    f"GET /containers/{JOB}/json",
    f"GET /containers/{CONTAINER_ID}/json",
    f"GET /containers/{CONTAINER_ID}/logs?stderr=1",
    f"POST /containers/create?name={WORKSPACE}",
    f"POST /v1.41/containers/create?name={JOB}",
    *(f"POST /containers/{WORKSPACE}/{verb}" for verb in ("start", "stop?t=5", "kill", "wait")),
    f"POST /containers/{CONTAINER_ID}/attach?stdin=1&stdout=1&stream=1",
    f"DELETE /containers/{WORKSPACE}?force=True",
    f"DELETE /v1.41/containers/{CONTAINER_ID}",
    "GET /volumes?filters=%7B%7D",
    "POST /volumes/create",
    f"GET /volumes/{HOME}",
    f"DELETE /volumes/{HOME}",
    f"DELETE /volumes/{MARKER}",
    "GET /networks",
    "GET /networks/codehub-workspaces",
    "POST /networks/create",
    "GET /images/codehub-workspace:latest/json",
    "GET /images/registry.example:5000/team/some__image@sha256:00ff/json",
    "POST /images/create?fromImage=registry.example:5000/team/image&tag=1.0",
)
REFUSED = (
    f"POST /containers/{WORKSPACE}/exec",
    f"POST /exec/{CONTAINER_ID}/start",
    "POST /build?t=evil",
    "POST /session",
    "POST /grpc",
    f"GET /containers/{WORKSPACE}/archive?path=/etc",
    f"PUT /containers/{WORKSPACE}/archive?path=/etc",
    f"GET /containers/{WORKSPACE}/export",
    f"GET /containers/{WORKSPACE}/attach/ws",
    f"POST /containers/{WORKSPACE}/update",
    f"POST /containers/{WORKSPACE}/rename?name=evil",
    f"POST /commit?container={WORKSPACE}",
    "POST /containers/prune",
    "POST /swarm/init",
    "GET /secrets",
    "GET /plugins",
    "POST /plugins/pull?remote=evil",
    "POST /system/df",
    "POST /auth",
    "GET /images/json",
    "GET /images/codehub-workspace:latest/get",
    "POST /images/load",
    "POST /images/codehub-workspace/push",
    "DELETE /images/codehub-workspace:latest",
    "DELETE /networks/codehub-workspaces",
    "POST /networks/codehub-workspaces/connect",
    "POST /volumes/prune",
    "GET /volumes/postgres",
    "GET /volumes/codehub-store-",
    f"GET /volumes/{MARKER}/../postgres",
    f"POST /volumes/{MARKER}",
    f"DELETE /volumes/{HOME}x",
    "GET /containers/codehub_postgres_1/json",
    "DELETE /containers/codehub-postgres-1",
    "POST /containers/create",
    "POST /containers/create?name=evil",
    f"POST /images/create?fromSrc=http://{WORKSPACE}/evil.tar",
)
TRICKS = (
    "GET //info",
    "GET /containers//json",
    "GET /./info",
    f"GET /containers/{WORKSPACE}/../../secrets",
    f"GET /containers/{WORKSPACE}/json/../../../secrets",
    f"GET /containers/..%2f..%2fsecrets%3f/{WORKSPACE}/json",
    f"GET /containers/{WORKSPACE}%2f..%2f..%2fsecrets%3f/json",
    f"GET /containers/{WORKSPACE}%2fjson",
    "GET /%69nfo",
    f"POST /containers/{WORKSPACE};/start",
    f"POST /containers/{WORKSPACE}/start/../exec",
    f"POST /containers/{WORKSPACE}/start#/../exec",
    f"POST /containers/{WORKSPACE}\\start",
    "GET /v1.41/v1.41/info",
    "GET /v1.41info",
    "GET /v1.999/info",
    "GET /v2.0/info",
    "GET /V1.41/info",
    "GET /Info",
    "get /info",
    "GETX /info",
    "GET http://docker/info",
    "GET unix:///info",
    "GET info",
    "GET *",
    "CONNECT docker:80",
    f"POST /containers/create?name={WORKSPACE}&name=evil",
    f"POST /containers/create?n%61me=evil&name={WORKSPACE}",
    f"POST /containers/create?name=evil&x={WORKSPACE}",
    f"POST /containers/create?name={WORKSPACE};name=evil",
    f"POST /containers/create?name={WORKSPACE}/../evil",
    "POST /images/create?fromImage=a&fromSrc=http://evil/",
    "POST /images/create?fromImage=a&f%72omSrc=http://evil/",
    f"DELETE /containers/{CONTAINER_ID[:12]}",
    f"DELETE /containers/{CONTAINER_ID.upper()}",
)
SLIPS = ("GET /images/some%20image/json", "GET /images/a/../../secrets/json", "GET /images//json")


@pytest.fixture(scope="module")
async def parts() -> AsyncIterator[tuple[Gate, StandIn]]:
    async with AsyncExitStack() as stack:
        socket = Path(stack.enter_context(TemporaryDirectory(prefix="codehub-engine-"))) / "docker"
        engine = await stack.enter_async_context(stand_in(socket))
        engine.names |= {CONTAINER_ID: f"/{WORKSPACE}", **dict(zip(FOREIGN_IDS, FOREIGN_NAMES, strict=True))}
        yield await stack.enter_async_context(gate_before(socket)), engine


@pytest.fixture
def gate(parts: tuple[Gate, StandIn]) -> Gate:
    return parts[0]


@pytest.fixture
def engine(parts: tuple[Gate, StandIn]) -> StandIn:
    found = parts[1]
    found.requests.clear()
    found.attached.clear()
    found.detached.clear()
    return found


@pytest.mark.parametrize("call", LOOKS)
async def test_a_read_passes_both_sockets_unchanged(gate: Gate, engine: StandIn, call: str) -> None:
    assert await status_of(gate.read, request(call)) == 200
    assert await status_of(gate.write, request(call)) == 200
    assert engine.requests == [f"{call} HTTP/1.1"] * 2


@pytest.mark.parametrize("call", CHANGES)
async def test_a_write_passes_only_the_socket_of_the_workers(gate: Gate, engine: StandIn, call: str) -> None:
    assert await status_of(gate.read, request(call)) == 403
    assert await status_of(gate.write, request(call)) == 200
    assert engine.requests == [f"{call} HTTP/1.1"]


@pytest.mark.parametrize("call", REFUSED)
async def test_a_call_that_is_not_needed_is_refused(gate: Gate, engine: StandIn, call: str) -> None:
    method, path = call.split(" ")
    for socket in (gate.read, gate.write):
        assert await status_of(socket, request(call)) == 403
        assert await status_of(socket, request(f"{method} /v1.41{path}")) == 403
    assert engine.requests == []


@pytest.mark.parametrize("identifier", FOREIGN_IDS, ids=FOREIGN_NAMES)
async def test_a_container_of_another_is_refused_by_its_id(
    gate: Gate, engine: StandIn, identifier: str
) -> None:
    calls = [f"POST /containers/{identifier}/{verb}" for verb in ("start", "stop?t=5", "kill", "wait")]
    calls += [f"GET /containers/{identifier}/{kind}" for kind in ("json", "logs?stdout=1")]
    calls += [f"DELETE /containers/{identifier}", f"DELETE /v1.41/containers/{identifier}?force=True"]
    for call in calls:
        assert await status_of(gate.write, request(call)) == 403, call
    attach = request(f"POST /containers/{identifier}/attach?stdin=1", "Connection: Upgrade", "Upgrade: tcp")
    assert await status_of(gate.write, attach) == 403
    assert engine.requests == []
    assert not engine.attached


@pytest.mark.parametrize("call", TRICKS)
async def test_a_disguised_call_is_refused(gate: Gate, engine: StandIn, call: str) -> None:
    for socket in (gate.read, gate.write):
        assert await status_of(socket, request(call)) in {400, 403}
    assert engine.requests == []


@pytest.mark.parametrize("call", SLIPS)
async def test_an_invalid_image_name_gets_docker_s_response(gate: Gate, engine: StandIn, call: str) -> None:
    assert await status_of(gate.write, request(call)) == 400
    assert engine.requests == []


@pytest.mark.parametrize(
    "headers",
    [
        ("Connection: Upgrade", "Upgrade: h2c"),
        ("Connection: Upgrade", "Upgrade: tcp, h2c"),
        ("Connection: Upgrade", "Upgrade: tcp", "Upgrade: h2c"),
        ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    ],
)
async def test_a_connection_cannot_be_upgraded_past_the_gate(
    gate: Gate, engine: StandIn, headers: tuple[str, ...]
) -> None:
    for call in ("GET /version", f"POST /containers/{CONTAINER_ID}/attach?stdin=1"):
        assert await status_of(gate.write, request(call, *headers)) == 403
    assert engine.requests == []
    assert not engine.attached


async def test_only_attach_may_upgrade_the_connection(gate: Gate, engine: StandIn) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: tcp")
    assert await status_of(gate.read, request("GET /version", *upgrade)) == 403
    assert await status_of(gate.write, request(f"POST /containers/{WORKSPACE}/start", *upgrade)) == 403
    assert engine.requests == []


async def test_http_2_is_filtered_too(gate: Gate, engine: StandIn) -> None:
    settings = bytes(3) + b"\x04" + bytes(5)
    await exchange(gate.write, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
    assert engine.requests == []


async def test_every_request_of_a_connection_is_filtered(gate: Gate, engine: StandIn) -> None:
    both = request("GET /version") + request("GET /secrets", "Connection: close")
    answers = await exchange(gate.write, both, ends=False)
    assert answers.count(b"HTTP/1.1 200") == 1
    assert answers.count(b"HTTP/1.1 403") == 1
    assert engine.requests == ["GET /version HTTP/1.1"]


async def test_a_request_cannot_hide_in_the_body_of_another(gate: Gate, engine: StandIn) -> None:
    hidden = request("GET /secrets")
    both = ("Transfer-Encoding: chunked", f"Content-Length: {len(hidden) + 5}")
    await exchange(gate.write, request("POST /volumes/create", *both) + b"0\r\n\r\n" + hidden)
    await exchange(gate.write, request("GET /version", "Transfer-Encoding : chunked") + hidden)
    assert [line for line in engine.requests if "secrets" in line] == []


async def test_a_refusal_has_the_format_of_docker(gate: Gate, engine: StandIn) -> None:
    answer = await exchange(gate.read, request("GET /secrets"))
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {
        "message": "The gate to Docker refused this call."
    }


async def test_an_attached_connection_forwards_bytes_both_ways(gate: Gate, engine: StandIn) -> None:
    reader, writer = await attach(gate)
    writer.write(b"parameters\n")
    assert await reader.readexactly(11) == b"parameters\n"
    writer.write_eof()
    # The job's input has ended, but its output still arrives.
    assert await reader.read() == b"bye"
    assert bytes(engine.attached) == b"parameters\n"
    writer.close()


async def test_a_job_notices_that_its_caller_has_disconnected(gate: Gate, engine: StandIn) -> None:
    _, writer = await attach(gate)
    writer.transport.abort()

    async def noticed() -> bool:
        return engine.detached.is_set()

    await until(noticed, "the job's input ended")


async def attach(gate: Gate) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(gate.write)
    call = f"POST /v1.41/containers/{CONTAINER_ID}/attach?stdin=1&stdout=1&stream=1"
    writer.write(request(call, "Connection: Upgrade", "Upgrade: tcp"))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    return reader, writer


async def test_the_adapter_recognizes_an_unreachable_engine() -> None:
    with TemporaryDirectory(prefix="codehub-engine-") as directory:
        async with gate_before(Path(directory) / "nobody") as gate:
            answer = await exchange(gate.write, request("GET /version"))
            assert answer.startswith(b"HTTP/1.1 503 ")
            message = json.loads(answer.partition(b"\r\n\r\n")[2])["message"]
            assert any(words in message for words in UNAVAILABLE_MESSAGES)


async def test_the_sockets_are_only_open_to_the_group(gate: Gate) -> None:
    assert {path.stat().st_mode & 0o777 for path in (gate.read, gate.write)} == {0o660}
