"""The tables, by concern."""

from codehub.db.models.base import Base
from codehub.db.models.identity import (
    ApiToken,
    Authenticator,
    KnownPlace,
    OidcAttempt,
    OidcIdentity,
    RecoveryCode,
    Session,
    SignInFailure,
    User,
    WorkspaceSession,
)
from codehub.db.models.installation import (
    AuditEntry,
    EgressLog,
    HomeStore,
)
from codehub.db.models.workspaces import (
    Archive,
    IdempotencyKey,
    Workspace,
    WorkspaceEvent,
    WorkspaceUsage,
)

__all__ = [
    "ApiToken",
    "Archive",
    "AuditEntry",
    "Authenticator",
    "Base",
    "EgressLog",
    "HomeStore",
    "IdempotencyKey",
    "KnownPlace",
    "OidcAttempt",
    "OidcIdentity",
    "RecoveryCode",
    "Session",
    "SignInFailure",
    "User",
    "Workspace",
    "WorkspaceEvent",
    "WorkspaceSession",
    "WorkspaceUsage",
]
