"""The access table: who may use which route. The application does not start if a route is not in it."""

from enum import StrEnum

from codehub.domain.scopes import Scope


class Access(StrEnum):
    """Who may use a route."""

    PUBLIC = "public"
    # For operators and monitoring, on the API's own port; not through the proxy.
    OPERATOR = "operator"
    USER = "user"
    # The owner of the workspace in the path, or an administrator.
    OWNER = "owner"
    # Only the owner of the workspace in the path, not administrators: it decides who enters.
    OWNER_ALONE = "owner alone"
    ADMIN = "admin"


# Routes that need no caller.
ANONYMOUS = frozenset({Access.PUBLIC, Access.OPERATOR})
# Routes with a workspace in their path.
OF_WORKSPACE = frozenset({Access.OWNER, Access.OWNER_ALONE})

API = "/api/v1"
WORKSPACE = f"{API}/workspaces/{{workspace_id}}"
# The redirect address that is registered at the identity provider.
CALLBACK = f"{API}/oidc/callback"
ADMIN_USER = f"{API}/admin/users/{{user_id}}"
ADMIN_NETWORK = f"{API}/admin/workspaces/{{workspace_id}}/network"
ADMIN_DISK = f"{API}/admin/workspaces/{{workspace_id}}/disk"

ACCESS: dict[tuple[str, str], Access] = {
    ("GET", "/"): Access.PUBLIC,
    ("GET", "/login"): Access.PUBLIC,
    ("GET", "/workspaces/{workspace_id}"): Access.PUBLIC,
    ("GET", "/account"): Access.PUBLIC,
    ("GET", "/admin"): Access.PUBLIC,
    ("GET", "/admin/audit"): Access.PUBLIC,
    ("GET", "/admin/egress"): Access.PUBLIC,
    ("GET", "/assets/{digest}/{name}"): Access.PUBLIC,
    ("GET", "/healthz"): Access.PUBLIC,
    ("GET", "/readyz"): Access.OPERATOR,
    ("GET", "/metrics"): Access.OPERATOR,
    ("GET", f"{API}/openapi.json"): Access.PUBLIC,
    ("POST", f"{API}/login"): Access.PUBLIC,
    ("GET", f"{API}/sign-in"): Access.PUBLIC,
    ("POST", f"{API}/oidc/sign-in"): Access.PUBLIC,
    ("GET", CALLBACK): Access.PUBLIC,
    ("POST", f"{API}/logout"): Access.USER,
    ("GET", f"{API}/session"): Access.USER,
    ("POST", f"{API}/session/confirm"): Access.USER,
    ("POST", f"{API}/password"): Access.USER,
    ("GET", f"{API}/sessions"): Access.USER,
    ("DELETE", f"{API}/sessions"): Access.USER,
    ("DELETE", f"{API}/sessions/{{session_id}}"): Access.USER,
    ("GET", f"{API}/tokens"): Access.USER,
    ("POST", f"{API}/tokens"): Access.USER,
    ("DELETE", f"{API}/tokens/{{token_id}}"): Access.USER,
    ("GET", f"{API}/authenticator"): Access.USER,
    ("POST", f"{API}/authenticator"): Access.USER,
    ("POST", f"{API}/authenticator/enable"): Access.USER,
    ("DELETE", f"{API}/authenticator"): Access.USER,
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
    ("GET", f"{WORKSPACE}/network"): Access.OWNER,
    ("PATCH", f"{WORKSPACE}/network"): Access.OWNER,
    ("GET", f"{WORKSPACE}/network/log"): Access.OWNER,
    ("GET", f"{WORKSPACE}/ports"): Access.OWNER,
    ("PUT", f"{WORKSPACE}/ports/{{port}}/share"): Access.OWNER_ALONE,
    ("DELETE", f"{WORKSPACE}/ports/{{port}}/share"): Access.OWNER,
    ("GET", f"{API}/admin/users"): Access.ADMIN,
    ("POST", f"{API}/admin/users"): Access.ADMIN,
    ("GET", ADMIN_USER): Access.ADMIN,
    ("PATCH", ADMIN_USER): Access.ADMIN,
    ("DELETE", f"{ADMIN_USER}/authenticator"): Access.ADMIN,
    ("GET", f"{API}/admin/workspaces"): Access.ADMIN,
    ("PATCH", ADMIN_NETWORK): Access.ADMIN,
    ("PATCH", ADMIN_DISK): Access.ADMIN,
    ("GET", f"{API}/admin/phases"): Access.ADMIN,
    ("GET", f"{API}/admin/errors"): Access.ADMIN,
    ("POST", f"{API}/admin/errors/recover"): Access.ADMIN,
    ("GET", f"{API}/admin/status"): Access.ADMIN,
    ("GET", f"{API}/admin/audit"): Access.ADMIN,
    ("GET", f"{API}/admin/audit/export"): Access.ADMIN,
    ("GET", f"{API}/admin/egress"): Access.ADMIN,
}

# A session can use these only shortly after its user has entered the password, so that a stolen cookie or a
# page in a workspace cannot create a token or an account. So do changes to other people's workspaces.
NEEDS_PASSWORD: frozenset[tuple[str, str]] = frozenset(
    {
        ("POST", f"{API}/tokens"),
        ("POST", f"{API}/admin/users"),
        ("PATCH", ADMIN_USER),
        ("POST", f"{API}/authenticator"),
        ("DELETE", f"{API}/authenticator"),
        ("DELETE", f"{ADMIN_USER}/authenticator"),
        ("PATCH", ADMIN_NETWORK),
        ("PATCH", ADMIN_DISK),
        ("POST", f"{API}/admin/errors/recover"),
    }
)
# A token cannot use these at all, because it has no password entry.
NEEDS_SESSION: frozenset[tuple[str, str]] = frozenset(
    {
        ("POST", f"{API}/tokens"),
        ("POST", f"{API}/session/confirm"),
        ("POST", f"{API}/authenticator"),
        ("POST", f"{API}/authenticator/enable"),
        ("DELETE", f"{API}/authenticator"),
    }
)

# Any token may ask who its owner is; signing out with a token changes nothing.
ANY_TOKEN: frozenset[tuple[str, str]] = frozenset({("GET", f"{API}/session"), ("POST", f"{API}/logout")})
# What a token that is limited to workspaces may use besides the routes of its workspaces.
LIMITED_TOKEN: frozenset[tuple[str, str]] = ANY_TOKEN | {
    ("GET", f"{API}/editors"),
    ("GET", f"{API}/workspaces"),
}


def scope_of(route: tuple[str, str]) -> Scope | None:
    """Return the scope that a token needs for the route; None if any token will do."""
    if ACCESS[route] is Access.ADMIN:
        return Scope.ADMIN
    if ACCESS[route] in ANONYMOUS or route in ANY_TOKEN:
        return None
    return Scope.READ if route[0] == "GET" else Scope.WORKSPACES
