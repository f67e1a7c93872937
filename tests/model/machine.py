"""The lifecycle as a state machine: requests, faults and crashes in any order."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from codehub.domain import naming
from codehub.domain.conditions import ContainerFact, Resource
from codehub.domain.deletion import request_deletion, undelete, undelete_refusal
from codehub.domain.garbage import ArchiveOwner, GracePeriods, is_protected, may_collect
from codehub.domain.judge import HANG_GRACE
from codehub.domain.planner import Decision
from codehub.domain.recovery import (
    HARMLESS,
    RecoverChoice,
    can_restore_current,
    choices,
    must_set_aside,
    recover,
)
from codehub.domain.states import DesiredState, ErrorReason, Phase
from tests.model.faults import Faults
from tests.model.world import EMPTY

RECOVERIES = 3
GRACE_PERIODS = GracePeriods()


class Lifecycle(Faults):
    """A workspace that people use while the control loop and the collector run."""

    @rule(steps=st.integers(1, 12))
    def work(self, steps: int) -> None:
        for _ in range(steps):
            if self._advance() is not None:
                break

    @precondition(lambda self: self.running is not None)
    @rule()
    def crash(self) -> None:
        self.running = None

    @precondition(lambda self: self._accepts_requests())
    @rule(desired=st.sampled_from([DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED]))
    def request_state(self, desired: DesiredState) -> None:
        self._start_new_path()
        self.system.row = replace(self.system.row, desired_state=desired)

    @precondition(lambda self: self._accepts_requests() and not self.world.down)
    @rule(desired=st.sampled_from([DesiredState.RUNNING, DesiredState.ARCHIVED]), steps=st.integers(1, 20))
    def use_and_change_state(self, desired: DesiredState, steps: int) -> None:
        """Do what most workspaces do most of the time; without this, random walks rarely get far."""
        self.request_state(desired=desired)
        self.work(steps=steps)
        if self._can_edit():
            self.edit()
        self.running = None

    @precondition(lambda self: self._idle() and self.system.row.phase is not Phase.DELETED)
    @rule(purge=st.booleans())
    def delete(self, purge: bool) -> None:
        self._start_new_path()
        if not self.system.row.deleted:
            self.deleted_at = self.system.now
        self.system.row = request_deletion(self.system.row, purge=purge)

    @precondition(lambda self: self._accepts_requests() and not self.world.down)
    @rule(hours=st.sampled_from([1, 3, 24]))
    def delete_and_collect(self, hours: int) -> None:
        """Finish a deletion that can be undone; random walks rarely get that far without a fault."""
        self.delete(purge=False)
        self.work(steps=20)
        self.running = None
        self.collect_garbage(hours=hours)

    @precondition(lambda self: self.running is None and self._can_undelete())
    @rule()
    def undelete(self) -> None:
        self._start_new_path()
        self.system.row = undelete(self.system.row)

    @precondition(lambda self: self.running is None and bool(choices(self.system.row)))
    @rule(data=st.data())
    def recover(self, data: st.DataObject) -> None:
        self._start_new_path()
        self.system.row = self.system.observe()
        others = self._other_archives()
        allowed = choices(self.system.row, has_other_archives=bool(others))
        if not allowed:
            return  # the node is back
        choice = data.draw(st.sampled_from(allowed))
        if self.system.row.conditions.home_is_out_of_reach and choice is RecoverChoice.RESTORE_ARCHIVE:
            self._restore_elsewhere(crash=data.draw(st.booleans()))
            return
        archive = None
        if choice is RecoverChoice.RESTORE_ARCHIVE:
            current = [None] if can_restore_current(self.system.row) else []
            archive = data.draw(st.sampled_from([*others, *current]))
        self._recover(choice, archive)
        if choice is RecoverChoice.RESTORE_ARCHIVE:
            self._accept_content(self.world.archives.get(self.system.row.archive_key or "", self.latest))
        elif choice is RecoverChoice.USE_DISK:
            assert self.world.volume is not None
            self._accept_content(self.world.volume)
        elif choice is RecoverChoice.START_EMPTY:
            self._accept_content(EMPTY)
        # A wrong recovery shows only in the steps after it.
        self.work(steps=data.draw(st.integers(1, 12)))

    @precondition(lambda self: self._accepts_requests() and not self.world.down)
    @rule(steps=st.sampled_from([3, 20]), lose_archive=st.booleans(), crash=st.booleans())
    def lose_node_and_restore_archive(self, steps: int, lose_archive: bool, crash: bool) -> None:
        """Archive, restore and lose the node, in the middle or at the end, perhaps with the archive."""
        for desired, length in ((DesiredState.ARCHIVED, 20), (DesiredState.RUNNING, steps)):
            if not self._accepts_requests():
                return
            self.use_and_change_state(desired=desired, steps=length)
        if self.world.volume is None:
            return
        self.lose_node()
        self.system.row = self.system.observe()
        if lose_archive:
            self.world.metas.discard(self.system.row.archive_key or "")
            self.world.down.add(Resource.ARCHIVE)
            self._record_fault()
        self.system.row = self.system.observe()
        self._restore_elsewhere(crash=crash)

    @precondition(lambda self: self._can_edit())
    @rule()
    def edit(self) -> None:
        self.edits += 1
        self.latest = self.world.volume = self.edits

    @precondition(lambda self: self._is_parked())
    @rule(give_up=st.booleans())
    def restore_from_damaged_archive(self, give_up: bool) -> None:
        """Damage the archive just before it is needed, which random walks rarely do."""
        self.world.damaged.add(self.system.row.archive_key or "")
        self._record_fault()
        self.request_state(desired=DesiredState.RUNNING)
        self.work(steps=12)
        self.running = None
        if give_up and RecoverChoice.START_EMPTY in choices(self.system.row):
            self._start_new_path()
            self._recover(RecoverChoice.START_EMPTY)
            self._accept_content(EMPTY)
            self.work(steps=12)

    @precondition(lambda self: self._accepts_requests() and not self.world.down)
    @rule(hours=st.sampled_from([1, 3, 24]))
    def archive_twice_and_lose_the_second(self, hours: int) -> None:
        """Lose the newer of two archives with the same files, and collect garbage before that is observed."""
        self.use_and_change_state(desired=DesiredState.RUNNING, steps=20)
        for desired in (DesiredState.ARCHIVED, DesiredState.STANDBY, DesiredState.ARCHIVED):
            if not self._accepts_requests():
                return
            self.request_state(desired=desired)
            self.work(steps=20)
            self.running = None
        self.world.metas.discard(self.system.row.archive_key or "")
        self._record_fault()
        self.collect_garbage(hours=hours)

    @rule(hours=st.sampled_from([0, 1, 2, 3, 24, 24 * 8]))
    def collect_garbage(self, hours: int) -> None:
        """Run the collector twice: the first run finds orphans, the second removes them."""
        self._collect()
        self.system.now += timedelta(hours=hours)
        self._collect()

    def _collect(self) -> None:
        row = self.system.row
        owner = ArchiveOwner(
            phase=row.phase,
            archive_key=row.archive_key,
            archive_op_id=row.archive_op_id,
            error_reason=row.error_reason,
            deleted_at=self.deleted_at if row.deleted else None,
            purge=row.purge,
            given_up=self.given_up,
            archive_missing=row.archive_key is not None and not self.world.is_committed(row.archive_key),
        )
        for key in sorted(self.world.archives):
            name = naming.parse_archive_key(key)
            assert name is not None
            if is_protected(key, name, owner, self.system.now, GRACE_PERIODS):
                self.orphans.pop(key, None)
            elif may_collect(self.orphans.setdefault(key, self.system.now), self.system.now, GRACE_PERIODS):
                self.world.remove_archive(key)
                if row.archive_key in self.world.damaged:
                    self._record_fault()  # only a checksum reveals that the current one is damaged
        if row.phase is Phase.DELETED:
            self.left_behind.clear()
        if row.phase is Phase.DELETED and self._undelete_period_is_over():
            self._record_fault()

    def teardown(self) -> None:
        """After the faults, it converges in a bounded number of steps, or reports a real loss."""
        self.world.heal()
        self._drive()  # ends a run that observed before the last change
        self._drive()  # observes an IDE that hangs; its grace period begins
        self.system.now += HANG_GRACE
        for _ in range(RECOVERIES):
            if self._drive() is not Decision.HALT or not choices(self.system.row):
                break
            if self.system.row.error_reason in {ErrorReason.DATA_LOST, ErrorReason.ARCHIVE_CORRUPTED}:
                assert self.data_faults, "files are missing or damaged, but no fault caused that"
                return
            self._recover(RecoverChoice.RETRY)
        self._assert_converged()

    def _recover(self, choice: RecoverChoice, archive: str | None = None) -> None:
        """Recover on a fresh observation, remove a stray container, and observe again."""
        recovery = recover(self.system.row, choice, archive)
        if recovery.keep_archives:
            self.given_up = frozenset(self.world.archives) - {recovery.snapshot.archive_key or ""}
        if choice not in HARMLESS:
            committed = {key for key in self.world.archives if self.world.is_committed(key)}
            self.left_behind = committed - {recovery.snapshot.archive_key or ""}
        if recovery.remove_container:
            self.world.container = ContainerFact.ABSENT
        self.system.row = recovery.snapshot
        self.system.row = self.system.observe()

    def _restore_elsewhere(self, *, crash: bool) -> None:
        """Set the home on the lost node aside, then recover; a crash may come in between."""
        choice = RecoverChoice.RESTORE_ARCHIVE
        if not must_set_aside(self.system.row, choice):
            return
        if not self.world.is_committed(self.system.row.archive_key):
            self.system.set_aside_without_archive = True
        if self.world.volume is not None:
            self.homes_given_up.add(self.world.volume)
        self.world.container = ContainerFact.ABSENT
        self.world.set_volume_aside()
        if crash:
            self.no_content_is_lost_without_a_fault()
            self.work(steps=1)
            self.running = None
        self.system.row = self.system.observe()
        self._recover(choice)
        self._accept_content(self.world.archives.get(self.system.row.archive_key or "", self.latest))

    def _accepts_requests(self) -> bool:
        row = self.system.row
        return self._idle() and not row.deleted and row.phase is not Phase.ERROR

    def _can_undelete(self) -> bool:
        return self._idle() and undelete_refusal(self.system.row) is None

    def _other_archives(self) -> list[str | None]:
        """Return the committed archives that a person may choose, besides the current one."""
        if Resource.ARCHIVE in self.world.down:
            return []
        return [
            key
            for key in sorted(self.world.archives)
            if self.world.is_committed(key) and key != self.system.row.archive_key
        ]

    def _is_parked(self) -> bool:
        parked = self.system.row.phase is Phase.ARCHIVED and self.world.is_committed(
            self.system.row.archive_key
        )
        return parked and self._accepts_requests() and not self.world.down

    def _accept_content(self, content: int) -> None:
        """Take this as the newest content from now on: a person has decided so."""
        self.latest = content
        self.taken_by_fault = not self.world.holds(content)
        self.lost_volume = None

    def _undelete_period_is_over(self) -> bool:
        return self.system.row.purge or self.system.now >= self.deleted_at + GRACE_PERIODS.undelete
