"""Everything that a game day can break; each fault heals itself when it ends or is cancelled."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from gameday.faults.disk import exchange_homes
from gameday.faults.dockerd import STARTS_BY_ITSELF, exchange_dockerd, restart_dockerd
from gameday.faults.processes import kill_part, pause_look, stop_part
from gameday.faults.s3 import MOODS, end_relay, fill_disk, take_s3_away, trouble_s3
from gameday.faults.workspaces import kill_helper, kill_instance, kill_job, remove_instance
from gameday.stage.stage import LOCAL_DOCKER, Stage

# Workers do the work, so they are worth more; without a front door nobody would have anything done.
KILLS = {
    "worker": 4,
    "worker-2": 4,
    "api": 1,
    "proxy": 1,
    "postgres": 2,
    "redis": 3,
    "s3": 3,
    "temporal": 2,
}
STOP = 1
LOOK = 6
RELAY = 2
# There is not always one to be killed.
JOB = 8
HELPER = 5
INSTANCE = 5
S3 = 2
S3_AWAY = 1
DISK = 4
HOMES = 2
DOCKERD = 1


@dataclass(frozen=True)
class Fault:
    """Something to break; running it takes as long as it lasts, and tells in a line what was done."""

    kind: str
    run: Callable[[Random], Awaitable[str]]
    waits: bool = False
    """Whether nothing is broken until its very end."""


Weighted = tuple[int, Fault]


def faults_of(stage: Stage, *, dockerd: bool = False) -> list[Weighted]:
    """What can be broken here, each with its weight; the Docker engine only where that was asked for."""
    return [*_of_parts(stage), *_of_workspaces(stage), *_of_stores(stage), *_of_engine(stage, dockerd)]


def _of_parts(stage: Stage) -> Iterator[Weighted]:
    for name, weight in KILLS.items():
        yield weight, Fault(f"kill-{name}", partial(kill_part, stage, name))
        yield STOP, Fault(f"stop-{name}", partial(stop_part, stage, name))
    yield LOOK, Fault("pause-look", partial(pause_look, stage), waits=True)


def _of_workspaces(stage: Stage) -> Iterator[Weighted]:
    yield JOB, Fault("kill-job", partial(kill_job, stage), waits=True)
    yield HELPER, Fault("kill-helper", partial(kill_helper, stage), waits=True)
    yield INSTANCE, Fault("kill-ide", partial(kill_instance, stage))
    if stage.backend == LOCAL_DOCKER:
        yield INSTANCE, Fault("remove-ide", partial(remove_instance, stage))


def _of_stores(stage: Stage) -> Iterator[Weighted]:
    yield RELAY, Fault("relay", partial(end_relay, stage))
    for kind in MOODS:
        yield S3, Fault(kind, partial(trouble_s3, stage, kind))
    yield S3_AWAY, Fault("s3-away", partial(take_s3_away, stage))
    if stage.disk is not None:
        yield HOMES, Fault("exchange-homes", partial(exchange_homes, stage))
        yield DISK, Fault("disk-full", partial(fill_disk, stage))


def _of_engine(stage: Stage, wanted: bool) -> Iterator[Weighted]:
    if wanted and stage.backend == LOCAL_DOCKER:
        yield DOCKERD, Fault("dockerd", partial(restart_dockerd, stage))
        if not STARTS_BY_ITSELF:
            yield DOCKERD, Fault("exchange-dockerd", partial(exchange_dockerd, stage))
