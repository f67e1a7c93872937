"""The policy of the worker, from the settings."""

import os
from dataclasses import dataclass, field
from datetime import timedelta

from codehub.adapters.local.ides import installed_ides
from codehub.domain.garbage import GracePeriods
from codehub.domain.images import AllowedImages, allowed_images
from codehub.domain.limits import IdleTimes, RunningLimits
from codehub.domain.retention import RetentionPeriods
from codehub.settings import Settings
from codehub.settings.types import IMAGE_OF_INSTANCE

FEWEST_STARTS = 4
OUR_IMAGE = "codehub-workspace"


@dataclass(frozen=True)
class StepLimits:
    """How many steps of each kind a worker runs at once."""

    archives: int = 2
    restores: int = 2
    starts: int = 4
    others: int = 100


@dataclass(frozen=True)
class Policy:
    """The settings of the worker in the types of the domain."""

    idle_times: IdleTimes = field(
        default_factory=lambda: IdleTimes(timedelta(seconds=600), timedelta(seconds=1800))
    )
    longest_idle_times: IdleTimes = field(
        default_factory=lambda: IdleTimes(timedelta(days=7), timedelta(days=90))
    )
    allowed_images: AllowedImages = field(default_factory=lambda: AllowedImages(("*",)))
    limits: RunningLimits = field(default_factory=RunningLimits)
    graces: GracePeriods = field(default_factory=GracePeriods)
    retention: RetentionPeriods = field(default_factory=RetentionPeriods)
    shutdown_grace: timedelta = timedelta(seconds=10)
    stall: timedelta = timedelta(seconds=600)
    steps: StepLimits = StepLimits()


def policy_of(settings: Settings) -> Policy:
    return Policy(
        idle_times=IdleTimes(
            standby=timedelta(seconds=settings.ttl.standby_seconds),
            archive=timedelta(seconds=settings.ttl.archive_seconds),
        ),
        longest_idle_times=longest_idle_times_of(settings),
        allowed_images=allowed_images_of(settings),
        limits=RunningLimits(
            settings.limits.max_running_per_user, settings.limits.max_running_global, disk_limit_of(settings)
        ),
        graces=GracePeriods(
            orphan=timedelta(seconds=settings.gc.grace_seconds),
            undelete=timedelta(seconds=settings.gc.undelete_seconds),
        ),
        retention=RetentionPeriods(
            workspaces=timedelta(days=settings.retention.workspaces_days),
            archives=timedelta(days=settings.retention.archives_days),
            events=timedelta(days=settings.retention.events_days),
            sessions=timedelta(days=settings.retention.sessions_days),
            tokens=timedelta(days=settings.retention.tokens_days),
            usage=timedelta(days=settings.retention.usage_days),
            audit_log=timedelta(days=settings.retention.audit_log_days),
            egress_log=timedelta(days=settings.retention.egress_log_days),
        ),
        shutdown_grace=timedelta(seconds=settings.worker.shutdown_grace_seconds),
        stall=stall_of(settings),
        steps=step_limits_of(settings, len(os.sched_getaffinity(0))),
    )


def disk_limit_of(settings: Settings) -> int | None:
    """Return the disk limit of workspaces; only local homes are measured."""
    is_local = settings.workspaces.instance_backend == "local"
    return (settings.local.disk_bytes or None) if is_local else None


def longest_idle_times_of(settings: Settings) -> IdleTimes:
    return IdleTimes(
        standby=timedelta(seconds=settings.ttl.max_standby_seconds),
        archive=timedelta(seconds=settings.ttl.max_archive_seconds),
    )


def allowed_images_of(settings: Settings) -> AllowedImages:
    """Return the allowed images; on the local backend an image names an installed IDE."""
    workspaces = settings.workspaces
    is_local = workspaces.instance_backend == "local"
    own = [IMAGE_OF_INSTANCE["local"], *installed_ides()] if is_local else [OUR_IMAGE]
    others = own if workspaces.allowed_images is None else workspaces.allowed_images.split(",")
    return allowed_images([workspaces.default_image_ref, *others])


def stall_of(settings: Settings) -> timedelta:
    """Return the stall timeout. Add the time of a stop, which reports no progress meanwhile."""
    slowest = max(settings.docker.stop_seconds, settings.kubernetes.stop_seconds)
    return timedelta(seconds=settings.worker.stall_seconds + slowest)


def step_limits_of(settings: Settings, cores: int) -> StepLimits:
    """Choose limits by cores: a transfer keeps one busy, a starting IDE only part of the time."""
    worker = settings.worker
    return StepLimits(
        archives=worker.concurrent_archives or cores,
        restores=worker.concurrent_restores or cores,
        starts=worker.concurrent_starts or max(FEWEST_STARTS, 2 * cores),
        others=worker.concurrent_activities,
    )
