"""What another user of the machine can do to the embedded servers: nothing, unlike to unprotected ones."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from temporalio.client import Client
from temporalio.service import RPCError, TLSConfig

from codehub.embedded.certificates import Certificates, client_context
from codehub.embedded.probes import http_status
from codehub.embedded.servers import seaweed, temporal
from codehub.embedded.stack import EmbeddedStack
from codehub.settings import load_settings
from codehub.temporal_tls import load_tls_config
from testkit.needs import need_program
from testkit.processes import free_port, process_tree, wait_until_ended
from testkit.seaweed import S3Server
from testkit.temporal_server import TemporalServer
from testkit.tls_endpoint import Authority
from testkit.waiting import until
from tests.codehub_command import CODEHUB

ELSEWHERE = {
    "CODEHUB_DATABASE_URL": "postgresql://database.example/codehub",
    "CODEHUB_REDIS_URL": "redis://redis.example:6379/0",
}
WORKFLOW = "somebodys-workspace"


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedStack]:
    async with EmbeddedStack(tmp_path_factory.mktemp("stack"), load_settings(ELSEWHERE)) as running:
        await (await ours(running)).start_workflow("Nobody", id=WORKFLOW, task_queue="nobody")
        yield running


async def ours(stack: EmbeddedStack) -> Client:
    settings = load_settings(stack.environment).temporal
    return await Client.connect(str(settings.address), tls=load_tls_config(settings) or False)


async def is_terminated(address: str, tls: TLSConfig | bool) -> bool:
    """Return whether a client with these certificates can terminate somebody's workflow."""
    try:
        async with asyncio.timeout(20):
            client = await Client.connect(address, tls=tls)
            await client.get_workflow_handle(WORKFLOW).terminate()
    except (RuntimeError, RPCError, TimeoutError):
        return False
    return True


async def test_unprotected_temporal_obeys_everybody(temporal_server: TemporalServer) -> None:
    client = await Client.connect(temporal_server.address)
    await client.start_workflow("Nobody", id=WORKFLOW, task_queue="nobody")
    assert await is_terminated(temporal_server.address, tls=False)
    assert await http_status(temporal_server.http_port, "/api/v1/namespaces/default/workflows") == 200


async def test_temporal_obeys_only_our_certificate(stack: EmbeddedStack, tmp_path: Path) -> None:
    address = stack.environment["CODEHUB_TEMPORAL_ADDRESS"]
    files = temporal.certificates(stack.data)
    authority = files.authority.read_bytes()
    stranger = Authority.make(tmp_path).issue("temporal")
    forged = TLSConfig(
        server_root_ca_cert=authority,
        domain="temporal",
        client_cert=stranger.certificate.read_bytes(),
        client_private_key=stranger.key.read_bytes(),
    )
    without = TLSConfig(server_root_ca_cert=authority, domain="temporal")
    assert not [tls for tls in (False, without, forged) if await is_terminated(address, tls)]
    port = int(address.rpartition(":")[2])
    assert await http_status(port, "/api/v1/namespaces/default/workflows") is None
    assert await http_status(port, "/", tls=anonymous(files)) is None
    # The same call with our certificate: the workflow is still there, and now it is not.
    mutual = load_tls_config(load_settings(stack.environment).temporal)
    assert await is_terminated(address, tls=mutual or False)


def anonymous(files: Certificates) -> ssl.SSLContext:
    """Return a TLS client without a certificate."""
    return ssl.create_default_context(cafile=files.authority)


def replaces_an_archive(filer: tuple[int, int], bucket: str, directory: Path) -> bool:
    """Return whether SeaweedFS' own client, run in this directory, can write to the bucket behind S3."""
    archive = directory / "probe"
    archive.write_text("not what was archived")
    url = f"http://127.0.0.1:{filer[0]}.{filer[1]}/buckets/{bucket}/"
    command = (Path(sys.executable).with_name("weed"), "filer.copy", archive, url)
    return subprocess.run(command, cwd=directory, capture_output=True, check=False).returncode == 0


async def test_unprotected_seaweed_obeys_everybody(s3_server: S3Server, tmp_path: Path) -> None:
    _, _, master, _, _, _, filer, filer_grpc = s3_server.ports
    assert replaces_an_archive((filer, filer_grpc), "readiness", tmp_path)
    assert await http_status(filer, "/buckets/readiness/probe") == 200
    assert await http_status(master, "/dir/status") == 200


