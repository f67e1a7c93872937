"""A worker of another build: it plans a new workspace's way to ARCHIVED through a disk."""

import sys

from codehub.domain.planner import NEXT_OPERATION
from codehub.domain.states import DesiredState, Operation, Phase
from worker.__main__ import main

NEXT_OPERATION[Phase.PENDING, DesiredState.ARCHIVED] = Operation.PROVISIONING

if __name__ == "__main__":
    sys.exit(main())
