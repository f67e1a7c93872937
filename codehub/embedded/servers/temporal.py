"""The embedded Temporal: the development server in one SQLite file, behind mutual TLS."""

import os
import sys
from pathlib import Path

from codehub.embedded import temporal_relay
from codehub.embedded.certificates import Certificates, client_context
from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import DataDir
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.probes import http_ok
from codehub.embedded.servers.base import Server, StackConfig

NAME = "temporal"
PORT = "temporal"
# Without these, every workflow task takes 50 ms, and timers and retries at least about 1 s.
DYNAMIC_CONFIGURATION = (
    "history.transferProcessorMaxPollRPS=5000",
    "history.timerProcessorMaxPollRPS=5000",
    "history.visibilityProcessorMaxPollRPS=5000",
    'history.timerProcessorMaxTimeShift="20ms"',
    # Owners take turns in a queue. With several partitions they would do so only approximately.
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)
# Faster than SQLite's defaults, and acknowledged writes still survive kill -9.
SQLITE_PRAGMAS = ("journal_mode=wal", "synchronous=normal")


def certificates(data: DataDir) -> Certificates:
    """Return the certificates of the server and its clients."""
    return Certificates(data.server_directory(NAME) / "tls")


def child(config: StackConfig) -> Child:
    files, port = certificates(config.data), config.ports[PORT]
    namespace = config.settings.temporal.namespace
    temporal = (str(Path(sys.executable).with_name("temporal")), *_arguments(namespace))
    directory = config.data.server_directory(NAME)

    async def is_ready() -> bool:
        # The relay starts to listen when Temporal is ready.
        return await http_ok(port, "/", tls=client_context(files))

    return Child(
        name=NAME,
        title="Temporal",
        command=temporal_relay.command(port, files.authority, files.server, namespace, temporal),
        directory=directory,
        address=f"{LOOPBACK}:{port}",
        is_ready=is_ready,
        # Its own home, without the configuration of the user's `temporal` command.
        environment={"HOME": str(directory), "PATH": os.defpath},
        external_setting="CODEHUB_TEMPORAL_ADDRESS",
    )


def environment(config: StackConfig) -> dict[str, str]:
    files = certificates(config.data)
    certificate, key = files.client
    return {
        "CODEHUB_TEMPORAL_ADDRESS": f"{LOOPBACK}:{config.ports[PORT]}",
        "CODEHUB_TEMPORAL_TLS": "true",
        "CODEHUB_TEMPORAL_TLS_CA_FILE": str(files.authority),
        "CODEHUB_TEMPORAL_TLS_CERT_FILE": str(certificate),
        "CODEHUB_TEMPORAL_TLS_KEY_FILE": str(key),
        "CODEHUB_TEMPORAL_TLS_SERVER_NAME": NAME,
    }


def _arguments(namespace: str) -> list[str]:
    options = [
        f"--ip={LOOPBACK}",
        f"--ui-ip={LOOPBACK}",
        f"--port={temporal_relay.FRONTEND_PORT}",
        f"--ui-port={temporal_relay.UI_PORT}",
        f"--http-port={temporal_relay.HTTP_PORT}",
        f"--metrics-port={temporal_relay.METRICS_PORT}",
        "--db-filename=temporal.db",
        "--ui-disable-news-fetch",
        "--log-level=warn",
    ]
    options += [f"--namespace={namespace}"] if namespace != "default" else []
    options += [f"--dynamic-config-value={value}" for value in DYNAMIC_CONFIGURATION]
    return ["server", "start-dev", *options, *(f"--sqlite-pragma={pragma}" for pragma in SQLITE_PRAGMAS)]


TEMPORAL = Server(NAME, "Temporal", (PORT,), child, environment, certificates)
