"""The system as administrators and machines see it."""

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Form, Timestamp
from codehub.domain.recovery import RecoverChoice


class DependencyHealth(Document):
    """One service that the API needs."""

    name: str
    required: bool = Field(description="Without it the API is not ready; the others heal by themselves.")
    healthy: bool
    version: str | None
    error: str | None
    milliseconds: float


class Readiness(Document):
    """Whether requests can be served."""

    ready: bool
    dependencies: list[DependencyHealth]


class Liveness(Document):
    """The process answers."""

    status: str = "ok"


class SweepView(Document):
    """One schedule of Temporal."""

    id: str
    paused: bool
    running: bool
    last_started_at: Timestamp | None
    next_at: Timestamp | None
    age_seconds: float | None = Field(description="Since it last started.")


class RunningLimitsView(Document):
    """How many run, and how many may."""

    running: int
    max_running_global: int
    max_running_per_user: int


class SystemStatus(Document):
    """Everything at a glance."""

    version: str
    now: Timestamp
    dependencies: list[DependencyHealth]
    sweeps: list[SweepView] = Field(description="Empty while Temporal does not answer.")
    phases: dict[str, int]
    needs_person: int = Field(
        description="Workspaces with an error, maybe in a deletion, that waits for somebody."
    )
    limits: RunningLimitsView
    live_clients: int


class PhaseCounts(Document):
    """How many workspaces are in each phase."""

    phases: dict[str, int]


class BulkRecover(Form):
    """Which failed workspaces to recover; all that need a person, unless named."""

    model_config = ConfigDict(json_schema_extra={"example": {"choice": "retry"}})

    choice: RecoverChoice = Field(RecoverChoice.RETRY, description="The same for each.")
    ids: list[str] | None = Field(None, max_length=500)


class Refused(Document):
    """One that was not recovered, and why."""

    id: str
    message: str


class BulkRecovered(Document):
    """What became of each."""

    recovered: list[str]
    refused: list[Refused]
