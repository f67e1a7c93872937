"""A worker of another build, which provisions a volume before it archives a new workspace."""

import sys

from codehub.domain.planner import NEXT_OPERATION
from codehub.domain.states import DesiredState, Operation, Phase
from worker.__main__ import main

NEXT_OPERATION[Phase.PENDING, DesiredState.ARCHIVED] = Operation.PROVISIONING

if __name__ == "__main__":
    sys.exit(main())
