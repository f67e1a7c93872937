"""The embedded Temporal: the development server with its Web UI, in one SQLite file."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from codehub.embedded.child_process import Child
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.servers.base import Server, StackConfig, http_ok

NAME = "temporal"
PORTS = ("temporal", "temporal.ui", "temporal.http", "temporal.metrics")
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


def child(config: StackConfig) -> Child:
    directory = config.data.server_directory(NAME)
    ports = config.ports
    namespace = config.settings.temporal.namespace

    async def is_ready() -> bool:
        frontend = await http_ok(ports["temporal.http"], f"/api/v1/namespaces/{namespace}")
        return frontend and await http_ok(ports["temporal.ui"], "/")

    return Child(
        name=NAME,
        title="Temporal",
        command=(str(Path(sys.executable).with_name("temporal")), *_arguments(ports, namespace)),
        directory=directory,
        address=f"{LOOPBACK}:{ports['temporal']}",
        is_ready=is_ready,
        # Its own home, without the configuration of the user's `temporal` command.
        environment={"HOME": str(directory), "PATH": os.defpath},
        external_setting="CODEHUB_TEMPORAL_ADDRESS",
    )


def environment(config: StackConfig) -> dict[str, str]:
    return {
        "CODEHUB_TEMPORAL_ADDRESS": f"{LOOPBACK}:{config.ports['temporal']}",
        "CODEHUB_TEMPORAL_UI_URL": f"http://{LOOPBACK}:{config.ports['temporal.ui']}",
    }


def _arguments(ports: Mapping[str, int], namespace: str) -> list[str]:
    options = [
        f"--ip={LOOPBACK}",
        f"--ui-ip={LOOPBACK}",
        f"--port={ports['temporal']}",
        f"--ui-port={ports['temporal.ui']}",
        f"--http-port={ports['temporal.http']}",
        f"--metrics-port={ports['temporal.metrics']}",
        "--db-filename=temporal.db",
        "--ui-disable-news-fetch",
        "--log-level=warn",
    ]
    options += [f"--namespace={namespace}"] if namespace != "default" else []
    options += [f"--dynamic-config-value={value}" for value in DYNAMIC_CONFIGURATION]
    return ["server", "start-dev", *options, *(f"--sqlite-pragma={pragma}" for pragma in SQLITE_PRAGMAS)]


TEMPORAL = Server(NAME, "Temporal", PORTS, child, environment)
