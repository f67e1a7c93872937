"""What an instance needs to use the egress gateway: a relay inside, and settings that programs understand."""

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
    """The gateway's socket on the host, and the key that the tokens of workspaces are made from."""

    socket: Path
    key: str = field(repr=False)

    def relay_options(self, workspace_id: WorkspaceId) -> dict[str, str]:
        """Return what the relay inside needs; no program that people run gets it."""
        return {
            "gateway": f"{GATEWAY_DIRECTORY}/{self.socket.name}",
            "preamble": make_preamble(self.key, workspace_id),
        }


def proxy_environment() -> dict[str, str]:
    """Return the variables with which programs find the relay."""
    # Most programs read these in upper or lower case, some only in one of them. Not socks5h: libraries
    # without support for SOCKS fail at once when they see it.
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    urls = {spelling: RELAY_URL for name in names for spelling in (name, name.lower())}
    return {
        **urls,
        "NO_PROXY": NO_PROXY,
        "no_proxy": NO_PROXY,
        "npm_config_proxy": RELAY_URL,
        "npm_config_https_proxy": RELAY_URL,
        # Node's own fetch looks at the variables above only if this is set.
        "NODE_USE_ENV_PROXY": "1",
    }


def ssh_config(python: str, program: str) -> str:
    """Return a configuration for ssh, and so for git over ssh; a person's own configuration overrides it."""
    # ssh replaces words that begin with a percent sign.
    command = f"{shlex.quote(python)} -I -S {shlex.quote(program)}".replace("%", "%%")
    return (
        f"Host * !localhost !127.0.0.1 !::1\n"
        f"    ProxyCommand {command} {RELAY_HOST} {RELAY_PORT} %h %p\n"
        f"    ServerAliveInterval 60\n"
    )
