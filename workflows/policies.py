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
    retry_policy: RetryPolicy


class Step(LocalStep):
    """Options of an activity that a worker may die under."""

    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta


# Production servers keep timers at a floor of about a second, so nothing here waits for less.
PATIENT = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2, maximum_interval=timedelta(seconds=15)
)
LOST_WORKER = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2, maximum_interval=timedelta(seconds=30)
)
ONCE = RetryPolicy(maximum_attempts=1)

# The row: short transactions and quick looks. An outage of PostgreSQL is waited out, however long.
ROW = LocalStep(start_to_close_timeout=timedelta(seconds=30), retry_policy=PATIENT)

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
