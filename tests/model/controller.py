"""The control loop over the domain, step by step; a test can kill it at every `yield`."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from codehub.domain import naming
from codehub.domain.conditions import DISCARDED, ArchiveFact, Observation, Snapshot, WorkspaceId
from codehub.domain.deletion import may_remove_archived_volume, may_remove_volume
from codehub.domain.failures import Failure, Permanent
from codehub.domain.judge import judge
from codehub.domain.planner import Decision, needs_upload, note_waiting, plan
from codehub.domain.states import DesiredState, ErrorReason, Operation
from codehub.domain.transitions import claim, commit_archive, fail, mark_restored, release, settle
from tests.model.world import World

WORKSPACE = WorkspaceId("00000000-0000-4000-8000-000000000001")

Steps: TypeAlias = Generator[None, None, None]


@dataclass
class System:
    """The world, the stored row, and what the invariants need to know about the past."""

    world: World = field(default_factory=World)
    row: Snapshot = field(
        default_factory=lambda: Snapshot(workspace_id=WORKSPACE, desired_state=DesiredState.RUNNING)
    )
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    archive_operations: int = 0
    begun: list[Operation] = field(default_factory=list)
    removed_without_archive: bool = False
    set_aside_without_archive: bool = False

    def tick(self) -> None:
        self.now += timedelta(seconds=1)

    def new_archive_op_id(self) -> str:
        self.archive_operations += 1
        return f"00000000-0000-4000-9000-{self.archive_operations:012x}"

    def observe(self) -> Snapshot:
        return self.apply(self.row, self.world.observe(self.row.archive_key))

    def apply(self, row: Snapshot, observation: Observation) -> Snapshot:
        """Apply an observation to the row; a claim that waits for a provider is released."""
        return note_waiting(release(judge(row, observation, self.now), self.now), self.now)


@dataclass(frozen=True)
class PausedObservation:
    """The observation of a worker that was paused before it stored it."""

    row: Snapshot
    observation: Observation


def is_current(paused: PausedObservation, row: Snapshot) -> bool:
    """Return whether the row is still the one that was observed."""
    return paused.row == row


def store_paused_observation(system: System, paused: PausedObservation) -> None:
    if is_current(paused, system.row):
        system.row = system.apply(system.row, paused.observation)


def converge(system: System) -> Generator[None, None, Decision]:
    """Observe, plan, claim, run and settle until there is nothing left to do, or nothing can be done."""
    while True:
        system.row = system.observe()
        yield
        decided = plan(system.row)
        if decided.decision is Decision.SETTLE:
            system.row = settle(system.row, system.now, 0).snapshot
            yield
            continue
        if decided.decision is not Decision.RUN:
            return decided.decision
        if system.row.operation is Operation.NONE:
            claimed = claim(system.row, decided.operation, system.new_archive_op_id())
            system.row = replace(claimed, claimed_at=system.now)
            # Removing a leftover is a cleanup, not a move on the path.
            if decided.operation is not Operation.ARCHIVING or needs_upload(system.row):
                system.begun.append(decided.operation)
            yield
        yield from attempt(system, decided.operation)


def attempt(system: System, operation: Operation) -> Steps:
    try:
        yield from RUNBOOKS[operation](system)
    except Failure as failure:
        system.row = fail(system.row, failure.reason, failure.message, system.now, 0).snapshot
    else:
        system.row = settle(system.observe(), system.now, 0).snapshot
    yield


def provisioning(system: System) -> Steps:
    system.world.create_volume()
    yield


def restoring(system: System) -> Steps:
    content = system.world.begin_restore(system.row.archive_key)
    yield
    system.world.finish_restore(content)
    yield
    system.row = mark_restored(system.row)
    yield


def starting(system: System) -> Steps:
    system.world.start_container()
    yield


def stopping(system: System) -> Steps:
    system.world.remove_container()
    yield


def archiving(system: System) -> Steps:
    if needs_upload(system.row):
        yield from _upload(system, system.world.upload)
    key = system.row.archive_key
    system.world.require_archive(key)
    if key is None or not may_remove_archived_volume(system.row, key):
        raise Permanent(ErrorReason.ACTION_FAILED, "the archive is not committed")
    _remove_volume(system)
    yield


def create_empty_archive(system: System) -> Steps:
    yield from _upload(system, system.world.upload_empty)


def deleting(system: System) -> Steps:
    system.world.remove_container()
    yield
    row = system.row
    archive = ArchiveFact.UNREACHABLE if row.purge else system.world.observe_archive(row.archive_key)
    if not may_remove_volume(row, archive):
        raise Permanent(ErrorReason.ACTION_FAILED, "the home has no readable archive")
    _remove_volume(system)
    yield


def _upload(system: System, put: Callable[[str], None]) -> Steps:
    key = naming.archive_key(WORKSPACE, system.row.archive_op_id or "")
    if not system.world.is_committed(key):
        put(key)
        yield
        system.world.upload_meta(key)
        yield
    system.row = commit_archive(system.row)
    yield


def _remove_volume(system: System) -> None:
    """Remove the volume, and record if that destroyed a home without a committed archive."""
    had_volume = system.world.volume is not None and system.row.restore_marker != DISCARDED
    system.world.remove_volume()
    saved = system.world.is_committed(system.row.archive_key)
    if had_volume and not saved and not system.row.purge:
        system.removed_without_archive = True


RUNBOOKS: dict[Operation, Callable[[System], Steps]] = {
    Operation.PROVISIONING: provisioning,
    Operation.RESTORING: restoring,
    Operation.STARTING: starting,
    Operation.STOPPING: stopping,
    Operation.ARCHIVING: archiving,
    Operation.CREATE_EMPTY_ARCHIVE: create_empty_archive,
    Operation.DELETING: deleting,
}
