"""The embedded S3: SeaweedFS in one process and one directory."""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as AwsCredentials

from codehub.embedded.certificates import Certificates, client_context
from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import Credentials, DataDir, write_private
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.probes import http_ok, http_status
from codehub.embedded.servers.base import Server, StackConfig

NAME = "s3"
SERVERS = ("s3", "master", "volume", "filer")
PORTS = tuple(f"s3.{server}{kind}" for server in SERVERS for kind in ("", ".grpc"))
BUCKET_IS_THERE = (200, 409)
VOLUME_MEGABYTES = 1024
# SeaweedFS leaves its sockets here when it is killed.
SOCKETS = Path("/tmp")  # noqa: S108

# Without these, the ports behind the S3 gateway would serve every local user. gRPC and the master's HTTP use
# mutual TLS. Objects travel without TLS, which would slow them down; the volume server and the filer require
# a token signed with the shared key.
SECURITY = """\
[jwt.signing]
key = "{key}"
[jwt.signing.read]
key = "{key}"
[jwt.filer_signing]
key = "{key}"
[jwt.filer_signing.read]
key = "{key}"
[grpc]
ca = "{authority}"
[https.master]
cert = "{certificate}"
key = "{certificate_key}"
ca = "{authority}"
"""
GRPC_SECURITY = """\
[grpc.{part}]
cert = "{certificate}"
key = "{certificate_key}"
"""
GRPC_PARTS = (*SERVERS, "client")


def certificates(data: DataDir) -> Certificates:
    """Return the certificates of the SeaweedFS components and of the readiness check."""
    return Certificates(data.server_directory(NAME) / "tls")


def child(config: StackConfig) -> Child:
    directory, files = config.data.server_directory(NAME), certificates(config.data)
    ports, credentials = config.ports, config.credentials
    bucket = config.settings.s3.bucket

    async def prepare() -> None:
        _remove_sockets(ports)
        write_private(directory / "s3.json", _identities(credentials))
        # SeaweedFS reads it from its working directory.
        write_private(directory / "security.toml", _security(credentials, files))

    async def is_ready() -> bool:
        status = await _create_bucket(config)
        # The volume server has joined only when the master can assign a place for an object.
        return status in BUCKET_IS_THERE and await http_ok(
            ports["s3.master"], f"/dir/assign?collection={bucket}", tls=client_context(files)
        )

    return Child(
        name=NAME,
        title="S3",
        command=(str(Path(sys.executable).with_name("weed")), *_arguments(ports)),
        directory=directory,
        address=f"{LOOPBACK}:{ports['s3.s3']}",
        is_ready=is_ready,
        environment={"HOME": str(directory), "PATH": os.defpath},
        prepare=prepare,
        remove_leftovers=lambda: _remove_sockets(ports),
        # SIGTERM would wait 15 s for its own connections. Acknowledged writes are already in the kernel.
        stop_signal=signal.SIGKILL,
        external_setting="CODEHUB_S3_ENDPOINT_URL",
    )


def environment(config: StackConfig) -> dict[str, str]:
    return {
        "CODEHUB_S3_ENDPOINT_URL": f"http://{LOOPBACK}:{config.ports['s3.s3']}",
        "CODEHUB_S3_ACCESS_KEY": config.credentials.s3_access_key,
        "CODEHUB_S3_SECRET_KEY": config.credentials.s3_secret_key,
    }


def _identities(credentials: Credentials) -> str:
    keys = {"accessKey": credentials.s3_access_key, "secretKey": credentials.s3_secret_key}
    identity = {"name": "codehub", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List"]}
    return json.dumps({"identities": [identity]})


def _security(credentials: Credentials, files: Certificates) -> str:
    certificate, key = files.server
    paths = {"certificate": certificate, "certificate_key": key}
    common = SECURITY.format(key=credentials.s3_signing_key, authority=files.authority, **paths)
    return common + "".join(GRPC_SECURITY.format(part=part, **paths) for part in GRPC_PARTS)


def _arguments(ports: Mapping[str, int]) -> list[str]:
    return [
        "-logtostderr=true",
        "server",
        "-dir=.",
        f"-ip={LOOPBACK}",
        f"-ip.bind={LOOPBACK}",
        # A single master does not wait for an election.
        "-master.peers=none",
        "-master.telemetry=false",
        f"-master.volumeSizeLimitMB={VOLUME_MEGABYTES}",
        # As many volumes as fit on the disk.
        "-volume.max=0",
        "-s3",
        "-s3.config=s3.json",
        "-s3.localSocket=s3.sock",
        "-filer.localSocket=filer.sock",
        # 0 disables these two, which would listen on fixed ports.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{server}.port={ports[f's3.{server}']}" for server in SERVERS),
        *(f"-{server}.port.grpc={ports[f's3.{server}.grpc']}" for server in SERVERS),
    ]


async def _create_bucket(config: StackConfig) -> int | None:
    # Signed without an S3 client, which takes longer to load than the server to start.
    port, bucket = config.ports["s3.s3"], config.settings.s3.bucket
    request = AWSRequest(method="PUT", url=f"http://{LOOPBACK}:{port}/{bucket}")
    keys = AwsCredentials(config.credentials.s3_access_key, config.credentials.s3_secret_key)
    S3SigV4Auth(keys, "s3", config.settings.s3.region).add_auth(request)
    return await http_status(port, f"/{bucket}", "PUT", dict(request.headers.items()))


def _remove_sockets(ports: Mapping[str, int]) -> None:
    for server in SERVERS:
        for port in (ports[f"s3.{server}"], ports[f"s3.{server}.grpc"]):
            for path in SOCKETS.glob(f"seaweedfs-*-{port}.sock"):
                # Another server may have the port by now, and a socket with the same name.
                if not _is_served(path):
                    path.unlink(missing_ok=True)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


S3 = Server(NAME, "S3", PORTS, child, environment, certificates)
