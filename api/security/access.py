"""The access table: who may use which route. The application does not start if a route is not in it."""

from enum import StrEnum


class Access(StrEnum):
    """Who may use a route."""

    PUBLIC = "public"
    USER = "user"
    # The owner of the workspace in the path, or an administrator.
    OWNER = "owner"
    ADMIN = "admin"


API = "/api/v1"
WORKSPACE = f"{API}/workspaces/{{workspace_id}}"
ADMIN_USER = f"{API}/admin/users/{{user_id}}"

ACCESS: dict[tuple[str, str], Access] = {
    ("GET", "/"): Access.PUBLIC,
    ("GET", "/login"): Access.PUBLIC,
    ("GET", "/workspaces/{workspace_id}"): Access.PUBLIC,
    ("GET", "/account"): Access.PUBLIC,
    ("GET", "/admin"): Access.PUBLIC,
    ("GET", "/assets/{digest}/{name}"): Access.PUBLIC,
    ("GET", "/healthz"): Access.PUBLIC,
    ("GET", "/readyz"): Access.PUBLIC,
    ("GET", "/metrics"): Access.PUBLIC,
    ("GET", f"{API}/openapi.json"): Access.PUBLIC,
    ("POST", f"{API}/login"): Access.PUBLIC,
    ("POST", f"{API}/logout"): Access.USER,
    ("GET", f"{API}/session"): Access.USER,
    ("POST", f"{API}/password"): Access.USER,
    ("GET", f"{API}/sessions"): Access.USER,
    ("DELETE", f"{API}/sessions/{{session_id}}"): Access.USER,
    ("GET", f"{API}/tokens"): Access.USER,
    ("POST", f"{API}/tokens"): Access.USER,
    ("DELETE", f"{API}/tokens/{{token_id}}"): Access.USER,
    ("GET", f"{API}/events"): Access.USER,
    ("GET", f"{API}/editors"): Access.USER,
    ("GET", f"{API}/workspaces"): Access.USER,
    ("POST", f"{API}/workspaces"): Access.USER,
    ("GET", WORKSPACE): Access.OWNER,
    ("PATCH", WORKSPACE): Access.OWNER,
    ("DELETE", WORKSPACE): Access.OWNER,
    ("POST", f"{WORKSPACE}/recover"): Access.OWNER,
    ("POST", f"{WORKSPACE}/undelete"): Access.OWNER,
    ("GET", f"{WORKSPACE}/operations"): Access.OWNER,
    ("GET", f"{WORKSPACE}/operations/{{operation_id}}/steps"): Access.OWNER,
    ("GET", f"{WORKSPACE}/progress"): Access.OWNER,
    ("GET", f"{WORKSPACE}/activity"): Access.OWNER,
    ("GET", f"{WORKSPACE}/events"): Access.OWNER,
    ("GET", f"{WORKSPACE}/archives"): Access.OWNER,
    ("GET", f"{WORKSPACE}/logs"): Access.OWNER,
    ("GET", f"{API}/admin/users"): Access.ADMIN,
    ("POST", f"{API}/admin/users"): Access.ADMIN,
    ("GET", ADMIN_USER): Access.ADMIN,
    ("PATCH", ADMIN_USER): Access.ADMIN,
    ("GET", f"{API}/admin/workspaces"): Access.ADMIN,
    ("GET", f"{API}/admin/phases"): Access.ADMIN,
    ("GET", f"{API}/admin/errors"): Access.ADMIN,
    ("POST", f"{API}/admin/errors/recover"): Access.ADMIN,
    ("GET", f"{API}/admin/status"): Access.ADMIN,
}
