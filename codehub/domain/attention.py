"""Whether a workspace is settled, and whether it needs a person: one rule each, for every caller."""

from dataclasses import dataclass

from codehub.domain.failures import is_terminal
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase


@dataclass(frozen=True)
class LifecycleState:
    """Where a workspace is in its lifecycle, and where it is going."""

    phase: Phase
    operation: Operation
    desired_state: DesiredState
    # A recover request has not been carried out yet.
    recovering: bool = False
    deleted: bool = False
    purge: bool = False
    error_reason: ErrorReason | None = None
    # The next step needs a provider that does not respond.
    waiting: bool = False
    # The home is on a disk of a node that does not respond.
    out_of_reach: bool = False

    @property
    def needs_person(self) -> bool:
        """Whether it has an error, also in a deletion, that only *recover* or a purge ends."""
        if self._is_busy:
            return False
        if not self.deleted:
            return self.phase is Phase.ERROR
        # A purge continues despite errors, and a DELETED workspace has nothing left to do.
        return self.phase is not Phase.DELETED and not self.purge and is_terminal(self.error_reason)

    @property
    def can_recover(self) -> bool:
        """Whether *recover* has choices: for an error, or for a home that is out of reach.

        The second one needs no person, because the workspace goes on by itself when its node is back.
        """
        waits_for_node = self.out_of_reach and self.operation is Operation.NONE and not self.purge
        return self.needs_person or (waits_for_node and self.phase is not Phase.DELETED)

    @property
    def is_settled(self) -> bool:
        """Whether nothing happens until the next request or until a TTL expires."""
        if self._is_busy:
            return False
        return self.needs_person or self.phase.value == self.desired_state.value

    @property
    def is_interruptible(self) -> bool:
        """Whether it waits for a provider without a claim, so that a new request is accepted."""
        return self.waiting and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        return self.operation is not Operation.NONE or self.recovering
