"""Examples of requests and responses for the OpenAPI document."""

from pydantic import JsonValue

from api.schemas.workspaces import EXAMPLE as WORKSPACE

ID = "0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44"
USER_ID = "7d0c6a52-8a4e-4b0e-b7a4-0d7d5d0f6f10"
SESSION_ID = "c3b3a0f4-5f0e-4f0b-9d7a-2f6a1f0f9f61"
TOKEN_ID = "f2a3f0de-7a0c-4c83-8b8c-4f6fb8f7f5f4"  # noqa: S105 (its id)
ARCHIVE_ID = "b1b8a7c6-0c4f-4a34-9c7c-3f6b2a7d8e90"

TOKEN: dict[str, JsonValue] = {
    "id": TOKEN_ID,
    "name": "laptop",
    "created_at": "2026-11-16T09:30:00Z",
    "expires_at": "2027-02-14T09:30:00Z",
    "last_used_at": None,
    "scopes": ["read", "workspaces"],
    "workspaces": None,
}
USER: dict[str, JsonValue] = {
    "id": USER_ID,
    "username": "ada",
    "role": "user",
    "created_at": "2026-11-01T08:00:00Z",
    "disabled_at": None,
    "locked_until": None,
}
PHASES: dict[str, JsonValue] = {"PENDING": 0, "ARCHIVED": 3, "STANDBY": 2, "RUNNING": 1, "ERROR": 0}
POSTGRESQL: dict[str, JsonValue] = {
    "name": "postgresql",
    "required": True,
    "healthy": True,
    "version": None,
    "error": None,
    "milliseconds": 1.2,
}

AUDIT_ENTRY: dict[str, JsonValue] = {
    "id": 7,
    "at": "2026-11-16T09:30:00Z",
    "action": "token_create",
    "outcome": "success",
    "actor": "ada",
    "actor_id": USER_ID,
    "address": "192.0.2.7",
    "target": "laptop",
    "target_id": TOKEN_ID,
    "detail": {"expires_at": "2027-02-14T09:30:00Z"},
}

ALLOW_LIST: dict[str, JsonValue] = {"mode": "allow-list", "names": ["*.example.org", "github.com"]}
OPEN_NETWORK: dict[str, JsonValue] = {"mode": "open", "names": []}
CONNECTIONS: dict[str, JsonValue] = {
    "hour": "2026-11-16T09:00:00Z",
    "name": "github.com",
    "port": 443,
    "verdict": "allowed",
    "count": 7,
}

SHARE: dict[str, JsonValue] = {
    "audience": "users",
    "created_at": "2026-11-16T09:30:00Z",
    "expires_at": "2026-11-16T17:30:00Z",
}
PORT: dict[str, JsonValue] = {
    "port": 5173,
    "process": "node",
    "listening": True,
    "url": f"http://5173--{ID}.localhost:8080/",
    "share": SHARE,
}

