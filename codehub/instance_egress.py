"""Connects an instance to the egress gateway: options of the relay, and settings for programs."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from codehub.domain.conditions import WorkspaceId
from codehub.egress_tokens import make_preamble

# The relay inside the instance listens here; see workspace_agent/egress_relay.py.
RELAY_HOST = "127.0.0.1"
RELAY_PORT = 3128
RELAY_URL = f"http://{RELAY_HOST}:{RELAY_PORT}"
# The directory of the gateway's socket is mounted, because a new gateway replaces the socket.
GATEWAY_DIRECTORY = "/run/codehub/egress"
NO_PROXY = "localhost,.localhost,127.0.0.1,::1"


@dataclass(frozen=True)
class EgressAccess:
    """The gateway's socket on the host, and the key from which tokens are derived."""

    socket: Path
    key: str = field(repr=False)

    def relay_options(self, workspace_id: WorkspaceId) -> dict[str, str]:
        """Return the options of the relay; other programs do not see them."""
        return {
            "gateway": f"{GATEWAY_DIRECTORY}/{self.socket.name}",
            "preamble": make_preamble(self.key, workspace_id),
        }


def proxy_environment() -> dict[str, str]:
    """Return the environment variables that point programs to the relay."""
    # Some programs read only the upper-case or only the lower-case names. No socks5h: libraries without SOCKS
    # support would fail.
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    urls = {spelling: RELAY_URL for name in names for spelling in (name, name.lower())}
    return {
        **urls,
        "NO_PROXY": NO_PROXY,
        "no_proxy": NO_PROXY,
        "npm_config_proxy": RELAY_URL,
        "npm_config_https_proxy": RELAY_URL,
        # Node's fetch reads the variables above only if this is set.
        "NODE_USE_ENV_PROXY": "1",
    }


def ssh_config(python: str, program: str) -> str:
    """Return a configuration for ssh, and for git over ssh; the user's own configuration overrides it."""
    # ssh expands percent signs.
    command = f"{shlex.quote(python)} -I -S {shlex.quote(program)}".replace("%", "%%")
    return (
        f"Host * !localhost !127.0.0.1 !::1\n"
        f"    ProxyCommand {command} {RELAY_HOST} {RELAY_PORT} %h %p\n"
        f"    ServerAliveInterval 60\n"
    )
