"""Every timeout, retry, heartbeat and task queue of the workflows, by name.

A failed step is not retried by Temporal: it ends the attempt, and the error policy of the domain, which
counts attempts in the row, decides about the next one. What Temporal does retry is what no step has answered
for: a lost worker, a database that is down.

Workflows cannot read settings, so no limit of the settings is repeated here. Each activity keeps its own:
it ends itself when it makes no progress (`activities.step_monitor`). A lost worker is noticed by its missing
heartbeats. The backstop is only there because Temporal asks for one.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from temporalio.common import RetryPolicy

from codehub.contracts import StepQueue


class LocalStep(TypedDict):
    """Options of a local activity."""

    start_to_close_timeout: timedelta
    local_retry_threshold: timedelta
    retry_policy: RetryPolicy


class Step(TypedDict):
    """Options of an activity that a worker may die under. The wait for a slot counts against no timeout."""

    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


@dataclass(frozen=True)
class StepPolicy:
    """How a step is run, and on which queue; None is the workflow's own."""

    options: Step
    queue: StepQueue | None = None


# Production servers keep timers at a floor of about a second, so nothing here waits for less.
# All attempts together take about ten minutes.
PATIENT = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(minutes=1),
    maximum_attempts=16,
)
VERY_PATIENT = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2, maximum_interval=timedelta(minutes=30)
)
# A step under which worker after worker dies, or a bug in a step, shows itself after about ten minutes.
LOST_WORKER = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=20,
)
ONCE = RetryPolicy(maximum_attempts=1)

# Longer pauses than this are timers: a workflow task that waits costs the server events of its own.
SHORT_PAUSE = timedelta(seconds=2)

# The row: short transactions and quick looks. A short outage of PostgreSQL is waited out; a long one ends the
# run, whose history would grow all the while, and the first sweep after it starts another.
ROW = LocalStep(
    start_to_close_timeout=timedelta(seconds=30),
    local_retry_threshold=SHORT_PAUSE,
    retry_policy=PATIENT,
)

# The commit of a transfer that may have taken hours: waited for however long, so that it is not repeated.
COMMIT = LocalStep(
    start_to_close_timeout=timedelta(seconds=30),
    local_retry_threshold=SHORT_PAUSE,
    retry_policy=VERY_PATIENT,
)

# How long to leave an operation's workflow that lost its parent alone before looking again.
LEFT_BEHIND = timedelta(seconds=1)

# Longer than any setting allows a step to take; what moves a large home slowly is not ended either.
BACKSTOP = timedelta(days=30)

STEP = Step(start_to_close_timeout=BACKSTOP, heartbeat_timeout=timedelta(seconds=5), retry_policy=LOST_WORKER)

# Moving a home to S3 takes as long as the home is big, and nobody waits for it.
ARCHIVE = StepPolicy(STEP, StepQueue.ARCHIVES)

# Moving a home back; a person waits, so it never waits for an upload.
RESTORE = StepPolicy(STEP, StepQueue.RESTORES)

# An IDE that comes up takes a core for seconds, so only some do at once.
START = StepPolicy(STEP, StepQueue.STARTS)

# Every other change to an instance, an image or a volume: it takes little of this machine, so many run at
# once, and a stop does not wait for a start.
CHANGE = StepPolicy(STEP, StepQueue.INSTANCES)

# A sweep that fails is not repeated: the schedule's next one starts from current state anyway.
SWEEP = StepPolicy(
    Step(
        start_to_close_timeout=timedelta(minutes=10),
        heartbeat_timeout=timedelta(seconds=30),
        retry_policy=ONCE,
    )
)
