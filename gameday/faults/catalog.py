"""All faults and how often each one is chosen."""

from collections.abc import Iterator
from functools import partial

from gameday.faults.disk import fill_disk, swap_homes
from gameday.faults.dockerd import RESTARTED_BY_SYSTEMD, restart_dockerd, swap_dockerd
from gameday.faults.fault import Fault
from gameday.faults.kubernetes import (
    CONTROL_PLANE,
    NODE_SERVERS,
    evict_instance,
    fail_node,
    freeze_server,
    kill_server,
    remove_job,
)
from gameday.faults.processes import end_relay_session, kill_part, pause_observation, stop_part
from gameday.faults.s3 import S3_FAULTS, disturb_s3, take_s3_down
from gameday.faults.workspaces import kill_instance, kill_job, kill_tar, remove_instance
from gameday.stage.kubernetes import KubernetesBackend
from gameday.stage.stage import K8S, LOCAL_DOCKER, Stage

# Workers do the work, so kill them more often. Without the API and the proxy, people could do nothing.
KILL_WEIGHTS = {
    "worker": 4,
    "worker-2": 4,
    "api": 1,
    "proxy": 1,
    "egress": 1,
    "postgres": 2,
    "redis": 3,
    "s3": 3,
    "temporal": 2,
}
STOP_WEIGHT = 1
OBSERVATION_WEIGHT = 6
RELAY_WEIGHT = 2
# High, because a job or a tar process is not always running.
JOB_WEIGHT = 8
TAR_WEIGHT = 5
INSTANCE_WEIGHT = 5
S3_WEIGHT = 2
S3_DOWN_WEIGHT = 1
DISK_WEIGHT = 4
HOMES_WEIGHT = 2
DOCKERD_WEIGHT = 1
# All of them together about as often as those of CodeHub's own processes.
SERVER_WEIGHT = 3
FREEZE_WEIGHT = 1
NODE_WEIGHT = 4

Weighted = tuple[int, Fault]


def weighted_faults(stage: Stage, *, dockerd: bool = False) -> list[Weighted]:
    """Return the possible faults with their weights; those of the Docker engine only if requested."""
    return [
        *_parts(stage),
        *_workspaces(stage),
        *_stores(stage),
        *_engine(stage, dockerd),
        *_cluster(stage),
    ]


def _parts(stage: Stage) -> Iterator[Weighted]:
    for name, weight in KILL_WEIGHTS.items():
        yield weight, Fault(f"kill-{name}", partial(kill_part, stage, name))
        yield STOP_WEIGHT, Fault(f"stop-{name}", partial(stop_part, stage, name))
    yield OBSERVATION_WEIGHT, Fault("pause-observation", partial(pause_observation, stage), waits=True)


def _workspaces(stage: Stage) -> Iterator[Weighted]:
    yield JOB_WEIGHT, Fault("kill-job", partial(kill_job, stage), waits=True)
    yield TAR_WEIGHT, Fault("kill-tar", partial(kill_tar, stage), waits=True)
    yield INSTANCE_WEIGHT, Fault("kill-ide", partial(kill_instance, stage))
    if stage.backend_name in {LOCAL_DOCKER, K8S}:
        yield INSTANCE_WEIGHT, Fault("remove-ide", partial(remove_instance, stage))


def _stores(stage: Stage) -> Iterator[Weighted]:
    yield RELAY_WEIGHT, Fault("end-relay-session", partial(end_relay_session, stage))
    for kind in S3_FAULTS:
        yield S3_WEIGHT, Fault(kind, partial(disturb_s3, stage, kind))
    yield S3_DOWN_WEIGHT, Fault("s3-down", partial(take_s3_down, stage))
    if stage.disk is not None:
        yield HOMES_WEIGHT, Fault("swap-homes", partial(swap_homes, stage))
        yield DISK_WEIGHT, Fault("disk-full", partial(fill_disk, stage))


def _engine(stage: Stage, requested: bool) -> Iterator[Weighted]:
    if requested and stage.backend_name == LOCAL_DOCKER:
        yield DOCKERD_WEIGHT, Fault("restart-dockerd", partial(restart_dockerd, stage))
        if not RESTARTED_BY_SYSTEMD:
            yield DOCKERD_WEIGHT, Fault("swap-dockerd", partial(swap_dockerd, stage))


def _cluster(stage: Stage) -> Iterator[Weighted]:
    backend = stage.backend
    if not isinstance(backend, KubernetesBackend):
        return
    yield INSTANCE_WEIGHT, Fault("evict-ide", partial(evict_instance, stage, backend))
    yield JOB_WEIGHT, Fault("remove-job", partial(remove_job, stage, backend), waits=True)
    for server in (*CONTROL_PLANE, *NODE_SERVERS):
        yield SERVER_WEIGHT, Fault(f"kill-{server}", partial(kill_server, stage, backend, server))
        yield FREEZE_WEIGHT, Fault(f"freeze-{server}", partial(freeze_server, backend, server))
    yield NODE_WEIGHT, Fault("fail-node", partial(fail_node, backend))
