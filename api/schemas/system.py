"""Health and state of the system, for administrators and monitoring."""

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Form, Timestamp
from codehub.domain.recovery import RecoverChoice


class DependencyHealth(Document):
    """The health of a service that the API depends on."""

    name: str
    required: bool = Field(description="Whether the API is not ready without it.")
    healthy: bool
    version: str | None
    error: str | None
    milliseconds: float


class Readiness(Document):
    """Whether the API can serve requests."""

    ready: bool
    dependencies: list[DependencyHealth]


class Liveness(Document):
    """The process is running."""

    status: str = "ok"


class SweepView(Document):
    """A scheduled sweep."""

    id: str
    paused: bool
    running: bool
    last_started_at: Timestamp | None
    next_at: Timestamp | None
    age_seconds: float | None = Field(description="Seconds since it last started.")


class RunningLimitsView(Document):
    """How many workspaces run, and how many may."""

    running: int
    max_running_global: int
    max_running_per_user: int


class SystemStatus(Document):
    """The state of the whole system."""

    version: str
    now: Timestamp
    dependencies: list[DependencyHealth]
    sweeps: list[SweepView] = Field(description="Empty if Temporal does not answer.")
    phases: dict[str, int]
    needs_person: int = Field(
        description="Workspaces with an error, possibly in a deletion, that only a person can end."
    )
    limits: RunningLimitsView
    live_clients: int


class PhaseCounts(Document):
    """The number of workspaces in each phase."""

    phases: dict[str, int]


class BulkRecover(Form):
    """The failed workspaces to recover; without ids, all that need a person."""

    model_config = ConfigDict(json_schema_extra={"example": {"choice": "retry"}})

    choice: RecoverChoice = Field(RecoverChoice.RETRY, description="The choice for all of them.")
    ids: list[str] | None = Field(None, max_length=500)


class Refused(Document):
    """A workspace that was not recovered, and why."""

    id: str
    message: str


class BulkRecovered(Document):
    """The result for each workspace."""

    recovered: list[str]
    refused: list[Refused]
