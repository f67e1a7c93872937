"""Faults: of providers, calls, IDEs, volumes and archives, and workers that are paused."""

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from codehub.domain import naming
from codehub.domain.conditions import ContainerFact, Resource
from codehub.domain.states import DesiredState, ErrorReason, Phase
from tests.model.controller import PausedObservation, store_paused_observation
from tests.model.invariants import Invariants
from tests.model.world import PARTIAL


class Faults(Invariants):
    """Faults in any order; those that take content away are counted."""

    @rule(resource=st.sampled_from(Resource))
    def break_provider(self, resource: Resource) -> None:
        self._start_new_path()
        self.world.down.add(resource)

    @rule(calls=st.integers(1, 4))
    def make_calls_fail(self, calls: int) -> None:
        self._start_new_path()
        self.world.failing_calls = calls

    @precondition(lambda self: self.world.down)
    @rule()
    def heal_providers(self) -> None:
        self._start_new_path()
        self.world.heal()

    @precondition(lambda self: self.world.container is not ContainerFact.ABSENT)
    @rule(left=st.sampled_from([ContainerFact.NOT_READY, ContainerFact.ABSENT]))
    def lose_container(self, left: ContainerFact) -> None:
        self._start_new_path()
        self.world.container = left

    @precondition(lambda self: self.world.container is ContainerFact.READY)
    @rule()
    def hang(self) -> None:
        self._start_new_path()
        self.world.container = ContainerFact.UNHEALTHY

    @precondition(lambda self: self._is_used())
    @rule(seconds=st.integers(0, 50))
    def stall(self, seconds: int) -> None:
        """Stall for less than the grace period: nothing happens to an IDE that responds again."""
        self._start_new_path()
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
        self._start_new_path()
        self.lost_volume, self.world.volume = self.world.volume, None
        self.world.node_is_lost = False
        self._record_fault()

    @precondition(lambda self: self.world.volume is not None and not self.world.node_is_lost)
    @rule()
    def lose_node(self) -> None:
        """Lose the node with the home; it counts as a fault, because a person may give the home up."""
        self._start_new_path()
        self.world.node_is_lost = True
        if self.world.container is ContainerFact.READY:
            self.world.container = ContainerFact.UNHEALTHY
        self._record_fault()

    @precondition(lambda self: self.world.node_is_lost)
    @rule()
    def bring_node_back(self) -> None:
        self._start_new_path()
        self.world.node_is_lost = False

    @precondition(lambda self: self._can_put_volume_back())
    @rule()
    def put_volume_back(self) -> None:
        self._start_new_path()
        self.world.volume, self.lost_volume = self.lost_volume, None
        self.taken_by_fault = not self.world.holds(self.latest)

    @precondition(lambda self: self.world.archives)
    @rule(data=st.data(), whole=st.booleans())
    def lose_archive(self, data: st.DataObject, whole: bool) -> None:
        self._start_new_path()
        key = data.draw(st.sampled_from(sorted(self.world.archives)))
        self.world.metas.discard(key)
        if whole:
            self.world.archives.pop(key)
            self.left_behind.discard(key)
        self._record_fault()

    @precondition(lambda self: self._archives_not_in_use())
    @rule(data=st.data())
    def damage_archive(self, data: st.DataObject) -> None:
        self._start_new_path()
        self.world.damaged.add(data.draw(st.sampled_from(self._archives_not_in_use())))
        self._record_fault()

    @precondition(lambda self: self.world.damaged)
    @rule()
    def repair_archives(self) -> None:
        self._start_new_path()
        self.world.damaged.clear()
        self.taken_by_fault = not self.world.holds(self.latest)

    @precondition(lambda self: self.paused is None)
    @rule()
    def pause_worker_after_observing(self) -> None:
        row = self.system.row
        self.paused = PausedObservation(row, self.world.observe(row.archive_key))

    @precondition(lambda self: self.paused is not None)
    @rule()
    def resume_paused_worker(self) -> None:
        assert self.paused is not None
        store_paused_observation(self.system, self.paused)
        self.paused = None

    def _is_used(self) -> bool:
        """Return whether it runs, and the control plane knows that and has nothing else to do."""
        row = self.system.row
        undisturbed = self.running is None and not self.world.down and not self.world.failing_calls
        wanted = row.desired_state is DesiredState.RUNNING and not row.deleted and self._idle()
        responds = self.world.container is ContainerFact.READY and row.conditions.container_answers.is_true
        return undisturbed and wanted and row.phase is Phase.RUNNING and responds and self._can_edit()

    def _archives_not_in_use(self) -> list[str]:
        """Return the archives that may be damaged now.

        Not one that is about to replace the volume: only a checksum could reveal its damage.
        """
        row = self.system.row
        written = row.archive_op_id and naming.archive_key(row.workspace_id, row.archive_op_id)
        taking_over = {row.archive_key, written} if self.world.volume is not None else set()
        return sorted(self.world.metas - taking_over)

    def _can_put_volume_back(self) -> bool:
        seen = self.system.row.error_reason is ErrorReason.DATA_LOST and not self.system.row.deleted
        return seen and self.lost_volume not in (None, PARTIAL) and self.world.volume is None
