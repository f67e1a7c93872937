"""A real S3 server for tests: SeaweedFS with authentication, on free loopback ports."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from testkit.processes import free_ports, kill, spawn

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"  # noqa: S105 (a server on loopback that lives for one test run)
START_SECONDS = 30
POLL_SECONDS = 0.05
_PORT_OPTIONS = (
    "s3.port",
    "s3.port.grpc",
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
)


@dataclass(frozen=True)
class S3Server:
    endpoint_url: str
    access_key: str
    secret_key: str
    process: subprocess.Popen[bytes]
    ports: tuple[int, ...]


@contextlib.contextmanager
def seaweed(data_dir: Path) -> Iterator[S3Server]:
    server = start_seaweed(data_dir)
    try:
        yield server
    finally:
        stop_seaweed(server)


def start_seaweed(data_dir: Path) -> S3Server:
    """Start a server and wait until it stores objects; try other ports if one is taken."""
    for attempt in range(3):
        directory = data_dir / str(attempt)
        directory.mkdir(parents=True)
        ports = free_ports(len(_PORT_OPTIONS))
        endpoint_url = f"http://127.0.0.1:{ports[0]}"
        server = S3Server(endpoint_url, ACCESS_KEY, SECRET_KEY, _spawn(directory, ports), ports)
        if _becomes_ready(server):
            return server
        stop_seaweed(server)
    raise RuntimeError(f"SeaweedFS did not start; its logs are below {data_dir}")


def stop_seaweed(server: S3Server) -> None:
    # A graceful shutdown takes 15 seconds, and tests keep no data.
    kill(server.process)
    for port in server.ports:
        for leftover in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):  # noqa: S108 (weed creates them there)
            leftover.unlink(missing_ok=True)


def _spawn(directory: Path, ports: tuple[int, ...]) -> subprocess.Popen[bytes]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    identity = {"name": "tests", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List"]}
    config = directory / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    options = (
        f"-dir={directory}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        # A single master needs no election.
        "-master.peers=none",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=0",
        "-s3",
        f"-s3.config={config}",
        # 0 turns these off; they would listen on fixed ports.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{option}={port}" for option, port in zip(_PORT_OPTIONS, ports, strict=True)),
    )
    program = Path(sys.executable).with_name("weed")
    return spawn([program, "-logtostderr=true", "server", *options], directory / "weed.log")


def _becomes_ready(server: S3Server) -> bool:
    client: Any = botocore.session.get_session().create_client(
        "s3",
        endpoint_url=server.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=5),
    )
    deadline = time.monotonic() + START_SECONDS
    with contextlib.closing(client):
        while time.monotonic() < deadline and server.process.poll() is None:
            # Only a stored object proves that the volume server has joined the gateway.
            with contextlib.suppress(BotoCoreError, ClientError):
                client.create_bucket(Bucket="readiness")
                client.put_object(Bucket="readiness", Key="probe", Body=b"ready")
                return True
            time.sleep(POLL_SECONDS)
    return False
