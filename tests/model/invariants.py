"""What must always hold for one workspace, checked after every step of the control loop."""

from collections.abc import Generator
from datetime import datetime

from hypothesis.stateful import RuleBasedStateMachine, invariant

from codehub.domain.conditions import ContainerFact
from codehub.domain.planner import Decision
from codehub.domain.retention import DeletedWorkspace, may_forget
from codehub.domain.states import DESIRED_LEVELS, LEVELS, Operation, Phase
from tests.model.controller import PausedLook, System, converge
from tests.model.world import EMPTY

# More than the longest path needs: RUNNING to DELETED is three operations of at most eight steps.
STEP_BOUND = 60

DOWN = {Operation.STOPPING, Operation.ARCHIVING, Operation.DELETING}
UP = set(Operation) - DOWN


class Invariants(RuleBasedStateMachine):
    """One workspace; `latest` is the newest content that its owner wrote and has not given up."""

    def __init__(self) -> None:
        super().__init__()
        self.system = System()
        self.world = self.system.world
        self.running: Generator[None, None, Decision] | None = None
        self.latest = EMPTY
        self.edits = EMPTY
        self.taken_by_fault = False
        self.data_faults = 0
        self.lost_volume: int | None = None
        self.orphans: dict[str, datetime] = {}
        self.paused: PausedLook | None = None
        self.deleted_at = self.system.now
        self.given_up: frozenset[str] = frozenset()
        self.left_behind: set[str] = set()

    @invariant()
    def nothing_is_thrown_away_by_choosing(self) -> None:
        assert self.left_behind <= set(self.world.archives)

    @invariant()
    def content_is_never_lost_by_us(self) -> None:
        assert self.world.holds(self.latest) or self.taken_by_fault or self.system.row.purge

    @invariant()
    def nobody_works_in_an_older_empty_or_partial_home(self) -> None:
        runs = self.world.container in {ContainerFact.READY, ContainerFact.UNHEALTHY}
        if runs and self.world.volume is not None:
            assert self.world.volume == self.latest

    @invariant()
    def a_loss_is_an_error_once_it_has_been_seen(self) -> None:
        row = self.system.row
        if row.phase in {Phase.RUNNING, Phase.STANDBY} and self.world.volume is not None:
            assert self.world.volume == self.latest

    @invariant()
    def a_volume_is_only_removed_when_its_archive_is_readable(self) -> None:
        assert not self.system.removed_without_archive

    @invariant()
    def nothing_is_left_of_a_workspace_that_may_be_forgotten(self) -> None:
        row = self.system.row
        deleted_at = self.deleted_at if row.deleted else None
        over = DeletedWorkspace(row.phase, row.operation, deleted_at, has_archives=bool(self.world.archives))
        if may_forget(over, self.system.now):
            assert (self.world.volume, self.world.container) == (None, ContainerFact.ABSENT)

    @invariant()
    def an_error_means_that_no_operation_is_claimed(self) -> None:
        if self.system.row.phase is Phase.ERROR:
            assert self.system.row.operation is Operation.NONE
            assert self.system.row.error_reason is not None

    @invariant()
    def a_path_only_goes_up_or_only_down(self) -> None:
        begun = set(self.system.begun)
        assert not (begun & UP and begun & DOWN), self.system.begun

    def _advance(self) -> Decision | None:
        if self.running is None:
            self.running = converge(self.system)
        self.system.tick()
        try:
            next(self.running)
        except StopIteration as stopped:
            self.running = None
            decision: Decision = stopped.value
            return decision
        finally:
            self._check_every_step()
        return None

    def _check_every_step(self) -> None:
        """Hypothesis checks invariants between rules; a crash may come between any two steps of one."""
        self.content_is_never_lost_by_us()
        self.nobody_works_in_an_older_empty_or_partial_home()
        self.a_loss_is_an_error_once_it_has_been_seen()
        self.a_volume_is_only_removed_when_its_archive_is_readable()
        self.an_error_means_that_no_operation_is_claimed()
        self.a_path_only_goes_up_or_only_down()

    def _drive(self) -> Decision:
        for _ in range(STEP_BOUND):
            decision = self._advance()
            if decision is Decision.WAIT and self.system.row.retry_at is not None:
                self.system.now = self.system.row.retry_at
            elif decision is not None:
                return decision
        raise AssertionError(f"still not converged after {STEP_BOUND} steps: {self.system.row}")

    def _assert_converged(self) -> None:
        row = self.system.row
        if row.deleted:
            assert row.phase is Phase.DELETED
        else:
            assert LEVELS.get(row.phase) == DESIRED_LEVELS[row.desired_state]
            answers = self.world.container is ContainerFact.READY
            assert answers == (row.phase is Phase.RUNNING), "it counts as running, and does not answer"

    def _idle(self) -> bool:
        """The API answers 409 while an operation is claimed."""
        return self.system.row.operation is Operation.NONE

    def _can_edit(self) -> bool:
        return self.world.container is ContainerFact.READY and self.world.volume is not None

    def _note_what_the_fault_took(self) -> None:
        self.data_faults += 1
        self.taken_by_fault = self.taken_by_fault or not self.world.holds(self.latest)

    def _disturb(self) -> None:
        """Something new to react to: a new path begins."""
        self.system.begun.clear()
