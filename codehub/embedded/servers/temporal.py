"""The embedded Temporal: the development server with its Web UI, in one SQLite file."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from codehub.embedded.child_process import Child
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.servers.base import Place, Server, http_ok

NAME = "temporal"
PORTS = ("temporal", "temporal.ui", "temporal.http", "temporal.metrics")
# Without these, every workflow task is paced at 50 ms, and timers and retries have a floor of about 1 s.
DYNAMIC_CONFIGURATION = (
    "history.transferProcessorMaxPollRPS=5000",
    "history.timerProcessorMaxPollRPS=5000",
    "history.visibilityProcessorMaxPollRPS=5000",
    'history.timerProcessorMaxTimeShift="20ms"',
    # Owners take turns in a queue. Within one partition they do so exactly, else only nearly.
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)
# Acknowledged work survives kill -9 so, at a fraction of the cost.
SQLITE_PRAGMAS = ("journal_mode=wal", "synchronous=normal")


def child(place: Place) -> Child:
    directory = place.data.part(NAME)
    ports = place.ports
    namespace = place.settings.temporal.namespace

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
        # Its own home: no configuration of the user's `temporal` command shall leak in.
        environment={"HOME": str(directory), "PATH": os.defpath},
        instead="CODEHUB_TEMPORAL_ADDRESS",
    )


def environment(place: Place) -> dict[str, str]:
    return {
        "CODEHUB_TEMPORAL_ADDRESS": f"{LOOPBACK}:{place.ports['temporal']}",
        "CODEHUB_TEMPORAL_UI_URL": f"http://{LOOPBACK}:{place.ports['temporal.ui']}",
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
