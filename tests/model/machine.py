"""The lifecycle as a state machine: people, faults and crashes in any order, and what must always hold."""

from collections.abc import Generator
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from codehub.domain import naming
from codehub.domain.conditions import ContainerFact, Resource
from codehub.domain.garbage import ArchiveOwner, Graces, is_protected, may_collect
from codehub.domain.judge import HANG_GRACE
from codehub.domain.planner import Decision
from codehub.domain.recovery import (
    RecoverChoice,
    can_restore_current,
    can_undelete,
    choices,
    recover,
    request_deletion,
    undelete,
)
from codehub.domain.retention import DeletedWorkspace, may_forget
from codehub.domain.states import DESIRED_LEVELS, LEVELS, DesiredState, ErrorReason, Operation, Phase
from tests.model.controller import PausedLook, System, converge, store_paused_look
from tests.model.world import EMPTY, PARTIAL

# More than the longest path needs: RUNNING to DELETED is three operations of at most eight steps.
STEP_BOUND = 60
RECOVERIES = 3
GRACES = Graces()

DOWN = {Operation.STOPPING, Operation.ARCHIVING, Operation.DELETING}
UP = set(Operation) - DOWN


class Lifecycle(RuleBasedStateMachine):
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

    @rule(steps=st.integers(1, 12))
    def work(self, steps: int) -> None:
        for _ in range(steps):
            if self._advance() is not None:
                break

    @precondition(lambda self: self.running is not None)
    @rule()
    def crash(self) -> None:
        self.running = None

    @precondition(lambda self: self.paused is None)
    @rule()
    def pause_a_worker_at_its_look(self) -> None:
        row = self.system.row
        self.paused = PausedLook(row, self.world.look(row.archive_key))

    @precondition(lambda self: self.paused is not None)
    @rule()
    def let_the_paused_worker_go_on(self) -> None:
        assert self.paused is not None
        store_paused_look(self.system, self.paused)
        self.paused = None

    @precondition(lambda self: self._accepts_requests())
    @rule(desired=st.sampled_from([DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED]))
    def want(self, desired: DesiredState) -> None:
        self._disturb()
        self.system.row = replace(self.system.row, desired_state=desired)

    @precondition(lambda self: self._accepts_requests() and not self.world.down)
    @rule(desired=st.sampled_from([DesiredState.RUNNING, DesiredState.ARCHIVED]), steps=st.integers(1, 20))
    def use_and_park(self, desired: DesiredState, steps: int) -> None:
        """What most of a workspace's life looks like; without it, random walks rarely get far."""
        self.want(desired=desired)
        self.work(steps=steps)
        if self._can_edit():
            self.edit()
        self.running = None

    @precondition(lambda self: self._idle() and not self.system.row.deleted)
    @rule(purge=st.booleans())
    def delete(self, purge: bool) -> None:
        self._disturb()
        self.deleted_at = self.system.now
        self.system.row = request_deletion(self.system.row, purge=purge)

    @precondition(lambda self: self.running is None and can_undelete(self.system.row))
    @rule()
    def take_deletion_back(self) -> None:
        self._disturb()
        self.system.row = undelete(self.system.row)

    @precondition(lambda self: self.running is None and bool(choices(self.system.row)))
    @rule(data=st.data())
    def recover(self, data: st.DataObject) -> None:
        self._disturb()
        self.system.row = self.system.observe()
        others = self._other_archives()
        choice = data.draw(st.sampled_from(choices(self.system.row, has_others=bool(others))))
        archive = None
        if choice is RecoverChoice.RESTORE_ARCHIVE:
            current = [None] if can_restore_current(self.system.row) else []
            archive = data.draw(st.sampled_from([*others, *current]))
        self._recover(choice, archive)
        if choice is RecoverChoice.RESTORE_ARCHIVE:
            self._give_up_to(self.world.archives.get(self.system.row.archive_key or "", self.latest))
        elif choice is RecoverChoice.USE_DISK:
            assert self.world.volume is not None
            self._give_up_to(self.world.volume)
        elif choice is RecoverChoice.START_EMPTY:
            self._give_up_to(EMPTY)

    @precondition(lambda self: self._can_edit())
    @rule()
    def edit(self) -> None:
        self.edits += 1
        self.latest = self.world.volume = self.edits

    @rule(resource=st.sampled_from(Resource))
    def break_provider(self, resource: Resource) -> None:
        self._disturb()
        self.world.down.add(resource)

    @rule(calls=st.integers(1, 4))
    def make_calls_fail(self, calls: int) -> None:
        self._disturb()
        self.world.failing_calls = calls

    @precondition(lambda self: self.world.down)
    @rule()
    def heal_providers(self) -> None:
        self._disturb()
        self.world.heal()

    @precondition(lambda self: self.world.container is not ContainerFact.ABSENT)
    @rule(left=st.sampled_from([ContainerFact.NOT_READY, ContainerFact.ABSENT]))
    def lose_container(self, left: ContainerFact) -> None:
        self._disturb()
        self.world.container = left

    @precondition(lambda self: self.world.container is ContainerFact.READY)
    @rule()
    def hang(self) -> None:
        self._disturb()
        self.world.container = ContainerFact.UNHEALTHY

    @precondition(lambda self: self._is_in_use())
    @rule(seconds=st.integers(0, 50))
    def stall(self, seconds: int) -> None:
        """For less than the grace: nothing is done to an IDE that answers again."""
        self._disturb()
        self.world.container = ContainerFact.UNHEALTHY
        self._drive()
        self.system.now += timedelta(seconds=seconds)
        self._drive()
        self.world.container = ContainerFact.READY
        self._drive()
        assert not self.system.begun, self.system.begun

    @precondition(lambda self: self.world.volume is not None)
    @rule()
    def lose_volume(self) -> None:
        self._disturb()
        self.lost_volume, self.world.volume = self.world.volume, None
        self._note_what_the_fault_took()

    @precondition(lambda self: self._misses_volume())
    @rule()
    def put_volume_back(self) -> None:
        self._disturb()
        self.world.volume, self.lost_volume = self.lost_volume, None
        self.taken_by_fault = not self.world.holds(self.latest)

    @precondition(lambda self: self.world.archives)
    @rule(data=st.data(), whole=st.booleans())
    def lose_archive(self, data: st.DataObject, whole: bool) -> None:
        self._disturb()
        key = data.draw(st.sampled_from(sorted(self.world.archives)))
        self.world.metas.discard(key)
        if whole:
            self.world.archives.pop(key)
            self.left_behind.discard(key)
        self._note_what_the_fault_took()

    @precondition(lambda self: self._archives_at_rest())
    @rule(data=st.data())
    def damage_archive(self, data: st.DataObject) -> None:
        self._disturb()
        self.world.damaged.add(data.draw(st.sampled_from(self._archives_at_rest())))
        self._note_what_the_fault_took()

    @precondition(lambda self: self.world.damaged)
    @rule()
    def repair_archives(self) -> None:
        self._disturb()
        self.world.damaged.clear()
        self.taken_by_fault = not self.world.holds(self.latest)

    @precondition(lambda self: self._rests_in_an_archive())
    @rule()
    def find_archive_damaged(self) -> None:
        """Two faults at once, which random walks rarely meet: the archive is damaged when it is needed."""
        self.world.damaged.add(self.system.row.archive_key or "")
        self._note_what_the_fault_took()
        self.want(desired=DesiredState.RUNNING)
        self.work(steps=12)
        self.running = None

    @rule(hours=st.sampled_from([0, 1, 2, 3, 24, 24 * 8]))
    def collect_garbage(self, hours: int) -> None:
        self.system.now += timedelta(hours=hours)
        row = self.system.row
        # One that was taken back is parked already, though nobody has looked since.
        undeleted = row.phase is Phase.DELETED and not row.deleted
        phase = Phase.ARCHIVED if undeleted else row.phase
        owner = ArchiveOwner(
            phase=phase,
            archive_key=row.archive_key,
            archive_op_id=row.archive_op_id,
            error_reason=row.error_reason,
            deleted_at=self.deleted_at if row.deleted else None,
            purge=row.purge,
            given_up=self.given_up,
        )
        for key in sorted(self.world.archives):
            name = naming.parse_archive_key(key)
            assert name is not None
            if is_protected(key, name, owner, self.system.now, GRACES):
                self.orphans.pop(key, None)
            elif may_collect(self.orphans.setdefault(key, self.system.now), self.system.now, GRACES):
                self.world.remove_archive(key)
        if phase is Phase.DELETED:
            self.left_behind.clear()
        if phase is Phase.DELETED and self._is_gone_for_good():
            self._note_what_the_fault_took()

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

    def teardown(self) -> None:
        """When faults end, it converges in a bounded number of steps, or says truly what is lost."""
        self.world.heal()
        self._drive()  # a run that looked at the world before the last change ends; its wake starts another
        self._drive()  # an IDE that hangs is noticed here, and given its time
        self.system.now += HANG_GRACE
        for _ in range(RECOVERIES):
            if self._drive() is not Decision.HALT or not choices(self.system.row):
                break
            if self.system.row.error_reason in {ErrorReason.DATA_LOST, ErrorReason.ARCHIVE_CORRUPTED}:
                assert self.data_faults, "files are missing or damaged, but no fault took any"
                return
            self._recover(RecoverChoice.RETRY)
        self._assert_converged()

    def _recover(self, choice: RecoverChoice, archive: str | None = None) -> None:
        """Decide on a fresh look, remove a stray container, and look again; the outcome is stored once."""
        recovery = recover(self.system.row, choice, archive)
        if recovery.keep_archives:
            self.given_up = frozenset(self.world.archives) - {recovery.snapshot.archive_key or ""}
        if choice is not RecoverChoice.RETRY:
            self.left_behind = set(self.world.metas) - {recovery.snapshot.archive_key or ""}
        if recovery.remove_container:
            self.world.container = ContainerFact.ABSENT
        self.system.row = recovery.snapshot
        self.system.row = self.system.observe()

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

    def _accepts_requests(self) -> bool:
        row = self.system.row
        return self._idle() and not row.deleted and row.phase is not Phase.ERROR

    def _idle(self) -> bool:
        """The API answers 409 while an operation is claimed."""
        return self.system.row.operation is Operation.NONE

    def _is_in_use(self) -> bool:
        """It runs, and the control plane has seen that and has nothing else to do."""
        row = self.system.row
        undisturbed = self.running is None and not self.world.down and not self.world.failing_calls
        wanted = row.desired_state is DesiredState.RUNNING and not row.deleted and self._idle()
        answers = self.world.container is ContainerFact.READY and row.conditions.container_answers.is_true
        return undisturbed and wanted and row.phase is Phase.RUNNING and answers and self._can_edit()

    def _archives_at_rest(self) -> list[str]:
        """Not one that is about to take the place of the disk: only its checksum could tell its damage."""
        row = self.system.row
        written = row.archive_op_id and naming.archive_key(row.workspace_id, row.archive_op_id)
        taking_over = {row.archive_key, written} if self.world.volume is not None else set()
        return sorted(self.world.metas - taking_over)

    def _other_archives(self) -> list[str | None]:
        """What a person may choose from: committed, and seen in the same pass."""
        if Resource.ARCHIVE in self.world.down:
            return []
        return [
            key
            for key in sorted(self.world.metas & set(self.world.archives))
            if key != self.system.row.archive_key
        ]

    def _rests_in_an_archive(self) -> bool:
        parked = self.system.row.phase is Phase.ARCHIVED and self.world.is_committed(
            self.system.row.archive_key
        )
        return parked and self._accepts_requests() and not self.world.down

    def _can_edit(self) -> bool:
        return self.world.container is ContainerFact.READY and self.world.volume is not None

    def _misses_volume(self) -> bool:
        seen = self.system.row.error_reason is ErrorReason.DATA_LOST and not self.system.row.deleted
        return seen and self.lost_volume not in (None, PARTIAL) and self.world.volume is None

    def _note_what_the_fault_took(self) -> None:
        self.data_faults += 1
        self.taken_by_fault = self.taken_by_fault or not self.world.holds(self.latest)

    def _give_up_to(self, content: int) -> None:
        """A person has decided what counts as the newest content from now on."""
        self.latest = content
        self.taken_by_fault = not self.world.holds(content)
        self.lost_volume = None

    def _is_gone_for_good(self) -> bool:
        return self.system.row.purge or self.system.now >= self.deleted_at + GRACES.undelete

    def _disturb(self) -> None:
        """Something new to react to: a new path begins."""
        self.system.begun.clear()
