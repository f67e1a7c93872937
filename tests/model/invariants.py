"""What must always hold for a workspace; checked after every step of the control loop."""

from collections.abc import Generator
from datetime import datetime

from hypothesis.stateful import RuleBasedStateMachine, invariant

from codehub.domain.conditions import ContainerFact
from codehub.domain.planner import Decision
from codehub.domain.retention import DeletedWorkspace, may_forget
from codehub.domain.states import DESIRED_LEVELS, LEVELS, Operation, Phase
from tests.model.controller import PausedObservation, System, converge
from tests.model.world import EMPTY

# More than the longest path needs: RUNNING to DELETED takes three operations of at most eight steps.
STEP_BOUND = 60

DOWN = {Operation.STOPPING, Operation.ARCHIVING, Operation.DELETING}
UP = set(Operation) - DOWN


class Invariants(RuleBasedStateMachine):
    """One workspace; `latest` is the newest content that its owner wrote and did not give up."""

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
        self.paused: PausedObservation | None = None
        self.deleted_at = self.system.now
        self.given_up: frozenset[str] = frozenset()
        self.homes_given_up: set[int] = set()
        self.left_behind: set[str] = set()

    @invariant()
    def a_recovery_throws_no_archive_away(self) -> None:
        assert self.left_behind <= set(self.world.archives)

    @invariant()
    def a_home_that_was_given_up_on_a_lost_node_is_kept(self) -> None:
        assert self.homes_given_up <= self.world.set_aside

    @invariant()
    def no_content_is_lost_without_a_fault(self) -> None:
        assert self.world.holds(self.latest) or self.taken_by_fault or self.system.row.purge

    @invariant()
    def no_instance_runs_in_an_old_empty_or_partial_home(self) -> None:
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
    def a_home_is_only_set_aside_when_its_archive_exists(self) -> None:
        assert not self.system.set_aside_without_archive

    @invariant()
    def nothing_is_left_of_a_workspace_whose_row_may_be_removed(self) -> None:
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
    def a_path_goes_only_up_or_only_down(self) -> None:
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
        """Check between any two steps, where a crash may come; Hypothesis checks only between rules."""
        self.no_content_is_lost_without_a_fault()
        self.no_instance_runs_in_an_old_empty_or_partial_home()
        self.a_loss_is_an_error_once_it_has_been_seen()
        self.a_volume_is_only_removed_when_its_archive_is_readable()
        self.an_error_means_that_no_operation_is_claimed()
        self.a_path_goes_only_up_or_only_down()

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
            responds = self.world.container is ContainerFact.READY
            assert responds == (row.phase is Phase.RUNNING), "it counts as running but does not respond"

    def _idle(self) -> bool:
        """Return whether no operation is claimed; otherwise the API responds with 409."""
        return self.system.row.operation is Operation.NONE

    def _can_edit(self) -> bool:
        return self.world.container is ContainerFact.READY and self.world.volume is not None

    def _record_fault(self) -> None:
        self.data_faults += 1
        self.taken_by_fault = self.taken_by_fault or not self.world.holds(self.latest)

    def _start_new_path(self) -> None:
        """Begin a new path: there is something new to react to."""
        self.system.begun.clear()
