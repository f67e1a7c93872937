"""The timeouts, retries, heartbeats and task queues of all steps.

Temporal does not retry a failed step. It ends the attempt, and the error policy of the domain, which counts
attempts in the row, decides about the next one. Temporal retries only after a lost worker or an outage of the
database.

Workflows cannot read settings, so this module repeats no limit of the settings. An activity cancels itself
when it makes no progress (`activities.step_monitor`), and missing heartbeats reveal a lost worker. The
start-to-close timeout exists only because Temporal requires one.
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
    """Options of an activity. Waiting in a queue counts against no timeout."""

    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


@dataclass(frozen=True)
class StepPolicy:
    """The options of a step and its queue; None is the queue of the workflow."""

    options: Step
    queue: StepQueue | None = None


# Production servers fire timers after about a second at the earliest, so no interval is shorter.
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
# A step that kills every worker, or a bug in a step, surfaces after about ten minutes.
LOST_WORKER = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=20,
)
ONCE = RetryPolicy(maximum_attempts=1)

# Longer pauses become timers, because a waiting workflow task costs the server events.
SHORT_PAUSE = timedelta(seconds=2)

# Short transactions and observations. A short outage of PostgreSQL is waited out. A long one ends the run,
# whose history would grow meanwhile, and a later sweep starts another.
ROW = LocalStep(
    start_to_close_timeout=timedelta(seconds=30),
    local_retry_threshold=SHORT_PAUSE,
    retry_policy=PATIENT,
)

# The commit after a transfer, which may have taken hours: retried forever, so that the work is not lost.
COMMIT = LocalStep(
    start_to_close_timeout=timedelta(seconds=30),
    local_retry_threshold=SHORT_PAUSE,
    retry_policy=VERY_PATIENT,
)

# The delay before the next observation while the workflow of an earlier run is still there.
LEFTOVER_DELAY = timedelta(seconds=1)

# Longer than any step takes, also the slow transfer of a large home.
STEP_TIMEOUT = timedelta(days=30)

STEP = Step(
    start_to_close_timeout=STEP_TIMEOUT, heartbeat_timeout=timedelta(seconds=5), retry_policy=LOST_WORKER
)

# Uploading a large home takes long, and no person waits for it.
ARCHIVE = StepPolicy(STEP, StepQueue.ARCHIVES)

# A person waits for a restore, so it must not wait for uploads.
RESTORE = StepPolicy(STEP, StepQueue.RESTORES)

# A starting IDE uses a core for seconds, so only a few start at once.
START = StepPolicy(STEP, StepQueue.STARTS)

# Other changes to instances, images and volumes are cheap: many run at once, and a stop never waits for a
# start.
CHANGE = StepPolicy(STEP, StepQueue.INSTANCES)

# A failed sweep is not retried: the next one starts from the current state.
SWEEP = StepPolicy(
    Step(
        start_to_close_timeout=timedelta(minutes=10),
        heartbeat_timeout=timedelta(seconds=30),
        retry_policy=ONCE,
    )
)
