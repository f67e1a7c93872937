"""The running limits, counted as the product counts them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from codehub.domain.limits import RunningLimits, counts_as_running
from gameday.checks.rows import Row


def check_limits(rows: Iterable[Row], limits: RunningLimits) -> Iterator[str]:
    """What one look at all rows shows; they come from one statement, so they were true at one time."""
    running = Counter(row.owner_id for row in rows if _takes_a_place(row))
    for owner, count in running.items():
        if count > limits.per_user:
            yield f"User {owner} has {count} workspaces that are or shall be running, of {limits.per_user}."
    if running.total() > limits.total:
        yield f"{running.total()} workspaces are or shall be running, of {limits.total}."


def _takes_a_place(row: Row) -> bool:
    # The purge of a broken workspace may find a container that nobody had seen when its place was given away.
    if row.purge:
        return False
    return counts_as_running(
        row.phase, row.desired_state, deleted=row.deleted, container_exists=row.container_exists
    )
