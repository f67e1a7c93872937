"""Connects containers to the egress gateway, which is their only way out: they have no network.

Docker's networks do not confine enough: even from an `internal` one, a container reaches every server that
listens on all addresses of the host.
"""

from typing import Any

from codehub.adapters.docker.sockets import with_mount
from codehub.instance_egress import GATEWAY_DIRECTORY, EgressAccess, proxy_environment

NO_NETWORK = "none"
# The gateway may start later, but its directory must exist.
EGRESS_MODE = 0o711


def prepare_gateway(egress: EgressAccess) -> None:
    """Create the directory that containers mount."""
    egress.socket.parent.mkdir(mode=EGRESS_MODE, parents=True, exist_ok=True)


def behind_gateway(configuration: dict[str, Any], egress: EgressAccess) -> dict[str, Any]:
    """Return the configuration of a container whose only way out is the gateway."""
    variables = [f"{name}={value}" for name, value in proxy_environment().items()]
    host = with_mount(configuration["HostConfig"], egress.socket.parent, GATEWAY_DIRECTORY, read_only=True)
    return {
        **configuration,
        "Env": [*configuration["Env"], *variables],
        "HostConfig": {**host, "NetworkMode": NO_NETWORK},
    }
