"""The running limits, counted as the product counts them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from codehub.domain.limits import RunningLimits, counts_as_running
from gameday.rows import Row


def check_limits(rows: Iterable[Row], limits: RunningLimits) -> Iterator[str]:
    """What one look at all rows shows; they come from one statement, so they were true at one time."""
    running = Counter(
        row.owner_id for row in rows if counts_as_running(row.phase, row.desired_state, deleted=row.deleted)
    )
    for owner, count in running.items():
        if count > limits.per_user:
            yield f"User {owner} has {count} workspaces that are or shall be running, of {limits.per_user}."
    if running.total() > limits.total:
        yield f"{running.total()} workspaces are or shall be running, of {limits.total}."
