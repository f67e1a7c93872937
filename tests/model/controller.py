"""The control loop over the pure core, one step at a time: it can be killed at every `yield`."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from codehub.domain import naming
from codehub.domain.conditions import LEFTOVER, Snapshot, WorkspaceId
from codehub.domain.failures import Failure
from codehub.domain.judge import judge
from codehub.domain.planner import Decision, plan
from codehub.domain.states import DesiredState, Operation
from codehub.domain.transitions import claim, commit_archive, fail, mark_restored, needs_upload, settle
from tests.model.world import World

WORKSPACE = WorkspaceId("00000000-0000-4000-8000-000000000001")

Steps: TypeAlias = Generator[None, None, None]


@dataclass
class System:
    """The world, the stored row, and what an observer of both writes down."""

    world: World = field(default_factory=World)
    row: Snapshot = field(
        default_factory=lambda: Snapshot(workspace_id=WORKSPACE, desired_state=DesiredState.RUNNING)
    )
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    archive_operations: int = 0
    begun: list[Operation] = field(default_factory=list)
    removed_without_archive: bool = False

    def tick(self) -> None:
        self.now += timedelta(seconds=1)

    def new_archive_op_id(self) -> str:
        self.archive_operations += 1
        return f"00000000-0000-4000-9000-{self.archive_operations:012x}"

    def observe(self) -> Snapshot:
        return judge(self.row, self.world.look(self.row.archive_key), self.now)


def converge(system: System) -> Generator[None, None, Decision]:
    """Observe, plan, claim, run, settle, until there is nothing to do or nothing can be done."""
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
            system.row = claim(system.row, decided.operation, system.new_archive_op_id())
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
    system.world.require_archive(system.row.archive_key)
    _remove_volume(system)
    yield


def create_empty_archive(system: System) -> Steps:
    yield from _upload(system, system.world.upload_empty)


def deleting(system: System) -> Steps:
    system.world.remove_container()
    yield
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
    """Write down whether this removal destroyed a home of which no committed archive is readable."""
    had_volume = system.world.volume is not None and system.row.restore_marker != LEFTOVER
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
