"""Break a test cluster on request, and restart what ends: the other side of `codehub gameday --backend k8s`.

It prints a line that describes the cluster. Then it reads requests, one per line, and answers each with
`ok` or with `error:` and a sentence. When its input ends, it repairs everything.
"""

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TextIO

from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.provisioner import DEFAULT_CLASS

SUPERVISE_SECONDS = 1.0
FAILURES = (KeyError, TypeError, RuntimeError, OSError, subprocess.SubprocessError)


class Operator:
    """Handles requests for a cluster, one at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._frozen: list[tuple[str, ...]] = []
        self._off: set[str] = set()
        self._requests: dict[str, Callable[..., None]] = {
            "kill": cluster.kill,
            "freeze": self._freeze,
            "thaw": self._thaw,
            "stop-node": self._stop_node,
            "start-node": self._start_node,
            "load": cluster.load_images,
        }

    def describe(self) -> str:
        return json.dumps(
            {
                "kubeconfig": str(self._cluster.kubeconfig),
                "host_address": self._cluster.host_address,
                "storage_class": DEFAULT_CLASS,
                "nodes": list(self._cluster.nodes),
            }
        )

    def handle(self, line: str) -> str:
        """Carry out a request and return the answer."""
        name, *arguments = line.split()
        try:
            self._requests[name](*arguments)
        except FAILURES as error:
            return f"error: {type(error).__name__}: {' '.join(str(error).split())}"
        return "ok"

    def supervise(self) -> None:
        """Start what has ended without a request; try again in the next round if that fails."""
        for name, machine in self._cluster.nodes.items():
            if not machine.is_on and name not in self._off:
                with suppress(*FAILURES):
                    self._start_node(name)
        with suppress(*FAILURES):
            self._cluster.start_ended_servers()

    def repair(self) -> None:
        """Undo what the requests have broken."""
        for frozen in list(self._frozen):
            self._thaw(*frozen)
        self._off.clear()
        self.supervise()

    def _freeze(self, *server: str) -> None:
        self._frozen.append(server)
        self._cluster.freeze(*server)

    def _thaw(self, *server: str) -> None:
        self._cluster.thaw(*server)
        self._frozen.remove(server)

    def _stop_node(self, name: str) -> None:
        self._off.add(name)
        self._cluster.stop_node(name)

    def _start_node(self, name: str) -> None:
        self._off.discard(name)
        self._cluster.boot_node(name, outlive=True)


def operate(cluster: Cluster, requests: TextIO, answers: TextIO) -> None:
    """Handle requests until the input ends; restart servers that have ended all the time."""
    operator = Operator(cluster)
    print(operator.describe(), file=answers, flush=True)
    try:
        for line in _lines(requests):
            if line is not None:
                print(operator.handle(line), file=answers, flush=True)
            operator.supervise()
    finally:
        operator.repair()


def _lines(source: TextIO) -> Iterator[str | None]:
    """Yield the lines of the input, and None while there are none."""
    received: queue.Queue[str] = queue.Queue()

    def receive() -> None:
        for line in source:
            received.put(line)
        received.put("")

    threading.Thread(target=receive, daemon=True).start()
    while True:
        try:
            line = received.get(timeout=SUPERVISE_SECONDS)
        except queue.Empty:
            yield None
            continue
        if not line:
            return
        yield line
