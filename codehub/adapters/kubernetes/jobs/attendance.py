"""Attends a job from the creation of its Pod until its end: renews its lease and passes on its output."""

import asyncio
import logging
from dataclasses import dataclass, field
from http import HTTPStatus

import httpx2
from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.client import ERRORS, Kubernetes, status_of, uid_of
from codehub.adapters.kubernetes.jobs.leftovers import name_of
from codehub.adapters.kubernetes.jobs.manifest import LEASE_ANNOTATION, RENEW_SECONDS, lease_seconds_of
from codehub.adapters.kubernetes.jobs.outcome import (
    cannot_launch,
    has_ended,
    has_started,
    is_hopeless,
    is_lost,
    launch_failure,
)
from codehub.adapters.kubernetes.options import KubernetesOptions
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput

POLL_SECONDS = 0.25
# Of a job that has ended, the log is there at once.
LAST_LINES_SECONDS = 5.0
# A job writes twice a second, so the connection is dead.
SILENCE_SECONDS = 30.0
# A log that cannot be read, as while its kubelet restarts, is tried again after this.
REREAD_SECONDS = 1.0
SHOWN_LENGTH = 1000
GONE = {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
_log = logging.getLogger(__name__)


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Attendance:
    """The caller's part of one job."""

    kubernetes: Kubernetes
    options: KubernetesOptions
    pod: Pod
    output: JobOutput
    _created_at: float = field(default_factory=_now)
    # The last time that the lease was renewed.
    _renewed_at: float = field(default_factory=_now)
    # When the current problem began; None if there is none.
    _stuck_since: float | None = None
    _lost_since: float | None = None
    _reader: asyncio.Task[None] | None = None
    # The last time that the job wrote something.
    _heard_at: float = field(default_factory=_now)

    async def attend(self) -> Pod:
        """Return the Pod when its job has ended. Raise a Failure if it does not start or is removed."""
        try:
            while not has_ended(self.pod):
                self._check()
                self._read_output()
                await self._pause()
                await self._observe()
            self._read_output()
            await self._wait_for_last_lines()
        finally:
            if self._reader is not None:
                self._reader.cancel()
        return self.pod

    def _check(self) -> None:
        if has_started(self.pod):
            self._check_node()
        else:
            self._check_launch()

    def _check_launch(self) -> None:
        now, timeouts = _now(), self.options.timeouts
        self._stuck_since = (self._stuck_since or now) if cannot_launch(self.pod) else None
        stuck = self._stuck_since is not None and now - self._stuck_since > timeouts.pull_failures
        if stuck or is_hopeless(self.pod) or now - self._created_at > timeouts.launch:
            raise launch_failure(self.pod)

    def _check_node(self) -> None:
        """Give up on a node that does not respond only after the job there has ended with its lease."""
        self._lost_since = (self._lost_since or _now()) if is_lost(self.pod) else None
        if self._lost_since is not None and _now() - self._lost_since > lease_seconds_of(self.pod):
            node = self.pod.spec.nodeName if self.pod.spec else None
            raise Transient(
                ErrorReason.UNREACHABLE,
                f"The node {node} with the storage job does not respond. Check it; CodeHub tries again.",
            )

    def _read_output(self) -> None:
        """Start to read the log, again if the connection was lost; the last line has the latest progress."""
        if not has_started(self.pod) or self._is_reading() or self._has_just_read():
            return
        tail = None if self._reader is None else 1
        self._heard_at = _now()
        self._reader = asyncio.create_task(self._pass_on_output(tail))

    def _is_reading(self) -> bool:
        if self._reader is None or self._reader.done():
            return False
        if _now() - self._heard_at < SILENCE_SECONDS:
            return True
        self._reader.cancel()
        return False

    def _has_just_read(self) -> bool:
        return self._reader is not None and _now() - self._heard_at < REREAD_SECONDS

    async def _pass_on_output(self, tail: int | None) -> None:
        try:
            async for line in self.kubernetes.read_log(name_of(self.pod), tail=tail, follow=True):
                self._take(line)
        except ERRORS as error:
            _log.info("The log of %s ended: %s", name_of(self.pod), error)

    def _take(self, line: str) -> None:
        """Take a line: events are JSON objects, anything else was written to stderr."""
        self._heard_at = _now()
        if line.startswith("{"):
            self.output.feed(line.encode())
        elif text := line.rstrip()[:SHOWN_LENGTH]:
            self.output.stderr = text
            _log.warning("storage job: %s", text)

    async def _pause(self) -> None:
        """Wait for the next renewal, or for the end of the output, which is the end of the job."""
        if self._reader is None or self._reader.done():
            await asyncio.sleep(POLL_SECONDS)
        else:
            await asyncio.wait([self._reader], timeout=RENEW_SECONDS)

    async def _wait_for_last_lines(self) -> None:
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=LAST_LINES_SECONDS)

    async def _observe(self) -> None:
        """Read the Pod, or renew its lease if it is time. Endure an outage that is shorter than the lease."""
        try:
            self.pod = await (self._renew() if _now() - self._renewed_at >= RENEW_SECONDS else self._read())
        except ERRORS as error:
            if isinstance(error, httpx2.HTTPStatusError) and status_of(error) in GONE:
                raise removed() from error
            if _now() - self._renewed_at > lease_seconds_of(self.pod):
                raise
            await asyncio.sleep(POLL_SECONDS)

    async def _renew(self) -> Pod:
        # The API refuses the patch if another Pod has the name by now.
        metadata = {"uid": uid_of(self.pod), "annotations": {LEASE_ANNOTATION: self._stamp()}}
        pod = await self.kubernetes.client.patch(Pod, name_of(self.pod), {"metadata": metadata})
        self._renewed_at = _now()
        return pod

    async def _read(self) -> Pod:
        pod = await self.kubernetes.client.get(Pod, name_of(self.pod))
        if uid_of(pod) != uid_of(self.pod):
            raise removed()
        return pod

    def _stamp(self) -> str:
        return self.kubernetes.now().isoformat()


def removed() -> Transient:
    return Transient(
        ErrorReason.ACTION_FAILED, "The Pod of the storage job was removed before it finished. Try again."
    )
