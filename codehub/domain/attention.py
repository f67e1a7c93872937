"""Settled, and needs a person: the one rule of each, for API, proxy, CLI, dashboard and sweeps."""

from dataclasses import dataclass

from codehub.domain.failures import is_terminal
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase


@dataclass(frozen=True)
class LifecycleState:
    """Where a workspace is and where it is going."""

    phase: Phase
    operation: Operation
    desired_state: DesiredState
    # A person has decided how to leave the error, and that is still to be carried out.
    recovering: bool = False
    deleted: bool = False
    purge: bool = False
    error_reason: ErrorReason | None = None
    # The next step needs a provider that does not answer.
    waiting: bool = False

    @property
    def needs_person(self) -> bool:
        """An error, also in a deletion, that only *recover* or a purge ends."""
        if self._is_busy:
            return False
        if not self.deleted:
            return self.phase is Phase.ERROR
        # A purge goes on in spite of errors, and what is DELETED has nothing left to do.
        return self.phase is not Phase.DELETED and not self.purge and is_terminal(self.error_reason)

    @property
    def is_settled(self) -> bool:
        """Nothing will happen until somebody asks or a TTL expires."""
        if self._is_busy:
            return False
        return self.needs_person or self.phase.value == self.desired_state.value

    @property
    def is_interruptible(self) -> bool:
        """It waits for a provider with nothing claimed, so people may ask for what its phase allows."""
        return self.waiting and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        return self.operation is not Operation.NONE or self.recovering
