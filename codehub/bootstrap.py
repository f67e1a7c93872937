"""The only wiring: which adapters stand behind the ports."""

from dataclasses import dataclass, field
from datetime import timedelta

from codehub.db.session import Database
from codehub.domain.limits import IdleTimes, RunningLimits
from codehub.ports import ActivityBuffer, Archives, Convergence, Instances, StorageJobs, Volumes


@dataclass(frozen=True)
class Ports:
    """Everything that a process may talk to."""

    database: Database
    instances: Instances
    volumes: Volumes
    jobs: StorageJobs
    archives: Archives
    buffer: ActivityBuffer
    convergence: Convergence


@dataclass(frozen=True)
class Policy:
    """The numbers of the settings, as the domain spells them."""

    idle_times: IdleTimes = field(
        default_factory=lambda: IdleTimes(timedelta(seconds=600), timedelta(seconds=1800))
    )
    limits: RunningLimits = field(default_factory=RunningLimits)
    gc_grace: timedelta = timedelta(hours=2)
    shutdown_grace: timedelta = timedelta(seconds=10)
    concurrent_activities: int = 100