# By schema name.
EXAMPLES: dict[str, JsonValue] = {
    "PortItem": PORT,
    "PortList": {"items": [PORT], "sharing": "users", "max_share_seconds": None, "unavailable": None},
    "Share": SHARE,
    "SharedPort": {**SHARE, "port": 5173, "url": PORT["url"]},
    "NetworkPolicy": {
        "enforced": True,
        "choice": ALLOW_LIST,
        "limit": None,
        "installation": OPEN_NETWORK,
        "owners_may_loosen": False,
        "effective": [OPEN_NETWORK, ALLOW_LIST],
    },
    "NetworkLog": {"items": [CONNECTIONS]},
    "EgressPage": {
        "items": [{**CONNECTIONS, "workspace_id": ID, "workspace": "compiler", "owner": "ada"}],
        "next_cursor": None,
    },
    "Liveness": {"status": "ok"},
    "Readiness": {"ready": True, "dependencies": [POSTGRESQL]},
    "AuthenticatorView": {
        "available": True,
        "enabled_at": "2026-11-16T09:30:00Z",
        "recovery_codes_left": 10,
        "required": False,
    },
    "AuthenticatorSecret": {
        "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
        "uri": "otpauth://totp/CodeHub:ada?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=CodeHub",
        "qr_code": {"size": 41, "path": "M4 4h1v1h-1z"},
    },
    "RecoveryCodes": {"codes": ["k5w0-jx7o-3yv2-mq9b"]},
    "SignInOptions": {"provider": "Example", "passwords": "everyone"},
    "SignInBegun": {"url": "https://login.example.com/authorize?client_id=codehub&..."},
    "SessionView": {
        "id": SESSION_ID,
        "user": {"id": USER_ID, "username": "ada", "role": "user"},
        "credential": "session",
        "expires_at": "2026-11-30T09:30:00Z",
        "csrf_token": "k5w0Jx7o3yV2mQ9bT1cR8dZ4eU6fS0gH2iL3jN5pA7q",
        "unsafe_workspaces": False,
    },
    "ChangePassword": {"current_password": "correct horse battery", "new_password": "staple of a battery"},
    "SessionList": {
        "items": [
            {
                "id": SESSION_ID,
                "created_at": "2026-11-16T09:30:00Z",
                "expires_at": "2026-11-30T09:30:00Z",
                "last_seen_at": "2026-11-16T10:02:00Z",
                "user_agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
                "current": True,
            }
        ]
    },
    "TokenList": {"items": [TOKEN]},
    "AuditPage": {"items": [AUDIT_ENTRY], "next_cursor": None},
    "CreatedToken": {**TOKEN, "token": "codehub_pat_..."},
    "Workspace": WORKSPACE,
    "WorkspacePage": {"items": [WORKSPACE], "next_cursor": None},
    "Deletion": {
        "workspace": {
            **WORKSPACE,
            "desired_state": "DELETED",
            "deleted_at": "2026-11-16T10:00:00Z",
            "undelete_until": "2026-11-23T10:00:00Z",
            "next_change": None,
            "settled": False,
            "version": 6,
        },
        "purge": False,
        "message": (
            "The workspace is being deleted after a last archive. Undelete restores it while that exists."
        ),
    },
    "OperationPage": {
        "items": [
            {
                "id": 4,
                "operation": "STARTING",
                "result": "COMPLETED",
                "started_at": "2026-11-16T09:30:02Z",
                "ended_at": "2026-11-16T09:30:04Z",
                "duration_seconds": 2.1,
                "attempts": 1,
                "error_reason": None,
                "message": None,
                "temporal_url": "http://127.0.0.1:8233/namespaces/default/workflows?query=...",
            }
        ],
        "next_cursor": None,
    },
    "StepList": {
        "items": [
            {
                "name": "start_instance",
                "operation_attempt": 1,
                "result": "COMPLETED",
                "scheduled_at": "2026-11-16T09:30:02Z",
                "started_at": "2026-11-16T09:30:02Z",
                "ended_at": "2026-11-16T09:30:04Z",
                "attempts": 1,
                "error": None,
            }
        ],
        "hint": None,
    },
    "CurrentProgress": {
        "progress": {
            "id": ID,
            "operation": "ARCHIVING",
            "step": "upload",
            "done": 1_048_576,
            "total": 4_194_304,
            "unit": "bytes",
            "at": "2026-11-16T09:30:02Z",
        }
    },
    "Activity": {
        "bucket_seconds": 900,
        "since": "2026-11-15T10:15:00Z",
        "used": ["2026-11-16T09:30:00Z", "2026-11-16T09:45:00Z"],
    },
    "EventPage": {
        "items": [
            {
                "id": 5,
                "at": "2026-11-16T09:30:00Z",
                "kind": "state_requested",
                "actor": "ada",
                "operation": None,
                "phase": "STANDBY",
                "error_reason": None,
                "detail": {"from": "STANDBY", "to": "RUNNING"},
            }
        ],
        "next_cursor": None,
    },
    "ArchiveList": {
        "items": [
            {
                "archive_op_id": ARCHIVE_ID,
                "size_bytes": 1_048_576,
                "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "created_at": "2026-11-15T18:00:00Z",
                "verified_at": "2026-11-15T18:00:03Z",
                "current": True,
                "orphan_since": None,
                "given_up_at": None,
                "removed_at": None,
            }
        ]
    },
    "UserItem": USER,
    "UserPage": {"items": [USER], "next_cursor": None},
    "PhaseCounts": {"phases": PHASES},
    "BulkRecovered": {
        "recovered": [ID],
        "refused": [{"id": ARCHIVE_ID, "message": "This workspace does not exist."}],
    },
    "SystemStatus": {
        "version": "0.1.0",
        "now": "2026-11-16T10:00:00Z",
        "dependencies": [{**POSTGRESQL, "version": "18.1"}],
        "sweeps": [
            {
                "id": "observe",
                "paused": False,
                "running": False,
                "last_started_at": "2026-11-16T09:59:50Z",
                "next_at": "2026-11-16T10:00:05Z",
                "age_seconds": 10.0,
            }
        ],
        "phases": PHASES,
        "needs_person": 0,
        "limits": {"running": 1, "max_running_global": 100, "max_running_per_user": 2},
        "live_clients": 4,
    },
}
