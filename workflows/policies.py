"""Every timeout, retry and heartbeat of the workflows, by name.

A failed step is not retried by Temporal: it ends the attempt, and the error policy of the domain, which
counts attempts in the row, decides about the next one. What Temporal does retry is what no step has answered
for: a lost worker, a database that is down.
"""

from datetime import timedelta
from typing import TypedDict

from temporalio.common import RetryPolicy


class LocalStep(TypedDict):
    """Options of a local activity."""

    start_to_close_timeout: timedelta
    local_retry_threshold: timedelta
    retry_policy: RetryPolicy


class Step(TypedDict):
    """Options of an activity that a worker may die under."""

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


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
LOST_WORKER = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2, maximum_interval=timedelta(seconds=30)
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

# One change to a container or an empty volume.
CHANGE = Step(
    start_to_close_timeout=timedelta(minutes=5),
    schedule_to_close_timeout=timedelta(minutes=10),
    heartbeat_timeout=timedelta(seconds=5),
    retry_policy=LOST_WORKER,
)

# Moving a home to or from S3 takes as long as the home is big; the heartbeat tells that it is still moving.
TRANSFER = Step(
    start_to_close_timeout=timedelta(hours=12),
    schedule_to_close_timeout=timedelta(hours=24),
    heartbeat_timeout=timedelta(seconds=5),
    retry_policy=LOST_WORKER,
)

# A sweep that fails is not repeated: the schedule's next one starts from current state anyway.
SWEEP = Step(
    start_to_close_timeout=timedelta(minutes=10),
    schedule_to_close_timeout=timedelta(minutes=15),
    heartbeat_timeout=timedelta(seconds=30),
    retry_policy=ONCE,
)
