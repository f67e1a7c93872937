"""How far an operation is, and when a workspace was used."""

from pydantic import Field

from api.schemas.base import Document, Timestamp
from codehub.domain.states import Operation


class ProgressView(Document):
    """The step under way; the rate is the difference of two, by their times."""

    id: str = Field(description="Of the workspace.")
    operation: Operation
    step: str | None = Field(
        description="`waiting for its turn` if none has run for some seconds; `null` between two steps."
    )
    done: int
    total: int | None = Field(description="`null` while nobody knows.")
    unit: str | None
    at: Timestamp = Field(description="When this was looked up.")


class CurrentProgress(Document):
    """How far the operation of a workspace is."""

    progress: ProgressView | None = Field(description="`null` if nothing is under way, or nobody can tell.")


class Activity(Document):
    """When a workspace was used, for a sparkline."""

    bucket_seconds: int = Field(description="How long each of the times below stands for.")
    since: Timestamp = Field(description="The first of the times that were looked at; the last one is now.")
    used: list[Timestamp] = Field(description="The beginnings of those in which somebody used it, in order.")
