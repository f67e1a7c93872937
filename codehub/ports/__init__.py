"""Interfaces to the outside world. The docstring of each method is its contract.

Every method is idempotent. A provider that cannot be reached raises `Transient(UNREACHABLE)`, also from
`observe` and `list_all`: an outage must never look like an absence.
"""

from codehub.ports.identity import (
    IdentityProvider,
    IdentityRejected,
    ProvenIdentity,
    ProviderUnavailable,
    SignInSecrets,
)
from codehub.ports.instances import (
    Changes,
    ImageMissing,
    InstanceRequest,
    Instances,
    ListeningPort,
    Outdated,
    PortUnavailable,
    Upstream,
)
from codehub.ports.messages import (
    CREDENTIALS_CHANGED,
    ActivityBatch,
    ActivityBuffer,
    BusMessage,
    EventBus,
    EventSubscription,
    ProgressBoard,
)
from codehub.ports.progress import (
    Progress,
    Report,
)
from codehub.ports.storage import (
    UNRECORDED,
    ArchiveObject,
    Archives,
    ArchiveStore,
    ExpectedArchive,
    HomeStore,
    Measurement,
    StorageJobs,
    StoredArchive,
    Volumes,
)
from codehub.ports.workflows import (
    Convergence,
    Histories,
    StepRecord,
    StepResult,
    Sweeps,
    SweepState,
)

__all__ = [
    "CREDENTIALS_CHANGED",
    "UNRECORDED",
    "ActivityBatch",
    "ActivityBuffer",
    "ArchiveObject",
    "ArchiveStore",
    "Archives",
    "BusMessage",
    "Changes",
    "Convergence",
    "EventBus",
    "EventSubscription",
    "ExpectedArchive",
    "Histories",
    "HomeStore",
    "IdentityProvider",
    "IdentityRejected",
    "ImageMissing",
    "InstanceRequest",
    "Instances",
    "ListeningPort",
    "Measurement",
    "Outdated",
    "PortUnavailable",
    "Progress",
    "ProgressBoard",
    "ProvenIdentity",
    "ProviderUnavailable",
    "Report",
    "SignInSecrets",
    "StepRecord",
    "StepResult",
    "StorageJobs",
    "StoredArchive",
    "SweepState",
    "Sweeps",
    "Upstream",
    "Volumes",
]