async def test_seaweed_obeys_only_our_certificate_and_keys(stack: EmbeddedStack, tmp_path: Path) -> None:
    ports = json.loads(stack.data.ports.read_text())["ports"]
    filer = (ports["s3.filer"], ports["s3.filer.grpc"])
    assert not replaces_an_archive(filer, "codehub", tmp_path)
    write_forged_security(tmp_path)
    assert not replaces_an_archive(filer, "codehub", tmp_path)
    for method in ("GET", "PUT", "DELETE"):
        assert await http_status(ports["s3.s3"], "/codehub/probe", method) == 403
        assert await http_status(ports["s3.filer"], "/buckets/codehub/probe", method) == 401
        assert await http_status(ports["s3.volume"], "/1,0123456789", method) == 401
    for path in ("/dir/status", "/dir/assign", "/dir/lookup?fileId=1,01&read=yes"):
        assert await http_status(ports["s3.master"], path) == 400
        assert (
            await http_status(ports["s3.master"], path, tls=anonymous(seaweed.certificates(stack.data)))
            is None
        )
    # The same request with our certificate.
    ours = client_context(seaweed.certificates(stack.data))
    assert await http_status(ports["s3.master"], "/dir/status", tls=ours) == 200


async def test_seaweeds_grpc_ports_refuse_strangers(stack: EmbeddedStack) -> None:
    ports = json.loads(stack.data.ports.read_text())["ports"]
    files = seaweed.certificates(stack.data)
    for part in seaweed.SERVERS:
        port = ports[f"s3.{part}.grpc"]
        # The server's first frame of HTTP/2 shows that it lets the client in.
        assert await first_bytes(port, None) == b"", part
        assert await first_bytes(port, with_h2(anonymous(files))) == b"", part
        assert await first_bytes(port, with_h2(client_context(files))) != b"", part


async def first_bytes(port: int, tls: ssl.SSLContext | None) -> bytes:
    """Return what a gRPC server sends to a client, or nothing if it hangs up."""
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        with contextlib.closing(writer):
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
            return await reader.read(9)
    return b""


def with_h2(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["h2"])
    return context


def write_forged_security(directory: Path) -> None:
    """Configure SeaweedFS' client in this directory with a certificate of another authority."""
    stranger = Authority.make(directory / "authority")
    own = stranger.issue("s3")
    text = f'[grpc]\nca = "{stranger.own.certificate}"\n'
    text += f'[grpc.client]\ncert = "{own.certificate}"\nkey = "{own.key}"\n'
    (directory / "security.toml").write_text(text)


@pytest.mark.parametrize("victim", ["relay", "temporal"])
async def test_killed_half_takes_the_other_with_it(stack: EmbeddedStack, victim: str) -> None:
    relay, *server = temporal_processes(stack)
    started = await (await ours(stack)).start_workflow("Nobody", id=f"kept-{victim}", task_queue="nobody")
    (relay if victim == "relay" else server[0]).send_signal(signal.SIGKILL)
    assert wait_until_ended([relay, *server]) == []
    client = await reconnect(stack)
    assert (await client.get_workflow_handle(started.id).describe()).workflow_type == "Nobody"
    # One Temporal on the database, and not one of the old processes.
    assert len(temporal_processes(stack)) == 2


async def reconnect(stack: EmbeddedStack) -> Client:
    """Wait until the supervisor has restarted Temporal."""
    found: list[Client] = []

    async def connected() -> bool:
        with contextlib.suppress(RuntimeError):
            found.append(await ours(stack))
        return bool(found)

    await until(connected, "a connection to Temporal")
    return found[0]


def test_relay_refuses_to_run_without_a_namespace(tmp_path: Path) -> None:
    witness = tmp_path / "temporal-ran"
    relay = (sys.executable, "-m", "codehub.embedded.temporal_relay", str(free_port()))
    command = (*relay, "authority", "certificate", "key", "default", "touch", str(witness))
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    jail = (need_program("unshare"), "--user", "--map-root-user", "sh", "-c", forbid, "sh")
    run = subprocess.run((*jail, *command), check=False, capture_output=True, text=True)
    assert run.stderr.startswith("This machine refuses a network namespace (")
    assert "CODEHUB_TEMPORAL_ADDRESS" in run.stderr
    assert run.returncode == 1
    assert not witness.exists()


def test_web_ui_opens_only_for_the_secret_in_its_url(stack: EmbeddedStack) -> None:
    command = (CODEHUB, "temporal-ui")
    variables = {**os.environ, **ELSEWHERE, "CODEHUB_DATA_DIR": str(stack.data.root)}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = urlsplit(running.stdout.readline().strip())
        try:
            assert page(url.port, str(url.hostname)) == 200
            assert page(url.port, "127.0.0.1") == 404
            assert page(url.port, f"{'0' * 32}.localhost") == 404
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait() == 0


def page(port: int | None, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/", headers={"Host": f"{host}:{port}"})
        return connection.getresponse().status


def temporal_processes(stack: EmbeddedStack) -> list[psutil.Process]:
    """Return the relay and Temporal itself."""
    pids = {status.name: status.pid for status in stack.statuses}
    return process_tree(pids["temporal"] or 0)
