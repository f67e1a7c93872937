"""Messages between processes: activity, progress and events."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, Protocol

from codehub.domain.conditions import WorkspaceId
from codehub.ports.progress import Progress


@dataclass(frozen=True)
class ActivityBatch:
    """Entries of the buffer; `rejected` ones had no valid workspace id or time, and were removed."""

    used_at: Mapping[WorkspaceId, datetime]
    rejected: int = 0


class ActivityBuffer(Protocol):
    """When each workspace was last used: a buffer between the proxy and the database."""

    async def record(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        """Keep the latest time of each workspace."""

    async def take(self, limit: int) -> ActivityBatch:
        """Read up to `limit` entries; remove only invalid ones."""

    async def discard(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        """Remove stored entries, unless they have a later time by now."""


class ProgressBoard(Protocol):
    """The progress of the current step of each workspace, for people.

    Best-effort: no method raises for an outage or takes longer than a second.
    """

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        """Show the progress for ten seconds, or until the next post."""

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        """Return the latest progress of each workspace that has a recent one; None if unavailable."""

    async def clear(self, workspace_id: WorkspaceId) -> None:
        """Remove the progress; succeed if there is none."""


class EventBus(Protocol):
    """Live updates for browsers; a lost one costs only time, because a reconnect sends a snapshot."""

    async def publish(self, user_id: str, message: str) -> None:
        """Send to all subscribers for this user; there may be none."""


# The event in a message after a session or token was revoked or its user was disabled.
CREDENTIALS_CHANGED = "credentials_changed"


@dataclass(frozen=True)
class BusMessage:
    """A message for one user; a user id of None means that messages for any user may have been missed."""

    user_id: str | None
    payload: str = ""


class EventSubscription(Protocol):
    """The receiving end of the event bus, for the users that this process serves."""

    async def run(self, deliver: Callable[[BusMessage], None]) -> NoReturn:
        """Deliver until canceled, also after outages; `deliver` must be quick and must not raise.

        When messages may have been missed, also at the start, one for all users is delivered as soon as
        everyone followed is subscribed again. A broadcast arrives as a message for all users too.
        """

    async def follow(self, user_id: str) -> bool:
        """Return True once everything that is published for this user from now on will be delivered.

        Return False if that takes too long: then a message for this user or for all users is delivered as
        soon as the subscription works. It may be called again for the same user.
        """

    def unfollow(self, user_id: str) -> None:
        """Stop delivering, at the latest when a later `follow` has returned True; succeed if not followed."""
