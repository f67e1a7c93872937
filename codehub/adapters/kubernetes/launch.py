"""Waits until the IDE in a new Pod accepts traffic, and explains what keeps it from that."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lightkube.resources.core_v1 import Event, Pod

from codehub.adapters.kubernetes.client import Kubernetes
from codehub.adapters.kubernetes.following import follow
from codehub.adapters.kubernetes.options import Timeouts
from codehub.adapters.kubernetes.pods import (
    CREATE_FAILURES,
    HOPELESS,
    PULL_FAILURES,
    PodInfo,
    explain_exit,
)
from codehub.domain.failures import Failure, Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.ports import Progress, Report

TICK_SECONDS = 1.0
# Most Pods run before this, so that events are read only for those that have trouble.
EVENTS_SECONDS = 3.0
MAX_MESSAGE_LENGTH = 500
# What the latest event of a Pod says about it; see codehub/words.py.
STEP_OF_EVENT = {
    "FailedScheduling": "waiting for a node",
    "FailedMount": "waiting for the disk",
    "FailedAttachVolume": "waiting for the disk",
    "SuccessfulAttachVolume": "launch",
    "Pulling": "pulling the image",
}


@dataclass
class Trouble:
    """What keeps a Pod from running, as far as its events tell; it is progress, not an error."""

    step: str = "launch"
    message: str = ""


@dataclass
class Launch:
    """One wait for a Pod: how long it has taken, and what it has seen."""

    kubernetes: Kubernetes
    timeouts: Timeouts
    began: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    trouble: Trouble = field(default_factory=Trouble)
    # Since when the image cannot be pulled, and the first words about it: later ones say only "back-off".
    failing_since: float | None = None
    failure: str = ""
    running_since: float | None = None

    async def wait(self, pod: Pod, report: Report) -> Failure | None:
        """Return None once the IDE accepts traffic, or the failure if it does not; the Pod is kept."""
        async with follow(self.kubernetes, Pod, pod) as followed:
            while followed.latest is not None:
                info = PodInfo.of(followed.latest)
                if info.runs and info.has_condition("Ready"):
                    return None
                if failure := await self._find_failure(info):
                    return failure
                report(self._progress(info))
                await followed.wait(TICK_SECONDS)
        return Transient(ErrorReason.ACTION_FAILED, "The instance was removed while it started.")

    async def _find_failure(self, info: PodInfo) -> Failure | None:
        if info.is_terminating:
            return Transient(ErrorReason.ACTION_FAILED, "The instance is being removed.")
        if info.has_exited:
            return Transient(
                ErrorReason.ACTION_FAILED, f"The IDE did not become ready. {explain_exit(info)}."
            )
        if info.runs:
            return self._check_start()
        return self._check_container(info) or await self._check_launch(info)

    def _check_start(self) -> Failure | None:
        if self.running_since is None:
            self.running_since = self._now()
        if self._now() - self.running_since < self.timeouts.start:
            return None
        return Transient(ErrorReason.ACTION_FAILED, "The IDE did not become ready.")

    def _check_container(self, info: PodInfo) -> Failure | None:
        """Return the failure of an image or a configuration that stays unusable for a while."""
        waiting = info.waiting
        reason = (waiting.reason if waiting else None) or ""
        if reason not in PULL_FAILURES | CREATE_FAILURES:
            self.failing_since = None
            return None
        if self.failing_since is None:
            self.failing_since = self._now()
        if reason != "ImagePullBackOff" and waiting and waiting.message:
            self.failure = waiting.message[:MAX_MESSAGE_LENGTH]
        patience = 0.0 if reason in HOPELESS else self.timeouts.pull_failures
        if self._now() - self.failing_since < patience:
            return None
        if reason in CREATE_FAILURES:
            return Transient(ErrorReason.ACTION_FAILED, f"The image cannot be run: {self.failure or reason}.")
        return _pull_failed(info, self.failure or self.trouble.message or reason)

    async def _check_launch(self, info: PodInfo) -> Failure | None:
        elapsed = self._now() - self.began
        if elapsed > EVENTS_SECONDS:
            self.trouble = await self._read_trouble(info)
        if elapsed < self.timeouts.launch:
            return None
        detail = f": {self.trouble.message}" if self.trouble.message else ""
        return Transient(
            ErrorReason.ACTION_FAILED,
            f"The instance did not start within {self.timeouts.launch:.0f} s{detail}.",
        )

    async def _read_trouble(self, info: PodInfo) -> Trouble:
        """Return what the latest events say."""
        scheduled = info.condition("PodScheduled")
        if scheduled is not None and scheduled.status == "False":
            message = (scheduled.message or "")[:MAX_MESSAGE_LENGTH]
            return Trouble(STEP_OF_EVENT["FailedScheduling"], message)
        latest = Trouble()
        listed = self.kubernetes.client.list(Event, fields={"involvedObject.uid": info.uid})
        for event in sorted([each async for each in listed], key=_time_of):
            if event.reason in STEP_OF_EVENT or event.type == "Warning":
                step = STEP_OF_EVENT.get(event.reason or "", latest.step)
                latest = Trouble(step, (event.message or "")[:MAX_MESSAGE_LENGTH])
        return latest

    def _progress(self, info: PodInfo) -> Progress:
        if self.running_since is not None and info.runs:
            elapsed = self._now() - self.running_since
            return Progress("wait for the IDE", int(elapsed), int(self.timeouts.start), "seconds")
        elapsed = self._now() - self.began
        return Progress(self.trouble.step, int(elapsed), int(self.timeouts.launch), "seconds")

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _time_of(event: Event) -> datetime:
    """Return when it last happened; newer kinds of events have only the first time."""
    return event.lastTimestamp or event.eventTime or datetime.min.replace(tzinfo=UTC)


def _pull_failed(info: PodInfo, reason: str) -> Permanent:
    image = info.pod.spec.containers[0].image if info.pod.spec else ""
    return Permanent(
        ErrorReason.IMAGE_PULL_FAILED,
        f"The image {image} is not available: {reason}. Push it, or choose another image.",
    )
